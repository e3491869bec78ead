"""What an importer says about the data beside the files that it writes: one line each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.data.native import Video
from policies.blocks.tokens import words

MOST = 30
"""Notes that are shown one by one."""


def wordless(videos: Iterable[Video]) -> list[str]:
    """A note where lines hold no word that the lexical blocks can see: T(x) and BM25 know Latin letters and digits."""
    lines = [
        text
        for video in videos
        for window in video.windows
        for text in (*window.captions, *(line.text for line in window.transcript))
    ]
    unseen = sum(1 for text in lines if text and not words(text))
    if not unseen:
        return []
    return [
        f"{unseen} of {len(lines)} lines hold no word in Latin letters or digits (Chinese, for example): blocks that"
        " match words see nothing in them, models read them as they are; translate them where they matter"
    ]


def few(notes: Sequence[str]) -> list[str]:
    """The first notes, and how many more there were."""
    more = len(notes) - MOST
    return [*notes[:MOST], *([f"{more} more notes of this kind"] if more > 0 else [])]
