"""The sandbox image: the base, the locked wheels, and a record that says what is inside."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import tempfile
from pathlib import Path

import docker
import docker.errors
from docker.models.images import Image

from sandbox.engine import DOCKERFILE, EngineError, command_line, recipe
from sandbox.engine.base import Base, Bootstrap, find_base
from sandbox.interface import Runtime, SandboxError
from sandbox.runtime import RECORD, RuntimeFolder, runtime_from_rootfs, write_record
from sandbox.runtime_build import DEVICES, MOUNT_POINTS, install_wheels

log = logging.getLogger(__name__)

REPOSITORY = "lvmh-sandbox"
PYTHON = "/opt/lvmh/python"
WHEELS = "/opt/lvmh/wheels"
_RUNTIME = "lvmh.runtime"
_BASE = "lvmh.base"


def image_name() -> str:
    """Name of the image that this recipe makes."""
    return f"{REPOSITORY}:{recipe()}"


def find_image(client: docker.DockerClient) -> Image | None:
    """The image where it is already there."""
    try:
        return client.images.get(image_name())
    except docker.errors.ImageNotFound:
        return None


def ensure_image(client: docker.DockerClient, begun: Bootstrap | None = None) -> Image:
    """The image, built where it is not there or its recipe has changed; see ``find_base``. Raises EngineError."""
    image = find_image(client)
    return image if image is not None else _build(client, find_base(client, begun))


def record_of(image: Image) -> Runtime:
    """What the image says of its runtime (``code`` is empty). Raises EngineError where it says nothing."""
    try:
        value = json.loads(image.labels[_RUNTIME])
        return Runtime(value["python"], value["libc"], value["wheels"])
    except (KeyError, TypeError, ValueError) as error:
        what = f"image {image.short_id} says nothing of its runtime"
        raise EngineError(f"{what}: docker rmi {image.short_id} && {command_line('up')}") from error


def base_of(image: Image) -> str:
    """Name of the base image it was made on."""
    return str(image.labels.get(_BASE, "unknown"))


def is_exported(image: Image, root: Path) -> bool:
    """Whether ``root`` holds the image's runtime. An equal one of an earlier build stays: it may be in use."""
    try:
        return runtime_from_rootfs(root).record == record_of(image)
    except SandboxError:
        return False


def export_root(client: docker.DockerClient, image: Image, root: Path) -> None:
    """Unpack the image's root file system into ``root`` for bubblewrap to mount, unless it is there already.

    Both back ends then run the same files. Raises EngineError.
    """
    if is_exported(image, root):
        return
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="exporting-", dir=root.parent) as folder:
        target = Path(folder) / "new"
        target.mkdir(mode=0o755)
        container = client.api.create_container(str(image.id), network_disabled=True)["Id"]
        try:
            _unpack(client, container, target)
        finally:
            client.api.remove_container(container)
        for point in MOUNT_POINTS:
            (target / point).mkdir(exist_ok=True)
        for device in DEVICES:
            (target / "dev" / device).touch()
        if root.exists():
            root.replace(Path(folder) / "old")
        target.replace(root)


def _build(client: docker.DockerClient, base: Base) -> Image:
    log.info("building the sandbox image on %s (Python %s)", base.name, base.python)
    with tempfile.TemporaryDirectory(prefix="lvmh-image-") as folder:
        context = Path(folder)
        shutil.copyfile(DOCKERFILE, context / "Dockerfile")
        major, minor = (int(part) for part in base.python.split(".")[:2])
        wheels = install_wheels(context / "wheels", (major, minor), base.machine)
        for cache in [*context.rglob("__pycache__")]:  # compiled by this interpreter, not by the image's
            shutil.rmtree(cache)
        record = Runtime(base.python, base.libc, wheels)
        write_record(RuntimeFolder(context / "files", PYTHON, WHEELS, record))
        shutil.move(context / "files" / RECORD, context / "runtime.json")
        label = json.dumps({"python": record.python, "libc": record.libc, "wheels": wheels}, sort_keys=True)
        try:
            image, _ = client.images.build(
                path=str(context),
                tag=image_name(),
                buildargs={"BASE": base.name},
                labels={_RUNTIME: label, _BASE: base.name},
                network_mode="none",
                rm=True,
                forcerm=True,
            )
        except docker.errors.DockerException as error:
            raise EngineError(f"the sandbox image could not be built: {error}") from error
        return image


def _unpack(client: docker.DockerClient, container: str, target: Path) -> None:
    command = ["tar", "-x", "-C", str(target), "--no-same-owner", "--exclude=dev/*", "--exclude=.dockerenv"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as tar:
        assert tar.stdin is not None
        for chunk in client.api.export(container, chunk_size=1 << 20):
            tar.stdin.write(chunk)
        tar.stdin.close()
    if tar.returncode:
        raise EngineError(f"the image's root file system could not be unpacked into {target.parent}: tar failed")
