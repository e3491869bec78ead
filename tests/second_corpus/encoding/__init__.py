"""Fields with an encoding."""
