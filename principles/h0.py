"""H0: the four fixed sources of a run, copied into it and verified by hash at every start.

The sources (method, "Initialization"): research principles, research wiki, constitution (text and its machine-readable
rules), and the manifest of permitted development artifacts, which carries no labels. No run may change any of them.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

TEXTS = ("research_principles.md", "research_wiki.md", "constitution.md", "constitution.toml")
ARTIFACTS = "permitted_artifacts.json"
FOLDER = "h0"


class H0Error(Exception):
    """A fixed source is missing, unreadable or changed. One line: which file, and what to do."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Enforcer(StrEnum):
    """Who checks a rule."""

    INTAKE = "intake"
    STATIC = "static"
    DYNAMIC = "dynamic"
    REVIEWER = "reviewer"
    LOOP = "loop"


class Rule(_Record):
    """One rule of the constitution."""

    id: str
    enforcer: Enforcer
    title: str
    text: str


class IntakeRules(_Record):
    """Parameters of I01 and I02: file-name pattern (whole name), number of files, bytes of one and of all."""

    name: str
    files: int
    file_bytes: int
    total_bytes: int


class StaticRules(_Record):
    """Parameters of the static checks (S01 to S14)."""

    imports: tuple[str, ...]
    """Modules a candidate may import."""
    import_packages: tuple[str, ...]
    """Packages that may be imported with everything below them."""
    forbidden_names: tuple[str, ...]
    forbidden_attributes: tuple[str, ...]
    data_set_words: tuple[str, ...]
    """Case folded, separators removed."""
    gold_words: tuple[str, ...]
    limits: Mapping[str, int]
    """Sizes by name: file and line length, syntax nodes, complexity, literals."""


class Constitution(_Record):
    """The machine-readable constitution."""

    intake: IntakeRules
    static: StaticRules
    rule: tuple[Rule, ...]

    def find(self, rule_id: str) -> Rule | None:
        """The rule of that id, or None."""
        return next((rule for rule in self.rule if rule.id == rule_id), None)

    def of(self, enforcer: Enforcer) -> tuple[Rule, ...]:
        """The rules that ``enforcer`` checks, in order."""
        return tuple(rule for rule in self.rule if rule.enforcer is enforcer)


class PermittedArtifact(_Record):
    """Something an author may look at during development: named and pinned, without labels."""

    name: str
    what: str
    sha256: str


class H0(_Record):
    """The fixed sources as loaded."""

    principles: str
    wiki: str
    constitution_text: str
    constitution: Constitution
    artifacts: tuple[PermittedArtifact, ...] = ()


def load_h0(folder: Path | None = None) -> H0:
    """The sources that come with the project, or those in ``folder`` (a run's ``h0``). Raises H0Error."""
    root = folder or Path(__file__).resolve().parent
    texts = {name: _text(root / name) for name in TEXTS}
    try:
        constitution = Constitution.model_validate(tomllib.loads(texts["constitution.toml"]))
        raw = json.loads(_text(root / ARTIFACTS)) if folder else []
        artifacts = tuple(PermittedArtifact.model_validate(item) for item in raw)
    except (ValueError, ValidationError) as error:
        raise H0Error(f"{root}: a fixed source cannot be read ({str(error).splitlines()[0]}); restore it") from None
    return H0(
        principles=texts["research_principles.md"],
        wiki=texts["research_wiki.md"],
        constitution_text=texts["constitution.md"],
        constitution=constitution,
        artifacts=artifacts,
    )


def install(run_folder: Path, permitted_artifacts: Iterable[PermittedArtifact]) -> dict[str, str]:
    """Copy the texts into ``run_folder/h0`` and write the manifest of permitted artifacts beside them.

    Returns the sha256 of each file by name, as ``verify`` wants them. Doing it again gives the same files.
    Raises H0Error where the folder cannot be written.
    """
    source, target = Path(__file__).resolve().parent, run_folder / FOLDER
    contents = {name: (source / name).read_bytes() for name in TEXTS}
    items = sorted(permitted_artifacts, key=lambda artifact: artifact.name)
    manifest = json.dumps([item.model_dump() for item in items], indent=2, sort_keys=True) + "\n"
    contents[ARTIFACTS] = manifest.encode("utf-8")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (target / name).write_bytes(content)
    except OSError as error:
        raise H0Error(f"{target} cannot be written ({error.strerror}); check its owner and free space") from None
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def verify(run_folder: Path, hashes: Mapping[str, str]) -> None:
    """Check every fixed source of a run against the hashes recorded when it was created.

    Raises H0Error naming the first file that is changed, missing, or not one of the run's sources.
    """
    folder = run_folder / FOLDER
    if set(hashes) != {*TEXTS, ARTIFACTS}:
        raise H0Error(f"{run_folder}: the record of the fixed sources is incomplete; the run cannot be trusted")
    for name in sorted(hashes):
        path = folder / name
        try:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise H0Error(f"{path} cannot be read ({error.strerror}); restore it, or start a new run") from None
        if found != hashes[name]:
            raise H0Error(f"{path} was changed since the run began; restore it, or start a new run")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise H0Error(f"{path} cannot be read ({error.strerror}); restore it") from None
    except UnicodeDecodeError:
        raise H0Error(f"{path} is not UTF-8 text; restore it") from None
