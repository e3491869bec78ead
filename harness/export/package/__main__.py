"""One question from the command line. See ``--help``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict

from harness.export.package.endpoint import endpoint
from harness.export.package.running import answer, read_windows
from harness.models.letters import LETTERS
from policies.contract import Query

FIXED = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
"""As in the measurement: the order of sets, and sums in one thread."""


def main() -> int:
    """Parse, answer, print."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}", description="Put a question to the policy. It runs here without any sandbox."
    )
    parser.add_argument("question")
    parser.add_argument("--data", required=True, metavar="FILE", help="windows as JSON Lines, one video")
    parser.add_argument("--at", required=True, type=float, metavar="SECONDS", help="when it is asked")
    parser.add_argument("--choice", action="append", default=[], metavar="TEXT", help="in order; two to ten of them")
    parser.add_argument("--type", default="Question", help="the question-type label")
    parser.add_argument("--model", help="let this model answer in place of the lexical reader")
    parser.add_argument("--endpoint", metavar="URL", help="where; default: OPENAI_BASE_URL; key: OPENAI_API_KEY")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    if not 2 <= len(given.choice) <= len(LETTERS):
        parser.error(f"--choice: {len(given.choice)} given, two to ten are needed")
    read = None
    if given.model:
        url = given.endpoint or os.environ.get("OPENAI_BASE_URL")
        if not url:
            parser.error("--model needs --endpoint or OPENAI_BASE_URL")
        read = endpoint(url, given.model, os.environ.get("OPENAI_API_KEY", ""))
    query = Query("1", given.type, given.question, dict(zip(LETTERS, given.choice, strict=False)), given.at)
    try:
        windows = read_windows(given.data)
    except (OSError, ValueError) as error:
        parser.error(shown(str(error)))
    found = answer(windows, query, read)
    reader = given.model or "lexical reader, no language model"
    seen = {window.index: asdict(window) for window in windows}
    evidence = [seen[index] for index in found.evidence]
    if given.json:
        facts = {"choice": found.choice, "route": found.route, "reader": reader, "evidence": evidence}
        print(json.dumps({**facts, "diagnostics": found.diagnostics}))
        return 0
    text = f"{found.choice}. {query.choices[found.choice]}" if found.choice else "none: the policy abstained"
    print(f"answer    {shown(text)}\nroute     {shown(found.route)}\nreader    {shown(reader)}")
    for window in evidence:
        said = [f"{line['speaker'] or '?'}: {line['text']}" for line in window["transcript"]]
        print(f"{window['start']:>9.0f} s  {shown(' / '.join([*window['captions'], *said]))}")
    return 0


def shown(text: str) -> str:
    """Text that moves no cursor and hides nothing."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in FIXED.items()) and not sys.flags.ignore_environment:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **FIXED})  # they are read when the interpreter starts
    sys.exit(main())
