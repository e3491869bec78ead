"""The models of a run that is looked at again: stored replies and nothing else. No key is read, nothing is sent."""

from __future__ import annotations

from pathlib import Path

from harness.config import Config
from harness.models.hub import Call, ModelHub, offline_models
from harness.models.interface import ModelError, Models, RequestRefused, Role


class ReplyMissing(ModelError):
    """No reply to this request is stored."""


class RecordedModels(ModelHub):
    """Serves what ``folder/replies.db`` holds. A request that the endpoint refused is refused again."""

    def _key(self, role: Role) -> str | None:
        return None

    def _buy(self, call: Call) -> None:
        refusal = self._replies.refusal(call.role, call.scope, call.digest)
        if refusal is not None:
            raise RequestRefused(refusal)
        raise ReplyMissing(f"no reply to the {call.role}'s request {call.digest[:12]} at {call.scope} is recorded")


def recorded_models(config: Config, folder: Path) -> Models:
    """Stored replies of the configuration's profile. Raises UserError."""
    return RecordedModels(config, folder) if any(map(config.role, Role)) else offline_models()
