"""The lineage of a run: a bare, host-owned repository in which every candidate is a tree and every verdict a commit.

``main`` is the line of promotions, ``candidate/NNNN-slug`` one branch for each candidate, tags ``frontier/NNNN`` mark
the frontier set. Candidate trees are data: they are listed, checked and read as objects, never checked out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.display import visible
from harness.state.intake import Entry, IntakeLimits, IntakeRejected, check_entries, check_texts
from harness.state.objects import LooseObjects, commit_body, object_id, tree_body
from harness.state.plumbing import Git, LineageError
from harness.state.story import candidate_branch, compose, parse_trailers

__all__ = ["Commit", "IntakeLimits", "IntakeRejected", "Lineage", "LineageError", "candidate_branch"]

REF = re.compile(r"refs/heads/main|refs/heads/candidate/\d{4,}-[a-z0-9-]+|refs/tags/frontier/\d{4,}")
TREE_BYTES = 65_536
"""A tree object larger than this has far too many entries to be a package."""
COMMIT_BYTES = 262_144
MODE = re.compile(rb"[0-7]{5,6}")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as read back. ``date`` is Unix time; ``message`` is the whole text, trailers included."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    date: int
    message: str

    @property
    def subject(self) -> str:
        """The first line."""
        return self.message.split("\n", 1)[0]

    @property
    def trailers(self) -> dict[str, str]:
        """The last paragraph as key and value."""
        return parse_trailers(self.message)


class Lineage:
    """A repository. All ids are full; all errors of the repository itself are LineageError (one line)."""

    def __init__(self, path: Path, limits: IntakeLimits | None = None) -> None:
        self.path = path
        self.limits = limits or IntakeLimits()
        self._git = Git(path.absolute())
        self._objects = LooseObjects(path / "objects")

    @classmethod
    def init(cls, path: Path, limits: IntakeLimits | None = None) -> Lineage:
        """Make an empty bare repository at ``path`` (no template, no hooks). Raises LineageError."""
        Git(path.absolute()).run(
            "init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--object-format=sha1"
        )
        return cls(path, limits)

    @classmethod
    def open(cls, path: Path, limits: IntakeLimits | None = None) -> Lineage:
        """The repository at ``path``. Raises LineageError where there is none."""
        if not (path / "HEAD").is_file() or not (path / "objects").is_dir():
            raise LineageError(f"{path} is missing or no git repository; restore it from a copy, or start a new run")
        return cls(path, limits)

    # ------------------------------------------------------------ writing

    def intake(self, files: Mapping[str, bytes]) -> str:
        """Store a candidate's files and return the id of their tree. Raises IntakeRejected, nothing stored."""
        listing = [Entry("100644", path, "", len(content)) for path, content in files.items()]
        if reasons := check_entries(listing, self.limits) or check_texts(files):
            raise IntakeRejected(reasons)
        blobs = {path: self._objects.write("blob", content) for path, content in files.items()}
        return self._objects.write("tree", tree_body(blobs))

    def commit(self, tree: str, parents: Sequence[str], message: str, trailers: Mapping[str, str], date: float) -> str:
        """Write a commit and return its id: the same for the same arguments, so it may be made again after a kill.

        ``message``: title line and body, untrusted. ``trailers``: at least one. ``date``: Unix time in seconds. No
        reference is set: that is ``set_refs``, after the stage is committed.
        """
        return self._objects.write("commit", commit_body(tree, parents, compose(message, trailers), int(date)))

    def set_refs(self, wanted: Mapping[str, str | None]) -> None:
        """Set references (None removes one), all or none. Raises LineageError."""
        check_refs(wanted)
        self._git.set_refs(wanted)

    def tidy(self) -> None:
        """Remove what a kill left half written, git's own locks among it. Only for the one writer of the run.

        A git that dies within a transaction (a power cut, the kernel out of memory) leaves its locks, and no git would
        set those references ever again.
        """
        self._objects.tidy()
        locks = [self.path / "HEAD.lock", self.path / "packed-refs.lock", *(self.path / "refs").rglob("*.lock")]
        for lock in locks:
            lock.unlink(missing_ok=True)

    # ------------------------------------------------------------ reading

    def has_commit(self, oid: str) -> bool:
        """Whether the commit is stored."""
        found = self._git.info(oid)
        return found is not None and found[0] == "commit"

    def refs(self) -> dict[str, str]:
        """Object id by reference."""
        return self._git.refs()

    def entries(self, tree: str) -> tuple[Entry, ...]:
        """The checked listing of a tree, in any repository however hostile. No blob is read.

        Raises IntakeRejected where the tree is not a package, LineageError where there is no such tree.
        """
        size = self._git.info(tree)
        if size is not None and size[0] == "tree" and size[1] > TREE_BYTES:
            raise IntakeRejected([f"I02: a tree of {size[1]} bytes; at most {TREE_BYTES}"])
        found = tuple(self._sized(_parse_tree(self._git.read(tree, "tree", TREE_BYTES))))
        if reasons := check_entries(found, self.limits):
            raise IntakeRejected(reasons)
        return found

    def read(self, tree: str) -> dict[str, bytes]:
        """The files of a tree by path; ids are recomputed from the bytes. Raises as ``entries`` does."""
        files: dict[str, bytes] = {}
        for entry in self.entries(tree):
            content = self._git.read(entry.oid, "blob", self.limits.file_bytes)
            if object_id("blob", content) != entry.oid:
                raise LineageError(f"{self.path}: blob {entry.oid} does not hold what its id says; restore a copy")
            files[entry.path] = content
        if reasons := check_texts(files):
            raise IntakeRejected(reasons)
        return files

    def diff(self, before: str, after: str) -> str:
        """Unified diff of two trees, made from their blobs (git attributes have no say), safe to print."""
        old, new = self.read(before), self.read(after)
        lines: list[str] = []
        for path in sorted(old.keys() | new.keys()):
            names = [f"{mark}/{path}" if path in side else "/dev/null" for mark, side in (("a", old), ("b", new))]
            lines += difflib.unified_diff(_lines(old.get(path)), _lines(new.get(path)), names[0], names[1], lineterm="")
        return "".join(line + "\n" for line in lines)

    def commit_of(self, oid: str) -> Commit:
        """One commit. Raises LineageError."""
        return _parse_commit(oid, self._git.read(oid, "commit", COMMIT_BYTES))

    def log(self, *tips: str) -> Iterator[Commit]:
        """Commits reachable from the given commit ids, children before their parents."""
        for tip in tips:
            if not self.has_commit(tip):
                raise LineageError(f"{self.path}: commit {tip} is missing; the repository is damaged")
        if tips:
            listing = self._git.run("rev-list", "--topo-order", "--end-of-options", *tips)
            for oid in listing.decode("ascii").split():
                yield self.commit_of(oid)

    def copy_to(self, other: Lineage, tips: Sequence[str]) -> None:
        """Store the commits reachable from ``tips``, and their trees, in another repository.

        Raises LineageError where an object is missing or does not hold what its id says.
        """
        copied: set[str] = set()
        for commit in self.log(*tips):
            try:
                found = commit.tree if commit.tree in copied else other.intake(self.read(commit.tree))
            except IntakeRejected as error:
                raise LineageError(f"{self.path}: tree {commit.tree} is damaged: {error}; restore a copy") from None
            copied.add(found)
            oid = other._objects.write("commit", self._git.read(commit.oid, "commit", COMMIT_BYTES))
            for wanted, got in ((commit.tree, found), (commit.oid, oid)):
                if wanted != got:
                    raise LineageError(f"{self.path}: object {wanted} does not hold what its id says; restore a copy")

    def check(self) -> None:
        """Raise LineageError naming an object that is damaged or missing; every object is hashed again."""
        self._git.run("fsck", "--strict", "--no-dangling", "--no-progress")

    def close(self) -> None:
        """End the git processes."""
        self._git.close()

    def _sized(self, listing: Iterator[tuple[str, str, str]]) -> Iterator[Entry]:
        for mode, path, oid in listing:
            found = self._git.info(oid) if mode == "100644" else None
            if mode == "100644" and (found is None or found[0] != "blob"):
                raise IntakeRejected([f"I01: {path[:80]!a} names an object that is no stored blob"])
            yield Entry(mode, path, oid, found[1] if found else 0)


def check_refs(wanted: Mapping[str, str | None]) -> None:
    """Raises ValueError for a name that is none of main, candidate/NNNN-slug, frontier/NNNN."""
    for name in wanted:
        if REF.fullmatch(name) is None:
            raise ValueError(f"no reference of a run: {name!r}")


def _parse_tree(body: bytes) -> Iterator[tuple[str, str, str]]:
    """(mode, name, object id) of each entry; folders get git's six-digit mode."""
    at = 0
    while at < len(body):
        space, nul = body.find(b" ", at), body.find(b"\0", at)
        if not at < space < nul or nul + 21 > len(body) or MODE.fullmatch(body[at:space]) is None:
            raise IntakeRejected(["I01: the tree object is malformed"])
        mode = body[at:space].decode("ascii")
        name = body[space + 1 : nul].decode("utf-8", "surrogateescape")
        yield ("040000" if mode == "40000" else mode), name, body[nul + 1 : nul + 21].hex()
        at = nul + 21


def _parse_commit(oid: str, body: bytes) -> Commit:
    head, _, message = body.partition(b"\n\n")
    fields = [line.split(b" ", 1) for line in head.split(b"\n") if b" " in line]
    by_key = {key: value for key, value in fields}
    try:
        return Commit(
            oid=oid,
            tree=by_key[b"tree"].decode("ascii"),
            parents=tuple(value.decode("ascii") for key, value in fields if key == b"parent"),
            date=int(by_key[b"committer"].rsplit(b" ", 2)[1]),
            message=message.decode("utf-8", "replace"),
        )
    except (KeyError, ValueError, IndexError):
        raise LineageError(f"commit {oid} cannot be read; the repository is damaged") from None


def _lines(content: bytes | None) -> list[str]:
    """Lines as they may be printed; tabs stay, a missing file has none."""
    lines = [] if content is None else content.decode("utf-8").removesuffix("\n").split("\n")
    return ["\t".join(visible(part, 100_000) for part in line.split("\t")) for line in lines]
