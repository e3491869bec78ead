"""The model author against a real HTTP server: what it adopts, what goes back, what is never adopted."""

from __future__ import annotations

import json
import re
import time
import warnings
from typing import Any

import pytest

from harness.agents.interface import Brief, FrontierEntry, Malformed, Proposal
from harness.agents.model import SIZES, ModelAuthor, whole_file
from harness.agents.parsing import ReplyError, parse_hypothesis, parse_reply
from harness.agents.splice import targets
from harness.gate.duplicates import normalised
from harness.models.counting import count_tokens
from meta_memory.records import AttemptView
from policies import library
from principles.h0 import load_h0

H0 = load_h0()
V00 = {path: data.decode() for path, data in library.load("v00").items()}
ENTRY = FrontierEntry(3, "uniform captions", 0.4, {"EventRecall": 0.3, "HabitInsight": 0.5}, 3000.0, 0)
HEAD = "TITLE: fewer windows\nWHAT: halves the windows\nWHY: less noise\nACCURACY: +1\nTOKENS: half\nLATENCY: same\n"
BODY = "        size = len(self.memory)\n        return (yield from read(query, str(size), 'x', ()))\n"
GOOD = f"{HEAD}```python\ndef answer(self, query: Query) -> Asking:\n{BODY}```\n"
FILE = f"{HEAD}RULE: R05\n```python\n{V00['policy.py'].replace('max(count, 1)', 'max(count, 2)')}```\n"


def lesson(number: int) -> AttemptView:
    return AttemptView(
        iteration=number, parent=0, title=f"attempt {number}", hypothesis="an idea", outcome="develop", cause="",
        dev_accuracy=0.4, dev_delta=-0.01, dev_by_type={}, tokens_per_question=1.0, lesson="It did not help. " * 6,
    )  # fmt: skip


def brief(files: dict[str, str] = V00, attempts: int = 0) -> Brief:
    views = tuple(lesson(n) for n in range(attempts))
    return Brief(7, ENTRY, files, (ENTRY,), views, H0.principles, H0.wiki)


SEED = 1


def test_one_function_is_adopted_and_the_rest_stays(endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: GOOD
    proposal = ModelAuthor(models, "function", 3, H0.constitution).propose(brief(), SEED)
    assert isinstance(proposal, Proposal), proposal
    assert (proposal.author, proposal.hypothesis.title) == ("m", "fewer windows")
    assert proposal.hypothesis.expected_tokens == "half" and len(endpoint.requests) == 1
    before = {t.name: t.source for t in targets(V00)}
    after = {t.name: t.source for t in targets(proposal.files)}
    assert [name for name in before if before[name] != after[name]] == ["Policy.answer"]
    assert "str(size)" in proposal.files["policy.py"]


def test_a_whole_file_is_adopted(endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: FILE
    proposal = ModelAuthor(models, "file", 3, H0.constitution).propose(brief(), 1)
    assert isinstance(proposal, Proposal), proposal
    assert proposal.files == {"policy.py": V00["policy.py"].replace("max(count, 1)", "max(count, 2)")}
    assert proposal.hypothesis.rule_at_risk == "R05"


def test_the_function_prompt_fits_a_small_window(endpoint: Any, models: Any) -> None:
    for name in library.names():
        files = {path: data.decode() for path, data in library.load(name).items()}
        for seed in range(6):
            task = ModelAuthor(models, "function", 3, H0.constitution).task(brief(files, attempts=40), seed)
            assert count_tokens(task.prompt) <= SIZES["function"].prompt, (name, count_tokens(task.prompt))
            assert task.target and task.target.source in task.prompt
    file_task = ModelAuthor(models, "file", 3, H0.constitution).task(brief(attempts=200), 1)
    assert count_tokens(file_task.prompt) <= SIZES["file"].prompt
    assert H0.principles.strip() in file_task.prompt and V00["policy.py"].strip() in file_task.prompt


def test_text_of_earlier_attempts_is_never_a_template(endpoint: Any, models: Any) -> None:
    view = lesson(1).model_copy(update={"lesson": "{{ 6*7 }} {% raw %} {0.__class__}"})
    given = Brief(7, ENTRY, V00, (ENTRY,), (view,), "{{ 1/0 }}", "{% include 'x' %}")
    for form in ("function", "file"):
        assert "{{ 6*7 }}" in ModelAuthor(models, form, 1, H0.constitution).task(given, 1).prompt


BAD: dict[str, tuple[str, str]] = {
    "no code": (HEAD, "no code block"),
    "prose": ("I cannot do that.", "no code block"),
    "two conflicting blocks": (f"{GOOD}\nor\n```python\nreturn None\n```", "2 different code blocks"),
    "truncated block": (GOOD.rsplit("```", 1)[0], "not closed"),
    "syntax error": (f"{HEAD}```python\ndef answer(self, query):\n    return (\n```", "line"),
    "other arguments": (f"{HEAD}```python\ndef answer(self):\n    return 1\n```", "keep the arguments"),
    "unchanged": (
        f"{HEAD}```python\n{next(t.source for t in targets(V00) if t.name == 'Policy.answer')}\n```",
        "unchanged",
    ),
    "absolute path": (GOOD.replace("```python", "```python /etc/passwd"), "path after the fence"),
    "parent path": (GOOD.replace("```python", "```python ../harness/loop.py"), "path after the fence"),
    "other file": (GOOD.replace("```python", "```python title=evil.py"), "path after the fence"),
    "patch": (f"{HEAD}```diff\n--- a/policy.py\n+++ b/policy.py\n@@ -1 +1 @@\n-x\n+y\n```", "a patch"),
    "search replace": (f"{HEAD}```python\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```", "a patch"),
    "NUL": (GOOD.replace("fewer", "fe\0wer"), "U\\+0000 at byte"),
    "escape": (GOOD.replace("fewer", "fe\x1bwer"), "U\\+001B at byte"),
    "huge": (GOOD + "x" * 300_000, "characters"),
    "empty block": (f"{HEAD}```python\n\n```", "empty"),
    "does nothing": (f"{HEAD}```python\ndef answer(self, query):\n    pass\n```", "does nothing"),
    "a long line": (
        GOOD.replace("str(size)", f"str(size + {' + '.join(['size'] * 30)})"),
        "S09 .*characters in one line",
    ),
    "a forbidden import": (GOOD.replace("        size", "        import os\n        size"), "S05"),
    "a deep sum": (f"{HEAD}```python\n{'1+' * 9_000}1\n```", "deep|does not|S09"),
    "a deep sum beside it": (
        f"{HEAD}```python\ndef answer(self, query):\n    return 1\n{'1+' * 9_000}1\n```",
        "Recursion|deep",
    ),
    "a less deep sum": (f"{HEAD}```python\ndef answer(self, query):\n    return 1\n{'1+' * 500}1\n```", "deep|alone"),
    "a deep body": (f"{HEAD}```python\ndef answer(self, query):\n    return {'-' * 150}1\n```", "S09|nest"),
    "more than the function": (f"{HEAD}```python\nimport os\ndef answer(self, query):\n    return 1\n```", "alone"),
}


@pytest.mark.parametrize("name", BAD)
def test_unusable_replies_go_back_and_are_never_adopted(name: str, endpoint: Any, models: Any) -> None:
    text, message = BAD[name]
    endpoint.say = lambda body: text
    outcome = ModelAuthor(models, "function", 2, H0.constitution).propose(brief(), SEED)
    assert isinstance(outcome, Malformed), outcome
    assert outcome.attempts == 2 and len(outcome.raw) <= 20_000 and outcome.reason.isprintable()
    assert re.search(message, outcome.reason), outcome.reason
    second = endpoint.requests[1]["messages"]
    assert [m["role"] for m in second] == ["user", "assistant", "user"]
    assert outcome.reason[:40] in second[-1]["content"] and len(second[1]["content"]) <= 3_000


def test_code_alone_carries_the_idea_that_the_task_named(endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: GOOD.replace(HEAD, "")
    author = ModelAuthor(models, "function", 2, H0.constitution)
    proposal = author.propose(brief(), SEED)
    assert isinstance(proposal, Proposal), proposal
    assert proposal.hypothesis.what in author.task(brief(), SEED).prompt
    assert "stated no reason" in proposal.hypothesis.why
    endpoint.say = lambda body: FILE[FILE.index("```") :]
    outcome = ModelAuthor(models, "file", 2, H0.constitution).propose(brief(), SEED)
    assert isinstance(outcome, Malformed) and "lacks TITLE and WHAT" in outcome.reason


@pytest.mark.parametrize(
    ("choice", "kind"),
    [
        ({"finish_reason": "length", "message": {"content": GOOD}}, "truncated"),
        ({"finish_reason": "stop", "message": {"content": None, "refusal": "no"}}, "refused"),
        ({"finish_reason": "stop", "message": {"content": None}}, "empty"),
        ({"finish_reason": "stop", "message": {"content": f"<think>{GOOD}</think>"}}, "empty"),
    ],
)
def test_truncated_refused_and_empty_replies(choice: dict[str, Any], kind: str, endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: {**choice, "message": dict(choice["message"])}
    outcome = ModelAuthor(models, "function", 2, H0.constitution).propose(brief(), SEED)
    assert isinstance(outcome, Malformed) and kind in outcome.reason and outcome.attempts == 2


def test_a_second_reply_may_mend_the_first(endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: GOOD if len(body["messages"]) > 1 else "Sorry?"
    assert isinstance(ModelAuthor(models, "function", 3, H0.constitution).propose(brief(), SEED), Proposal)
    assert len(endpoint.requests) == 2


def test_the_same_brief_and_seed_ask_the_same_and_buy_nothing_twice(endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: GOOD
    author = ModelAuthor(models, "function", 3, H0.constitution)
    assert author.propose(brief(), SEED) == author.propose(brief(), SEED)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("text", ["x = 1\n", "class Other: pass\n", "class Policy(:\n", "("])
def test_a_file_that_is_no_policy(text: str, endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: f"{HEAD}```python\n{text}```"
    assert isinstance(ModelAuthor(models, "file", 1, H0.constitution).propose(brief(), 1), Malformed)


FORMS = {
    "bold": "**TITLE:** a\n**WHAT:** b\n",
    "list": "- Title: a\n- What: b\n",
    "heading": "### TITLE: a\n### WHAT: b\n",
    "json": '{"title": "a", "what": "b"}',
    "broken json": "{title: 'a', 'what': \"b\",}",
    "fenced json": '```json\n{"title": "a", "what": "b"}\n```\n',
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_hypothesis(name: str) -> None:
    found = parse_hypothesis(FORMS[name])
    assert (found.title, found.what) == ("a", "b")


def test_fields_are_one_line_and_capped() -> None:
    found = parse_hypothesis(f"TITLE: {'t' * 500}\nWHAT: {'w ' * 2000}\nWHY: x\u2028y")
    assert len(found.title) == 80 and len(found.what) <= 600 and "\u2028" not in found.why


@pytest.mark.parametrize("text", ["\ud800", "```", "```\n" * 5001, "{" * 5000, "TITLE:" * 1000, json.dumps([GOOD])])
def test_odd_replies_have_a_typed_error(text: str) -> None:
    with pytest.raises(ReplyError):
        parse_reply(text)


@pytest.mark.parametrize(
    "reply", ["\n" * 190_000, "TITLE: a\nWHAT: b\n```" + " " * 190_000 + "`\n", "> - * # " * 20_000, "`" * 190_000]
)
def test_a_reply_made_to_be_slow_is_read_in_no_time(reply: str) -> None:
    began = time.process_time()
    with pytest.raises(ReplyError):
        parse_reply(f"{reply}\n```python\nx = 1\n```" if reply.startswith("\n") else reply)
    assert time.process_time() - began < 3


def test_no_warning_about_a_candidates_text_is_shown() -> None:
    code = "class Policy:\n    x = '\\q\\\x9b31m'\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert whole_file(code) == code and normalised(code)
