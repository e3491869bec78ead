"""Import of Video-MME: questions in parquet or JSON, windows from its subtitles or from captions that are given.

The benchmark publishes no captions. ``domain``, ``sub_category``, ``duration`` and ``url`` reach no policy: the splits
are stratified by the length class and the sub-category, and no field but those of the rows below is read.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.construction.decoding import MOST_BYTES, read_text
from harness.data.egolife_text import clean
from harness.data.native import DataError, Gold, first_problem
from harness.data.notes import few
from harness.data.parquet import read_parquet
from harness.data.whole_videos import Asked, AskedVideo, Benchmark, identical, write_benchmark
from harness.data.write import Written

LENGTHS = ("short", "medium", "long")
COLUMNS = (
    "video_id", "videoID", "duration", "sub_category", "question_id", "task_type", "question", "options", "answer",
)  # fmt: skip
LAYOUT = (
    "give the folder that holds videomme/test-00000-of-00001.parquet and subtitle/ (or subtitle.zip), the parquet file,"
    " or a JSON file in the shape of the published result template"
)
PREFIX = re.compile(r"\(?([A-J])[.):、]\s*")
TRAILING = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[\]}])')
SUBTITLE = re.compile(r"(?:[^/]{1,100}/){0,3}([A-Za-z0-9_-]{1,64})\.srt")
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _&/-]{0,59}$")]


class Item(BaseModel):
    """One question as it stands in a parquet row, and inside a video of the template."""

    model_config = ConfigDict(strict=True, frozen=True)
    question_id: Name
    task_type: Label
    question: str
    options: Annotated[list[str], Field(min_length=2, max_length=10)]
    answer: Annotated[str, Field(max_length=10)]


class Row(Item):
    """One parquet row."""

    video_id: Name
    videoID: Name
    duration: Literal["short", "medium", "long"]
    sub_category: str


class TemplateVideo(BaseModel):
    """One video of the published result template, whose questions also have a ``response``, which is not read."""

    model_config = ConfigDict(strict=True, frozen=True)
    video_id: Name
    duration: Literal["short", "medium", "long"]
    sub_category: str
    questions: list[Item]


class Reformatted(BaseModel):
    """One question as other projects rewrite the rows, in the manner of EgoLifeQA; ``video_id`` is the YouTube id."""

    model_config = ConfigDict(strict=True, frozen=True)
    ID: Annotated[str | int, Field(union_mode="left_to_right")]
    type: Label
    video_id: Name
    duration: Literal["short", "medium", "long"]
    sub_category: str
    question: str
    choice_a: str
    choice_b: str
    choice_c: str
    choice_d: str
    answer: Annotated[str, Field(max_length=10)]


ROWS = TypeAdapter(list[Row])
TEMPLATE = TypeAdapter(list[TemplateVideo])
REFORMATTED = TypeAdapter(list[Reformatted])


def import_videomme(
    source: Path, out: Path, captions: Path | None = None, length: str = "all", seed: int = 0
) -> Written:
    """Read ``source`` and write the new data set ``out``.

    Args:
        source: the published folder, or the file of questions.
        out: a folder that does not exist yet.
        captions: a folder of captions (see ``harness.data.material``), asked before the subtitles.
        length: ``short``, ``medium``, ``long`` or ``all``. The method's source uses the long videos.
        seed: of the splits.

    Raises ``DataError`` with one line: files missing or of another shape, pyarrow missing, no video with text.
    """
    files = question_files(source)
    rows = [row for file in files for row in read_rows(file) if length in ("all", row.duration)]
    if not rows:
        raise DataError(f"{files[0]}: holds no questions about {length} videos; choose another --length")
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    notes: list[str] = []
    benchmark = Benchmark(
        name="videomme" if length == "all" else f"videomme-{length}",
        origin={"importer": "videomme", "version": 1, "length": length, "questions_sha256": digest},
        videos=by_video(rows, files[0], notes),
        notes=few(notes),
        missing=f"Video-MME publishes subtitles and no captions, and {source} has no subtitle/NAME.srt for them",
    )
    with tempfile.TemporaryDirectory() as unpacked:
        base = source if source.is_dir() else source.parent
        given = [captions] if captions else []
        return write_benchmark(benchmark, given, list(subtitle_folders(base, Path(unpacked))), out, seed)


def question_files(source: Path) -> Sequence[Path]:
    """The files that hold the questions."""
    if source.is_file():
        return [source]
    for place in (source / "videomme", source):
        if found := sorted(place.glob("test-*.parquet")):
            return found
    raise DataError(f"{source}: no Video-MME here; {LAYOUT}")


def read_rows(file: Path) -> list[Row]:
    """The questions of one file, in whichever of the three shapes."""
    try:
        if file.suffix != ".json":
            return ROWS.validate_python(read_parquet(file, COLUMNS))
        text = without_trailing_commas(read_text(file).text)
        if '"questions"' in text[:2_000]:
            return [from_template(video, item) for video in TEMPLATE.validate_json(text) for item in video.questions]
        return [from_reformatted(item) for item in REFORMATTED.validate_json(text)]
    except ValidationError as error:
        raise DataError(f"{file}: not the published format: {first_problem(error)}; check the download") from None


def without_trailing_commas(text: str) -> str:
    """Strict JSON of JSON with commas before closing brackets, as the published template has them."""
    return TRAILING.sub(lambda match: "" if match[0] == "," else match[0], text)


def from_template(video: TemplateVideo, item: Item) -> Row:
    """A template's question; the template does not give the YouTube id, so captions go by ``video_id``."""
    return Row.model_construct(
        **item.model_dump(),
        video_id=video.video_id,
        videoID=video.video_id,
        duration=video.duration,
        sub_category=video.sub_category,
    )


def from_reformatted(item: Reformatted) -> Row:
    """A question in EgoLifeQA's manner; ``query_time`` and ``target_time`` say nothing and are not read."""
    return Row.model_construct(
        question_id=f"{item.ID}",
        task_type=item.type,
        question=item.question,
        options=[item.choice_a, item.choice_b, item.choice_c, item.choice_d],
        answer=item.answer,
        video_id=item.video_id,
        videoID=item.video_id,
        duration=item.duration,
        sub_category=item.sub_category,
    )


def by_video(rows: Iterable[Row], file: Path, notes: list[str]) -> list[AskedVideo]:
    """The questions by video, in file order."""
    videos: dict[str, list[Row]] = {}
    for row in rows:
        videos.setdefault(row.video_id, []).append(row)
    return [
        AskedVideo(
            f"v-{id_}",
            tuple(dict.fromkeys((about[0].videoID, id_))),
            f"{about[0].duration}/{about[0].sub_category}",
            tuple(question(row, file, notes) for row in about),
        )
        for id_, about in videos.items()
    ]


def question(row: Row, file: Path, notes: list[str]) -> Asked:
    """One question; "A. " before an option is no part of it. Raises ``DataError``: the answer is no option."""
    choices = {}
    for letter, option in zip("ABCDEFGHIJ", row.options, strict=False):
        prefix = PREFIX.match(option)
        choices[letter] = clean(option[prefix.end() :] if prefix and prefix[1] == letter else option)
    answer = row.answer.strip().rstrip(".").upper()
    if answer not in choices:
        raise DataError(f"{file}: question {row.question_id}: its answer is none of its options; check the download")
    asked = Asked(f"q-{row.question_id}", row.task_type, clean(row.question), choices, Gold(answer, ()))
    if identical(asked):
        notes.append(f"question {row.question_id} has identical choices; kept as published")
    return asked


def subtitle_folders(base: Path, unpacked: Path) -> Iterator[Path]:
    """``subtitle/`` beside the questions or one folder up, or what ``subtitle.zip`` there holds."""
    for place in (base, base.parent):
        if (place / "subtitle").is_dir():
            yield place / "subtitle"
            return
        if (place / "subtitle.zip").is_file():
            unpack(place / "subtitle.zip", unpacked)
            yield unpacked
            return


def unpack(archive: Path, folder: Path) -> None:
    """Subtitles of an archive into ``folder``, under names that were checked and with sizes that are bounded."""
    left = MOST_BYTES
    try:
        with zipfile.ZipFile(archive) as opened:
            for member in opened.infolist():
                name = SUBTITLE.fullmatch(member.filename)
                if name is None or member.filename.startswith("__MACOSX"):
                    continue
                with opened.open(member) as packed:
                    content = packed.read(left + 1)
                left -= len(content)
                if left < 0:
                    raise DataError(f"{archive}: more than {MOST_BYTES >> 20} MiB of subtitles; unpack it yourself")
                (folder / f"{name[1]}.srt").write_bytes(content)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        what: Any = " ".join(str(error).split())[:100]
        raise DataError(f"{archive}: cannot be unpacked ({ascii(what)[1:-1]}); check the download") from None
