"""The bundled life-log: made by the project's own generator on first use, the same bytes on every machine."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from harness.data.lifelog import VERSION, make_lifelog

FOLDER = Path("data")


def bundled(out: Console) -> Path:
    """The folder of the bundled data set, generated where it is not there yet."""
    folder = FOLDER / f"lifelog-{VERSION}"
    if not (folder / "manifest.json").is_file():
        out.print(f"making the bundled life-log in {folder} (generated, seed 0)", style="dim")
        make_lifelog(folder, seed=0)
    return folder
