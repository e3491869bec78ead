"""``python -m sandbox.engine up | down | ensure``.

up       the Docker engine and the sandbox image: installs and starts what is missing (Debian, as root)
down     stops the engine if ``up`` started it and nobody is using it
ensure   whatever sandbox this machine can have: the image where an engine answers, else bubblewrap
"""

from __future__ import annotations

import logging
import sys

from sandbox.engine import setup
from sandbox.interface import SandboxError

COMMANDS = {"up": setup.up, "down": setup.down, "ensure": setup.ensure}


def main(arguments: list[str]) -> int:
    """Run one command; its outcome as one line. Exit code 2 where it could not be done."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        print(COMMANDS[arguments[0]]())
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
