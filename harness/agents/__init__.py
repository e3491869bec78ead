"""The agents that write candidates."""
