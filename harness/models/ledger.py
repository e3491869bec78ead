"""The ledger: the worst case of a call is reserved before it is sent, and settled to what it came to.

For every cap, what is booked plus what is reserved never passes the cap. A call that does not fit only because of
reservations still open waits for them to settle; one that would not fit even then is refused.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from harness.models.interface import CapReached, Role, Usage
from harness.settings import Cap, Caps

SLACK = 1e-9
"""For sums of floats."""
MEASURES = ("dollars", "tokens", "requests", "seconds")


@dataclass(frozen=True, slots=True)
class Amount:
    """What caps bound."""

    dollars: float = 0.0
    tokens: int = 0
    requests: int = 0
    seconds: float = 0.0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.dollars + other.dollars,
            self.tokens + other.tokens,
            self.requests + other.requests,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """An open reservation; ``amount.seconds`` is the time that the call may take."""

    number: int
    role: Role
    amount: Amount


def amount_of(usage: Usage, seconds: float) -> Amount:
    """Usage and time as an amount."""
    return Amount(usage.dollars, usage.prompt_tokens + usage.completion_tokens, usage.requests, seconds)


class Ledger:
    """Books of one run. Thread-safe."""

    def __init__(self, caps: Caps, booked: Mapping[Role, tuple[Usage, float]]) -> None:
        """``booked`` is what earlier sessions of the run came to: usage and seconds by role."""
        self._caps = caps
        self._booked = {role: booked.get(role, (Usage(), 0.0)) for role in Role}
        self._open: dict[int, Reservation] = {}
        self._numbers = itertools.count()
        self._changed = threading.Condition()

    def reserve(self, role: Role, worst: Usage, seconds: float) -> Reservation:
        """Reserve ``worst`` and up to ``seconds``; the reservation's time is cut to what a cap on seconds leaves.

        Waits for open reservations where only they are in the way. Raises CapReached.
        """
        with self._changed:
            while True:
                amount, blocked, hopeless = self._fit(role, amount_of(worst, seconds))
                if not blocked:
                    reservation = Reservation(next(self._numbers), role, amount)
                    self._open[reservation.number] = reservation
                    return reservation
                if hopeless:
                    raise CapReached(hopeless)
                self._changed.wait()

    def settle(self, reservation: Reservation, usage: Usage, seconds: float) -> None:
        """Book what the call came to, and close its reservation."""
        with self._changed:
            if self._open.pop(reservation.number, None) is not None:
                before, time = self._booked[reservation.role]
                self._booked[reservation.role] = before + usage, time + seconds
            self._changed.notify_all()

    def release(self, reservation: Reservation, seconds: float = 0.0) -> None:
        """Close the reservation of a call that bought nothing; only its time is booked."""
        self.settle(reservation, Usage(), seconds)

    def spent(self) -> dict[Role, Usage]:
        """Booked so far by role; roles without a call are left out."""
        with self._changed:
            return {role: usage for role, (usage, _) in self._booked.items() if usage != Usage()}

    def seconds(self) -> dict[Role, float]:
        """Seconds booked so far by role."""
        with self._changed:
            return {role: time for role, (_, time) in self._booked.items() if time}

    def _fit(self, role: Role, need: Amount) -> tuple[Amount, bool, str]:
        """The amount to reserve, whether a cap blocks it now, and the line for a cap that would block it anyway."""
        blocked, hopeless, seconds = False, "", need.seconds
        for who, cap in ((None, self._caps), (role, self._caps.roles.get(role, Cap()))):
            roles = (who,) if who else tuple(Role)
            booked = sum((amount_of(*self._booked[r]) for r in roles), Amount())
            held = sum((r.amount for r in self._open.values() if r.role in roles), Amount())
            for measure in MEASURES:
                limit = getattr(cap, measure)
                if limit is None or math.isinf(limit):
                    continue
                spent, reserved = getattr(booked, measure), getattr(held, measure)
                if measure == "seconds":
                    # Time is cut rather than refused, but not by reservations that will soon give most of theirs back.
                    wanted = min(need.seconds, limit - spent)
                    blocked |= wanted <= 0 or spent + reserved + wanted > limit + SLACK
                    hopeless = hopeless or (_line(who, measure, spent, limit, 0) if wanted <= 0 else "")
                    seconds = min(seconds, wanted)
                    continue
                amount = getattr(need, measure)
                blocked |= spent + reserved + amount > limit + SLACK
                if spent + amount > limit + SLACK:
                    hopeless = hopeless or _line(who, measure, spent, limit, amount)
        return Amount(need.dollars, need.tokens, need.requests, seconds), blocked, hopeless


def _line(role: Role | None, measure: str, spent: float, limit: float, need: float) -> str:
    name = f"caps.roles.{role}.{measure}" if role else f"caps.{measure}"
    could = f", and the next call could take {need:.6g}" if need else ""
    return f"{name} reached: {spent:.6g} of {limit:.6g} spent{could}; raise {name} to go on"
