"""What an endpoint's model refuses, learned from its own 400 replies, once, and recorded."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LOG = logging.getLogger(__name__)
UNSUPPORTED = re.compile(
    r"unsupported|not support|n't support|unrecognized|unknown|extra inputs|extra_forbidden|not permitted|unavailable"
    r"|not available|not allowed|unexpected|deprecated|must be",
    re.IGNORECASE,
)
BAD_SCHEMA = re.compile(r"invalid (json )?schema|invalid_json_schema|grammar|convert|parse schema", re.IGNORECASE)
LEFT_OUT = "left out"
REMEDIES: Mapping[str, tuple[str, ...]] = {
    "max_tokens": ("max_completion_tokens",),
    "max_completion_tokens": ("max_tokens",),
    "temperature": (LEFT_OUT,),
    "seed": (LEFT_OUT,),
    "response_format": ("json_object", "text"),
    "encoding_format": (LEFT_OUT,),
}
"""Remedies by parameter, in the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Learned:
    """One parameter that a model refused, and what is done instead."""

    parameter: str
    remedy: str
    message: str
    """The endpoint's own words, cut."""


class Quirks:
    """What is known of one model at one endpoint. Thread-safe; every new fact goes to ``record`` once."""

    def __init__(self, known: Iterable[Learned], record: Callable[[Learned], None], token_parameter: str) -> None:
        self._known = {(fact.parameter, fact.remedy): fact for fact in known}
        self._record = record
        self._token_parameter = token_parameter
        self._lock = threading.Lock()

    @property
    def token_parameter(self) -> str:
        """The name under which the bound on completion tokens goes."""
        (other,) = REMEDIES[self._token_parameter]
        return other if (self._token_parameter, other) in self._known else self._token_parameter

    @property
    def format(self) -> str:
        """How JSON is asked for: ``json_schema``, ``json_object`` or ``text``."""
        for mode in ("text", "json_object"):
            if ("response_format", mode) in self._known:
                return mode
        return "json_schema"

    @property
    def timed(self) -> str:
        """How a transcript is asked for: ``verbose_json`` (with times), or ``json`` where that is refused."""
        return "json" if ("response_format", "json") in self._known else "verbose_json"

    def takes(self, parameter: str) -> bool:
        """Whether ``parameter`` is still sent."""
        return (parameter, LEFT_OUT) not in self._known

    def learn(self, parameter: str, sent: Any, message: str) -> bool:
        """Note that ``parameter`` with value ``sent`` was refused. False where nothing is left to try."""
        with self._lock:
            if sent == "verbose_json":
                remedy = "json"
            elif parameter == "response_format":
                if sent == "json":
                    return False
                tried = sent.get("type", "text")
                remedy = "json_object" if tried == "json_schema" else "text"
            else:
                remedy = REMEDIES[parameter][0]
            if remedy in REMEDIES and (remedy, parameter) in self._known:
                return False  # it refuses both names
            if (parameter, remedy) not in self._known:
                fact = Learned(parameter, remedy, message[:300])
                self._known[parameter, remedy] = fact
                self._record(fact)
                LOG.warning("the model refuses %s; from now on: %s (%s)", parameter, remedy, fact.message)
            return True


def refused_parameter(body: object, message: str, sent: Mapping[str, Any]) -> str | None:
    """Which of the parameters ``sent`` a 400 or 422 reply refuses as such, or None.

    A value that is out of range and a prompt that is too long are faults of one request and teach nothing about the
    model. (A schema that is itself wrong is told apart before, by ``BAD_SCHEMA``.)
    """
    if not UNSUPPORTED.search(message):
        return None
    named = body.get("param") if isinstance(body, dict) else None
    if isinstance(named, str) and (root := re.split(r"[.\[]", named)[0]) in REMEDIES and root in sent:
        return root
    head = message[:1_000]
    found = [(at, name) for name in REMEDIES if name in sent and (at := head.find(name)) >= 0]
    return min(found)[1] if found else None
