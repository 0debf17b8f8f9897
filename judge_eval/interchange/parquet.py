"""Parquet files, read batch by batch; the only module that imports pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from judge_eval.interchange.rows import Broken
from judge_eval.interchange.strict_json import MAX_RECORD

_ROWS = 64


def parquet_batches(stream: BinaryIO) -> Iterator[list[dict[str, object] | str]]:
    """Yield the rows of a Parquet file in small batches.

    Parameters
    ----------
    stream : seekable binary file

    Yields
    ------
    list
        One item per row: its values by column, or a text that says why it cannot be read.

    Raises
    ------
    Broken
    """
    try:
        # Buffered and not read ahead: a file of one large row group must not be held whole.
        file = pq.ParquetFile(stream, buffer_size=1 << 16, pre_buffer=False)
        names = file.schema_arrow.names
        if len(set(names)) != len(names):
            raise Broken("two columns have the same name")
        for batch in file.iter_batches(batch_size=_ROWS, use_threads=False):
            yield _rows(_to_microseconds(batch))
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split())[:200]
        raise Broken(f"not readable as Parquet: {said}") from error


def _to_microseconds(batch: Any) -> Any:
    """Cut nanoseconds off: Python's times hold none, and pyarrow refuses to lose them."""
    for number, column in enumerate(batch.schema):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            coarser = batch.column(number).cast(pa.timestamp("us", column.type.tz), safe=False)
            batch = batch.set_column(number, column.name, coarser)
    return batch


def _rows(batch: Any) -> list[dict[str, object] | str]:
    if batch.nbytes <= MAX_RECORD:
        try:
            return list(batch.to_pylist(maps_as_pydicts="strict"))
        except (ValueError, pa.ArrowException):
            pass  # one value of one row cannot be told in Python: find out which
    return [_row(batch.slice(number, 1)) for number in range(batch.num_rows)]


def _row(slice_of_one: Any) -> dict[str, object] | str:
    if slice_of_one.nbytes > MAX_RECORD:
        return f"a record of more than {MAX_RECORD:,} bytes"
    try:
        values: dict[str, object] = slice_of_one.to_pylist(maps_as_pydicts="strict")[0]
    except (ValueError, pa.ArrowException) as error:
        return f"a value cannot be read: {error}"
    return values
