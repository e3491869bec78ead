"""What a model costs: the configuration's price, else nothing on this machine, else the bundled table."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from harness.errors import UserError
from harness.settings import Price, RoleModel

SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")
"""Ending of a dated snapshot's name; it costs what the model of the plain name costs."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A price and where it came from."""

    price: Price | None
    """None: not known; then calls are booked without dollars, which only a run without a cap on dollars may do."""
    source: str

    @property
    def text(self) -> str:
        """For people."""
        if self.price is None:
            return "price not known: dollars are not counted"
        return f"${self.price.input:g} in, ${self.price.output:g} out per million tokens ({self.source})"

    def dollars(self, prompt: int, completion: int, cached: int = 0) -> float:
        """US dollars of a call. ``cached`` is part of ``prompt``; reasoning tokens are part of ``completion``."""
        if self.price is None:
            return 0.0
        for_cached = self.price.input if self.price.cached_input is None else self.price.cached_input
        fresh = prompt - cached
        return (fresh * self.price.input + cached * for_cached + completion * self.price.output) / 1e6

    def audio_dollars(self, seconds: float) -> float:
        """US dollars of ``seconds`` of audio, where the model is priced by the minute."""
        return self.price.minute * seconds / 60 if self.price is not None else 0.0

    def worst_dollars(self, prompt: int, completion: int) -> float:
        """The most that a call can cost: nothing comes from the cache, or all of it where that is dearer."""
        return max(self.dollars(prompt, completion), self.dollars(prompt, completion, cached=prompt))


@cache
def _bundled() -> dict[str, Any]:
    text = resources.files("harness.models").joinpath("prices.json").read_text("utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def price_of(model: RoleModel, prices: Mapping[str, Price], dollar_cap: float | None) -> Priced:
    """The price of a role's model.

    Raises:
        UserError: it is not known, while a cap on dollars is set.
    """
    if model.model in prices:
        return Priced(prices[model.model], "configuration")
    if model.loopback:
        return Priced(Price(input=0, output=0), "free: on this machine")
    table = _bundled()
    if urlsplit(model.base_url).hostname == urlsplit(table["endpoint"]).hostname:
        found = table["models"].get(model.model) or table["models"].get(SNAPSHOT.sub("", model.model))
        if found is not None:
            return Priced(Price(**found), f"bundled table of {table['date']}")
    if dollar_cap is not None and math.isfinite(dollar_cap):
        raise UserError(
            f"the price of model {model.model!r} at {model.base_url} is not known, and caps.dollars is {dollar_cap:g}: "
            f'set [prices."{model.model}"] input and output (dollars per million tokens; minute for audio), '
            "or caps.dollars = inf"
        )
    return Priced(None, "not known")
