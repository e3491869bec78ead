"""The whole audit of a run: chain, files, stored outcomes, git references and the chain's heads in the commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.state.audit import FIRST, canonical
from harness.state.folder import AUDIT, MEMORY
from harness.state.plumbing import LineageError
from harness.state.records import REMEDY
from harness.state.store import RunStore

HEAD_TRAILER = "Audit-Head"


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What an audit found. ``problems`` is empty for a run that is whole; each is one line."""

    lines: int
    head: str
    commits: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


def verify_chain(folder: Path) -> ChainReport:
    """Audit the run in ``folder`` without changing it. Never raises for what it finds; it reports."""
    try:
        with RunStore.open(folder, write=False) as store:
            commits, problems = _commits(store)
            found = (*_outcomes(store), *_files(store), *_refs(store), *problems)
            return ChainReport(len(store.audit()), store.head, commits, found)
    except UserError as error:
        return ChainReport(0, FIRST, 0, (str(error),))


def _outcomes(store: RunStore) -> Iterator[str]:
    for line in store.audit():
        try:
            store.outcome_text(line.number)
        except UserError as error:
            yield str(error)


def _files(store: RunStore) -> Iterator[str]:
    """The line files may lack what a kill kept from them, and hold nothing else: a torn line begins as it should."""
    lines = [line.text() for line in store.audit()]
    memory = [canonical(attempt.model_dump(mode="json")) for attempt in store.attempts()]
    for name, texts in ((AUDIT, lines), (MEMORY, memory)):
        path = store.folder / name
        content, whole = path.read_bytes(), "".join(f"{text}\n" for text in texts).encode("ascii")
        if not whole.startswith(content):
            line = content.count(b"\n") + 1
            yield f"{path}: line {line} is torn, and not as a kill would tear it: {REMEDY}"


def _refs(store: RunStore) -> Iterator[str]:
    found = store.lineage.refs()
    wanted = store.refs()
    for name in sorted(wanted.keys() | found.keys()):
        if found.get(name) != wanted.get(name):
            yield f"{name} names {found.get(name, 'nothing')}, the audit says {wanted.get(name, 'nothing')}"
    head = store.lineage.path / "HEAD"
    if head.read_bytes() != b"ref: refs/heads/main\n":
        yield f"{head} is not as it was made: it names refs/heads/main and nothing else"


def _commits(store: RunStore) -> tuple[int, list[str]]:
    """Commits reachable from the run's references; each must quote a head that the chain has. All are hashed."""
    heads = {FIRST, *(line.hash for line in store.audit())}
    count, problems = 0, []
    try:
        store.lineage.check()
    except LineageError as error:
        problems.append(str(error))
    for commit in store.lineage.log(*sorted(set(store.refs().values()))):
        count += 1
        quoted = commit.trailers.get(HEAD_TRAILER)
        if quoted is not None and quoted not in heads:
            problems.append(f"commit {commit.oid} quotes audit head {quoted}, which the chain does not have")
    return count, problems
