"""Prices: configuration, then this machine, then the bundled table, else a clear line."""

from typing import Any

import pytest

from harness.errors import UserError
from harness.models.prices import Priced, price_of
from harness.settings import Price, RoleModel


def test_cached_and_reasoning_tokens_are_priced_as_such() -> None:
    priced = Priced(Price(input=2, cached_input=0.5, output=8), "")
    assert priced.dollars(1_000_000, 0) == 2
    assert priced.dollars(1_000_000, 0, cached=1_000_000) == 0.5
    assert priced.dollars(1_000_000, 500_000, cached=400_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 4)
    assert priced.worst_dollars(1_000_000, 500_000) == 6


def test_without_a_cached_price_the_full_one_counts() -> None:
    assert Priced(Price(input=2, output=8), "").dollars(1_000_000, 0, cached=1_000_000) == 2


def test_the_order_of_sources() -> None:
    local, remote = RoleModel(model="gpt-4.1", base_url="http://127.0.0.1:1/v1"), RoleModel(model="gpt-4.1")
    mine = {"gpt-4.1": Price(input=7, output=7)}
    assert price_of(local, mine, 10).price == price_of(remote, mine, 10).price == Price(input=7, output=7)
    free = price_of(local, {}, 10)
    assert (free.price, free.source) == (Price(input=0, output=0), "free: on this machine")
    assert price_of(remote, {}, 10).price == Price(input=2, cached_input=0.5, output=8)
    assert "bundled table of 20" in price_of(remote, {}, 10).source


def test_a_dated_snapshot_costs_what_the_model_costs() -> None:
    assert (
        price_of(RoleModel(model="gpt-4.1-2025-04-14"), {}, 10).price
        == price_of(RoleModel(model="gpt-4.1"), {}, 10).price
    )


@pytest.mark.parametrize(
    "model",
    [RoleModel(model="nobody-knows"), RoleModel(model="gpt-4.1", base_url="https://elsewhere.example/v1")],
)
def test_an_unknown_price_needs_a_word_from_the_user(model: Any) -> None:
    with pytest.raises(UserError, match=rf'\[prices."{model.model}"\]'):
        price_of(model, {}, 10)
    assert price_of(model, {}, None).price is None
    assert price_of(model, {}, float("inf")).price is None
    assert price_of(model, {}, None).dollars(10**6, 10**6) == 0
