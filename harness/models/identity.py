"""What identifies a request in the reply store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.models.interface import ChatRequest
from harness.settings import RoleModel


def digest_of(model: str, document: Mapping[str, Any]) -> str:
    """Of a request and the model that it goes to; where that model is served does not count."""
    return hashlib.sha256(json.dumps({"model": model, **document}, sort_keys=True).encode()).hexdigest()


def shaped(request: ChatRequest, model: RoleModel) -> ChatRequest:
    """The request with the role's settings put in and with text that can be encoded."""
    messages = tuple(replace(m, content=utf8(m.content)) for m in request.messages)
    return replace(
        request,
        messages=messages,
        max_tokens=request.max_tokens if model.max_tokens is None else model.max_tokens,
        temperature=request.temperature if model.temperature is None else model.temperature,
        seed=request.seed if model.seed is None else model.seed,
    )


def utf8(text: str) -> str:
    """Lone surrogates, which hostile data can hold, as question marks."""
    return text.encode("utf-8", "replace").decode()


def document_of(request: ChatRequest) -> dict[str, Any]:
    """What identifies a request and is kept of it; an image stands as its digest."""
    messages: list[dict[str, Any]] = [
        {"role": m.role, "content": m.content, "images": [hashlib.sha256(i).hexdigest() for i in m.images]}
        for m in request.messages
    ]
    for message, m in zip(messages, request.messages, strict=True):
        message |= {"calls": [[c.id, c.name, c.arguments] for c in m.calls]} if m.calls else {}
        message |= {"answers": m.answers} if m.answers else {}
    tools = {"tools": [[t.name, t.description, dict(t.parameters)] for t in request.tools]} if request.tools else {}
    settings = {"max_tokens": request.max_tokens, "temperature": request.temperature, "seed": request.seed}
    return {"messages": messages, "schema": request.schema, **tools, **settings}
