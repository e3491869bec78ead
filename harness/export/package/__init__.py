"""A memory policy that answers on its own. It runs here without any sandbox: read its code before you do.

    from NAME import Query, answer, read_windows

    windows = read_windows("windows.jsonl")
    found = answer(windows, Query("1", "Question", "Who came in?", {"A": "Ann", "B": "Bo"}, time=3600.0))
    found.choice, found.route, found.evidence

``read=`` takes whatever answers in place of the lexical reader: a function from ``Read`` to a letter or None.
"""

from __future__ import annotations

from harness.export.package.modules import PACKAGE
from harness.export.package.running import answer, read_windows
from policies.contract import Answer, Query, Read, Utterance, Window

__all__ = ["PACKAGE", "Answer", "Query", "Read", "Utterance", "Window", "answer", "read_windows"]
