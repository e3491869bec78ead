"""SRT and WebVTT as they are found in the wild, and what no reader can mend."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.construction.transcripts import read_transcript
from harness.errors import UserError

Said = tuple[float, float, str, str]


def read(tmp_path: Path, text: str | bytes, name: str = "a.srt", beginning: float = 0.0) -> list[Said]:
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [(line.start, line.end, line.speaker, line.text) for line in read_transcript(file, beginning).lines]


PLAIN = "1\n00:00:01,000 --> 00:00:02,500\nHello\n\n2\n00:00:03,000 --> 00:00:04,000\nWorld\n"
WANTED = [(1.0, 2.5, "", "Hello"), (3.0, 4.0, "", "World")]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("\n\n", "\n"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace(",", "."),
        PLAIN.replace("00:00:", "00:"),
        PLAIN.replace("00:00:", "0:00:").replace("-->", "->"),
        PLAIN.replace("-->", "–>").replace(" –", "–"),
        PLAIN.replace("2\n00", "00").replace("1\n00", "00"),
        PLAIN.replace("2\n00", "7\n00"),
        PLAIN.replace("2\n00", "1\n00").replace("\n\n", "\n"),
        PLAIN.replace("Hello", "\nHello\n\n"),
        PLAIN.replace(":", "：").replace(",", "，").replace("0", "０"),
        PLAIN.replace("00:00:01,000 --> ", "00:00:01,000\u00a0-->\u3000"),
        PLAIN.replace("Hello", "<i>Hel</i>lo").replace("World", '{\\an8}<font color="#fff">World</font>'),
        PLAIN + "\n3\n00:00:05,000 --> 00:00:06,000\n\n",
        PLAIN.removesuffix("\n"),
        "\n".join(reversed(PLAIN.split("\n\n"))),
        PLAIN.encode("utf-16"),
        PLAIN.encode("utf-16-le"),
        PLAIN.encode("utf-16-be"),
        PLAIN.encode("utf-8-sig"),
        PLAIN.replace("\n\n", "\n\n\ufeff").encode("utf-8-sig"),
        PLAIN.replace("02,500", "02,5"),
    ],
)
def test_what_can_be_mended_is(tmp_path: Path, text: str | bytes) -> None:
    assert read(tmp_path, text) == WANTED


def test_times_count_from_the_beginning_of_the_piece(tmp_path: Path) -> None:
    assert read(tmp_path, PLAIN, beginning=39_600.0)[0][:2] == (39_601.0, 39_602.5)


def test_digits_that_are_said_are_kept(tmp_path: Path) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nHow many?\n42\n\n2\n00:00:03,000 --> 00:00:04,000\n10\n"
    assert [s[3] for s in read(tmp_path, text)] == ["How many? 42", "10"]


def test_webvtt_blocks_names_settings_and_entities(tmp_path: Path) -> None:
    text = (
        "WEBVTT - a title\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE\nnot said\nnor this\n\nintro\n"
        "00:01.000 --> 00:02.000 align:start position:0%\n<v.loud Ann Lee>Hi <c.x>you</c> &amp; me\n"
        "<v Bob>Yes\nindeed\n\nNOTE one line\n\n00:03.000 --> 00:04.000\nso<00:03.500> it goes\n"
    )
    assert read(tmp_path, text, "a.vtt") == [
        (1.0, 2.0, "Ann Lee", "Hi you & me"),
        (1.0, 2.0, "Bob", "Yes indeed"),
        (3.0, 4.0, "", "so it goes"),
    ]


@pytest.mark.parametrize(
    ("text", "speaker", "said"),
    [
        ("Jake: Hello", "Jake", "Hello"),
        ("- Jake: Hello", "Jake", "Hello"),
        (">> Mary Ann: Hello", "Mary Ann", "Hello"),
        ("[SPEAKER_01]: Hello", "SPEAKER_01", "Hello"),
        ("speaker 2: Hello", "speaker 2", "Hello"),
        ("小明：你好", "小明", "你好"),
        ("it is 10:30 now", "", "it is 10:30 now"),
        ("and then he said: go", "", "and then he said: go"),
        ("http://example.org", "", "http://example.org"),
        ("At 11:30", "", "At 11:30"),
    ],
)
def test_speakers(tmp_path: Path, text: str, speaker: str, said: str) -> None:
    assert next(s[2:] for s in read(tmp_path, PLAIN.replace("Hello", text))) == (speaker, said)


def test_chinese_in_its_own_encoding(tmp_path: Path) -> None:
    text = PLAIN.replace("Hello", "小明：你好").replace("World", "一些")
    assert [s[2:] for s in read(tmp_path, text.encode("gb18030"))] == [("小明", "你好"), ("", "一些")]


def test_two_speakers_in_one_cue(tmp_path: Path) -> None:
    text = PLAIN.replace("Hello", "- Ann: Hello\nthere\n- Bob: Hi")
    assert [s[2:] for s in read(tmp_path, text)][:2] == [("Ann", "Hello there"), ("Bob", "Hi")]


def test_overlapping_repeats_become_one_line(tmp_path: Path) -> None:
    text = (
        "00:00:01,000 --> 00:00:03,000\nHello\n\n00:00:02,000 --> 00:00:05,000\nHello\n\n"
        "00:00:02,500 --> 00:00:03,500\nMeanwhile\n\n00:00:09,000 --> 00:00:10,000\nHello\n"
    )
    assert read(tmp_path, text) == [
        (1.0, 5.0, "", "Hello"), (2.5, 3.5, "", "Meanwhile"), (9.0, 10.0, "", "Hello"),
    ]  # fmt: skip


def test_a_cue_that_ends_before_it_starts_is_a_moment_with_a_note(tmp_path: Path) -> None:
    file = tmp_path / "a.srt"
    file.write_text(PLAIN.replace("00:00:02,500", "00:00:00,500"))
    done = read_transcript(file, 0.0)
    assert (done.lines[0].start, done.lines[0].end) == (1.0, 1.0)
    assert "end before they start" in done.notes[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        (" \n\ufeff\n", "is empty"),
        ("Hello world, no times here", "no cue with a time"),
        (PLAIN.replace("00:00:03,000", "00:xx:03,000"), ":6: a cue's times cannot be read"),
        (PLAIN.replace("00:00:03,000", "00:00:93,000"), ":6: a cue's times cannot be read"),
        (PLAIN.replace("--> 00:00:04,000", "-->"), ":6: a cue's times cannot be read"),
        (PLAIN.replace("00:00:0", "bad:0"), ":2: a cue's times cannot be read (and 1 more like it)"),
        (PLAIN.replace("Hello", "").replace("World", "<i></i>"), "none of its 2 cues holds text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "is not text"),
    ],
)
def test_what_cannot_be_mended_is_one_line(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    assert says in str(caught.value) and "a.srt" in str(caught.value) and "\n" not in str(caught.value)


WORDS = st.text(st.characters(codec="utf-8", categories=("L",)), min_size=1, max_size=12).map(lambda w: f"{w} said")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3_600_000), st.integers(1, 60_000), WORDS), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_order_numbers_and_blank_lines_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, cues: list[tuple[int, int, str]], draw: random.Random
) -> None:
    folder = tmp_path_factory.getbasetemp()

    def stamp(ms: int) -> str:
        mark = draw.choice(",.")
        return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1_000 % 60:02d}{mark}{ms % 1_000:03d}"

    blocks = [f"{stamp(start)} --> {stamp(start + length)}\n{text}" for start, length, text in cues]
    draw.shuffle(blocks)
    numbered = draw.random() < 0.5
    blank = "\n" if numbered and draw.random() < 0.5 else "\n\n"
    text = blank.join(f"{number}\n{block}" if numbered else block for number, block in enumerate(blocks, 1))
    found = read(folder, text)
    assert {(round(start * 1_000), said) for start, _, _, said in found} <= {(start, text) for start, _, text in cues}
    assert {said for _, _, _, said in found} == {" ".join(text.split()) for _, _, text in cues}
    assert found == sorted(found, key=lambda s: s[:2])


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("0123456789:,.->→\n\n <v>iNOTE-WEBVTT{}&;é中 "), max_size=200))
def test_any_text_is_read_or_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        assert all(0 <= start <= end and said for start, end, _, said in read(folder, text))
    except UserError as error:
        assert "\n" not in str(error)
