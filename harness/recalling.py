"""What a run remembers of its attempts, by its configuration, and what it takes over of an earlier run."""

from __future__ import annotations

from pathlib import Path

from harness.agents.model import attempt_line
from harness.display import visible
from harness.errors import UserError
from harness.models.counting import count_tokens
from harness.outcomes import Inherited, Measured
from harness.settings import MemorySettings
from harness.state.folder import write_whole
from harness.state.manifest import NAME
from harness.state.store import RunStore
from harness.state.verify import verify_chain
from meta_memory.memory import MetaMemory, Need
from meta_memory.records import Attempt, AttemptView
from meta_memory.view import in_short, view

SUMMARY = "summary.txt"
"""The summary file of a run that remembers no more than that."""


def memory(store: RunStore, before: int | None = None) -> MetaMemory:
    """Every attempt of the run, or those before ``before``, and those that it took over."""
    inherited = store.stage(0, "inherit", Inherited)
    own = [attempt for attempt in store.attempts() if before is None or attempt.iteration < before]
    return MetaMemory(own, inherited.taken if inherited else ())


def recall(
    store: RunStore, settings: MemorySettings, need: Need, budget: int, before: int | None = None
) -> tuple[AttemptView, ...]:
    """What an author is shown of earlier attempts, in at most ``budget`` tokens."""
    match settings.kind:
        case "records":
            return memory(store, before).recall(need, budget, count_tokens)
        case "summary":
            _write_summary(store)
            return memory(store, before).summary(budget, count_tokens)
        case "none":
            return ()


def views(store: RunStore, settings: MemorySettings, labels: tuple[str, ...]) -> tuple[AttemptView, ...]:
    """Attempts by number, as an author may see them."""
    show = in_short if settings.kind == "summary" else view
    known = {attempt.label: attempt for attempt in memory(store).attempts}
    return tuple(show(known[label]) for label in labels)


def counted(shown: tuple[AttemptView, ...]) -> int:
    """What views come to, counted as their budget is."""
    return sum(count_tokens(attempt.model_dump_json()) for attempt in shown)


def _write_summary(store: RunStore) -> None:
    """The summary file: one line an attempt, as authors are shown it. A function of what is committed."""
    lines = [attempt_line(in_short(attempt)) for attempt in memory(store).attempts]
    write_whole(store.folder / SUMMARY, "".join(f"{line}\n" for line in lines))


# ---------------------------------------------------------------- an earlier run


def wanted(settings: MemorySettings, folder: Path) -> Inherited | None:
    """What the run in ``folder`` has yet to take over of an earlier one; None where it names none, or has done so.

    A run goes on with the source that it was made with, whether or not that still exists. Raises UserError.
    """
    name = settings.source
    if (folder / NAME).exists():
        with RunStore.open(folder, write=False) as store:
            made_with = str(store.manifest.config.get("memory", {}).get("source", ""))
            if name and name != made_with:
                raise UserError(
                    f"run {folder.name} was not made with --remember-from {visible(name, 80)}; leave it out to go on, "
                    "or give the new run another --name"
                )
            name = "" if store.stage(0, "inherit", Inherited) else made_with
    if not name:
        return None
    if settings.kind == "none":
        raise UserError("memory.kind = none remembers nothing; leave --remember-from out, or choose another kind")
    places = [place for place in (folder.parent / name, Path(name)) if (place / NAME).is_file()]
    if not places or places[0].resolve() == folder.resolve():
        raise UserError(
            f"--remember-from: there is no other run {visible(name, 80)} in {folder.parent} or at that path"
        )
    return source(places[0])


def source(folder: Path) -> Inherited:
    """What the run in ``folder`` has to hand on, checked against its whole audit. Raises UserError.

    ``comparable`` is False: only the run that takes it over can tell.
    """
    report = verify_chain(folder)
    if not report.ok:
        raise UserError(
            f"{folder} is not taken over, for it is not whole: {report.problems[0]}; restore it from a copy, or leave "
            "--remember-from out (where it is running, wait until it ends)"
        )
    with RunStore.open(folder, write=False) as store:
        attempts = tuple(memory(store).attempts)
        seed = store.stage(0, "develop", Measured)
        if not attempts or seed is None:
            raise UserError(f"{folder} has no attempt to remember; name a run with one, or leave --remember-from out")
        run = store.manifest
        return Inherited(
            summary=f"{len(attempts)} attempts of run {run.name} are remembered",
            source=run.name,
            head=store.head,
            data_name=run.data.name,
            data_digest=run.data.digest,
            reader=seed.evaluation.reader,
            comparable=False,
            taken=tuple(_handed_on(attempt, run.name) for attempt in attempts),
        )


def _handed_on(attempt: Attempt, run: str) -> Attempt:
    """An attempt without anything of a held-out split, named for the run it was made in."""
    shown = view(attempt)
    kept = {"run": attempt.run or run, "cause": shown.cause, "lesson": shown.lesson}
    return attempt.model_copy(update={**kept, "validation_accuracy": None, "validation_p": None})


def taken_over(found: Inherited, data_digest: str, reader: str) -> Inherited:
    """What of ``found`` holds for a run on this data with this reader.

    Where either is another, absolute figures are left out and what was changed is too, so that no idea is refused: a
    verdict holds for what it was measured on. Lessons and effects stay.
    """
    if (found.data_digest, found.reader) == (data_digest, reader):
        return found.model_copy(update={"comparable": True})
    dropped: dict[str, object] = {"change": {}, "dev_accuracy": None, "dev_by_type": {}, "tokens_per_question": None}
    taken = tuple(attempt.model_copy(update=dropped) for attempt in found.taken)
    summary = f"{found.summary}; its data or reader is another, so that none of its ideas is refused"
    return found.model_copy(update={"taken": taken, "summary": summary})
