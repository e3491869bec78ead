"""The transcriber's calls through the hub: stored by content, metered by token or minute, untrusted."""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.config import resolve
from harness.models.hub import ModelHub
from harness.models.interface import CapReached, RequestRefused, Role, Segment
from harness.models.wire import BadReply, parse_transcription
from tests.construction.conftest import HERTZ, Studio, tone


def sound(*seconds: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(HERTZ)
        file.writeframes(np.concatenate([tone(s)[0] for s in seconds]).tobytes())
    return buffer.getvalue()


@pytest.fixture
def opened(studio: Studio, tmp_path: Path) -> Iterator[Callable[..., ModelHub]]:
    hubs = []

    def build(more: str = "") -> ModelHub:
        file = tmp_path / "harness.toml"
        role = f'[run]\nprofile = "p"\n[profiles.p.roles.transcriber]\nmodel = "ear"\nbase_url = "{studio.url}"\n'
        file.write_text(role + more)
        hubs.append(ModelHub(resolve({}, {}, file), tmp_path))
        return hubs[-1]

    yield build
    for hub in hubs:
        hub.close()


def test_times_come_with_the_text_and_nothing_is_asked_twice(studio: Studio, opened: Callable[..., ModelHub]) -> None:
    hub = opened()
    audio = sound(10, 11, 20)
    done = hub.transcribe(audio, 3.0, "anything")
    assert done.text == "second 10 second 11 second 20"
    assert done.segments == (Segment(0.0, 1.0, "second 10"), Segment(2.0, 3.0, "second 20"))
    assert (done.stored, studio.heard) == (False, [[10, 11, 20]])
    again = hub.transcribe(audio, 3.0, "elsewhere")
    assert (again.segments, again.stored, studio.asked) == (done.segments, True, 1)


def test_a_model_without_times_is_asked_once_for_them(studio: Studio, opened: Callable[..., ModelHub]) -> None:
    studio.timed = False
    hub = opened()
    for second in (1, 2):
        done = hub.transcribe(sound(second), 1.0, "s")
        assert (done.text, done.segments) == (f"second {second}", ())
    assert [form["response_format"] for form in studio.forms] == ["verbose_json", "json", "json"]


def test_cost_by_the_minute_and_by_the_token(studio: Studio, opened: Callable[..., ModelHub]) -> None:
    hub = opened('[prices."ear"]\ninput = 0\noutput = 0\nminute = 0.6\n')
    assert hub.transcribe(sound(1, 2, 3), 3.0, "s").usage.dollars == pytest.approx(0.03)
    assert hub.spent()[Role.TRANSCRIBER].estimated is False
    studio.usage = {"type": "tokens", "input_tokens": 14, "output_tokens": 101, "total_tokens": 115}
    counted = opened('[prices."ear"]\ninput = 1000\noutput = 2000\n')
    usage = counted.transcribe(sound(4), 1.0, "s").usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (14, 101)
    assert usage.dollars == pytest.approx(14 * 1e-3 + 101 * 2e-3)


def test_what_could_pass_the_cap_is_not_sent(studio: Studio, opened: Callable[..., ModelHub]) -> None:
    hub = opened('[prices."ear"]\ninput = 0\noutput = 0\nminute = 6.0\n[caps]\ndollars = 0.25\n')
    hub.transcribe(sound(1, 2), 2.0, "s")
    with pytest.raises(CapReached, match="dollars"):
        hub.transcribe(sound(3), 1.0, "s")
    assert studio.asked == 1


def test_a_refusal_is_not_taken_for_a_missing_parameter(studio: Studio, opened: Callable[..., ModelHub]) -> None:
    studio.fails = lambda number: 400
    with pytest.raises(RequestRefused, match="400"):
        opened().transcribe(sound(1), 1.0, "s")
    assert studio.asked == 1


def test_segments_are_cut_to_the_audio_and_sorted() -> None:
    listed = [
        {"start": 4.0, "end": 1e12, "text": "late"},
        {"start": -3, "end": 2, "text": " early "},
        {"start": 3, "end": 1, "text": "turned"},
        {"start": "1", "end": 2, "text": "no time"},
        {"start": float("nan"), "end": 2, "text": "no number"},
        {"start": 1, "end": 2, "text": "  "},
        {"start": 1, "end": 2, "text": 7},
        "no segment",
    ]
    text, segments, usage = parse_transcription(json.dumps({"text": "a\ud800b", "segments": listed}).encode(), 5.0)
    assert (text, usage) == ("a?b", None)
    assert segments == (Segment(0.0, 2.0, "early"), Segment(3.0, 3.0, "turned"), Segment(4.0, 5.0, "late"))
    for body in (b"{}", b'{"text": 3}', b"[]", b"hello"):
        with pytest.raises(BadReply):
            parse_transcription(body, 5.0)
