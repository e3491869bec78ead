"""The bundled *life-log*: a simulated world told in windows, with questions answered from the world's state."""

from harness.data.lifelog.make import VERSION, make_lifelog

__all__ = ["VERSION", "make_lifelog"]
