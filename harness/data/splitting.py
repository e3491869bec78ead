"""Which videos go into which split, for benchmarks that do not say: 60/20/20, never a video in two splits.

The method's source gives no split sizes; by whole videos, because questions about one video share its evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

DEALT = ("development", "validation", "development", "test", "development")
"""Videos are dealt round by round, so that each stratum and the whole come as near to 60/20/20 as whole videos can."""


def split_videos(strata: Mapping[str, str], seed: int) -> dict[str, str]:
    """The split of each video, by id. ``strata`` gives each video's kind; a function of ids, kinds and seed alone."""

    def place(video: str) -> tuple[str, bytes, str]:
        return strata[video], hashlib.sha256(f"{seed}/{video}".encode()).digest(), video

    return {video: DEALT[number % len(DEALT)] for number, video in enumerate(sorted(strata, key=place))}
