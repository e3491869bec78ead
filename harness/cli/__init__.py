"""The ``harness`` command: parses and dispatches, nothing else."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path

import click
from rich.console import Console

from harness import __version__
from harness.display import visible
from harness.errors import UserError

MODULES = {
    "run": "run",
    "status": "read",
    "log": "read",
    "show": "read",
    "diff": "read",
    "frontier": "read",
    "report": "report",
    "view": "report",
    "plot": "report",
    "replay": "replay",
    "audit": "audit",
    "export": "export",
    "evaluate": "measure",
    "ablate": "ablate",
    "ask": "ask",
    "data": "data",
    "memory": "memory",
    "gate": "gate",
    "config": "setup",
    "doctor": "setup",
}
"""Module of each command, imported when the command is called: reading a run needs no sandbox and no model client."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = MODULES.get(cmd_name)
        command = getattr(import_module(f"harness.cli.{module}"), cmd_name) if module else None
        return command if isinstance(command, click.Command) else None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="harness")
@click.option("--verbose", "-v", is_flag=True, help="Log what is done, on standard error.")
def cli(verbose: bool) -> None:
    """Search for long-video memory policies, sandboxed and audited."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )


def main() -> None:
    """Entry point: one clear line and exit 2 for what the user can mend, never a traceback."""
    errors = Console(stderr=True, soft_wrap=True)
    try:
        sys.exit(cli.main(standalone_mode=False) or 0)  # what a command gave to context.exit comes back as a value
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        errors.print(f"harness: {_in_one_line(error)}", style="red", markup=False, highlight=False)
        sys.exit(2)
    except UserError as error:
        errors.print(f"harness: {visible(str(error))}", style="red", markup=False, highlight=False)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        errors.print("harness: interrupted; what was committed is kept, the same command goes on from there")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        with tempfile.NamedTemporaryFile("w", prefix="harness-", suffix=".log", delete=False) as file:
            traceback.print_exc(file=file)
        name = type(error).__name__
        line = f"harness: internal error, {name}: {visible(str(error), 300)}; please report it with {Path(file.name)}"
        errors.print(line, style="red", markup=False, highlight=False)
        sys.exit(os.EX_SOFTWARE)  # 1 is an answer of some commands: "different", "not whole"


def _in_one_line(error: click.ClickException) -> str:
    """Click's message, and where the usage stands."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    where = f"; see: {context.command_path} --help" if context else ""
    return visible(" ".join(error.format_message().split()).rstrip("."), 600) + where
