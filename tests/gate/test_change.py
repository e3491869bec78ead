"""What a candidate changes of its parent is seen through names, layout and order; other ideas stay apart."""

from __future__ import annotations

import itertools

import pytest

from harness.agents.interface import Brief, FrontierEntry, Proposal
from harness.agents.offline import OfflineAuthor
from harness.gate.change import change
from harness.gate.duplicates import syntax_digest
from meta_memory.similarity import likeness
from policies import library
from tests.gate.retold import FIRST, LOOP, METHOD, OTHER_BLOCK, OTHER_NUMBER, OTHER_ORDER, V00

PARENT = {"policy.py": V00.encode()}


def changed(text: str) -> dict[str, int]:
    return change({"policy.py": text.encode()}, PARENT)


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations((FIRST, LOOP, METHOD), 2)])
def test_one_idea_written_otherwise_is_one_idea(one: str, other: str) -> None:
    assert syntax_digest({"policy.py": one.encode()}) != syntax_digest({"policy.py": other.encode()})
    found = likeness(("", changed(one)), ("", changed(other)))
    assert found.same and 0.5 < found.done < 0.8


@pytest.mark.parametrize("other", [OTHER_NUMBER, OTHER_BLOCK, OTHER_ORDER])
def test_another_number_block_or_order_is_another_idea(other: str) -> None:
    assert other != FIRST
    assert not likeness(("the same words", changed(FIRST)), ("the same words", changed(other))).same


def test_names_docstrings_annotations_and_order_do_not_count() -> None:
    text = FIRST.replace("best", "chosen").replace("characters", "letters").replace(": Query) -> Asking", ")")
    text = text.replace('"""Sample evenly, fit whole windows under the cap, ask f."""', '"""Rank, then pack."""')
    text = text.replace("import top\n", "import top as leading\n").replace("top(bm25", "leading(bm25")
    assert text.count("chosen") == 2 and "letters" in text and "leading(bm25" in text
    assert changed(text) == changed(FIRST)
    assert changed(V00) == {}


def test_settings_in_a_file_count_like_constants() -> None:
    files = {**PARENT, "settings.json": b'{"best": 12, "words": ["a"]}'}
    assert change(files, PARENT) == {"json>best=12": 1, "json>words='a'": 1}
    assert change(PARENT, files) == {"json>best=12": -1, "json>words='a'": -1}


def test_no_two_of_the_offline_authors_proposals_are_one_idea() -> None:
    parent = {path: text.decode() for path, text in library.load("v01").items()}
    entry = FrontierEntry(0, "start", 0.4, {}, 3000.0, 0)
    brief = Brief(1, entry, parent, (entry,), (), "", "")
    made: dict[str, Proposal] = {}
    for seed in range(30):
        proposal = OfflineAuthor().propose(brief, seed)
        assert isinstance(proposal, Proposal)
        made.setdefault(proposal.files["policy.py"], proposal)
    before = {path: text.encode() for path, text in parent.items()}
    ideas = [(p.hypothesis.what, change({"policy.py": code.encode()}, before)) for code, p in made.items()]
    assert len(ideas) > 20
    assert not [pair for pair in itertools.combinations(ideas, 2) if likeness(*pair).same]
