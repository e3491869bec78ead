"""Event-anchor rewrite: raw windows into records by the builder model, by rules where there is none or it fails.

The source gives what a window becomes (five fields; MERIT: four keys) and no prompt: wording, schema and how a failed
rewrite is handled are ours. Windows wait for ``settle``, which asks for all of them in one list; what still waits at a
question goes in by rules, since construction is not served then. Replies are stored by content, so that the same
window costs once whatever policy asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from policies.blocks.events import Record
from policies.blocks.keys import KEYS, Keys
from policies.blocks.memory import spoken, window_text
from policies.contract import Asking, Build, BuildReply, Json, Message, NoModel, Window

T = TypeVar("T")

TEXT = 8_000
"""Characters of a window that are sent. Not given by the source: far above any 30 s of captions and speech."""
FIELD = 2_000
"""Characters kept of one field of a reply. Not given by the source: a reply of that many is no rewrite."""
TOKENS = 512
"""Completion tokens of one rewrite. Not given by the source: several times the fields of a dense window."""


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """What a window is rewritten into."""

    asked: Callable[[Window], tuple[str, Mapping[str, Json]]]
    """Instructions, and the schema of the reply."""
    parse: Callable[[Window, Json], T | None]
    """From a window and a reply that fits the schema to the value; None where it says nothing."""


class Rewriter(Generic[T]):
    """Windows on their way into a memory. A policy calls the method of the same name from each of its own.

    ``take(windows, values)`` puts windows into the memory; where a value is None, its own rules make one
    (``EventMemory.observe`` is such a function).
    """

    def __init__(self, form: Form[T], take: Callable[[Sequence[Window], Sequence[T | None]], None]) -> None:
        self._form, self._take = form, take
        self._waiting: list[Window] = []
        self._builder = True
        self.by_model = 0
        self.by_rules = 0

    def observe(self, windows: Sequence[Window]) -> None:
        """Keep the windows for the next ``settle``; once it is known that there is no builder, take them at once."""
        self._waiting.extend(windows)
        if not self._builder:
            self.answer()

    def settle(self) -> Asking:
        """Ask the builder for all windows that wait and take them in."""
        if not self._waiting:
            return
        replies = yield [self._request(window) for window in self._waiting]
        self._builder = not any(isinstance(reply, NoModel) for reply in replies)
        self._put(
            [
                self._form.parse(window, reply.value) if isinstance(reply, BuildReply) else None
                for window, reply in zip(self._waiting, replies, strict=True)
            ]
        )

    def answer(self) -> None:
        """Take in by rules what still waits. In the fork that answers a question, later ones see nothing of it."""
        self._put([None] * len(self._waiting))

    @property
    def label(self) -> Json:
        """Who rewrote: ``model``, ``rules``, or the number of windows of each. For ``Answer.diagnostics``."""
        if self.by_model and self.by_rules:
            return {"model": self.by_model, "rules": self.by_rules}
        return "model" if self.by_model else "rules"

    def _put(self, values: Sequence[T | None]) -> None:
        if self._waiting:
            self._take(self._waiting, values)
        self.by_rules += sum(value is None for value in values)
        self.by_model += sum(value is not None for value in values)
        self._waiting = []

    def _request(self, window: Window) -> Build:
        instructions, schema = self._form.asked(window)
        text = window_text(window)[:TEXT] or "(nothing)"
        return Build((Message("system", instructions), Message("user", text)), schema, TOKENS)


def closed(properties: Mapping[str, Json]) -> dict[str, Json]:
    """Schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def clean(text: str) -> str:
    """One line of at most ``FIELD`` characters."""
    return " ".join(text[:FIELD].split())


# ---------------------------------------------------------------- the five fields

_TEXT: dict[str, Json] = {"type": "string"}
_TEXTS: dict[str, Json] = {"type": "array", "items": _TEXT}

_FIELDS = """\
You rewrite what captions and transcript say of half a minute of video into one event record.
EVENT: what is done, by whom and to what, in one or two plain sentences. Keep names and verbs as they are.
PEOPLE: the names of all people who act, speak or are present.
OBJECTS: the things that are handled, moved, asked for or used.
PLACE: where it happens, in a few words."""
_DIALOGUE = """\
DIALOGUE: what is said, one line for each turn, as "Speaker: words"."""
_HONEST = """\
Write nothing that the text does not say. Leave empty what it does not tell."""
_SCHEMA = {"EVENT": _TEXT, "PEOPLE": _TEXTS, "OBJECTS": _TEXTS, "PLACE": _TEXT}


def _fields(window: Window) -> tuple[str, Mapping[str, Json]]:
    """A transcript is the DIALOGUE already: a model that copies it costs most of the reply and mixes up speakers."""
    if window.transcript:
        return f"{_FIELDS}\n{_HONEST}", closed(_SCHEMA)
    return f"{_FIELDS}\n{_DIALOGUE}\n{_HONEST}", closed({**_SCHEMA, "DIALOGUE": _TEXTS})


def _record(window: Window, value: Json) -> Record | None:
    dialogue = spoken(window) if window.transcript else value["DIALOGUE"]
    people = tuple(dict.fromkeys(filter(None, map(clean, value["PEOPLE"]))))
    record = Record(
        event=clean(value["EVENT"]),
        people=people,
        objects=", ".join(dict.fromkeys(filter(None, map(clean, value["OBJECTS"])))),
        place=clean(value["PLACE"]),
        dialogue="\n".join(filter(None, map(clean, dialogue))),
    )
    return record if record.event or (record.dialogue and not window.transcript) else None


FIVE_FIELDS = Form(_fields, _record)
"""A window as an event record; ``take`` is ``EventMemory.observe``."""


# ---------------------------------------------------------------- the four keys

_KEYS = """\
You write four search keys for what captions and transcript say of half a minute of video.
EVENT_ACTION: the physical actions and interactions that can be seen, with who does them.
DIALOGUE_MENTION: what is said, in its exact words: statements, requests, commands, names and things mentioned.
OBJECT: the things that are handled, asked for or moved, each with how its state or place changes.
SUMMARY: the core of it as a few keywords.
Write nothing that the text does not say. Leave a key empty where it has nothing for it."""


def _keys(window: Window, value: Json) -> Keys | None:
    texts = [clean(value[name]) for name in KEYS]
    return Keys(*texts) if any(texts) else None


FOUR_KEYS = Form(lambda window: (_KEYS, closed(dict.fromkeys(KEYS, _TEXT))), _keys)
"""A window as MERIT's keys; ``take`` is ``KeyMemory.observe``."""
