"""A bundle: the reviewed bytes of a candidate, and nothing else, as they are sent into the sandbox."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

from sandbox.interface import Bundle

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\.(py|json)", re.ASCII)
MAX_FILES = 64
MAX_FILE_BYTES = 262_144
MAX_BYTES = 1_048_576
"""All files together."""


class BundleError(ValueError):
    """The files are no bundle; ``str(error)`` is one line that names the file and the rule."""


def make_bundle(files: Mapping[str, bytes | str]) -> Bundle:
    """Check names, count, sizes and encoding, and fix the digest. Raises BundleError."""
    if len(files) > MAX_FILES:
        raise BundleError(f"{len(files)} files, at most {MAX_FILES} are allowed")
    entries: list[tuple[str, bytes]] = []
    for name in sorted(files):
        content = files[name]
        if NAME.fullmatch(name) is None:
            raise BundleError(f"file name {ascii(name)[:100]} is not allowed (pattern {NAME.pattern}, no folders)")
        entries.append((name, _content(name, content)))
    if "policy.py" not in files:
        raise BundleError("policy.py is missing")
    total = sum(len(content) for _, content in entries)
    if total > MAX_BYTES:
        raise BundleError(f"{total} bytes in all, at most {MAX_BYTES} are allowed")
    return Bundle(tuple(entries), digest_of(entries))


def verify(bundle: Bundle) -> None:
    """Hash again, right before the bytes are sent. Raises BundleError where they are not those that were reviewed."""
    if digest_of(bundle.files) != bundle.digest:
        raise BundleError(f"the files do not have the digest {bundle.digest}")


def digest_of(files: Iterable[tuple[str, bytes]]) -> str:
    """Digest (sha256, hexadecimal) of the manifest: one [path, size, sha256] per file, in order of the paths."""
    manifest = [[name, len(content), hashlib.sha256(content).hexdigest()] for name, content in sorted(files)]
    return hashlib.sha256(json.dumps(manifest, separators=(",", ":")).encode()).hexdigest()


def _content(name: str, content: bytes | str) -> bytes:
    try:
        data = content.encode() if isinstance(content, str) else bytes(content)
        data.decode()
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        raise BundleError(f"{name}: not UTF-8 ({error.reason})") from None
    if len(data) > MAX_FILE_BYTES:
        raise BundleError(f"{name}: {len(data)} bytes, at most {MAX_FILE_BYTES} are allowed")
    return data
