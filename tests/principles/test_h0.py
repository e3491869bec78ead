"""H0: the four fixed sources, installed into a run and verified by hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from harness.gate import rules as gate
from principles.h0 import ARTIFACTS, TEXTS, Enforcer, H0Error, PermittedArtifact, install, load_h0, verify

SOME = (
    PermittedArtifact(name="windows", what="caption and transcript windows of the development split", sha256="a" * 64),
    PermittedArtifact(name="questions", what="questions and choices without answers", sha256="b" * 64),
)


def test_constitution_has_unique_ids_and_every_enforcer() -> None:
    constitution = load_h0().constitution
    ids = [rule.id for rule in constitution.rule]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[A-Z]\d\d", i) for i in ids)
    assert all(constitution.of(enforcer) for enforcer in Enforcer)


def test_text_and_rules_say_the_same() -> None:
    h0 = load_h0()
    text = " ".join(h0.constitution_text.split())
    for rule in h0.constitution.rule:
        assert f"- **{rule.id}** *{rule.title}.* {rule.text}" in text
    assert set(re.findall(r"- \*\*([A-Z]\d\d)\*\*", h0.constitution_text)) == {r.id for r in h0.constitution.rule}


def test_the_gate_quotes_rules_of_the_constitution_only() -> None:
    """Every rule id in the gate's source is one of the constitution's; its sizes are those the gate knows."""
    constitution = load_h0().constitution
    sources = [path.read_text() for path in Path(gate.__file__).parent.glob("*.py")]
    quoted = set(re.findall(r"""["'`]([A-Z]\d\d)["'`]""", "".join(sources)))
    assert len(quoted) > 10
    assert not [rule_id for rule_id in quoted if constitution.find(rule_id) is None]
    gate.StaticLimits(**constitution.static.limits)


def test_wiki_labels_its_figures_and_states_what_is_not_given() -> None:
    wiki = load_h0().wiki
    assert "**reported**" in wiki and "not given" in wiki
    for figure in ("54.2", "40.8", "52.3", "71.2", "65.6", "4.8", "18.72 M", "36.77 M"):
        assert figure in wiki


def test_install_then_verify(tmp_path: Path) -> None:
    hashes = install(tmp_path, SOME)
    assert set(hashes) == {*TEXTS, ARTIFACTS}
    verify(tmp_path, hashes)
    assert install(tmp_path, reversed(SOME)) == hashes
    loaded = load_h0(tmp_path / "h0")
    assert {a.name for a in loaded.artifacts} == {"windows", "questions"}
    assert loaded.model_copy(update={"artifacts": ()}) == load_h0()


@pytest.mark.parametrize("name", [*TEXTS, ARTIFACTS])
def test_a_changed_or_missing_source_is_named(tmp_path: Path, name: str) -> None:
    hashes = install(tmp_path, SOME)
    path = tmp_path / "h0" / name
    original = path.read_bytes()
    path.write_bytes(original + b" ")
    with pytest.raises(H0Error, match=re.escape(name)) as error:
        verify(tmp_path, hashes)
    assert "\n" not in str(error.value)
    path.unlink()
    with pytest.raises(H0Error, match=re.escape(name)):
        verify(tmp_path, hashes)
    path.write_bytes(original)
    verify(tmp_path, hashes)


def test_an_incomplete_record_is_refused(tmp_path: Path) -> None:
    hashes = install(tmp_path, SOME)
    del hashes["constitution.md"]
    with pytest.raises(H0Error, match="incomplete"):
        verify(tmp_path, hashes)


def test_every_rule_has_a_test_that_breaks_it() -> None:
    """The tests exist; those of the gate and of the audit name the rule that they break."""
    tests = Path(__file__).resolve().parents[1]
    breaking: dict[str, str] = tomllib.loads((tests / "principles" / "breaking.toml").read_text())
    assert breaking.keys() == {rule.id for rule in load_h0().constitution.rule}
    for rule, test in breaking.items():
        path, _, function = test.partition("::")
        text = (tests / path).read_text()
        assert re.search(rf"^def {function}\(", text, re.MULTILINE), f"{rule}: there is no {test}"
        if rule[0] in "SDKXAR" and "each_of_its_rules" not in test:  # those are read from the constitution
            assert rule in text, f"{path} does not name {rule}"
