"""Running a memory policy that one cannot trust: one interface, several back ends, one wire protocol."""

from sandbox.bundle import BundleError, make_bundle
from sandbox.open import open_sandbox
from sandbox.stream import run_shard

__all__ = ["BundleError", "make_bundle", "open_sandbox", "run_shard"]
