"""What may be a bundle, and that its digest stands for exactly these bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest

from sandbox.bundle import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES, BundleError, make_bundle, verify
from sandbox.interface import Bundle


def test_the_digest_is_that_of_the_sorted_manifest() -> None:
    bundle = make_bundle({"policy.py": "x = 1\n", "a.json": b"{}"})
    manifest = [
        ["a.json", 2, hashlib.sha256(b"{}").hexdigest()],
        ["policy.py", 6, hashlib.sha256(b"x = 1\n").hexdigest()],
    ]
    assert bundle.files == (("a.json", b"{}"), ("policy.py", b"x = 1\n"))
    assert bundle.digest == hashlib.sha256(json.dumps(manifest, separators=(",", ":")).encode()).hexdigest()
    assert make_bundle({"a.json": "{}", "policy.py": b"x = 1\n"}) == bundle
    assert make_bundle({"policy.py": "x = 2\n", "a.json": b"{}"}).digest != bundle.digest


@pytest.mark.parametrize(
    "name",
    ["Policy.py", "../policy2.py", "/etc/x.py", "a/b.py", "a.pyc", "a.so", ".py", "_a.py", "1a.py", "a.py\n", "a",
     "é.py", "a.pth", "a" * 66 + ".py", "a.py\0", "a b.py", "sitecustomize.PY", ".git", ".gitattributes", "a.json.exe"],
)  # fmt: skip
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(BundleError, match="is not allowed"):
        make_bundle({"policy.py": "", name: ""})


def test_counts_and_sizes_are_capped() -> None:
    with pytest.raises(BundleError, match=r"policy\.py is missing"):
        make_bundle({"helper.py": ""})
    with pytest.raises(BundleError, match=f"at most {MAX_FILES}"):
        make_bundle({"policy.py": "", **{f"m{n}.py": "" for n in range(MAX_FILES)}})
    with pytest.raises(BundleError, match=r"^policy.py: .* at most"):
        make_bundle({"policy.py": " " * (MAX_FILE_BYTES + 1)})
    with pytest.raises(BundleError, match=f"at most {MAX_BYTES}"):
        make_bundle({name: " " * MAX_FILE_BYTES for name in ("policy.py", "a.py", "b.py", "c.py", "d.py")})


@pytest.mark.parametrize("content", [b"\xff", "\ud800", "x".encode("utf-16")])
def test_other_encodings_are_refused(content: bytes | str) -> None:
    with pytest.raises(BundleError, match=r"policy.py: not UTF-8"):
        make_bundle({"policy.py": content})


def test_changed_bytes_do_not_verify() -> None:
    bundle = make_bundle({"policy.py": "x"})
    verify(bundle)
    with pytest.raises(BundleError, match="do not have the digest"):
        verify(Bundle((("policy.py", b"y"),), bundle.digest))
    with pytest.raises(BundleError):
        verify(dataclasses.replace(bundle, files=(*bundle.files, ("z.py", b""))))
