"""Opening a run for searching: data, sandbox, models, store, author, checked against each other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from harness import __version__, recalling
from harness.agents.interface import Author, Brief
from harness.agents.model import ModelAuthor
from harness.agents.offline import OfflineAuthor
from harness.agents.team import Surroundings, TeamAuthor
from harness.config import Config
from harness.data.native import Dataset, load, permitted_artifacts
from harness.errors import UserError
from harness.evaluation.executor import Evaluator
from harness.gate.dynamic import DynamicTests
from harness.gate.literals import WORD, DataWords, data_words
from harness.gate.smoke import sample
from harness.models.hub import offline_models, open_models
from harness.models.interface import Models, Role
from harness.models.preflight import preflight
from harness.search import Search, Watcher
from harness.seeds import derive
from harness.settings import MemorySettings
from harness.state.manifest import NAME, DataRef, RunManifest, read_manifest
from harness.state.store import RunStore
from meta_memory.memory import Need
from meta_memory.records import AttemptView
from policies import library
from principles.h0 import FOLDER, H0Error, PermittedArtifact, install, load_h0, verify
from sandbox.interface import Limits, Sandbox, SandboxError
from sandbox.open import open_sandbox

RECALLED_TOKENS = 800
"""Token budget of one answer of an author's recall tool; not given by the source."""


def check_parent(config: Config) -> None:
    """Raises UserError where there is no such policy to start from."""
    if config.run.parent not in library.names():
        raise UserError(f"no policy {config.run.parent!r} to start from; there are {', '.join(library.names())}")


@contextmanager
def searching(
    config: Config,
    folder: Path,
    watcher: Watcher,
    stop_asked: Callable[[], bool] = lambda: False,
    announce: Callable[[str], None] = lambda line: None,
) -> Iterator[Search]:
    """A run open for writing; everything it started is stopped at the end. Raises UserError.

    All that can be wrong is looked at before the run's folder is touched. ``announce`` is told, line by line, what
    the run stands on before anything is spent.
    """
    check_parent(config)
    if config.author.form == "tools" and config.role(Role.IMPLEMENTER) and not config.role(Role.RESEARCHER):
        raise UserError(
            f"profile {config.run.profile}: author.form = tools needs a model for the researcher too; name it"
        )
    data = load(Path(config.run.data))
    _look(config, folder, data)
    source = recalling.wanted(config.memory, folder)
    preflight(config)
    with ExitStack() as cleanup:
        limits = config.limits
        workers = workers_of(config)
        box = opened_sandbox(config, limits, workers, folder.name)
        cleanup.callback(box.close)
        store = cleanup.enter_context(_store(config, folder, data, box))
        models = open_models(config, folder)
        cleanup.callback(_close_models, models)
        for line in (f"sandbox: {box.label}", *_banner(models)):
            announce(line)
        evaluator = Evaluator(
            data,
            box,
            models,
            config.budget,
            config.run.seed,
            workers,
            progress=watcher.questions,
        )
        search = search_over(config, data, store, box, models, evaluator, watcher, stop_asked)
        yield replace(search, source=source)


def search_over(
    config: Config,
    data: Dataset,
    store: RunStore,
    box: Sandbox,
    models: Models,
    evaluator: Evaluator,
    watcher: Watcher,
    stop_asked: Callable[[], bool],
) -> Search:
    """A search over parts that are open and fit together; the fixed texts are those of the run's folder."""
    h0 = load_h0(store.folder / FOLDER)
    few = sample(data, "development", config.gate.smoke_questions, derive(config.run.seed, 0, "smoke sample"))
    around = Surroundings(evaluator, few, partial(_earlier, store, config.memory), h0.constitution)
    budget, seed = config.budget, config.run.seed
    return Search(
        config=config,
        data=data,
        store=store,
        evaluator=evaluator,
        models=models,
        judges=models if config.gate.reviewer else offline_models(),
        author=_author(config, models, around),
        h0=h0,
        words=development_words(data),
        smoke_questions=few,
        dynamic=DynamicTests(data, box, models, budget, seed, workers_of(config), evaluator.frames),
        clock=time.time,
        watcher=watcher,
        stop_asked=stop_asked,
    )


def workers_of(config: Config) -> int:
    """Containers at work at the same time."""
    return config.run.workers or os.cpu_count() or 1


def opened_sandbox(config: Config, limits: Limits, workers: int, run_id: str) -> Sandbox:
    """A working sandbox, or a UserError that tells how to get one."""
    try:
        return open_sandbox(config.run.sandbox, limits, pool_size=workers + 1, run_id=run_id)
    except SandboxError as error:
        raise UserError(str(error)) from None


def _look(config: Config, folder: Path, data: Dataset) -> None:
    """Look at an existing run, changing nothing, before anything is started: is it whole, and is it this run?"""
    if not (folder / NAME).exists():
        return
    with RunStore.open(folder, write=False) as store:
        run, now = store.manifest, config.model_dump(mode="json")
        sections = ("budget", "limits", "promotion", "gate", "author")
        memory = now["memory"] | {"source": ""}  # where it began is looked at apart
        _same(
            run.name,
            ("seed", run.seed, config.run.seed),
            ("parent", run.parent, config.run.parent),
            ("profile", run.profile, config.run.profile),
            ("data", run.data.digest, data.digest),
            *((section, run.config.get(section), now[section]) for section in sections),
            ("memory", {**memory, **run.config.get("memory", {}), "source": ""}, memory),
        )
        try:
            verify(folder, run.h0)
        except H0Error as error:
            raise UserError(str(error)) from None


def _same(name: str, *compared: tuple[str, object, object]) -> None:
    """A run goes on only as what it is: figures of different data, runtimes or rules are never mixed."""
    for what, before, now in compared:
        if before != now:
            same = "the version of the harness that made it" if what == "runtime" else "the same"
            raise UserError(
                f"run {name} was made with another {what} ({str(before)[:80]}, now {str(now)[:80]}); "
                f"go on with {same}, or give the new run another --name"
            )


def _store(config: Config, folder: Path, data: Dataset, box: Sandbox) -> RunStore:
    """The run in ``folder``, made where there is none; an existing one must have run in this sandbox."""
    if (folder / NAME).exists():
        run = read_manifest(folder)
        _same(
            run.name,
            ("runtime", run.runtime_digest, box.runtime_digest),
            ("sandbox", run.back_end, box.label.split()[0]),
        )
        return RunStore.open(folder, write=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        hashes = install(folder, development_artifacts(data))
    except H0Error as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}); check its place, owner and free space") from None
    manifest = RunManifest(
        name=folder.name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=config.run.seed,
        iterations=config.run.iterations,
        parent=config.run.parent,
        profile=config.run.profile,
        config=config.model_dump(mode="json"),
        data=DataRef(name=data.name, digest=data.digest, path=config.run.data),
        harness=__version__,
        runtime_digest=box.runtime_digest,
        sandbox=box.label,
        h0=hashes,
    )
    return RunStore.create(folder, manifest)


def development_artifacts(data: Dataset) -> list[PermittedArtifact]:
    """H0's fourth source: the files of the development split that an author may look at, without labels."""
    return [
        PermittedArtifact(name=str(a["path"]), what="development video or questions", sha256=str(a["sha256"]))
        for a in permitted_artifacts(data)
    ]


def _banner(models: Models) -> tuple[str, ...]:
    banner = getattr(models, "banner", None)
    return tuple(banner()) if banner else ("models: none (offline profile); no figure here is a language model's",)


def _close_models(models: Models) -> None:
    close = getattr(models, "close", None)
    if close:
        close()


def _author(config: Config, models: Models, around: Surroundings) -> Author:
    if not models.has(Role.IMPLEMENTER):
        return OfflineAuthor()
    if config.author.form == "tools":
        return TeamAuthor(models, config.author, around)
    return ModelAuthor(models, config.author.form, config.author.attempts, around.constitution)


def _earlier(store: RunStore, settings: MemorySettings, brief: Brief, idea: str) -> tuple[AttemptView, ...]:
    """Earlier attempts that are like an idea, for the author's tool."""
    return recalling.recall(store, settings, Need(brief.parent.iteration, idea=idea), RECALLED_TOKENS)


def development_words(data: Dataset, split: str = "development") -> DataWords:
    """Names, ids and question texts of the development split, which no candidate may hold.

    A name is a speaker who is spoken of by one capitalised word that the text never has in lower case: "Other" and
    "Unknown" speak too, and are words that any policy may use.
    """
    questions = data.questions(split)
    videos = sorted({question.video for question in questions})
    windows = [window for video in videos for window in data.videos[video].windows]
    speakers = {u.speaker for w in windows for u in w.transcript}
    said = {
        word for w in windows for text in (*w.captions, *(u.text for u in w.transcript)) for word in WORD.findall(text)
    }
    names = {name for name in speakers if name in said and name.casefold() not in said}
    texts = [text for q in questions for text in (q.question, *q.choices.values())]
    captions = (text for w in windows for text in w.captions)
    return data_words(names, [*videos, *(q.id for q in questions)], texts, captions)
