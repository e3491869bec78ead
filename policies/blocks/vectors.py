"""Vectors as they travel: base64 of little-endian float16."""

from __future__ import annotations

import base64
import binascii

import numpy as np
from numpy.typing import NDArray

from policies.contract import EmbedReply

Vectors = NDArray[np.float32]


def decode(reply: EmbedReply) -> Vectors:
    """The reply's vectors, shape (m, d). ValueError where one has another size or holds no finite numbers."""
    rows = np.empty((len(reply.vectors), reply.dimensions), np.float32)
    for row, text in enumerate(reply.vectors):
        try:
            values = np.frombuffer(base64.b64decode(text, validate=True), "<f2")
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"vector {row} is not base64 of float16: {error}") from None
        if values.shape != (reply.dimensions,) or not np.isfinite(values).all():
            raise ValueError(f"vector {row} is not {reply.dimensions} finite numbers")
        rows[row] = values
    return rows


def encode(vectors: Vectors) -> tuple[str, ...]:
    """The other way: one string per row of ``vectors`` (m, d)."""
    return tuple(base64.b64encode(row.astype("<f2").tobytes()).decode("ascii") for row in np.atleast_2d(vectors))


def cosine(vectors: Vectors, query: Vectors) -> Vectors:
    """Cosine of each row of ``vectors`` (m, d) with ``query`` (d,), shape (m,); 0 for a zero vector."""
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    return np.asarray(np.divide(vectors @ query, norms, out=np.zeros(len(vectors), np.float32), where=norms > 0))
