"""Encodings: told by what is in the file, and never guessed where two readings are as good."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.construction.decoding import read_text
from harness.errors import UserError

CHINESE = "00:01 小明把钥匙放在一些书上\n00:02 联通 一些\n00:03 Jake去 the shop\n"


def text_of(tmp_path: Path, content: bytes, encoding: str | None = None) -> str:
    file = tmp_path / "a.txt"
    file.write_bytes(content)
    return read_text(file, encoding).text


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030", "gbk"]
)
def test_chinese_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    assert text_of(tmp_path, CHINESE.encode(encoding)) == CHINESE


def test_a_file_that_mixes_two(tmp_path: Path) -> None:
    lines = ["00:01 小明把钥匙放好", "00:02 plain", "00:03 桌上有一杯茶", "00:04 café au lait", "00:05 一些"]
    codes = ["utf-8", "ascii", "gb18030", "utf-8", "gb18030"]
    mixed = b"\n".join(line.encode(code) for line, code in zip(lines, codes, strict=True))
    assert text_of(tmp_path, mixed) == "\n".join(lines)


def test_another_encoding_is_named_by_the_user(tmp_path: Path) -> None:
    western = "00:01 un été à la plage\n00:02 déjà vu\n"
    with pytest.raises(UserError, match=r"a.txt:1: is neither UTF-8 nor GB18030.*--encoding"):
        text_of(tmp_path, western.encode("cp1252"))
    assert text_of(tmp_path, western.encode("cp1252"), "cp1252") == western
    assert text_of(tmp_path, "小明".encode("big5"), "big5") == "小明"
    with pytest.raises(UserError, match=r"a.txt:2: is not ascii"):
        text_of(tmp_path, b"a\n\xff", "ascii")
    with pytest.raises(UserError, match="is no encoding"):
        text_of(tmp_path, b"a", "klingon")


@pytest.mark.parametrize("content", [b"", b"  \r\n\t", b"\xef\xbb\xbf", b"\0\x01\x02\x03", b"\xff\xfea"])
def test_what_is_no_text_is_one_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UserError, match=r"a.txt: (is empty|is not text|begins as)"):
        text_of(tmp_path, content)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_text(tmp_path / "none.txt")
