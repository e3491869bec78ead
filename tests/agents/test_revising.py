"""A revision in one call: what the author is shown, what is adopted, what is not."""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest

from harness.agents.interface import Hypothesis, Malformed, Proposal, Revision
from harness.agents.model import SIZES, ModelAuthor
from harness.gate.interface import Finding
from harness.models.counting import count_tokens
from tests.agents.test_model import H0, V00, brief

IDEA = Hypothesis(title="two windows", what="asks for two windows at least", why="one is thin")
REVIEWED = {"policy.py": V00["policy.py"].replace("max(count, 1)", "max(count, 4)")}
WANTED = {"policy.py": V00["policy.py"].replace("max(count, 1)", "max(count, 2)")}
REQUIRED = (
    Finding(rule="R01", path="policy.py", line=20, message="two, not four {{ 6*7 }}"),
    Finding(rule="R05", message="name each"),
)
ASKED = Revision(1, IDEA, REVIEWED, REQUIRED)
Form = Literal["function", "file"]


def code(files: dict[str, str], form: Form) -> str:
    if form == "file":
        return f"TITLE: another\nWHAT: other\nWHY: changed my mind\n```python\n{files['policy.py']}```\n"
    found = re.search(r"^    def answer.*?(?=^    def |\Z)", files["policy.py"], re.MULTILINE | re.DOTALL)
    assert found
    return f"```python\n{found[0]}```\nWHY: changed my mind\n"


@pytest.mark.parametrize("form", ["function", "file"])
def test_what_the_reviewer_asked_for_is_shown_as_data_and_the_hypothesis_stays(
    form: Form, endpoint: Any, models: Any
) -> None:
    endpoint.say = lambda body: code(WANTED, form)
    author = ModelAuthor(models, form, 3, H0.constitution)
    answer = author.revise(brief(), ASKED, 1)
    assert isinstance(answer, Proposal), answer
    assert answer.files == WANTED and answer.hypothesis == IDEA and answer.author == "m"
    (request,) = endpoint.requests
    prompt = request["messages"][0]["content"]
    fence = re.search(r"^=====[0-9a-f]{24}=====$", prompt, re.MULTILINE)
    assert fence and prompt.count(f"\n{fence[0]}\n") == 2
    inside = prompt.split(f"\n{fence[0]}\n")[1]
    assert inside == "1. R01 policy.py, line 20: two, not four {{ 6*7 }}\n2. R05: name each"
    assert "max(count, 4)" in prompt and IDEA.what in prompt
    assert count_tokens(prompt) <= SIZES[form].prompt
    assert author.revise(brief(), ASKED, 1) == answer and len(endpoint.requests) == 1  # bought once


@pytest.mark.parametrize("form", ["function", "file"])
@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (REVIEWED, "unchanged"),
        ({"policy.py": WANTED["policy.py"].replace("uniform(size", "eval(size")}, "the rules refuse it"),
    ],
)
def test_no_change_and_what_the_rules_refuse_go_back_and_end(
    files: dict[str, str], reason: str, form: Form, endpoint: Any, models: Any
) -> None:
    endpoint.say = lambda body: code(files, form)
    answer = ModelAuthor(models, form, 2, H0.constitution).revise(brief(), ASKED, 1)
    assert isinstance(answer, Malformed) and reason in answer.reason and answer.attempts == 2
    assert len(endpoint.requests) == 2 and reason in endpoint.requests[1]["messages"][-1]["content"]


def test_where_no_function_was_changed_there_is_none_to_revise(endpoint: Any, models: Any) -> None:
    asked = Revision(1, IDEA, {"policy.py": V00["policy.py"] + "\nX = 1\n"}, REQUIRED)
    answer = ModelAuthor(models, "function", 2, H0.constitution).revise(brief(), asked, 1)
    assert isinstance(answer, Malformed) and "no function" in answer.reason and endpoint.requests == []
