"""The life-log's frames: exact files, the right pixels at the right times, and questions that only they answer."""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.data.frames import RecordedFrames, open_frames
from harness.data.lifelog import make_lifelog
from harness.data.lifelog.draw import Draw
from harness.data.lifelog.film import film, paint
from harness.data.lifelog.looking import LOOKS
from harness.data.lifelog.make import Asked, Stream, make_split
from harness.data.lifelog.palette import COLOURS, PALETTE, SHAPES
from harness.data.lifelog.scenes import arrange
from harness.data.lifelog.traps import TRAPS
from harness.data.native import SPLITS, Dataset, load
from harness.data.pictures import decoded, image_pixels, opened, picture_stream
from harness.evaluation.offline import OfflineAnswers
from harness.evaluation.services import Services
from harness.models.hub import offline_models
from harness.models.reader import LexicalReader
from policies.baselines.bm25.policy import Policy as Bm25
from policies.baselines.options_only.policy import Policy as OptionsOnly
from policies.blocks.visual_need import excluded, strong_visual_need
from policies.contract import Answer, Budget, Frames, FramesReply, Query, Read, ReadReply, Setup, Window

VISUAL = {look.__name__ for looks in LOOKS.values() for look, _ in looks}
TRAP = {template.__name__ for templates in TRAPS.values() for template in templates}
REEL = "5b253a83496886664137e84cba72df22302a6255aeb50db1674526ba4b7ad668"
"""SHA-256 of a file of five scenes: the same bytes on every machine, since no codec library writes them."""

streams = cache(make_split)


def visual(seed: int = 0) -> Iterator[tuple[Stream, Asked]]:
    for split in SPLITS:
        for s in streams(split, seed):
            yield from ((s, asked) for asked in s.asked if asked.template in VISUAL)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("lifelog") / "data"
    make_lifelog(folder, 0)
    return load(folder)


@pytest.fixture(scope="module")
def frames(dataset: Dataset) -> RecordedFrames:
    found = open_frames(dataset)
    assert found is not None
    return found


# ---------------------------------------------------------------- files


def test_a_file_of_scenes_is_frozen_and_decodes_without_loss() -> None:
    draw = Draw("reel")
    scenes = [arrange(draw, "Mara", "red", "drill" if number % 2 else "", "pink") for number in range(5)]
    times = [0, 30_000, 60_000, 7_200_000, 40_000_000]
    content = film([(time, paint(scene)) for time, scene in zip(times, scenes, strict=True)])
    assert hashlib.sha256(content).hexdigest() == REEL
    with opened(io.BytesIO(content)) as container:
        stream = picture_stream(container)
        shown = [(pts, frame.to_ndarray(format="rgb24")) for pts, frame in decoded(container, stream)]
    assert [pts for pts, _ in shown] == times
    assert all((pixels == PALETTE[paint(scene)]).all() for (_, pixels), scene in zip(shown, scenes, strict=True))


def test_every_window_has_its_frame_exactly_where_it_says_so(dataset: Dataset, frames: RecordedFrames) -> None:
    for s in streams("validation", 0):
        windows = dataset.videos[s.video.id].windows
        for window, scene in list(zip(windows, s.scenes, strict=True))[::5]:
            image = frames.nearest(s.video.id, (window.start + window.end) / 2, 1e9)
            assert image is not None
            inside = window.start <= image.time < window.end
            assert inside == window.frames == (scene is not None)
            pixels = image_pixels(image.data)
            assert scene is None or (pixels is not None and (pixels == PALETTE[paint(scene)]).all())
        assert 0.85 < sum(window.frames for window in windows) / len(windows) < 0.97


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 3 * 86_400), st.floats(0, 3 * 86_400))
def test_never_a_frame_after_the_limit(frames: RecordedFrames, at: float, before: float) -> None:
    image = frames.nearest("test-1", at, before)
    assert image is None or image.time <= before


def test_frames_are_small(dataset: Dataset) -> None:
    files = [entry.bytes for name, entry in dataset.manifest.files.items() if name.startswith("frames/")]
    assert len(files) == 18
    assert sum(files) < 8_000_000


# ---------------------------------------------------------------- questions


def test_every_split_has_enough_and_each_is_put_once() -> None:
    for split in SPLITS:
        found = [a for s in streams(split, 0) for a in s.asked if a.template in VISUAL]
        assert len(found) == 50
        assert set(Counter(a.question.type for a in found)) == {"EntityLog", "EventRecall"}
    for s in streams("test", 0):
        questions = [a.question.question for a in s.asked if a.template in VISUAL]
        assert len(set(questions)) == len(questions)


def test_no_caption_says_what_frames_show() -> None:
    words = {*COLOURS, *SHAPES, *(shape + "s" for shape in SHAPES), "shirt", "two", "three", "four", "five"}
    for split in SPLITS:
        for s in streams(split, 0):
            assert not words & set(re.findall("[a-z]+", " ".join(map(told, s.video.windows)).lower()))


def told(window: Window) -> str:
    return "\n".join([*window.captions, *(f"{line.speaker}: {line.text}" for line in window.transcript)])


def test_the_frames_of_the_evidence_give_the_answer(dataset: Dataset, frames: RecordedFrames) -> None:
    """Through the services, as a policy would be served: frames by time, then a Read with them."""
    for s, asked in visual():
        question = asked.question
        query = Query("q", question.type, question.question, question.choices, question.time)
        host = Services(offline_models(), OfflineAnswers(), Budget(), s.video.id, 900, "test", frames=frames)
        middles = sorted({(start + end) / 2 for start, end in asked.gold.oracle})[:4]
        reply = host.serve(Frames(tuple(middles)), query)
        assert isinstance(reply, FramesReply) and reply.frames, asked
        assert all(frame.time <= question.time for frame in reply.frames)
        references = tuple(frame.ref for frame in reply.frames)
        read = Read(question.question, question.choices, "", "", references, "verification")
        answered = host.serve(read, query)
        assert isinstance(answered, ReadReply)
        assert answered.choice == asked.gold.answer, asked


def answers_of(policy: type, s: Stream, found: list[Asked]) -> list[str | None]:
    """A policy over the stream, served by the lexical reader; questions in order of time."""
    reader, answered = LexicalReader(), []
    built = policy(Setup(Budget(), 0))
    told_until = 0
    for asked in sorted(found, key=lambda a: a.question.time):
        seen = [w for w in s.video.windows[told_until:] if w.end <= asked.question.time]
        built.observe(seen)
        told_until += len(seen)
        question = asked.question
        asking = built.answer(Query("q", question.type, question.question, question.choices, question.time))
        reply: ReadReply | None = None
        while not isinstance(asking, Answer):
            try:
                reply = reader.read(asking.send(reply))
            except StopIteration as ended:
                asking = ended.value
        answered.append(asking.choice)
    return answered


def test_options_and_captions_alone_are_at_chance() -> None:
    right: dict[str, list[bool]] = defaultdict(list)
    reader = LexicalReader()
    for seed in range(2):
        for split in SPLITS:
            for s in streams(split, seed):
                found = sorted((a for a in s.asked if a.template in VISUAL), key=lambda a: a.question.time)
                golds = [a.gold.answer for a in found]
                for name, policy in (("options only", OptionsOnly), ("bm25", Bm25)):
                    right[name] += [a == b for a, b in zip(answers_of(policy, s, found), golds, strict=True)]
                for asked in found:
                    evidence = [
                        w for w in s.video.windows if any(a < w.end and w.start < b for a, b in asked.gold.oracle)
                    ]
                    read = Read(asked.question.question, asked.question.choices, "\n\n".join(map(told, evidence)))
                    right["captions of the evidence"].append(reader.read(read).choice == asked.gold.answer)
    for name, outcomes in right.items():
        assert len(outcomes) == 300
        assert abs(sum(outcomes) / len(outcomes) - 0.25) < 3.3 * math.sqrt(0.25 * 0.75 / len(outcomes)), name


def test_the_answers_are_spread_over_their_kinds() -> None:
    golds: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in range(2):
        for _, asked in visual(seed):
            golds[asked.template][asked.question.choices[asked.gold.answer]] += 1
    assert set(golds["item_count"]) == {"Two", "Three", "Four", "Five"}
    assert max(golds["item_count"].values()) < 0.45 * golds["item_count"].total()
    for name in ("shirt_colour", "item_colour"):
        assert set(golds[name]) == {colour.capitalize() for colour in COLOURS}


def test_wordings_open_and_close_the_gate() -> None:
    opened_, told_apart = Counter[str](), Counter[str]()
    for s in (s for split in SPLITS for s in streams(split, 0)):
        for asked in s.asked:
            q = asked.question
            opened_[asked.template] += strong_visual_need(Query("q", q.type, q.question, q.choices, q.time))
            told_apart[asked.template] += excluded(f"{q.type} {q.question}") > 0
    asked_for = Counter(a.template for split in SPLITS for s in streams(split, 0) for a in s.asked)
    share = sum(opened_[name] for name in VISUAL) / sum(asked_for[name] for name in VISUAL)
    assert 0.65 < share < 0.9
    assert opened_["what_left"] == asked_for["what_left"]
    for name in ("how_often", "who_left"):
        assert opened_[name] == 0 and told_apart[name] == asked_for[name] > 0


def test_traps_sound_visual_and_are_told_in_captions() -> None:
    for split in SPLITS:
        assert sum(a.template in TRAP for s in streams(split, 0) for a in s.asked) == 20
    for s, asked in [(stream, a) for stream in streams("test", 0) for a in stream.asked if a.template in TRAP]:
        windows = [w for w in s.video.windows if any(a < w.end and w.start < b for a, b in asked.gold.oracle)]
        answer = asked.question.choices[asked.gold.answer].removeprefix("The ").lower()
        if asked.template != "how_often":
            names = {answer} | {other for name, other in s.world.words.objects if name == answer}
            assert any(name in told(w).lower() for w in windows for name in names)


def test_scenes_differ() -> None:
    for s in streams("development", 0):
        pictures = {paint(scene).tobytes() for scene in s.scenes if scene is not None}
        assert len(pictures) > 0.85 * sum(scene is not None for scene in s.scenes)
        assert np.unique([paint(scene) for scene in s.scenes if scene is not None]).size == len(PALETTE)


def test_the_folder_has_nothing_but_listed_files(dataset: Dataset) -> None:
    found = {str(path.relative_to(dataset.path)) for path in Path(dataset.path).rglob("*") if path.is_file()}
    assert found == {*dataset.manifest.files, "manifest.json"}
