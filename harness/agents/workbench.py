"""The candidate's package while it is written: listing, reading, editing. Text in memory; no file of this machine is
touched, and of this project only the contract and the building blocks can be read."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from harness.agents import vocabulary
from harness.agents.blocks import pieces
from harness.agents.tools import Arguments, Offered, ToolError
from harness.display import visible
from harness.state.intake import NAME, IntakeLimits

MOST_LINES = 400
"""Lines of one reading."""


class ListFiles(Arguments):
    """List the files of the candidate, and what of the contract and the building blocks can be read and imported."""


class ReadFile(Arguments):
    """Read lines of a file of the candidate, or of a module such as policies.contract or policies.blocks.select."""

    path: str
    start: int = Field(default=1, ge=1, le=1_000_000)
    """First line."""
    lines: int = Field(default=200, ge=1, le=MOST_LINES)


class EditFile(Arguments):
    """Replace the one place of a file that reads exactly as search does."""

    path: str
    search: str = Field(min_length=1)
    replace: str


class WriteFile(Arguments):
    """Write a whole file of the candidate: policy.py, or a module or .json file beside it."""

    path: str
    content: str


class Workbench:
    """The files of one candidate."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(files)
        self.limits = IntakeLimits()

    def reading(self) -> tuple[Offered, ...]:
        """The tools that change nothing."""
        return (Offered("list", ListFiles, self.listing), Offered("read", ReadFile, self.read))

    def writing(self) -> tuple[Offered, ...]:
        """The tools that change the candidate."""
        return (Offered("edit", EditFile, self.edit), Offered("write", WriteFile, self.write))

    def listing(self, given: ListFiles) -> str:
        """Names and sizes, then a line for every building block."""
        own = [f"{path}: {text.count(chr(10)) + 1} lines" for path, text in sorted(self.files.items())]
        return "\n".join([*own, "policies.contract: what a policy sees, asks and returns", *pieces()])

    def read(self, given: ReadFile) -> str:
        """Numbered lines."""
        text = self.files.get(given.path)
        if text is None:
            module = given.path.removesuffix(".py").replace("/", ".")
            text = vocabulary.sources().get(module)
        if text is None:
            raise ToolError(f"there is no file {_shown(given.path)}; there are {', '.join(self._names())}")
        lines = text.split("\n")
        chosen = lines[given.start - 1 : given.start - 1 + given.lines]
        head = f"{given.path}, lines {given.start} to {given.start - 1 + len(chosen)} of {len(lines)}\n"
        return head + "\n".join(f"{number:4d} {line}" for number, line in enumerate(chosen, given.start))

    def edit(self, given: EditFile) -> str:
        """One exact replacement."""
        text = self.files.get(given.path)
        if text is None:
            raise ToolError(f"the candidate has no file {_shown(given.path)}; it has {', '.join(sorted(self.files))}")
        count = text.count(given.search)
        if count != 1:
            advice = "copy the lines exactly, without their numbers" if not count else "add lines until it is one place"
            raise ToolError(f"search stands {count} times in {given.path}; {advice}")
        return self._put(given.path, text.replace(given.search, given.replace))

    def write(self, given: WriteFile) -> str:
        """A whole file."""
        if NAME.fullmatch(given.path) is None or len(given.path) > 64:
            raise ToolError(f"{_shown(given.path)} is no name of a candidate's file: [a-z][a-z0-9_]*.py or .json")
        return self._put(given.path, given.content)

    def _put(self, path: str, text: str) -> str:
        """Within the caps of intake, which the finished package has to keep anyway."""
        changed = {**self.files, path: text}
        sizes = {name: len(content.encode("utf-8", "surrogatepass")) for name, content in changed.items()}
        if len(changed) > self.limits.files:
            raise ToolError(f"not done: {len(changed)} files; at most {self.limits.files}")
        if sizes[path] > self.limits.file_bytes or sum(sizes.values()) > self.limits.total_bytes:
            raise ToolError(
                f"not done: {path} would have {sizes[path]} bytes and the package {sum(sizes.values())}; "
                f"at most {self.limits.file_bytes} and {self.limits.total_bytes}"
            )
        self.files = changed
        return f"done; {path} has {text.count(chr(10)) + 1} lines"

    def _names(self) -> list[str]:
        return [*sorted(self.files), *vocabulary.sources()]


def _shown(path: str) -> str:
    return visible(path, 80)
