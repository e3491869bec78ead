"""From real files to a data set: right pictures at right times, what is asked and paid, what cannot be built."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from harness.config import Config, resolve
from harness.construction.build import Built, Order, build
from harness.construction.video import jpeg, look
from harness.data.check import check
from harness.data.frames import open_frames
from harness.data.native import Dataset, load
from harness.data.pictures import image_pixels
from harness.errors import UserError
from harness.models.interface import Role
from tests.construction.conftest import Studio, bars, make_clip, read_bars

SRT = (
    "1\n00:00:05,000 --> 00:00:06,000\nAnn: The key is in the drawer\n\n2\n00:01:40,000 --> 00:01:41,000\nBob: Thanks\n"
)
CAPTIONS = json.dumps([{"start": 10 * n, "end": 10 * n + 5, "text": f"caption {n}"} for n in range(12)])


@pytest.fixture
def config(studio: Studio, tmp_path: Path) -> Callable[..., Config]:
    def resolved(more: str = "", roles: tuple[str, ...] = ("captioner", "transcriber")) -> Config:
        models = {"captioner": "eye", "transcriber": "ear"}
        file = tmp_path / "harness.toml"
        tables = [f'[profiles.p.roles.{r}]\nmodel = "{models[r]}"\nbase_url = "{studio.url}"\n' for r in roles]
        file.write_text("".join(['[run]\nprofile = "p"\n' if roles else "", *tables, more]))
        return resolve({}, {}, file)

    return resolved


def made(out: Path, settings: Config, *sources: Path, **changes: Any) -> tuple[Built, Dataset]:
    built = build(Order(sources, out, **changes), settings, lambda *progress: None, lambda line: None)
    assert check(out) == []
    return built, load(out)


def refused(out: Path, settings: Config, *sources: Path, **changes: Any) -> str:
    with pytest.raises(UserError) as caught:
        build(Order(sources, out, **changes), settings, lambda *progress: None, lambda line: None)
    assert not out.exists() and "\n" not in str(caught.value)
    return str(caught.value)


def test_two_minutes_of_video(studio: Studio, config: Any, clips: Path, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(
        json.dumps({"question": "What?", "choices": ["a", "b"], "answer": "A", "time": "01:00", "oracle": [[3, 4]]})
    )
    settings = {"start": 39_600.0, "transcribe": True, "questions": tmp_path / "q.jsonl"}
    built, data = made(tmp_path / "out", config(), clips / "day.mp4", **settings)
    # Each window once, four pictures, taken at the middles of its four quarters.
    assert sorted(studio.captions) == [[300 * w + t for t in (37, 112, 187, 262)] for w in range(4)]
    text = studio.bodies[0]["messages"][-1]["content"][0]["text"]
    assert "4 pictures" in text and "3.8, 11.2, 18.8, 26.2 seconds" in text
    assert studio.bodies[0]["max_tokens"] == 400
    # The sound of each window once, and no more than that.
    assert sorted(studio.heard) == [list(range(30 * w, 30 * w + 30)) for w in range(4)]
    (video,) = data.videos.values()
    assert [(w.start, w.end) for w in video.windows] == [(39_600 + 30 * w, 39_630 + 30 * w) for w in range(4)]
    for number, window in enumerate(video.windows):
        assert window.captions == (f"Bars {300 * number + 37} to {300 * number + 262}.",)
        assert [line.text for line in window.transcript] == [f"second {30 * number + s}" for s in (0, 10, 20)]
        assert window.frames
    assert (video.id, video.duration) == ("day", 39_720.0)
    (question,) = data.questions("test")
    assert (question.time, data.gold("test")["q00001"].oracle) == (39_660.0, ((39_603.0, 39_604.0),))
    # Frames are served from the data set by time, and none from after the question.
    frames = open_frames(data)
    assert frames is not None
    image = frames.nearest("day", 39_645.0, question.time)
    assert image is not None and (image.time, read_bars(image.data)) == (39_645.0, 450)
    late = frames.nearest("day", 39_700.0, question.time)
    assert late is not None and (late.time, read_bars(late.data)) == (39_660.0, 600)
    assert built.spent[Role.CAPTIONER].prompt_tokens == 4_000 and built.spent[Role.TRANSCRIBER].requests == 4
    assert (built.asked, built.kept) == (8, 0)


def test_built_again_elsewhere_on_the_axis_nothing_is_asked(
    studio: Studio, config: Any, clips: Path, tmp_path: Path
) -> None:
    settings = config()
    made(tmp_path / "out", settings, clips / "day.mp4", transcribe=True)
    (tmp_path / "out").rename(tmp_path / "first")
    built, data = made(tmp_path / "out", settings, clips / "day.mp4", transcribe=True, start=86_400.0)
    assert (built.asked, built.kept, studio.asked) == (0, 8, 8)
    assert built.spent[Role.CAPTIONER].requests == 4, "the cost of all sessions"
    again = [w.captions for w in load(tmp_path / "first").videos["day"].windows]
    assert [w.captions for w in data.videos["day"].windows] == again


def test_other_containers_and_a_clip_that_does_not_start_at_nothing(
    studio: Studio, config: Any, tmp_path: Path
) -> None:
    make_clip(tmp_path / "late.mkv", 31.5, audio=False, options={"output_ts_offset": "5"})
    assert look(tmp_path / "late.mkv").first == 5.0
    make_clip(tmp_path / "b.webm", 31.5, codec="libvpx", audio=False)
    for name in ("late.mkv", "b.webm"):
        studio.captions.clear()
        _, data = made(tmp_path / f"{name}.out", config(), tmp_path / name, pictures=1)
        assert sorted(studio.captions) == [[150], [307]]
        (video,) = data.videos.values()
        assert [(w.start, w.end) for w in video.windows] == [(0.0, 30.0), (30.0, 31.5)]


def test_a_telephone_held_upright(studio: Studio, config: Any, tmp_path: Path) -> None:
    """Its frames lie on their side, with a note to turn them: captioner and policies see them upright."""
    with av.open(str(tmp_path / "a.mp4"), "w") as out:
        stream: Any = out.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 96, 220, "yuv420p"
        stream.set_display_rotation(90)
        for number in range(20):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(np.rot90(bars(number), -1)), format="rgb24")
            frame.pts = number
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    _, data = made(tmp_path / "out", config(), tmp_path / "a.mp4", pictures=2)
    assert studio.captions == [[5, 15]]
    frames = open_frames(data)
    assert frames is not None
    image = frames.nearest("a", 0.5, 2.0)
    assert image is not None
    pixels = image_pixels(image.data)
    assert pixels is not None and pixels.shape[:2] == (96, 220)


def test_a_day_in_clips_named_for_their_times(studio: Studio, config: Any, tmp_path: Path) -> None:
    folder = tmp_path / "clips"
    folder.mkdir()
    make_clip(folder / "A_DAY1_11003000.mp4", 30.3, audio=False, first=300)
    make_clip(folder / "A_DAY1_11000000.mp4", 30.0, audio=False)
    make_clip(folder / "A_DAY1_11010000.mp4", 10.0, audio=False, first=600)
    _, data = made(tmp_path / "out", config(), folder, video="jake", pictures=1)
    (video,) = data.videos.values()
    assert [(w.start, w.end) for w in video.windows] == [(39_600, 39_630), (39_630, 39_660), (39_660, 39_670)]
    assert sorted(studio.captions) == [[150], [450], [650]]
    assert [(file.path, file.start) for file in video.frames] == [
        ("frames/jake-1.mp4", 39_600.0), ("frames/jake-2.mp4", 39_630.0), ("frames/jake-3.mp4", 39_660.0),
    ]  # fmt: skip
    make_clip(folder / "A_DAY1_11001000.mp4", 5.0, audio=False)
    assert "A_DAY1_11001000.mp4: begins at DAY1T11:00:10, before" in refused(
        tmp_path / "other", config(), folder, video="jake"
    )


def test_clips_without_times_follow_one_another(studio: Studio, config: Any, tmp_path: Path) -> None:
    for number, length in enumerate((12.0, 8.0)):
        make_clip(tmp_path / f"{number}.mp4", length, audio=False, first=100 * number)
    _, data = made(tmp_path / "out", config(), tmp_path / "0.mp4", tmp_path / "1.mp4", video="day", start=60.0)
    assert [(w.start, w.end) for w in data.videos["day"].windows] == [(60.0, 72.0), (72.0, 80.0)]
    made(tmp_path / "odd", config(), tmp_path / "0.mp4", tmp_path / "1.mp4", video="day", start=60.012_345_678)
    made(tmp_path / "apart", config(), tmp_path / "0.mp4", tmp_path / "1.mp4")
    assert set(load(tmp_path / "apart").videos) == {"0", "1"}


def test_text_alone_needs_no_model(studio: Studio, config: Any, tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text(SRT)
    (tmp_path / "a.json").write_text(CAPTIONS)
    built, data = made(tmp_path / "out", config(roles=()), tmp_path / "a.srt", tmp_path / "a.json")
    windows = data.videos["a"].windows
    assert [len(w.captions) for w in windows] == [3, 3, 3, 3]
    assert [[(u.speaker, u.text) for u in w.transcript] for w in windows] == [
        [("Ann", "The key is in the drawer")], [], [], [("Bob", "Thanks")],
    ]  # fmt: skip
    assert (data.videos["a"].duration, built.replies, studio.asked) == (115.0, None, 0)
    assert not (tmp_path / "out.replies").exists()


def test_a_video_with_captions_and_transcript_of_its_own_needs_no_model(
    config: Any, clips: Path, tmp_path: Path
) -> None:
    (tmp_path / "day.srt").write_text(SRT)
    (tmp_path / "day.json").write_text(CAPTIONS)
    sources = (clips / "day.mp4", tmp_path / "day.srt", tmp_path / "day.json")
    _, data = made(tmp_path / "out", config(roles=()), *sources)
    assert data.videos["day"].duration == 120.0 and all(w.frames for w in data.videos["day"].windows)


def test_pictures_of_a_folder(config: Any, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for second, name in ((15, "15.png"), (45, "DAY1T00-00-45.png")):
        codec: Any = av.CodecContext.create("png", "w")
        frame = av.VideoFrame.from_ndarray(bars(second * 10), format="rgb24")
        codec.width, codec.height, codec.pix_fmt, codec.time_base = frame.width, frame.height, "rgb24", Fraction(1)
        frame.pts = 0
        (folder / name).write_bytes(b"".join(bytes(p) for part in (frame, None) for p in codec.encode(part)))
    (tmp_path / "a.json").write_text(CAPTIONS)
    _, data = made(tmp_path / "out", config(roles=()), tmp_path / "a.json", frames=folder)
    assert [w.frames for w in data.videos["a"].windows] == [True, True, False, False]
    frames = open_frames(data)
    assert frames is not None
    seen = frames.nearest("a", 50.0, 50.0)
    assert seen is not None and (seen.time, read_bars(seen.data)) == (45.0, 450)
    (folder / "cover.jpg").write_bytes(b"x")
    assert "cover.jpg: its name is no time" in refused(tmp_path / "b", config(), tmp_path / "a.json", frames=folder)
    (folder / "cover.jpg").rename(folder / "3.jpg")
    assert "3.jpg: not an image" in refused(tmp_path / "b", config(), tmp_path / "a.json", frames=folder)
    (folder / "3.jpg").rename(folder / "45.0.jpg")
    assert "stands at the same time" in refused(tmp_path / "b", config(), tmp_path / "a.json", frames=folder)


# ---------------------------------------------------------------- models that do not do as they should


def test_an_endpoint_that_fails_half_way(studio: Studio, config: Any, clips: Path, tmp_path: Path) -> None:
    settings = config("[caps]\nrequests = 40\n")
    settings = config("".join(f"[profiles.p.roles.{r}]\nattempts = 2\n" for r in ()), ("captioner",))
    studio.fails = lambda number: 401 if number >= 2 else None
    told = refused(tmp_path / "out", settings, clips / "day.mp4", parallel=1)
    assert "the key was refused (401)" in told and "the same command goes on from there" in told
    assert len(studio.captions) == 2
    studio.fails = lambda number: None
    built, data = made(tmp_path / "out", settings, clips / "day.mp4", parallel=1)
    assert (built.asked, built.kept) == (2, 2) and len(data.videos["day"].windows) == 4
    assert len(studio.captions) == len({tuple(shown) for shown in studio.captions}) == 4


def test_a_cap_is_kept_and_can_be_raised(studio: Studio, config: Any, clips: Path, tmp_path: Path) -> None:
    told = refused(tmp_path / "out", config("[caps]\nrequests = 3\n"), clips / "day.mp4")
    assert "caps.requests reached" in told and studio.asked == 3
    built, _ = made(tmp_path / "out", config("[caps]\nrequests = 4\n"), clips / "day.mp4")
    assert (built.asked, built.kept, studio.asked) == (1, 3, 4)


def test_no_such_model_is_told_before_anything_is_asked(
    studio: Studio, config: Any, clips: Path, tmp_path: Path
) -> None:
    studio.models = ["other"]
    told = refused(tmp_path / "out", config(), clips / "day.mp4")
    assert "role captioner" in told and "there is no such model; the endpoint lists other" in told
    assert studio.asked == 0 and not (tmp_path / "out.replies").exists()


def test_windows_that_a_model_refuses_or_says_nothing_of(
    studio: Studio, config: Any, clips: Path, tmp_path: Path
) -> None:
    studio.say = lambda shown: "" if shown[0] == 37 else "1. One thing\n\n* Another\n- 3 cups"
    studio.fails = lambda number: 400 if number == 3 else None
    built, data = made(tmp_path / "out", config(), clips / "day.mp4", parallel=1)
    assert [w.captions for w in data.videos["day"].windows] == [("One thing", "Another", "3 cups")] * 2
    notes = "\n".join(built.written.notes)
    assert "1 of 4 windows without a caption" in notes and "no caption at DAY1T00:01:30" in notes
    assert "2 window(s) without captions and transcript are left out" in notes


def test_a_model_that_takes_no_pictures(studio: Studio, config: Any, clips: Path, tmp_path: Path) -> None:
    studio.fails = lambda number: 400
    assert "refused the request (400)" in refused(tmp_path / "out", config(), clips / "day.mp4")
    studio.fails = lambda number: 500
    studio.excuse = "image input is not supported - hint: you may need to provide the mmproj"  # llama.cpp's words
    asked = studio.asked
    told = refused(tmp_path / "out", config(), clips / "day.mp4")
    assert "refused the request (500): image input is not supported" in told and studio.asked == asked + 4
    studio.fails = lambda number: None
    studio.say = lambda shown: " \n"
    told = refused(tmp_path / "out", config(), clips / "day.mp4")
    assert "described none of 4 windows: its replies are empty" in told


# ---------------------------------------------------------------- material that cannot be used


def spoil(clips: Path, tmp_path: Path, kind: str) -> Path:
    """A video that is broken in one way."""
    good, bad = (clips / "day.mp4").read_bytes(), tmp_path / "bad.mp4"
    if kind == "cut":
        bad.write_bytes(good[: len(good) // 2])
    elif kind == "cut at the front's index":
        with (
            av.open(str(clips / "day.mp4")) as source,
            av.open(str(bad), "w", options={"movflags": "faststart"}) as out,
        ):
            streams = {stream: out.add_stream_from_template(stream) for stream in source.streams}
            for packet in source.demux():
                if packet.dts is not None:
                    packet.stream = streams[packet.stream]
                    out.mux(packet)
        bad.write_bytes(bad.read_bytes()[: len(good) * 6 // 10])
    elif kind == "codec":
        bad.write_bytes(good.replace(b"avc1", b"zzz1").replace(b"avcC", b"zzzC"))
    elif kind == "text":
        bad.write_bytes(b"#EXTM3U\nfile:///etc/hostname\n")
    elif kind == "nothing":
        bad.write_bytes(b"")
    elif kind == "sound":
        with av.open(str(bad), "w") as out:
            sound = out.add_stream("aac", rate=16_000, layout="mono")
            with av.open(str(clips / "day.mp4")) as source:
                for frame in islice(source.decode(audio=0), 50):
                    out.mux(sound.encode(frame))
            out.mux(sound.encode(None))
    return bad


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("cut", "cannot be read as a video (damaged, cut short, or of an unknown kind)"),
        ("cut at the front's index", "is cut short: its header says 120."),
        ("codec", "there is no decoder for its codec; convert it"),
        ("text", "cannot be read as a video"),
        ("nothing", "is empty"),
        ("sound", "has no picture"),
    ],
)
def test_videos_that_cannot_be_used(
    studio: Studio, config: Any, clips: Path, tmp_path: Path, kind: str, says: str
) -> None:
    told = refused(tmp_path / "out", config(), spoil(clips, tmp_path, kind))
    assert says in told and "bad.mp4" in told
    assert studio.asked == 0 and not (tmp_path / "out.replies").exists()


def test_a_video_without_sound(studio: Studio, config: Any, clips: Path, tmp_path: Path) -> None:
    silent = make_clip(tmp_path / "silent.mp4", 5.0, audio=False)
    assert "silent.mp4 has no sound; leave it out" in refused(tmp_path / "out", config(), silent, transcribe=True)
    assert studio.asked == 0
    built, data = made(tmp_path / "out", config(), silent, clips / "day.mp4", transcribe=True)
    assert any("silent.mp4: has no sound, so it has no transcript" in note for note in built.written.notes)
    assert not any(w.transcript for w in data.videos["silent"].windows) and len(studio.heard) == 4


def test_silence_is_not_sent(studio: Studio, config: Any, tmp_path: Path) -> None:
    make_clip(tmp_path / "a.mp4", 65, silent=range(28, 62))  # longer than the window: a codec lets sound ring on
    _, data = made(tmp_path / "out", config(), tmp_path / "a.mp4", transcribe=True)
    assert [seconds[3:28] for seconds in sorted(studio.heard)] == [[63, 64], list(range(3, 28))]
    assert not data.videos["a"].windows[1].transcript and len(studio.heard) == 2
    make_clip(tmp_path / "b.mp4", 5, silent=range(5))
    built, _ = made(tmp_path / "quiet", config(), tmp_path / "b.mp4", transcribe=True)
    assert "nobody is heard to speak" in built.written.notes and len(studio.heard) == 2


def test_pictures_are_scaled_and_the_same_frame_gives_the_same_bytes() -> None:
    frame = av.VideoFrame.from_ndarray(np.kron(bars(693), np.ones((8, 8, 1), np.uint8)), format="rgb24")
    picture = jpeg(frame)
    assert picture == jpeg(frame) and read_bars(picture) == 693
    with av.open(io.BytesIO(picture)) as container:
        shown = next(container.decode(video=0))
    assert (frame.width, frame.height, shown.width, shown.height) == (1_760, 768, 768, 334)


def test_a_profile_without_the_role(config: Any, clips: Path, tmp_path: Path) -> None:
    told = refused(tmp_path / "out", config(roles=()), clips / "day.mp4")
    assert "neither captions nor transcript, and profile offline names no captioner; give day.json or day.srt" in told
    told = refused(tmp_path / "out", config(roles=("captioner",)), clips / "day.mp4", transcribe=True)
    assert "names no transcriber" in told
    (tmp_path / "day.srt").write_text(SRT)
    built, _ = made(tmp_path / "out", config(roles=()), clips / "day.mp4", tmp_path / "day.srt")
    assert any("has no captions: profile offline names no captioner" in note for note in built.written.notes)


def test_captions_from_outside_the_video(config: Any, clips: Path, tmp_path: Path) -> None:
    (tmp_path / "day.txt").write_text("DAY1T10:00 too early\n")
    told = refused(tmp_path / "out", config(), clips / "day.mp4", tmp_path / "day.txt", start=39_600.0)
    assert "day.txt: speaks of DAY1T10:00:00, before" in told
    (tmp_path / "day.txt").write_text("00:10 fine\n10:00-10:01 after the end\n")
    built, data = made(tmp_path / "out", config(), clips / "day.mp4", tmp_path / "day.txt")
    assert [w.frames for w in data.videos["day"].windows] == [True, False]
    assert any("go on for 481.0 s after its end" in note for note in built.written.notes)


def test_two_builds_at_once(config: Any, clips: Path, tmp_path: Path) -> None:
    from harness.state.folder import lock

    (tmp_path / "out.replies").mkdir()
    with lock(tmp_path / "out.replies"):
        assert "another process is building it" in refused(tmp_path / "out", config(), clips / "day.mp4")


# ---------------------------------------------------------------- the command


def test_the_command(studio: Studio, config: Any, clips: Path, tmp_path: Path) -> None:
    config()
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("HARNESS_", "OPENAI_"))} | {"COLUMNS": "120"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "harness", "memory", "build", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=120)

    done = run(str(clips / "day.mp4"), "--out", "out", "--start", "DAY1T11:00:00", "--transcribe", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["windows"], facts["with_frames"], facts["asked_now"]) == (4, 4, 8)
    assert facts["cost"]["captioner"]["prompt_tokens"] == 4_000
    assert "captioner: eye at http://127.0.0.1" in done.stderr
    again = run(str(clips / "day.mp4"), "--out", "out")
    assert again.returncode == 2 and "out: exists already" in again.stderr and not again.stdout
