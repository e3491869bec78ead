"""The model author: hypothesis and code in one call, as one function spliced in by syntax tree or as a whole file.

Malformed, truncated and refused replies are never adopted: each goes back with its error, a bounded number of times.
"""

from __future__ import annotations

import ast
import random
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.agents.blocks import pieces
from harness.agents.directions import choose
from harness.agents.interface import Brief, Hypothesis, Malformed, Proposal, Revision
from harness.agents.parsing import ReplyError, parse_reply
from harness.agents.prompts import render, required
from harness.agents.splice import SpliceError, Target, arguments, excerpt, imported, splice, targets
from harness.agents.vetting import broken_rule, scope, vet
from harness.models.counting import count_tokens
from harness.models.interface import ChatMessage, ChatReply, ChatRequest, Models, ReplyKind, RequestRefused, Role
from meta_memory.records import AttemptView
from principles.h0 import Constitution

RAW_CHARS = 20_000
"""What is kept of an unusable reply."""
ECHO_CHARS = 3_000
"""What of an unusable reply goes back to the model with its error."""
LINE_CHARS = 400
"""One earlier attempt as an author is shown it."""
TEMPERATURE = 0.4
"""Not given by the source; a role's configuration replaces it."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Token budgets of one form of answer; not given by the source."""

    prompt: int
    reply: int
    attempts: int
    wiki: int
    pieces: int


SIZES: Mapping[str, Sizes] = {
    "function": Sizes(prompt=2_500, reply=700, attempts=200, wiki=0, pieces=300),
    "file": Sizes(prompt=16_000, reply=6_000, attempts=1_200, wiki=2_500, pieces=2_000),
}
"""The function form fits a context of 8,192 tokens with two rounds of error and repair."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one proposal is to change."""

    prompt: str
    target: Target | None
    """The function, or None where the whole file is asked for."""
    imports: tuple[str, ...] = ()
    """Lines that the prompt says the function has already."""
    given: Hypothesis | None = None
    """The direction named in the prompt. In the function form a small model often answers with the code alone: then
    this is what it was asked to try, and the record says that the author stated nothing."""


class ModelAuthor:
    """Researcher and implementer in one conversation of the implementer's model."""

    def __init__(
        self, models: Models, form: Literal["function", "file"], attempts: int, constitution: Constitution
    ) -> None:
        self.models, self.form, self.attempts, self.constitution = models, form, attempts, constitution
        self.name = models.describe(Role.IMPLEMENTER)

    def propose(self, brief: Brief, seed: int) -> Proposal | Malformed:
        """One proposal; ``Malformed`` after ``attempts`` unusable replies. Raises ModelError, CapReached."""
        return self._write(self.task(brief, seed), brief.parent_files, f"{brief.iteration:04d}/propose", seed)

    def revise(self, brief: Brief, wanted: Revision, seed: int) -> Proposal | Malformed:
        """The same for what a reviewer asks for; the hypothesis stays as it was."""
        try:
            task = self.revision(brief, wanted, seed)
        except SpliceError as error:
            return Malformed(reason=str(error), author=self.name, attempts=0)
        answer = self._write(task, wanted.files, f"{brief.iteration:04d}/revise/{wanted.turn}", seed)
        return answer.model_copy(update={"hypothesis": wanted.hypothesis}) if isinstance(answer, Proposal) else answer

    def _write(self, task: Task, files: Mapping[str, str], place: str, seed: int) -> Proposal | Malformed:
        messages = [ChatMessage("user", task.prompt)]
        error, raw = "", ""
        for attempt in range(self.attempts):
            request = ChatRequest(tuple(messages), SIZES[self.form].reply, TEMPERATURE, seed=(seed + attempt) % 2**31)
            try:
                reply = self.models.chat(Role.IMPLEMENTER, request, f"{place}/{attempt}")
            except RequestRefused as refusal:
                return Malformed(
                    reason=f"the endpoint refused the request: {refusal}", author=self.name, attempts=attempt + 1
                )
            raw = reply.text[:RAW_CHARS]
            try:
                return self._adopt(reply, files, task)
            except (ReplyError, SpliceError) as problem:
                error = str(problem)
            messages = [
                messages[0],
                ChatMessage("assistant", reply.text[:ECHO_CHARS] or "(nothing)"),
                ChatMessage("user", render("again_v1", error=error)),
            ]
        return Malformed(reason=error, author=self.name, attempts=self.attempts, raw=raw)

    def _adopt(self, reply: ChatReply, before: Mapping[str, str], task: Task) -> Proposal:
        if reply.kind is not ReplyKind.OK:
            raise ReplyError(f"the reply is {reply.kind.value}")
        parsed = parse_reply(reply.text, task.given)
        files = dict(before)
        target = task.target
        if target is None:
            files["policy.py"] = whole_file(parsed.code)
        else:
            files[target.path] = splice(files[target.path], target.name, parsed.code, task.imports)
        if files == before:
            raise ReplyError("the code is as it was, unchanged")
        if refused := broken_rule(files, self.constitution):
            raise ReplyError(refused)
        if target is not None:
            vet(files, target.path, target.name)
        return Proposal(hypothesis=parsed.hypothesis, files=files, author=self.name)

    def revision(self, brief: Brief, wanted: Revision, seed: int) -> Task:
        """The prompt of a revision. Raises SpliceError where no function differs from the parent."""
        common = {"rules": render("rules_v1"), "required": required(wanted, seed)}
        if self.form == "file":
            code = wanted.files["policy.py"].strip()
            prompt = render("file_revise_v1", **common, contract=render("contract_v1"), code=code)
            return Task(prompt, None, given=wanted.hypothesis)
        before = {(t.path, t.name): t.source for t in targets(brief.parent_files)}
        changed = [t for t in targets(wanted.files) if before.get((t.path, t.name)) != t.source]
        if not changed:
            raise SpliceError("no function of the candidate differs from the parent's")
        target = changed[0]
        own, module = scope(wanted.files[target.path], target.name)
        prompt = render(
            "function_revise_v1",
            **common,
            own=own,
            module=module,
            code=excerpt(wanted.files[target.path], target.name),
            target=target,
            arguments=", ".join(arguments(target)),
        )
        return Task(prompt, target, given=wanted.hypothesis)

    def task(self, brief: Brief, seed: int) -> Task:
        """The prompt of one proposal; a function of brief and seed."""
        draw = random.Random(seed)
        sizes = SIZES[self.form]
        code = brief.parent_files["policy.py"]
        common = {
            "rules": render("rules_v1"),
            "parent": brief.parent,
            "attempts": newest([attempt_line(a) for a in brief.attempts], sizes.attempts),
        }
        if self.form == "file":
            by_type = ", ".join(f"{kind} {100 * share:.0f} %" for kind, share in brief.parent.dev_by_type.items())
            prompt = render(
                "file_v1",
                **common,
                contract=render("contract_v1"),
                pieces=clip_lines(list(pieces()), sizes.pieces),
                principles=brief.principles.strip(),
                wiki="\n".join(clip_lines(brief.wiki.split("\n"), sizes.wiki)),
                frontier=brief.frontier,
                by_type=by_type,
                code=code.strip(),
                others=", ".join(sorted(path for path in brief.parent_files if path != "policy.py")),
            )
            return Task(prompt, None)
        target, direction = choose(usable(brief.parent_files), (a.hypothesis for a in brief.attempts), draw)
        own, module = scope(brief.parent_files[target.path], target.name)
        prompt = render(
            "function_v2",
            **common,
            pieces=clip_lines(list(pieces(direction.code)), sizes.pieces),
            own=own,
            module=module,
            code=excerpt(brief.parent_files[target.path], target.name),
            weakest=min(brief.parent.dev_by_type, key=lambda k: brief.parent.dev_by_type[k], default=""),
            target=target,
            arguments=", ".join(arguments(target)),
            direction=direction,
            imported=[name for line in direction.imports for name in imported(line)],
        )
        stated = "the direction given with the task; the author stated no reason"
        given = Hypothesis(title=direction.title, what=direction.text, why=stated)
        return Task(prompt, target, direction.imports, given)


def usable(files: Mapping[str, str]) -> list[Target]:
    """Functions with something in them. Constructors are left out: what they set up is used by all the others."""
    return [t for t in targets(files) if not t.trivial and not t.name.endswith("__init__")]


def whole_file(code: str) -> str:
    """A whole policy.py that parses and defines ``Policy``. Raises ReplyError."""
    try:
        with warnings.catch_warnings():  # a warning would show the candidate's text on the terminal
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as error:
        raise ReplyError(f"policy.py line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ReplyError(f"policy.py does not parse ({type(error).__name__})") from None
    if not any(isinstance(node, ast.ClassDef) and node.name == "Policy" for node in tree.body):
        raise ReplyError("policy.py defines no class Policy; reply with the whole file")
    return code.strip("\n") + "\n"


def attempt_line(attempt: AttemptView) -> str:
    """One earlier attempt in one line, development facts only."""
    delta = f", {100 * attempt.dev_delta:+.1f} points" if attempt.dev_delta is not None else ""
    text = f"{attempt.label} {attempt.title}: {attempt.outcome}{delta}. "
    text += attempt.lesson or attempt.cause or attempt.hypothesis
    return " ".join(text.split())[:LINE_CHARS]


def newest(lines: list[str], tokens: int) -> list[str]:
    """The last lines that fit in ``tokens``, in order."""
    return clip_lines(lines[::-1], tokens)[::-1]


def clip_lines(lines: list[str], tokens: int) -> list[str]:
    """The first lines that fit in ``tokens``."""
    kept: list[str] = []
    left = tokens
    for line in lines:
        left -= count_tokens(line) + 1
        if left < 0:
            break
        kept.append(line)
    return kept
