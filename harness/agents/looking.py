"""What an author may learn of the development split: inputs, traces and rounded aggregates, a bounded number of times.

Gold stays on this side. Whether a single answer was right is told only where the run's configuration allows it. No
time that was measured is told, so that a run which is gone through again says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pydantic import Field

from harness.agents.interface import FrontierEntry
from harness.agents.tools import Arguments, Offered, ToolError, clipped
from harness.data.native import Dataset
from harness.display import visible
from harness.evaluation.executor import Evaluator
from harness.evaluation.metrics import by_type
from harness.evaluation.outcomes import Evaluation, Item
from policies.blocks.memory import window_text
from policies.blocks.timefmt import stamp
from sandbox.bundle import make_bundle
from sandbox.interface import Verdict

STEP = 0.02
"""Shares are told as multiples of it: the effect of one question of a few hundred does not show. Not given by the
source, which allows aggregates and excludes gold."""
TYPE_STEP = 0.05
"""The same for one question type."""
EVIDENCE = 4
"""Windows of evidence that a trace shows."""
WINDOW_CHARS = 500
TRIES = 3
"""Runs on a few questions for each run on the whole split."""


class Run(Arguments):
    """Run the candidate in the sandbox on development questions. A few: does it run, and what does it answer? The
    whole split: accuracy overall and by question type (rounded), tokens, failures, routes."""

    whole: bool = False


class Trace(Arguments):
    """Look at one development question and at what the last run made of it: answer, route, evidence, failure."""

    number: int = Field(ge=1, le=1_000_000)
    """Of the question, from 1."""


class Compare(Arguments):
    """Compare the last run on the whole split with the policies on the frontier."""


class Development:
    """The development split as one role of one proposal sees it."""

    def __init__(
        self,
        evaluator: Evaluator,
        few: Sequence[str],
        scope: str,
        runs: int,
        traces: int,
        correctness: bool,
        frontier: Sequence[FrontierEntry],
        last: Evaluation | None,
    ) -> None:
        """``few`` are ids of questions for a short run; ``last`` is what traces show before there is a run."""
        self.evaluator, self.few, self.scope = evaluator, tuple(few), scope
        self.runs, self.tries, self.traces = runs, runs * TRIES, traces
        self.correctness, self.frontier, self.last = correctness, tuple(frontier), last
        self.whole = last
        self.done = 0

    @property
    def data(self) -> Dataset:
        """The data set."""
        return self.evaluator.dataset

    def looking(self) -> tuple[Offered, ...]:
        """Tools that run nothing."""
        return (Offered("trace", Trace, self.trace), Offered("compare", Compare, self.compare))

    def running(self, files: Callable[[], Mapping[str, str]], check: Callable[[], None]) -> tuple[Offered, ...]:
        """The tool that runs the candidate ``files``; ``check`` raises ToolError for one that need not be run."""

        def work(given: Run) -> str:
            check()
            return self.run(files(), given.whole)

        return (Offered("run", Run, work),)

    def run(self, files: Mapping[str, str], whole: bool) -> str:
        """Evaluate in the sandbox. Raises what ``Evaluator.evaluate`` raises; that says nothing of the candidate."""
        left = self.runs if whole else self.tries
        if left <= 0:
            raise ToolError(f"no run on {'the whole split' if whole else 'a few questions'} is left; submit")
        self.done += 1
        bundle = make_bundle({path: text.encode("utf-8", "surrogatepass") for path, text in files.items()})
        scope = f"{self.scope}/run-{self.done}"
        found = self.evaluator.evaluate(bundle, "development", scope, None if whole else self.few)
        self.last = found
        if whole:
            self.runs, self.whole = self.runs - 1, found
            return f"{self.summary(found)}\n{self.runs} more runs on the whole split"
        self.tries -= 1
        return f"{_failures(found)}\nquestions {self._numbers(found)} ran; {self.tries} more short runs"

    def summary(self, found: Evaluation) -> str:
        """Rounded aggregates of a run on the whole split."""
        routes = Counter(visible(item.route, 40) for item in found.items).most_common(6)
        ways = ", ".join(f"{name or 'none'} {count}" for name, count in routes)
        built = found.construction.tokens
        return (
            f"right on about {rounded(found.accuracy)} % of {len(found.items)} questions "
            f"({shares_by_type(by_type(found))}); "
            f"about {two_digits(found.tokens_per_question)} tokens a question, {built} tokens of construction\n"
            f"routes: {ways}\n{_failures(found)}"
        )

    def trace(self, given: Trace) -> str:
        """One question, its inputs, and what was made of it."""
        questions = self.data.questions("development")
        if given.number > len(questions):
            raise ToolError(f"there are {len(questions)} development questions")
        if self.traces <= 0:
            raise ToolError("no trace is left")
        self.traces -= 1
        question = questions[given.number - 1]
        asked = [f"{letter}: {visible(text, 300)}" for letter, text in question.choices.items()]
        lines = [
            f"question {given.number} ({question.type}), asked at {stamp(question.time)}: "
            f"{visible(question.question, 600)}",
            *asked,
        ]
        items = {item.question: item for item in self.last.items} if self.last else {}
        if (item := items.get(question.id)) is None:
            lines.append("the last run did not answer it")
        else:
            lines += [self._told(item), *self._evidence(question.video, item)]
        return "\n".join([*lines, f"{self.traces} more traces"])

    def _told(self, item: Item) -> str:
        right = f", {'right' if item.correct else 'wrong'}" if self.correctness else ""
        failure = f" ({visible(item.detail, 300)})" if item.detail else ""
        return (
            f"verdict {item.verdict.value}{failure}; answered {item.choice or 'nothing'}{right} by route "
            f"{visible(item.route, 64) or 'none'}, {item.tokens} tokens, {len(item.evidence)} windows of evidence"
        )

    def _evidence(self, video: str, item: Item) -> list[str]:
        windows = {w.index: w for w in self.data.videos[video].windows}
        shown = [windows[index] for index in item.evidence[:EVIDENCE] if index in windows]
        return [f"[{stamp(w.start)}] {clipped(visible(window_text(w), keep_lines=True), WINDOW_CHARS)}" for w in shown]

    def compare(self, given: Compare) -> str:
        """The frontier's development figures, and the candidate's last run on the whole split."""
        now = f"last run: {self.summary(self.whole)}" if self.whole else "no run on the whole split yet"
        return "\n".join([*frontier_lines(self.frontier), now, "latency is measured later, and compared in steps"])

    def _numbers(self, found: Evaluation) -> str:
        order = {question.id: number for number, question in enumerate(self.data.questions("development"), 1)}
        return ", ".join(str(order[item.question]) for item in found.items)


def _failures(found: Evaluation) -> str:
    counts = Counter(item.verdict for item in found.items)
    text = ", ".join(f"{verdict.value} {count}" for verdict, count in sorted(counts.items()))
    details = dict.fromkeys(visible(i.detail, 300) for i in found.items if i.verdict is not Verdict.OK and i.detail)
    return "\n".join([f"verdicts: {text}", *list(details)[:3]])


def rounded(share: float, step: float = STEP) -> int:
    """A share in per cent, as a multiple of ``step``."""
    return round(100 * step * round(share / step))


def two_digits(number: float) -> str:
    """A number rounded to its first two digits."""
    return f"{float(f'{number:.2g}'):.0f}"


def shares_by_type(shares: Mapping[str, float]) -> str:
    """Accuracy by question type, rounded."""
    return ", ".join(f"{kind} about {rounded(share, TYPE_STEP)} %" for kind, share in shares.items())


def frontier_lines(entries: Sequence[FrontierEntry]) -> list[str]:
    """One line for each policy of the frontier, development figures only, rounded."""
    return [
        f"{entry.iteration:04d} {visible(entry.title, 80)}: about {rounded(entry.dev_accuracy)} %, "
        f"about {two_digits(entry.tokens_per_question)} tokens a question"
        for entry in entries
    ]
