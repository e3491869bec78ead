"""The check of a changed function's text: what it finds, and that it finds nothing in code that works."""

from __future__ import annotations

import random

import pytest

from harness.agents.directions import KINDS, choose
from harness.agents.model import usable
from harness.agents.offline import OfflineAuthor
from harness.agents.splice import SpliceError, imported, splice, targets
from harness.agents.vetting import vet
from harness.gate.interface import Decision
from harness.gate.literals import DataWords
from harness.gate.static import check
from policies import library
from principles.h0 import load_h0
from tests.agents.test_offline import brief

H0 = load_h0()
V00 = {path: data.decode() for path, data in library.load("v00").items()}
LAST = 'return (yield from read(query, "", "x", ()))'

BAD = {
    "made-up name": (f"best = relevant(self.memory)\n{LAST}", "relevant is not defined"),
    "before its value": (f"scores = scores + 1\n{LAST}", "scores is used before it has a value"),
    "made-up attribute of self": (f"self.scores.sort()\n{LAST}", "self has no scores; there are"),
    "made-up attribute of the query": (f"text = query.text\n{LAST}", "query has no text; it has id, type"),
    "made-up attribute of a window": (
        f"best = sorted(self.memory.windows, key=lambda w: w.relevance)\n{LAST}",
        "nothing here has an attribute relevance; a window has index",
    ),
    "no such block": (f"from policies.blocks.relevance import best\n{LAST}", "no module policies.blocks.relevance"),
    "block of another module": (
        f"from policies.blocks.bm25 import top\n{LAST}",
        "policies.blocks.bm25 has no top; import it from policies.blocks.select",
    ),
    "too few arguments": (
        f"positions = uniform(3)\n{LAST}",
        r"uniform takes other arguments: uniform\(size: int, count",
    ),
    "unknown keyword": (f"positions = uniform(3, number=2)\n{LAST}", "uniform takes other arguments"),
    "no such function of a library": (f"import math\nx = math.average([1])\n{LAST}", "math has no average"),
    "base class": ("return super().answer(query)", "no base class"),
    "does not compile": (f"for at in []:\n    pass\nbreak\n{LAST}", "line .*outside loop"),
    "name of a comprehension": (f"x = [at for at in range(3)]\ny = at\n{LAST}", "at is not defined"),
    "in a nested function": (f"def inner():\n    return nothing\n{LAST}", "nothing is not defined"),
}


def changed(body: str, imports: tuple[str, ...] = ()) -> dict[str, str]:
    return {"policy.py": splice(V00["policy.py"], "Policy.answer", body, imports)}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_there_is_named(name: str) -> None:
    body, message = BAD[name]
    with pytest.raises(SpliceError, match=message) as caught:
        vet(changed(body), "policy.py", "Policy.answer")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


GOOD = {
    "loop": f"best = 0\nfor at in range(3):\n    if best:\n        print(seen)\n    best = seen = at\n{LAST}",
    "branches": f"if query.time:\n    x = 1\nelse:\n    x = 2\ny = x\n{LAST}",
    "handler": f"try:\n    x = 1\nexcept ValueError as error:\n    x = str(error)\n{LAST}",
    "walrus": f"if (n := len(self.memory)) > 2:\n    m = n\n{LAST}",
    "comprehension": f"x = [(a, b) for a in range(3) for b in range(a) if a]\n{LAST}",
    "nested": f"def size(x):\n    return x + limit\nlimit = 3\ny = size(limit)\n{LAST}",
    "library": f"import re, math\nimport numpy as np\nx = re.sub('a', '', 'c') * int(np.sqrt(math.pi))\n{LAST}",
    "unpacked": f"args = (1, 2)\nx = uniform(*args)\n{LAST}",
    "window": f"for w in self.memory.windows:\n    x = (w.start, [u.speaker for u in w.transcript])\n{LAST}",
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_there_passes(name: str) -> None:
    vet(changed(GOOD[name]), "policy.py", "Policy.answer")


@pytest.mark.parametrize("name", library.names())
def test_every_function_of_the_library_passes(name: str) -> None:
    files = {path: data.decode() for path, data in library.load(name).items()}
    for target in targets(files):
        vet(files, target.path, target.name)


def test_every_function_of_the_offline_author_passes() -> None:
    author = OfflineAuthor()
    for seed in range(25):
        proposal = author.propose(brief(V00), seed)
        for target in targets(proposal.files):  # type: ignore[union-attr]
            vet(proposal.files, target.path, target.name)  # type: ignore[union-attr]


def test_the_lines_of_every_direction_fit_the_function_they_are_for() -> None:
    """With the direction's lines where it says, the function is vetted, passes the static rules and differs."""
    (answer,) = [t for t in targets(V00) if t.name == "Policy.answer"]
    made = set()
    for kind in KINDS:
        if "pack" in kind.needs or "position" in kind.needs:
            continue
        direction = kind.make(random.Random(1))
        body = answer.source.split('"""')[-1].strip("\n").split("\n")
        place, lines = direction.where.split("`")[1] if "`" in direction.where else "", direction.code.split("\n")
        at = next((i for i, line in enumerate(body) if place and line.strip().startswith(place)), 0)
        at = next(i for i, line in enumerate(body) if "head =" in line) + 1 if place == "head" else at
        replaced = direction.where.startswith("In the place")
        rest = len(body) if "all that follow" in direction.where else at + replaced * direction.where.count("`") // 2
        body[at:rest] = [" " * 8 + line for line in lines]
        files = changed("\n".join(body), direction.imports)
        vet(files, "policy.py", "Policy.answer")
        packed = {path: text.encode() for path, text in files.items()}
        assert check(packed, H0.constitution, DataWords()).decision is Decision.APPROVE
        assert all(line in files["policy.py"] for line in direction.imports)
        made.add(files["policy.py"])
    assert len(made) >= 7 and V00["policy.py"] not in made


def test_a_direction_is_not_given_twice_while_there_are_others() -> None:
    tried: list[str] = []
    for seed in range(15):
        target, direction = choose(usable(V00), tried, random.Random(seed))
        assert target.name == "Policy.answer" and direction.text not in tried
        tried.append(direction.text)


@pytest.mark.parametrize("name", library.names())
def test_every_parent_gets_a_direction(name: str) -> None:
    files = {path: data.decode() for path, data in library.load(name).items()}
    found = {choose(usable(files), (), random.Random(seed))[1].title for seed in range(12)}
    assert found


IMPORTS = ("from policies.blocks.select import latest, top", "from policies.blocks.support import leader")


def test_given_imports_stay_where_they_are_used() -> None:
    files = changed(f'"""Doc."""\npositions = top([], 3)\n{LAST}', IMPORTS)
    lines = [line.strip() for line in files["policy.py"].split("\n")]
    assert lines.index('"""Doc."""') + 1 == lines.index(IMPORTS[0]) and IMPORTS[1] not in lines
    own = changed(f"from policies.blocks.select import top\npositions = top([], 3)\n{LAST}", IMPORTS)
    assert IMPORTS[0] not in own["policy.py"]
    assert imported(IMPORTS[0]) == ["latest", "top"]


def test_functions_repeated_unchanged_are_no_change() -> None:
    whole = V00["policy.py"].split("class Policy")[1]
    text = "class Policy" + whole.replace('"uniform", evidence', '"even", evidence')
    assert changed(text)["policy.py"] == V00["policy.py"].replace('"uniform", evidence', '"even", evidence')
    with pytest.raises(SpliceError, match="alone"):
        changed(text.replace("self.characters = 0", "self.characters = 1"))
