"""The pixel reader: exact on the life-log's frames, silent on any other picture and on questions it is not for."""

from __future__ import annotations

import random

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.data.lifelog import palette as p
from harness.data.lifelog.draw import Draw
from harness.data.lifelog.film import corner, paint
from harness.data.lifelog.scenes import Item, Scene, arrange
from harness.data.pictures import encoded
from harness.evaluation.offline import OfflineAnswers
from harness.models.pixels import look, see
from policies.contract import Read

COLOURS = {"A": "Red", "B": "Green", "C": "Pink", "D": "White"}
NUMBERS = {"A": "Two", "B": "Three", "C": "Four", "D": "Five"}
KINDS = {"A": "A cube", "B": "A cone", "C": "A kite", "D": "A wheel"}
ITEMS = (
    Item("ball", "red", 0, 2, 11, 0, 0),
    Item("cube", "green", 0, 0, 9, 1, -1),
    Item("cone", "pink", 0, 3, 13, -1, 0),
    Item("kite", "white", 1, 2, 13, 0, 1),
    Item("kite", "white", 1, 3, 9, 0, 0),
    Item("kite", "green", 1, 4, 11, 0, 0),
)
SCENE = Scene(ITEMS, 1, 2, ((2, 2, 60, 5, 1), (70, 3, 72, 30, 4)), 1, "Mara", "pink", "drill", "green")
WHEN = "when Mara cleaned the drill?"


def png(pixels: np.ndarray) -> bytes:
    return encoded(av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24"))


def frame(scene: Scene) -> bytes:
    return png(p.PALETTE[paint(scene)])


@pytest.mark.parametrize(
    ("question", "choices", "letter"),
    [
        ("What colour is the drill?", COLOURS, "B"),
        ("What does the drill look like?", COLOURS, "B"),
        (f"What colour was the shirt that Mara was wearing {WHEN}", COLOURS, "C"),
        (f"What colour was the ball {WHEN}", COLOURS, "A"),
        (f"What colour was the cone {WHEN}", COLOURS, "C"),
        (f"How many kites were there {WHEN}", NUMBERS, "B"),
        (f"What was the number of kites {WHEN}", {"A": "3", "B": "4"}, "A"),
        (f"What was directly to the left of the ball {WHEN}", KINDS, "A"),
        (f"What was directly to the right of the ball {WHEN}", KINDS, "B"),
        (f"What hung under the ball {WHEN}", KINDS, "C"),
        (f"What was below the cone {WHEN}", KINDS, "C"),
    ],
)
def test_what_a_frame_shows(question: str, choices: dict[str, str], letter: str) -> None:
    assert look(question, choices, [frame(SCENE)]) == letter


@pytest.mark.parametrize(
    ("question", "choices"),
    [
        ("What colour is the ladder?", COLOURS),  # another thing is in the hands
        ("What colour was the ball when Bo cleaned the drill?", COLOURS),  # another person is there
        ("What colour was the ball when I cleaned the drill?", COLOURS),  # somebody is there
        (f"What colour was the kite {WHEN}", COLOURS),  # there are three
        (f"What colour was the wheel {WHEN}", COLOURS),  # there is none
        (f"How many balls were there {WHEN}", NUMBERS),  # one, which is no choice
        (f"How many times did Mara throw kites {WHEN}", NUMBERS),  # not a number of things
        (f"What hung over the ball {WHEN}", KINDS),  # nothing does
        (f"What was to the left of the kite {WHEN}", KINDS),  # of which
        ("What did Bo do right after Mara cleaned the drill?", {"A": "Used the drill", "B": "Dropped it"}),
        (f"What colour was the ball {WHEN}", {"A": "Red", "B": "A red one"}),  # two choices the same
        (f"What colour was the ball {WHEN}", {"A": "Red or green", "B": "White"}),
        (f"What colour was the ball {WHEN}", {"A": "Blue", "B": "Green"}),  # red is no choice
        ("Who is wearing the pink shirt?", {"A": "Mara", "B": "Bo"}),
        ("", {}),
    ],
)
def test_no_opinion_without_a_clear_answer(question: str, choices: dict[str, str]) -> None:
    assert look(question, choices, [frame(SCENE)]) is None


def test_the_frame_that_shows_what_is_named_counts_and_disagreement_is_silence() -> None:
    question = f"What colour was the ball {WHEN}"
    other = arrange(Draw("other"), "Bo", "red", "ladder", "white")
    assert look(question, COLOURS, [frame(other), frame(SCENE)]) == "A"
    again = Scene((Item("ball", "white", 1, 1, 9, 0, 0),), 0, 0, (), 0, "Mara", "red", "drill", "green")
    assert look(question, COLOURS, [frame(SCENE), frame(again)]) is None


def test_permuting_the_choices_keeps_the_answer() -> None:
    draw = random.Random(3)
    for _ in range(10):
        texts = draw.sample(list(COLOURS.values()), 4)
        letter = look(f"What colour was the ball {WHEN}", dict(zip("ABCD", texts, strict=True)), [frame(SCENE)])
        assert letter is not None and texts["ABCD".index(letter)] == "Red"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(["", "Mara", "Okan"]), st.sampled_from(["", "drill", "radio"]))
def test_every_scene_is_read_whole(seed: int, person: str, thing: str) -> None:
    draw = Draw("scene", seed)
    colour = draw.pick(tuple(p.COLOURS))
    scene = arrange(draw, person, colour if person else "", thing, colour if thing else "")
    sight = see(frame(scene))
    assert sight is not None
    expected = {(i.kind, i.colour, corner(i)[0] + i.size // 2, corner(i)[1] + i.size // 2) for i in scene.items}
    assert {(t.kind, t.colour, t.x, t.y) for t in sight.things} == expected
    assert sight.person == (p.mark(person).tobytes() if person else b"")
    assert sight.held == (p.mark(thing).tobytes() if thing else b"")
    assert (sight.shirt, sight.held_colour) == (scene.shirt, scene.thing_colour)


# ---------------------------------------------------------------- other pictures


def others() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(5)
    picture = p.PALETTE[paint(SCENE)]
    spot, dot = picture.copy(), picture.copy()
    spot[70, 5] = (1, 2, 3)
    dot[10, 30] = p.PALETTE[0]
    slope = np.linspace(0, 255, p.WIDTH)[None, :, None] * np.linspace(0.2, 1, p.HEIGHT)[:, None, None]
    return {
        "noise": draw.integers(0, 256, (p.HEIGHT, p.WIDTH, 3), np.uint8),
        "noise in the palette": p.PALETTE[draw.integers(0, len(p.PALETTE), (p.HEIGHT, p.WIDTH))],
        "noise in its colours": p.PALETTE[draw.integers(0, 8, (p.HEIGHT, p.WIDTH))],
        "a slope": np.repeat(slope, 3, axis=2).astype(np.uint8),
        "black": np.zeros((p.HEIGHT, p.WIDTH, 3), np.uint8),
        "one odd pixel": spot,
        "a dot that is no shape": dot,
        "half as large": picture[::2, ::2],
        "twice as large": picture.repeat(2, 0).repeat(2, 1),
        "blurred": ((picture.astype(int) + np.roll(picture, 1, 1)) // 2).astype(np.uint8),
    }


@pytest.mark.parametrize("name", others())
def test_another_picture_says_nothing(name: str) -> None:
    image = png(others()[name])
    assert see(image) is None
    for question, choices in ((f"What colour was the ball {WHEN}", COLOURS), (f"How many kites {WHEN}", NUMBERS)):
        assert look(question, choices, [image]) is None


def test_random_noise_never_has_an_opinion() -> None:
    draw = np.random.default_rng(0)
    for _ in range(40):
        image = png(p.PALETTE[draw.integers(0, len(p.PALETTE), (p.HEIGHT, p.WIDTH))])
        assert look("What colour is the drill?", COLOURS, [image]) is None


@pytest.mark.parametrize("data", [b"", b"\x89PNG", b"\xff\xd8\xff", b"hello" * 100, frame(SCENE)[:200]])
def test_bytes_that_are_no_image_say_nothing(data: bytes) -> None:
    assert look(f"What colour was the ball {WHEN}", COLOURS, [data]) is None


# ---------------------------------------------------------------- together with the lexical reader


CONTEXT = "Mara cleans the drill. The ball is white, they say."


def read(question: str, instructions: str = "", images: tuple[bytes, ...] = ()) -> str | None:
    request = Read(question, COLOURS, CONTEXT, instructions, tuple(f"frame-{n}" for n in range(len(images))))
    return OfflineAnswers().answer(request, "digest", images)[0].choice


def test_frames_overrule_captions_only_where_they_say_something() -> None:
    question = f"What colour was the ball {WHEN}"
    assert read(question) == "D"
    assert read(question, images=(frame(SCENE),)) == "A"
    assert read(question, images=(png(others()["noise"]),)) == "D"


def test_an_answer_to_be_maintained_stands_unless_frames_refute_it() -> None:
    told = "Current text answer is B. Inspect frames. Maintain B unless visual evidence proves an alternative."
    question = f"What colour was the ball {WHEN}"
    assert read(question, told, (png(others()["noise"]),)) == "B"
    assert read(question, told, (frame(SCENE),)) == "A"
    assert read(question, told) == "D"
    assert read(question, told.replace("B", "J"), (png(others()["noise"]),)) == "D"


def test_the_same_references_to_other_frames_are_another_request() -> None:
    answers = OfflineAnswers()
    request = Read(f"What colour was the ball {WHEN}", COLOURS, CONTEXT, "", ("frame-0",))
    assert answers.answer(request, "digest", (frame(SCENE),))[0].choice == "A"
    assert answers.answer(request, "digest", (png(others()["noise"]),))[0].choice == "D"
