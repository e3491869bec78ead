"""The reviewer's tests speak with a model over HTTP."""

from tests.endpoint import endpoint, models

__all__ = ["endpoint", "models"]
