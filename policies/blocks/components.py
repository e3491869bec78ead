"""SEEM's components, switched by a file inside the policy's package, so that an ablation is another bundle."""

from __future__ import annotations

import json
import pkgutil
from dataclasses import dataclass, fields

from policies.blocks.gate import GATES, Gate

FILE = "settings.json"


@dataclass(frozen=True, slots=True)
class Components:
    """Which of the four components are in."""

    structured_memory: bool = True
    """False: the raw captions of a window as one field."""
    co_occurrence_bonus: bool = True
    specialists: bool = True
    gate: Gate = "rule"


def read_components(module: str) -> Components:
    """The settings of the package that ``module`` (its ``__name__``) belongs to.

    Raises ValueError with one line that says what is wrong with the file.
    """
    data = pkgutil.get_data(module.rpartition(".")[0], FILE)
    if data is None:
        raise ValueError(f"{FILE}: cannot be read")
    return parse_components(data)


def parse_components(data: bytes) -> Components:
    """Read the file's bytes. Raises ValueError."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{FILE}: not JSON ({error})") from None
    known = [field.name for field in fields(Components)]
    if not isinstance(value, dict) or sorted(value) != sorted(known):
        raise ValueError(f"{FILE}: must be an object with exactly the keys {', '.join(known)}")
    for name in known[:-1]:
        if not isinstance(value[name], bool):
            raise ValueError(f"{FILE}: {name} must be true or false")
    if value["gate"] not in GATES:
        raise ValueError(f"{FILE}: gate must be one of {', '.join(GATES)}")
    return Components(**value)
