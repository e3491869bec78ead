"""``harness evaluate``: measure one policy on one split."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from harness.cli.options import console, json_option, print_json, settings
from harness.data.bundled import bundled
from harness.data.native import load
from harness.display import visible
from harness.errors import UserError
from harness.evaluation.executor import Evaluator
from harness.evaluation.outcomes import Evaluation
from harness.evaluation.report import figures, overview, routes, types
from harness.models.hub import open_models
from harness.models.interface import CapReached, ModelError
from harness.models.preflight import preflight
from harness.opening import opened_sandbox
from policies import library
from sandbox.bundle import BundleError, make_bundle
from sandbox.interface import Bundle, Verdict

SPLITS = click.Choice(["development", "validation", "test"])


@click.command()
@click.option("--policy", required=True, metavar="NAME", help="A policy of the library, or a folder with policy.py.")
@click.option("--split", default="development", show_default=True, type=SPLITS)
@click.option("--data", metavar="DIR", help="Data set folder. Default: the bundled life-log.")
@click.option("--seed", type=int, metavar="S", help="Names the questions; the same seed gives the same figures.")
@click.option("--profile", metavar="NAME", help="Which models to use; 'offline' uses none.")
@click.option("--sandbox", type=click.Choice(["auto", "docker", "bubblewrap"]), help="Where the policy runs.")
@click.option("--workers", type=int, metavar="N", help="Containers at work at the same time. Default: one per core.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Default: ./harness.toml.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Also write every outcome as JSON.")
@json_option
def evaluate(policy: str, split: str, file: Path | None, out: Path | None, as_json: bool, **flags: object) -> None:
    """Measure a policy on one split, with options-only beside it. Each use of a test split is yours to count."""
    config = settings(flags, file)
    if out is not None and (out.is_dir() or not os.access(out.parent, os.W_OK)):
        raise UserError(f"--out {out}: no file can be written there; name one in a folder that can be written")
    data = load(Path(config.run.data) if config.run.data else bundled(console()))
    if split not in data.splits:
        raise UserError(f"{data.name} has no {split} split; it has {', '.join(data.splits)}")
    chosen = policy_bundle(policy)
    preflight(config)
    workers = config.run.workers or os.cpu_count() or 1
    box = opened_sandbox(config, config.limits, workers, "evaluate")
    try:
        with tempfile.TemporaryDirectory(prefix="harness-evaluate-") as scratch:
            models = open_models(config, Path(scratch))
            evaluator = Evaluator(data, box, models, config.budget, config.run.seed, workers)
            found = {policy: evaluator.evaluate(chosen, split, f"evaluate/{policy}")}
            if policy != "options_only":
                beside = policy_bundle("options_only")
                found["options_only"] = evaluator.evaluate(beside, split, "evaluate/options_only")
    except (CapReached, ModelError) as error:
        raise UserError(str(error)) from None
    finally:
        box.close()
    if out is not None:
        out.write_text(found[policy].model_dump_json(indent=1) + "\n", encoding="utf-8")
    _show(found, as_json)


def policy_bundle(name: str) -> Bundle:
    """A library policy by name, or the package in a folder. Raises UserError."""
    if name in library.names():
        return make_bundle(library.load(name))
    folder = Path(name)
    if not (folder / "policy.py").is_file():
        known = ", ".join(library.names())
        raise UserError(f"{visible(name)} is no policy of the library ({known}) and no folder with policy.py")
    files = [
        path for path in sorted(folder.iterdir()) if path.suffix in (".py", ".json") and path.name != "__init__.py"
    ]
    try:
        return make_bundle({path.name: path.read_bytes() for path in files})
    except BundleError as error:
        raise UserError(f"{folder}: {error}") from None


def _show(found: dict[str, Evaluation], as_json: bool) -> None:
    if as_json:
        print_json({name: figures(evaluation) for name, evaluation in found.items()})
        return
    out = console()
    for table in (overview(found), types(found), routes(found)):
        out.print(table)
    for name, evaluation in found.items():
        failed = [item for item in evaluation.items if item.verdict is not Verdict.OK]
        if failed:
            cause = f"{name}: {len(failed)} failed, the first with {failed[0].verdict}: {failed[0].detail}"
            out.print(visible(cause, 600), style="yellow", markup=False, soft_wrap=True)
