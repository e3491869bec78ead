"""Everything that is wrong with a data set, by file and line. Reports, and never fails on what it reads."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.data.frames import file_digest, frame_times
from harness.data.native import (
    MAX_FILE,
    MAX_LINE,
    MAX_MANIFEST,
    SPLITS,
    DataError,
    GoldRow,
    Manifest,
    QuestionRow,
    SplitEntry,
    VideoEntry,
    WindowRow,
    first_problem,
    read_file,
)
from policies.blocks.tokens import words

MOST = 1_000
"""At most so many problems are listed."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SLACK = 0.001
"""Times are written in milliseconds, so overlaps up to one are rounding."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend. ``line`` counts from 1; 0 means the file as a whole."""

    file: str
    line: int
    what: str
    to_do: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.what}; {self.to_do}"


class Checker:
    """Collects problems while it goes through the files of one data set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[Problem] = []

    def add(self, file: str, line: int, what: str, to_do: str) -> None:
        """Note a problem; text of the data in it is shown with escapes."""
        self.problems.append(Problem(file, line, ascii(what)[1:-1][:400], to_do))

    def content(self, name: str, limit: int = MAX_FILE) -> bytes | None:
        """The bytes of a file, or None where it cannot be read."""
        try:
            return read_file(self.folder, name, None, limit)
        except DataError as error:
            what, _, to_do = str(error).removeprefix(f"{self.folder / name}: ").rpartition("; ")
            self.add(name, 0, what, to_do)
            return None

    def lines(self, name: str, manifest: Manifest) -> Iterator[tuple[int, bytes]]:
        """The lines of a file that can be read as text; what is wrong with the others is noted."""
        content = self.content(name)
        if content is None:
            return
        entry = manifest.files.get(name)
        if entry is None:
            self.add("manifest.json", 0, f"{name} is not listed under files", "add its sha256 and bytes")
        elif entry.sha256 != hashlib.sha256(content).hexdigest() or entry.bytes != len(content):
            self.add(name, 0, "not the bytes that the manifest names", "import or make the data again")
        if content.startswith(b"\xef\xbb\xbf"):
            self.add(name, 1, "starts with a byte order mark", "save it as UTF-8 without one")
            content = content[3:]
        if b"\r" in content:
            self.add(
                name, content[: content.index(b"\r")].count(b"\n") + 1, "carriage return", "end lines with \\n alone"
            )
        if content and not content.endswith(b"\n"):
            self.add(name, content.count(b"\n") + 1, "the last line has no end", "add a newline; is the file complete?")
        for number, line in enumerate(content.split(b"\n"), 1):
            if len(line) > MAX_LINE:
                self.add(name, number, f"a line of {len(line)} bytes", f"keep lines to {MAX_LINE} bytes")
            elif line.strip():
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    self.add(name, number, f"byte {error.start} of the line is not UTF-8", "save it as UTF-8")
                else:
                    yield number, line

    def rows(self, name: str, manifest: Manifest, adapter: TypeAdapter[Any]) -> list[tuple[int, Any]]:
        """The numbered rows that fit the format."""
        rows: list[tuple[int, Any]] = []
        for number, line in self.lines(name, manifest):
            try:
                value = json.loads(line, parse_constant=refuse, object_pairs_hook=unrepeated)
            except (ValueError, RecursionError) as error:
                self.add(name, number, f"bad JSON: {error}", "correct the line")
                continue
            try:
                rows.append((number, adapter.validate_json(line)))
            except ValidationError as error:
                self.add(name, number, first_problem(error), "correct the line; docs/data.md has the format")
                continue
            if any(CONTROL.search(text) for text in texts(value)):
                self.add(name, number, "control characters in a text", "replace them by spaces")
        return rows


def refuse(constant: str) -> None:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(f"{constant} is not a JSON number")


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def texts(value: Any) -> Iterator[str]:
    """All strings of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)


def check(path: Path) -> list[Problem]:
    """All problems of the data set in ``path``, at most ``MOST``; an empty list means that it can be used as it is."""
    checker = Checker(path)
    content = checker.content("manifest.json", MAX_MANIFEST)
    if content is None:
        return checker.problems
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False)[:20]:
            place = ".".join(str(part) for part in detail["loc"])
            checker.add("manifest.json", 0, f"{place}: {detail['msg']}", "correct it; docs/data.md has the format")
        return checker.problems
    ends: dict[str, tuple[float, float]] = {}
    for video in manifest.videos:
        if video.id in ends:
            checker.add("manifest.json", 0, f"video {video.id} stands there twice", "keep one")
        ends[video.id] = (check_windows(checker, manifest, video), video.duration)
    seen: dict[str, str] = {}
    for split in SPLITS:
        if (entry := manifest.splits.get(split)) is not None:  # type: ignore[call-overload]
            questions = check_questions(checker, manifest, entry, ends, seen)
            check_gold(checker, manifest, entry, questions)
    check_listing(checker, manifest)
    more = len(checker.problems) - MOST
    if more > 0:
        checker.problems[MOST:] = [Problem("manifest.json", 0, f"{more} more problems", "mend those listed first")]
    return checker.problems


def check_frames(checker: Checker, manifest: Manifest, video: VideoEntry) -> list[float]:
    """Files of frames: listed, unchanged, readable; returns the times of all frames, in order."""
    times: list[float] = []
    for file in video.frames:
        entry = manifest.files.get(file.path)
        if entry is None:
            checker.add("manifest.json", 0, f"{file.path} is not listed under files", "add its sha256 and bytes")
        try:
            if entry is not None and file_digest(checker.folder, file.path) != entry.sha256:
                checker.add(file.path, 0, "not the bytes that the manifest names", "import or make the data again")
            times += [file.start + after for after in frame_times(checker.folder / file.path)]
        except DataError as error:
            what, _, to_do = str(error).removeprefix(f"{checker.folder / file.path}: ").rpartition("; ")
            checker.add(file.path, 0, what, to_do)
    return sorted(times)


def check_windows(checker: Checker, manifest: Manifest, video: VideoEntry) -> float:
    """Order, overlaps, bounds and frames of one stream; returns the end of the window that ends first, or infinity."""
    earliest = float("inf")
    frames = check_frames(checker, manifest, video)
    latest: tuple[float, float] | None = None
    wordless = total = 0
    for number, row in checker.rows(video.windows, manifest, TypeAdapter(WindowRow)):
        start, end = row["start"], min(row["end"], video.duration)

        def add(what: str, to_do: str, line: int = number) -> None:
            checker.add(video.windows, line, what, to_do)

        if row["end"] <= start:
            add(f"ends at {row['end']:g} s, not after its start at {start:g} s", "correct the times")
            continue
        if start >= video.duration:
            add(f"starts after the video's {video.duration:g} s", "correct the time or the duration")
            continue
        if latest is not None and (end, start) < (latest[1], latest[0]):
            add("out of order: ends before the window above", "sort by end; it is read in that order anyway")
        elif latest is not None and start < latest[1] - SLACK:
            add(f"overlaps the window above by {latest[1] - start:g} s", "check the times; it is kept")
        if not row["captions"] and not row["transcript"]:
            add("has neither captions nor transcript", "leave it out or add its text")
        elif not any(text.strip() for text in told(row)):
            add("its captions and transcript are all empty", "leave it out or add its text")
        wordless += not any(words(text) for text in told(row))
        total += 1
        if row["frames"] != (bisect_left(frames, start) < bisect_left(frames, end)):
            seen = "no frame lies in it" if row["frames"] else "a frame lies in it"
            add(f"says frames: {json.dumps(row['frames'])}, but {seen}", "correct the row or the manifest's frames")
        latest = (start, end) if latest is None or end >= latest[1] else latest
        earliest = min(earliest, end)
    if latest is None:
        checker.add(video.windows, 0, "has no usable window", "add windows or leave the video out")
    elif 2 * wordless > total:
        checker.add(
            video.windows,
            0,
            f"{wordless} of {total} windows hold no word in Latin letters or digits",
            "translate them: blocks that match words see nothing in them; models read them as they are",
        )
    return earliest


def told(row: WindowRow) -> list[str]:
    """All texts of a window."""
    return [*row["captions"], *(line["text"] for line in row["transcript"])]


def check_questions(
    checker: Checker,
    manifest: Manifest,
    entry: SplitEntry,
    ends: Mapping[str, tuple[float, float]],
    seen: dict[str, str],
) -> dict[str, Any]:
    """Ids, choices and times of a split's questions; returns them by id."""
    rows = checker.rows(entry.questions, manifest, TypeAdapter(QuestionRow))
    if len(rows) != entry.count:
        checker.add(entry.questions, 0, f"{len(rows)} usable questions, {entry.count} in the manifest", "correct it")
    for number, row in rows:

        def add(what: str, to_do: str, line: int = number) -> None:
            checker.add(entry.questions, line, what, to_do)

        if row["id"] in seen:
            add(f"id {row['id']} stands already in {seen[row['id']]}", "give each question its own id")
        seen.setdefault(row["id"], f"{entry.questions}:{number}")
        if not row["question"].strip():
            add("the question is empty", "write it or leave the line out")
        if "".join(row["choices"]) != "ABCDEFGHIJ"[: len(row["choices"])]:
            add("the choices are not A, B, C and so on in this order", "rename and sort them")
        plain = [" ".join(text.split()).casefold() for text in row["choices"].values()]
        if len(set(plain)) < len(plain):
            add("identical choices", "check the source; the question is kept")
        if "" in plain:
            add("an empty choice", "check the source; the question is kept")
        if row["video"] not in ends:
            add(f"video {row['video']} is not in the manifest", "add the video or correct the name")
            continue
        first, duration = ends[row["video"]]
        if row["time"] < first:
            add("is put before any window has ended", "correct its time; nothing can be known then")
        if row["time"] > duration:
            add(f"is put after the video's {duration:g} s", "correct its time or the duration")
    return {row["id"]: row for _, row in rows}


def check_gold(checker: Checker, manifest: Manifest, entry: SplitEntry, questions: Mapping[str, Any]) -> None:
    """Answers and oracle times of a split."""
    found: set[str] = set()
    for number, row in checker.rows(entry.gold, manifest, TypeAdapter(GoldRow)):

        def add(what: str, to_do: str, line: int = number) -> None:
            checker.add(entry.gold, line, what, to_do)

        if row["id"] in found:
            add(f"id {row['id']} stands above already", "keep one of the lines")
        found.add(row["id"])
        question = questions.get(row["id"])
        if question is None:
            add(f"no question has the id {row['id']}", "remove the line or add the question")
            continue
        if row["answer"] not in question["choices"]:
            add(f"answer {row['answer']} is not among the choices", "correct the letter")
        if any(end < start for start, end in row["oracle"]):
            add("an oracle interval ends before it starts", "correct the times")
        if any(start > question["time"] for start, _ in row["oracle"]):
            add("the evidence lies after the question", "correct the oracle time or the question's")
    for missing in [name for name in questions if name not in found]:
        checker.add(entry.gold, 0, f"no gold for question {missing}", "add its line")


def check_listing(checker: Checker, manifest: Manifest) -> None:
    """Files that nothing refers to."""
    used = {video.windows for video in manifest.videos}
    used |= {file.path for video in manifest.videos for file in video.frames}
    for entry in manifest.splits.values():
        used |= {entry.questions, entry.gold}
    for name in sorted(set(manifest.files) - used):
        checker.add("manifest.json", 0, f"{name} is listed under files but belongs to no video or split", "remove it")
