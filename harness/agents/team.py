"""The tool-using author: a researcher who states a hypothesis and an implementer who writes the code.

Two conversations with models of their own; each ends when its work is handed in or at a limit. What was handed in by
then is the proposal, and the hypothesis stays as it was before anything was run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from harness.agents.conversation import Conversation, Ended, Limits
from harness.agents.interface import Brief, Hypothesis, Malformed, Proposal, Revision
from harness.agents.looking import Development, frontier_lines, rounded, shares_by_type
from harness.agents.model import RAW_CHARS, attempt_line
from harness.agents.parsing import FIELD_CHARS, ReplyError, check_text
from harness.agents.prompts import render, required
from harness.agents.splice import SpliceError, functions, parsed
from harness.agents.tools import Arguments, Box, Offered, ToolError
from harness.agents.vetting import broken_rule, vet
from harness.agents.workbench import Workbench
from harness.evaluation.executor import Evaluator
from harness.models.interface import Models, Role
from harness.settings import AuthorSettings
from meta_memory.records import AttemptView
from principles.h0 import Constitution


class Recall(Arguments):
    """Recall earlier attempts that are like an idea: what was tried, what came of it, what was learned."""

    idea: str = Field(min_length=1, max_length=600)


class Propose(Arguments):
    """Hand in one falsifiable hypothesis with its expected effects. Ends the research."""

    title: str = Field(min_length=1, max_length=200)
    what: str = Field(min_length=1, max_length=2_000)
    """What is changed, and how, so that an engineer can write it."""
    why: str = Field(min_length=1, max_length=2_000)
    accuracy: str = Field(max_length=600)
    """Expected change in points."""
    tokens: str = Field(max_length=600)
    """Expected change."""
    latency: str = Field(max_length=600)
    """Expected change."""
    rule: str = Field(default="none", max_length=600)
    """Id of the rule most at risk, or none."""


class Submit(Arguments):
    """Hand in the candidate as it stands. With final false the work goes on, and what was handed in last counts."""

    final: bool = True


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the team works with beside its models."""

    evaluator: Evaluator
    few: Sequence[str]
    """Ids of the development questions of a short run."""
    recall: Callable[[Brief, str], Sequence[AttemptView]]
    """Earlier attempts that are like an idea, as agents may see them."""
    constitution: Constitution


class TeamAuthor:
    """Implements ``Author``."""

    def __init__(self, models: Models, settings: AuthorSettings, around: Surroundings) -> None:
        self.models, self.settings, self.around = models, settings, around
        self.name = models.describe(Role.IMPLEMENTER)

    def propose(self, brief: Brief, seed: int) -> Proposal | Malformed:
        """Research, then code. Raises ModelError, CapReached and what ``Evaluator.evaluate`` raises."""
        if self.settings.team == "single":
            return self._alone(brief, seed)
        hypothesis, ended = self._research(brief, seed)
        if hypothesis is None:
            return self._nothing("hypothesis", ended)
        files, ended = self._implement(brief, hypothesis, seed)
        if files is None:
            return self._nothing("candidate", ended)
        return Proposal(hypothesis=hypothesis, files=files, author=self.name)

    def revise(self, brief: Brief, wanted: Revision, seed: int) -> Proposal | Malformed:
        """The implementer again, in a conversation of its own. Raises what ``propose`` raises."""
        scope = f"{brief.iteration:04d}/revise/{wanted.turn}/implementer"
        prompt = render(
            "implementer_revise_v1", **self._shared(brief), principles=brief.principles, required=required(wanted, seed)
        )
        files, ended = self._code(brief, wanted.files, scope, prompt, seed)
        if files is None:
            return self._nothing("revision", ended)
        return Proposal(hypothesis=wanted.hypothesis, files=files, author=self.name)

    def _nothing(self, what: str, ended: Ended) -> Malformed:
        reason = f"no {what} was handed in: {ended.reason}"
        return Malformed(reason=reason, author=self.name, attempts=ended.steps, raw=ended.last[:RAW_CHARS])

    def _alone(self, brief: Brief, seed: int) -> Proposal | Malformed:
        """One conversation states the hypothesis and writes the code."""
        found: list[Hypothesis] = []
        prompt = render("single_v1", **self._shared(brief), principles=brief.principles, wiki=brief.wiki)
        scope = f"{brief.iteration:04d}/propose/single"
        research = self._stating(brief, found)
        files, ended = self._code(brief, brief.parent_files, scope, prompt, seed, research)
        if not found or files is None:
            return self._nothing("candidate" if found else "hypothesis", ended)
        return Proposal(hypothesis=found[0], files=files, author=self.name)

    # ------------------------------------------------------------ researcher

    def _stating(self, brief: Brief, found: list[Hypothesis]) -> tuple[Offered, Offered]:
        """The tools that are research's alone: recall, and handing in a hypothesis, which goes to ``found``."""

        def propose(given: Propose) -> str:
            found.append(_hypothesis(given))
            return "handed in"

        def recall(given: Recall) -> str:
            views = self.around.recall(brief, given.idea)
            return "\n".join(attempt_line(v) for v in views) or "nothing like it is remembered"

        return Offered("recall", Recall, recall), Offered("propose", Propose, propose)

    def _research(self, brief: Brief, seed: int) -> tuple[Hypothesis | None, Ended]:
        found: list[Hypothesis] = []
        scope = f"{brief.iteration:04d}/propose/researcher"
        box = Box(
            (
                *Workbench(brief.parent_files).reading(),
                *self._development(brief, scope).looking(),
                *self._stating(brief, found),
            )
        )
        prompt = render("researcher_v1", **self._shared(brief), principles=brief.principles, wiki=brief.wiki)
        ended = self._talk(Role.RESEARCHER, scope, prompt, box, seed, lambda: bool(found))
        return (found[-1] if found else None), ended

    # ------------------------------------------------------------ implementer

    def _implement(self, brief: Brief, hypothesis: Hypothesis, seed: int) -> tuple[dict[str, str] | None, Ended]:
        prompt = render("implementer_v1", **self._shared(brief), hypothesis=hypothesis, principles=brief.principles)
        scope = f"{brief.iteration:04d}/propose/implementer"
        return self._code(brief, brief.parent_files, scope, prompt, seed + 1)

    def _code(
        self,
        brief: Brief,
        before: Mapping[str, str],
        scope: str,
        prompt: str,
        seed: int,
        more: tuple[Offered, ...] = (),
    ) -> tuple[dict[str, str] | None, Ended]:
        """What the implementer makes of the files ``before``, with ``more`` tools; None where it hands in nothing."""
        bench = Workbench(before)
        submitted: list[dict[str, str]] = []
        final: list[bool] = []

        def check() -> None:
            check_package(bench.files, before, self.around.constitution)

        def submit(given: Submit) -> str:
            check()
            submitted.append(dict(bench.files))
            final.extend([True] * given.final)
            return "handed in" if given.final else "handed in; go on, and submit again when it is better"

        development = self._development(brief, scope)
        box = Box(
            (
                *bench.reading(),
                *bench.writing(),
                *development.running(lambda: bench.files, check),
                *development.looking(),
                *more,
                Offered("submit", Submit, submit),
            )
        )
        ended = self._talk(Role.IMPLEMENTER, scope, prompt, box, seed, lambda: bool(final))
        return (submitted[-1] if submitted else None), ended

    # ------------------------------------------------------------ both

    def _talk(self, role: Role, scope: str, prompt: str, box: Box, seed: int, done: Callable[[], bool]) -> Ended:
        s = self.settings
        limits = Limits(s.steps, s.tokens, s.seconds, s.dollars, s.window, s.reply)
        native = s.protocol == "tools"
        return Conversation(self.models, role, scope, prompt, box, limits, seed % 2**31, native, done).hold()

    def _development(self, brief: Brief, scope: str) -> Development:
        s = self.settings
        return Development(
            self.around.evaluator,
            self.around.few,
            scope,
            runs=s.runs,
            traces=s.traces,
            correctness=s.correctness,
            frontier=brief.frontier,
            last=brief.parent_evaluation,
        )

    def _shared(self, brief: Brief) -> dict[str, object]:
        """What both prompts hold."""
        return {
            "contract": render("contract_v1"),
            "rules": render("rules_v1"),
            "parent": brief.parent,
            "right": rounded(brief.parent.dev_accuracy),
            "frontier": frontier_lines(brief.frontier),
            "by_type": shares_by_type(brief.parent.dev_by_type),
            "attempts": [attempt_line(a) for a in brief.attempts],
            "questions": len(self.around.evaluator.dataset.questions("development")),
            "settings": self.settings,
        }


def _hypothesis(given: Propose) -> Hypothesis:
    """One line for each field, plain text. Raises ToolError."""
    fields = {name: " ".join(text.split())[:FIELD_CHARS] for name, text in given.model_dump().items()}
    try:
        check_text("".join(fields.values()))
    except ReplyError as error:
        raise ToolError(str(error)) from None
    if not (fields["title"] and fields["what"]):
        raise ToolError("propose: title and what must say something")
    return Hypothesis(
        title=fields["title"][:80],
        what=fields["what"],
        why=fields["why"],
        expected_accuracy=fields["accuracy"],
        expected_tokens=fields["tokens"],
        expected_latency=fields["latency"],
        rule_at_risk=fields["rule"],
    )


def check_package(files: Mapping[str, str], before: Mapping[str, str], constitution: Constitution) -> None:
    """What can be told of a candidate from its text alone. Raises ToolError with the first problem."""
    if dict(files) == dict(before):
        raise ToolError("nothing is changed; change the candidate first")
    if refused := broken_rule(files, constitution):
        raise ToolError(refused)
    for path in sorted(files):
        if path.endswith(".py") and files[path] != before.get(path):
            for name, _ in functions(parsed(files[path])):
                try:
                    vet(files, path, name)
                except SpliceError as error:
                    raise ToolError(f"{path}, {name}: {error}") from None
