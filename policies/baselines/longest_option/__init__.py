"""The longest option."""
