"""A short run on little data, read by several tests and changed by none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.endtoend.conftest import command, environment, few_data, small_data

__all__ = ["few_data", "small_data"]


@pytest.fixture(scope="session")
def finished(few_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run's folder: it starts from V49, which uses most blocks, a settings file, and requests that need a model."""
    home = tmp_path_factory.mktemp("exported")
    options = ("--iterations", "1", "--parent", "v49", "--data", str(few_data), "--name", "one")
    done = subprocess.run(
        command("run", *options, "--sandbox", "bubblewrap"),
        cwd=home, env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return home / "runs" / "one"
