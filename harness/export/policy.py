"""One attempt's policy as a Python package that answers on its own. Nothing of the candidate is executed for it."""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness import __version__, history
from harness.config import recorded
from harness.display import visible
from harness.errors import UserError
from harness.evaluation.report import figures
from harness.export.values import dumped
from harness.outcomes import Measured, Proposed, TakenIn
from harness.rounds import base, bundle, taken_in
from harness.seeds import derive
from harness.state.folder import write_whole
from harness.state.objects import object_id, tree_body
from harness.state.store import RunStore
from sandbox.interface import Limits, SandboxError
from sandbox.prelude import prelude
from sandbox.runtime import LOCK

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
VERBATIM = {
    "loader.py": "sandbox/loader.py",
    "reading.py": "harness/evaluation/reading.py",
    "reader.py": "harness/models/reader.py",
    "letters.py": "harness/models/letters.py",
}
"""Modules of ours that go along, by their names in the package."""
OURS = re.compile(r"^from (?:harness\.(?:export\.package|evaluation|models)|sandbox)\.(\w+) import", re.MULTILINE)
PIN = re.compile(r"^([A-Za-z0-9-]+==[0-9.]+)", re.MULTILINE)
REQUESTS = ("Build", "Generate", "Embed", "Frames")
"""What a policy may ask for that the package does not serve."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    folder: Path
    package: str
    attempt: int
    outcome: str


def export_policy(store: RunStore, k: int | None, out: Path) -> Exported:
    """Write attempt ``k`` (None: the best of the frontier) into the folder ``out``, which must not be there yet.

    Raises UserError: no candidate, a record that is damaged, another runtime than the run's, a folder that is there or
    cannot be written.
    """
    number = best(store) if k is None else k
    taken = taken_in(store, number)
    if taken is None:
        raise UserError(f"attempt {number} has no candidate to export; see: harness show {number}")
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} is there already; name a new folder with --out")
    candidate = _candidate(store, taken)
    check_runtime(store)
    package = f"policy_{number:04d}"
    provenance = _provenance(store, number, taken)
    files = _package(store, candidate, provenance, package)
    _write(out, files)
    return Exported(out, package, number, provenance["attempt"]["outcome"])


def best(store: RunStore) -> int:
    """The frontier policy with the highest validation accuracy. Raises UserError."""
    standing = history.standing(store)
    if not standing:
        raise UserError(f"run {store.manifest.name} has measured no policy yet; export one when it has")
    return int(standing[0]["iteration"])


# ---------------------------------------------------------------- what is recorded


def _candidate(store: RunStore, taken: TakenIn) -> dict[str, bytes]:
    """The files of the recorded tree, held against its id and against the digest of what was reviewed and run."""
    files = dict(bundle(store, taken).files)
    tree = object_id("tree", tree_body({path: object_id("blob", content) for path, content in files.items()}))
    if tree != taken.tree or store.lineage.commit_of(taken.commit).tree != tree:
        name = taken.branch or taken.tree
        raise UserError(f"{name} is not what was taken in; the run's repository was changed, restore a copy")
    return files


def check_runtime(store: RunStore) -> None:
    """Raises UserError where the blocks of this harness are not those that the run was made with."""
    try:
        here = _runtime_digest(store.manifest.back_end)
    except SandboxError as error:
        raise UserError(f"whether this is the runtime of the run cannot be told: {error}") from None
    if here != store.manifest.runtime_digest:
        raise UserError(
            f"the run's runtime is {store.manifest.runtime_digest[:12]}, here it is {here[:12]}, so the blocks or "
            "packages may differ; export with the version of the harness that made the run, or its image"
        )


def _runtime_digest(kind: str) -> str:
    """Of the back end here, without a container."""
    if kind == "docker":
        from sandbox.docker import DockerSandbox

        docker = DockerSandbox(Limits(), 0, "export")
        docker.close()
        return docker.runtime_digest
    from sandbox.bubblewrap import BubblewrapSandbox

    bubblewrap = BubblewrapSandbox(Limits(), 0, cgroups=False)
    bubblewrap.close()
    return bubblewrap.runtime_digest


def _provenance(store: RunStore, k: int, taken: TakenIn) -> dict[str, Any]:
    """Where it comes from, as JSON values."""
    run, measured = store.manifest, {}
    for split, stage in (("development", "develop"), ("validation", "validate")):
        if (found := store.stage(k, stage, Measured)) is not None:
            measured[split] = found.evaluation
    closed = history.closing(store)
    if closed is not None and closed.final == k:
        measured["test"] = closed.evaluations["final"]
    for split, evaluation in measured.items():
        if evaluation.policy != taken.bundle:
            raise UserError(f"the {split} figures of attempt {k} are of another policy; restore a copy of the run")
    proposed = [name for i, name in store.stages() if i == k and base(name) in ("propose", "revise")]
    last = store.stage(k, proposed[-1], Proposed) if proposed else None
    attempt = store.attempt(k)
    return {
        "format": "lvmh-policy/1",
        "run": {
            "name": run.name,
            "created": run.created,
            "profile": run.profile,
            "seed": run.seed,
            "harness": run.harness,
            "sandbox": run.sandbox,
        },
        "attempt": {
            "number": k,
            "parent": attempt.parent if attempt else None,
            "title": history.title(store, k),
            "outcome": _outcome(store, k),
            "rules": list(attempt.rules) if attempt else [],
            "author": last.proposal.author if last and last.proposal else f"LVMH ({run.parent})",
        },
        "commit": taken.commit,
        "outcome_commit": store.refs().get(f"refs/heads/{taken.branch}"),
        "branch": taken.branch,
        "tree": taken.tree,
        "bundle_digest": taken.bundle,
        "runtime_digest": run.runtime_digest,
        "data": {"name": run.data.name, "digest": run.data.digest},
        "offline": run.profile == "offline",
        "figures": {split: figures(evaluation) for split, evaluation in measured.items()},
        "exported_by": f"harness {__version__}",
    }


def _outcome(store: RunStore, k: int) -> str:
    """In words, whether it stands on the frontier first."""
    if k in history.frontier(store):
        return "on the frontier"
    attempt = store.attempt(k)
    if attempt is None:
        return "not finished" if k else "the policy that the run started from"
    if attempt.outcome == "promoted":
        return "promoted, no longer on the frontier"
    rules = f" ({', '.join(attempt.rules)})" if attempt.rules else ""
    return f"rejected at {attempt.outcome}{rules}"


# ---------------------------------------------------------------- what is written


def _package(
    store: RunStore, candidate: Mapping[str, bytes], provenance: Mapping[str, Any], package: str
) -> dict[str, bytes]:
    """All files by path."""
    run = store.manifest
    dist = f"lvmh-{package.replace('_', '-')}"
    code = {path.name: path.read_text("utf-8") for path in sorted((HERE / "package").glob("*.py"))}
    code |= {name: (TOP / source).read_text("utf-8") for name, source in VERBATIM.items()}
    texts = {path: content.decode("utf-8") for path, content in candidate.items()}
    setup = {"budget": asdict(recorded(run.config, {}).budget), "seed": derive(run.seed, 0, "policy")}
    modules = runtime(texts, code["reader.py"])
    read = [*texts.values(), *(text for name, text in modules.items() if name != "policies/contract.py")]
    asks = [name for name in REQUESTS if any(re.search(rf"\b{name}\(", text) for text in read)]
    attempt = provenance["attempt"]
    told = {
        "dist": dist,
        "package": package,
        "number": attempt["number"],
        "run": _code(run.name),
        "title": _code(attempt["title"]),
        "outcome": _code(attempt["outcome"]),
        "author": _code(attempt["author"]),
        "tree": provenance["tree"],
        "commit": provenance["commit"],
        "runtime": run.runtime_digest[:12],
        "figures": {split: {**f, "reader": _code(f["reader"])} for split, f in provenance["figures"].items()},
        "offline": provenance["offline"],
        "asks": asks,
    }
    files = {
        "README.md": _environment().get_template("readme.md.jinja").render(told).encode(),
        "LICENSE": _licence().encode(),
        "pyproject.toml": _pyproject(dist, package, provenance["tree"]).encode(),
        "provenance.json": f"{dumped(provenance, 2)}\n".encode(),
        f"{package}/setup.json": f"{dumped(setup, 2)}\n".encode(),
    }
    files |= {f"{package}/{name}": OURS.sub(r"from .\1 import", text).encode() for name, text in code.items()}
    files |= {f"{package}/runtime/{name}": text.encode() for name, text in modules.items()}
    return files | {f"{package}/candidate/{name}": content for name, content in candidate.items()}


def runtime(candidate: Mapping[str, str], *others: str) -> dict[str, str]:
    """The modules of ``policies`` that these texts import, and what those import, by path; parsed, never executed."""
    files: dict[str, str] = json.loads(prelude().line)["files"]
    wanted = ["policies.contract", *(name for text in others for name in _imports(text))]
    for path, text in candidate.items():
        if path.endswith(".py"):
            wanted += _imports(text)
    found = {"policies/__init__.py": files["policies/__init__.py"]}
    while wanted:
        stem = wanted.pop().replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if path in files and path.startswith("policies/") and path not in found:
                found[path] = files[path]
                wanted += [*_imports(files[path]), path.rpartition("/")[0]]
    if "policies/blocks/lemmas.py" in found:
        found["policies/blocks/lemma_index.json"] = files["policies/blocks/lemma_index.json"]
    return found


def _imports(text: str) -> Iterable[str]:
    """Full names of modules that a text may import; none where it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _pyproject(dist: str, package: str, tree: str) -> str:
    pins = PIN.findall(LOCK.read_text("utf-8"))
    return f"""\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{dist}"
version = "1.0+{tree[:12]}"
description = "A memory policy found by LVMH; see provenance.json"
readme = "README.md"
requires-python = ">=3.11"
license-files = ["LICENSE"]
dependencies = {json.dumps(pins, indent=4)}

[tool.setuptools]
packages = ["{package}"]

[tool.setuptools.package-data]
{package} = ["setup.json", "candidate/*", "runtime/**/*"]
"""


def _licence() -> str:
    """The text of our licence: where an installation keeps it, else beside the checkout."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        if kept := importlib.metadata.distribution("lvmh").read_text("licenses/LICENSE"):
            return kept
    return (TOP / "LICENSE").read_text("utf-8")


def _environment() -> Environment:
    """Plain text: no autoescape. Untrusted text enters as values only and is never compiled as a template."""
    loader = FileSystemLoader(HERE)
    return Environment(loader=loader, undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True)


def _code(text: str) -> str:
    """Untrusted text as it may stand between backticks."""
    return visible(text, 200).replace("`", "'")


def _write(out: Path, files: Mapping[str, bytes]) -> None:
    """The folder is there whole or not at all."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".export-") as scratch:
            made = Path(scratch) / "made"
            for path, content in files.items():
                place = made / path
                place.parent.mkdir(parents=True, exist_ok=True)
                write_whole(place, content)
            made.rename(out)
    except OSError as error:
        raise UserError(f"{out} cannot be written ({error.strerror}); name another folder with --out") from None
