"""``run.json``: what a run is. Written once, when the run is created; its hash is in the first audit line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UserError

VERSION = 1
"""Version of the run folder's format. A folder of another version is not read."""
NAME = "run.json"


class DataRef(BaseModel):
    """The data set that a run searches on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    digest: str
    path: str


class RunManifest(BaseModel):
    """What a run is. Times are ISO 8601 in UTC; ``config`` is the resolved configuration without secrets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = VERSION
    name: str
    created: str
    seed: int
    iterations: int | None = None
    """Total asked for when the run was created; a later command may ask for more."""
    parent: str
    """Name of the policy that the search starts from."""
    profile: str
    config: Mapping[str, Any]
    data: DataRef
    harness: str = ""
    """Version of the harness that made the run; empty where it was not recorded."""
    runtime_digest: str
    sandbox: Annotated[str, Field(pattern=r"\S")]
    """Label of the sandbox, with what its probes found to hold."""
    h0: Mapping[str, str]
    """sha256 of each fixed source by file name."""

    @property
    def back_end(self) -> str:
        """``docker`` or ``bubblewrap``: what its label begins with."""
        return self.sandbox.split()[0]


class _Versioned(BaseModel):
    version: int


def read_manifest(folder: Path) -> RunManifest:
    """The manifest of the run in ``folder``. Raises UserError: no run, another version, damaged."""
    path = folder / NAME
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{folder} holds no run ({NAME} is missing); name another run or start one") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); mend its rights or name another run") from None
    try:
        version = _Versioned.model_validate_json(text).version
    except ValidationError:
        raise UserError(f"{path} is damaged (no version in it); restore it from a copy, or start a new run") from None
    if version != VERSION:
        raise UserError(
            f"{folder} was written in run format {version}, this program reads format {VERSION}; "
            "use the program that wrote it, or start a new run"
        )
    try:
        return RunManifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path} is damaged ({where}: {first['msg']}); restore it, or start a new run") from None


def data_places(run: RunManifest, folder: Path) -> tuple[Path, Path]:
    """Where the run's data may lie: where the run had it, and beside the run's folder, if both have moved together."""
    recorded = Path(run.data.path)
    return recorded, folder.absolute().parent.parent / recorded
