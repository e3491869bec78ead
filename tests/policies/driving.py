"""Runs a policy's methods in this process, as the sandbox does, against a function that serves requests."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from policies.contract import Refused

Serve = Callable[[Any], Any]


def drive(result: Any, serve: Serve) -> Any:
    """The value of a plain or generator method; a refusal is thrown in, or stands in its list."""
    if not inspect.isgenerator(result):
        return result
    try:
        asked = next(result)
        while True:
            if isinstance(asked, list):
                asked = result.send([serve(one) for one in asked])
                continue
            reply = serve(asked)
            asked = result.throw(reply) if isinstance(reply, Refused) else result.send(reply)
    except StopIteration as stop:
        return stop.value
