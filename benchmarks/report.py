"""``python -m benchmarks.report RUN``: the report of 500 attempts, made of a finished run's own, in a real Chromium.

Each attempt is one of RUN's with other evidence, other seconds, a longer hypothesis and eighty more lines of code, so
that the file is as large as that of a long run, and compresses no better.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness.outcomes import STAGES, Measured, Outcome, TakenIn
from harness.report.page import Report
from harness.state.store import RunStore
from meta_memory.records import Attempt
from principles.h0 import FOLDER
from tests.report.browser import Chromium, Page, find

ATTEMPTS = 500
WIDTHS = (390, 1440)
TYPED = ("best", "slots rel", "zzz", "bm25 0", "")
"""What is typed into the search field, one after the other; the last shows all rows again."""
PAINT = """new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(
    performance.getEntriesByName('first-contentful-paint')[0].startTime), 200)))"""
FILTER = """((text) => { const field = document.getElementById('f-text'), began = performance.now();
    field.value = text; field.dispatchEvent(new Event('input')); document.body.offsetHeight;
    return performance.now() - began; })"""


def enlarge(source: RunStore, folder: Path, count: int) -> None:
    """A run of ``count`` attempts in ``folder``, which must not exist."""
    attempts = {attempt.iteration: attempt for attempt in source.attempts()}
    draw = random.Random(0)
    folder.mkdir(parents=True)
    for text in (source.folder / FOLDER).iterdir():
        (folder / FOLDER).mkdir(exist_ok=True)
        (folder / FOLDER / text.name).write_bytes(text.read_bytes())
    with RunStore.create(folder, source.manifest.model_copy(update={"name": folder.name})) as made:
        for k in range(count + 1):
            original = 1 + (k - 1) % len(attempts) if k else 0
            for name, kind in STAGES.items():
                found = source.stage(original, name, kind)
                if found is None or (k == 0 and name == "remember"):
                    continue
                attempt = _longer(attempts[original], k) if name == "remember" else None
                made.commit_stage(k, name, _other(found, source, made, k, draw), summary=name, attempt=attempt)


def _other(found: Outcome, source: RunStore, made: RunStore, k: int, draw: random.Random) -> Outcome:
    found = found.model_copy(update={"refs": {}})
    if isinstance(found, TakenIn) and found.tree and k:
        lines = "".join(f'VALUE_{n} = "{draw.random()} of a longer candidate {draw.random()}"\n' for n in range(80))
        files = source.lineage.read(found.tree)
        tree = made.lineage.intake({**files, "policy.py": files["policy.py"] + b"\n" + lines.encode()})
        return found.model_copy(update={"tree": tree})
    if isinstance(found, TakenIn) and found.tree:
        return found.model_copy(update={"tree": made.lineage.intake(source.lineage.read(found.tree))})
    if not isinstance(found, Measured):
        return found
    items = []
    for item in found.evaluation.items:
        evidence = list(item.evidence)
        for at in draw.sample(range(len(evidence)), len(evidence) // 6):
            evidence[at] = draw.randrange(200)
        changed = {"evidence": tuple(dict.fromkeys(evidence)), "seconds": item.seconds * draw.uniform(0.8, 1.3)}
        items.append(item.model_copy(update=changed))
    return found.model_copy(update={"evaluation": found.evaluation.model_copy(update={"items": tuple(items)})})


def _longer(attempt: Attempt, k: int) -> Attempt:
    told = f"{attempt.hypothesis} " + "and more is said about it " * 20
    return attempt.model_copy(update={"iteration": k, "title": f"{attempt.title} {k}", "hypothesis": told})


def main() -> None:
    """Make, write, open, filter; print."""
    program = find()
    if program is None or len(sys.argv) != 2:
        sys.exit("python -m benchmarks.report RUN, with Chromium or Chrome on the path")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        place = Path(temporary)
        with RunStore.open(Path(sys.argv[1]), write=False) as source:
            enlarge(source, place / "large", ATTEMPTS)
        began = time.perf_counter()
        with RunStore.open(place / "large", write=False) as store:
            page = Report().page(store)
        (place / "large.html").write_text(page, encoding="utf-8")
        print(f"{ATTEMPTS} attempts: {len(page.encode()) / 1e6:.1f} MB, made in {time.perf_counter() - began:.1f} s")
        browser = Chromium(program, place / "profile")
        try:
            for width in WIDTHS:
                opened = Page(browser, (place / "large.html").as_uri(), width)
                paint = opened.run(PAINT)
                filters = [opened.run(f"{FILTER}({text!r})") for text in TYPED]
                began = time.perf_counter()
                opened.go(ATTEMPTS - 1)
                print(
                    f"{width} pixels wide: first paint {paint:.0f} ms; filters {statistics.median(filters):.0f} ms, at "
                    f"most {max(filters):.0f} ms; an attempt's page {1000 * (time.perf_counter() - began):.0f} ms; "
                    f"complaints {opened.complaints or 'none'}"
                )
        finally:
            browser.close()


if __name__ == "__main__":
    main()
