"""Rows of a parquet file, by pyarrow (an optional extra)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.data.native import MAX_FILE, MAX_QUESTIONS, DataError

BATCH = 256
"""Rows unpacked at a time: a small file may hold long texts many times over."""


def read_parquet(file: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of ``file``, these columns only.

    Raises ``DataError``: pyarrow is not installed, no such column, too large, broken.
    """
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError(f"{file}: reading parquet needs pyarrow; install it: pip install 'lvmh[parquet]'") from None
    try:
        size = file.stat().st_size
        if size > MAX_FILE:
            raise DataError(f"{file}: {size} bytes, at most {MAX_FILE} are read; split the data")
        with parquet.ParquetFile(file) as opened:
            rows = opened.metadata.num_rows
            if rows > MAX_QUESTIONS:
                raise DataError(f"{file}: {rows} rows, at most {MAX_QUESTIONS} are read; split the data")
            missing = [name for name in columns if name not in opened.schema_arrow.names]
            if missing:
                raise DataError(f"{file}: has no column {missing[0]}; check the download")
            read: list[dict[str, Any]] = []
            unpacked = 0
            for batch in opened.iter_batches(batch_size=BATCH, columns=list(columns)):
                unpacked += batch.nbytes
                if unpacked > MAX_FILE:
                    raise DataError(f"{file}: more than {MAX_FILE} bytes when unpacked; split the data")
                read += batch.to_pylist()
    except OSError as error:  # what pyarrow raises for most broken files, too
        raise DataError(f"{file}: {_line(error)}; check the download") from None
    except (pyarrow.ArrowException, ValueError, MemoryError) as error:
        raise DataError(f"{file}: not a parquet file that can be read ({_line(error)}); check the download") from None
    return read


def _line(error: Exception) -> str:
    return ascii(" ".join(str(error).split()))[1:-1][:200]
