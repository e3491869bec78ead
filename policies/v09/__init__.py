"""V1: structured event memory."""
