"""Before a run: is each configured endpoint there, does it take the key, does it know the model? Free of charge."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from harness.config import Config
from harness.display import visible
from harness.errors import UserError
from harness.models.client import Client, Timing
from harness.models.embedder import missing
from harness.models.interface import ModelError, Role
from harness.models.prices import price_of
from harness.models.quirks import Quirks
from harness.settings import RoleModel

SECONDS = 20.0
"""For one endpoint, retries included."""
LISTED = 8
"""Model names shown where the configured one is not among them."""


def preflight(config: Config, roles: Iterable[Role] = tuple(Role)) -> None:
    """Check each role's key, price, endpoint and model; nothing is bought and nothing written.

    An endpoint that lists no models is asked no further: then a wrong name shows with the first call.

    Raises:
        UserError: one line with the profile and the role.
    """
    seen: set[tuple[str, str, str | None]] = set()
    for role in roles:
        model = config.role(role)
        if model is None:
            continue
        if model.packaged:
            if problem := missing():
                raise UserError(f"profile {config.run.profile}, role {role}: {problem}")
            continue
        key = config.key(role)
        price_of(model, config.prices, config.caps.dollars)
        if (place := (model.base_url, model.model, key)) in seen:
            continue
        seen.add(place)
        try:
            _check(model, key)
        except ModelError as error:
            raise UserError(f"profile {config.run.profile}, role {role}: {error}") from None


def _check(model: RoleModel, key: str | None) -> None:
    quick = model.model_copy(update={"timeout": min(model.timeout, SECONDS), "attempts": min(model.attempts, 3)})
    client = Client(quick, key, Quirks((), lambda fact: None, "max_tokens"), Timing())
    try:
        names = _names(client.listed_models(SECONDS))
        if names and model.model not in names and not client.knows_model(SECONDS):
            some = ", ".join(visible(name, 60) for name in sorted(names)[:LISTED])
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            raise ModelError(f"{client.where}: there is no such model; the endpoint lists {some}{more}")
    finally:
        client.close()


def _names(body: bytes | None) -> set[str]:
    """Names in a list of models; empty where there is none."""
    try:
        value: Any = json.loads(body or b"")
    except (ValueError, RecursionError):
        return set()
    listed = value.get("data") if isinstance(value, dict) else None
    items = listed if isinstance(listed, list) else []
    return {item["id"] for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)}
