"""The ledger: reservations never pass a cap, whatever the order and however many threads."""

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.interface import CapReached, Role, Usage
from harness.models.ledger import SLACK, Amount, Ledger, amount_of
from harness.settings import Cap, Caps

ROLES = (Role.ANSWER, Role.REVIEWER)


def use(tokens: Any = 10, dollars: Any = 0.1) -> Any:
    return Usage(1, tokens, 0, dollars=dollars)


def test_books_what_it_came_to() -> None:
    ledger = Ledger(Caps(dollars=1.0), {Role.ANSWER: (use(5, 0.25), 2.0)})
    held = ledger.reserve(Role.ANSWER, use(100, 0.5), 60)
    ledger.settle(held, use(40, 0.125), 3.0)
    assert ledger.spent() == {Role.ANSWER: Usage(2, 45, 0, dollars=0.375)}
    assert ledger.seconds() == {Role.ANSWER: 5.0}


@pytest.mark.parametrize(
    ("caps", "name"),
    [
        (Caps(dollars=0.25), "caps.dollars"),
        (Caps(tokens=25), "caps.tokens"),
        (Caps(requests=2), "caps.requests"),
        (Caps(seconds=4), "caps.seconds"),
        (Caps(roles={Role.ANSWER: Cap(dollars=0.25)}), "caps.roles.answer.dollars"),
        (Caps(roles={Role.ANSWER: Cap(requests=2)}), "caps.roles.answer.requests"),
    ],
)
def test_each_cap_stops_the_third_call_and_is_named(caps: Any, name: Any) -> None:
    ledger = Ledger(caps, {})
    for _ in range(2):
        ledger.settle(ledger.reserve(Role.ANSWER, use(), 2), use(), 2)
    with pytest.raises(CapReached) as caught:
        ledger.reserve(Role.ANSWER, use(), 2)
    assert str(caught.value).startswith(f"{name} reached: ")
    if "roles" in name:
        ledger.settle(ledger.reserve(Role.REVIEWER, use(), 2), use(), 2)


def test_time_is_cut_to_what_is_left() -> None:
    ledger = Ledger(Caps(seconds=100), {Role.ANSWER: (Usage(), 70)})
    assert ledger.reserve(Role.ANSWER, use(), 600).amount.seconds == 30


def test_no_cap_is_no_bound() -> None:
    ledger = Ledger(Caps(dollars=float("inf")), {})
    assert ledger.reserve(Role.ANSWER, use(10**9, 1e9), 600).amount.dollars == 1e9


def test_a_call_waits_for_an_open_reservation_that_will_shrink() -> None:
    ledger = Ledger(Caps(dollars=1.0), {})
    first = ledger.reserve(Role.ANSWER, use(dollars=0.9), 60)
    got = []
    waiting = threading.Thread(target=lambda: got.append(ledger.reserve(Role.REVIEWER, use(dollars=0.9), 60)))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive() and not got
    ledger.settle(first, use(dollars=0.05), 1)
    waiting.join(60)
    assert got and got[0].amount.dollars == 0.9


def test_a_reservation_is_settled_once() -> None:
    ledger = Ledger(Caps(), {})
    held = ledger.reserve(Role.ANSWER, use(), 1)
    ledger.settle(held, use(), 1)
    ledger.settle(held, use(), 1)
    assert ledger.spent()[Role.ANSWER].requests == 1


calls = st.tuples(
    st.sampled_from(ROLES),
    st.integers(0, 40),  # worst tokens
    st.floats(0, 1),  # share of the worst case that it comes to
    st.booleans(),  # released instead of settled
)


@settings(max_examples=60, deadline=None)
@given(
    plan=st.lists(calls, max_size=40),
    caps=st.builds(
        Caps,
        dollars=st.none() | st.floats(0, 1),
        tokens=st.none() | st.integers(0, 200),
        requests=st.none() | st.integers(0, 20),
        seconds=st.none() | st.floats(0, 50),
        roles=st.just({}) | st.just({Role.ANSWER: Cap(tokens=60, dollars=0.3, seconds=9)}),
    ),
    threads=st.integers(1, 6),
)
def test_no_cap_is_ever_passed(plan: Any, caps: Any, threads: Any) -> None:
    ledger = Ledger(caps, {})
    queue, lock, faults = list(plan), threading.Lock(), []

    def total(roles: Any) -> Any:
        with ledger._changed:
            booked = [amount_of(*ledger._booked[role]) for role in roles]
            held = [r.amount for r in ledger._open.values() if r.role in roles]
        return sum(booked + held, Amount())

    def check() -> None:
        for cap, roles in ((caps, tuple(Role)), (caps.roles.get(Role.ANSWER, Cap()), (Role.ANSWER,))):
            amount = total(roles)
            for name in ("dollars", "tokens", "requests", "seconds"):
                limit = getattr(cap, name)
                if limit is not None and getattr(amount, name) > limit + 2 * SLACK:
                    faults.append((name, amount, limit))

    def work() -> None:
        while True:
            with lock:
                if not queue:
                    return
                role, tokens, share, released = queue.pop()
            worst = use(tokens, tokens / 100)
            try:
                held = ledger.reserve(role, worst, 5)
            except CapReached:
                continue
            check()
            time = held.amount.seconds * share
            if released:
                ledger.release(held, time)
            else:
                ledger.settle(held, use(int(tokens * share), int(tokens * share) / 100), time)
            check()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()
    assert not faults
    assert not ledger._open
