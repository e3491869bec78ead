"""The commands of ``python -m sandbox.engine``, each safe to repeat and to run twice at once."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from sandbox.docker import reap
from sandbox.engine import EngineError, daemon
from sandbox.engine.base import Bootstrap
from sandbox.engine.image import base_of, ensure_image, export_root, image_name, record_of
from sandbox.interface import SandboxError
from sandbox.runtime_build import cache_folder, find_runtime, rootfs_folder

log = logging.getLogger(__name__)


def up() -> str:
    """Bring up the engine and the image. Raises EngineError with the one line that says what is missing."""
    started = time.monotonic()
    with _alone(), ExitStack() as cleanup:
        begun = None if daemon.answers() else _start_daemon(cleanup)
        client = daemon.connect(timeout=300)
        cleanup.callback(client.close)
        image = ensure_image(client, begun)
        export_root(client, image, rootfs_folder())
    record = record_of(image)
    seconds = time.monotonic() - started
    return f"Docker is ready: {image_name()}, Python {record.python} on {base_of(image)} ({seconds:.1f} s)"


def down() -> str:
    """Stop the engine if it was started here and no container of anybody's runs on it."""
    places = daemon.Places()
    with _alone():
        if _in_use(f"unix://{places.socket}"):
            return "Docker is left running: containers are in use"
        return "Docker stopped" if daemon.stop(places) else "Docker was not started here: left as it is"


def ensure() -> str:
    """Prepare the sandbox that a run will pick: Docker where it answers, else bubblewrap. Raises SandboxError."""
    if daemon.answers():
        try:
            return up()
        except SandboxError as error:
            log.info("Docker answers but cannot be used: %s", error)
    with _alone():
        _ensure_bubblewrap()
    runtime = find_runtime(log.info)
    return f"bubblewrap is ready: Python {runtime.record.python}"


def _start_daemon(cleanup: ExitStack) -> Bootstrap | None:
    """Install and start the engine. On a machine that had none, the base image is begun at the same time."""
    if host := os.environ.get("DOCKER_HOST"):
        raise EngineError(f"no Docker engine answers at DOCKER_HOST={host}: start it, or unset DOCKER_HOST")
    if reason := daemon.obstacle():
        raise EngineError(reason)
    begun = None
    missing = daemon.missing_packages()
    if missing:
        log.info("installing %s", " ".join(missing))
        if "debootstrap" in missing:
            daemon.apt_install(["debootstrap"])
        begun = Bootstrap()
        cleanup.callback(begun.close)
        daemon.apt_install(missing)
    log.info("starting the Docker daemon")
    daemon.start(daemon.Places())
    return begun


def _in_use(url: str) -> bool:
    if not daemon.answers(url):
        return False
    client = daemon.connect(url)
    try:
        reap(client)
        return bool(client.api.containers())
    finally:
        client.close()


def _ensure_bubblewrap() -> None:
    if shutil.which("bwrap"):
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise EngineError(
            "neither a Docker engine nor bubblewrap is here: install bubblewrap (apt-get install bubblewrap)"
        )
    log.info("installing bubblewrap")
    daemon.apt_install(["bubblewrap"])


@contextmanager
def _alone() -> Iterator[None]:
    """One set-up at a time on this machine."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "engine.lock").open("w")
    except OSError as error:
        raise EngineError(f"cannot write into {folder} ({error.strerror}): make it writable") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
