"""Parquet files, read batch by batch; the only module that imports pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from humanjudge.lib.strict_json import MAX_RECORD, MOST_COLUMNS
from judge_eval.exchange.rows import Broken

# A record may have 2 MB, and is held twice while it is read.
_ROWS = 16
# Far more than a table of texts has; a footer that describes more is not read.
_MOST_FOOTER = 16_000_000
# One text can stand for that of every row: what a few bytes become is counted as it comes.
_MOST_UNPACKED = 4 << 30


def open_file(stream: BinaryIO) -> Any:
    """Open a Parquet file by its footer, of which nothing is believed that could be large."""
    try:
        # Buffered and not read ahead: a file of one large row group must not be held whole.
        file = pq.ParquetFile(
            stream,
            buffer_size=1 << 16,
            pre_buffer=False,
            thrift_string_size_limit=_MOST_FOOTER,
            thrift_container_size_limit=1_000_000,
        )
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(error) from error
    if file.metadata.num_columns > MOST_COLUMNS:
        raise Broken(f"{file.metadata.num_columns:,} columns; at most {MOST_COLUMNS:,} are read")
    _refuse_large_cells(file.metadata)
    return file


def size_of(stream: BinaryIO) -> tuple[int, int]:
    """Return how many rows a Parquet file has and how many bytes unpacked, as its footer says."""
    about = open_file(stream).metadata
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    return about.num_rows, sum(group.total_byte_size for group in groups)


def _refuse_large_cells(about: Any) -> None:
    """Refuse a column that cannot be as large as it is without a record that is too large."""
    for group in (about.row_group(number) for number in range(about.num_row_groups)):
        for number in range(about.num_columns):
            column = group.column(number)
            if column.total_uncompressed_size > MAX_RECORD * max(group.num_rows, 1):
                name = column.path_in_schema
                raise Broken(f"column {name!r} has a record of more than {MAX_RECORD:,} bytes")


def _unreadable(error: Exception) -> Broken:
    return Broken(f"not readable as Parquet: {' '.join(str(error).split())[:200]}")


def parquet_batches(stream: BinaryIO) -> Iterator[list[dict[str, object] | str]]:
    """Yield the rows of a seekable Parquet file in small batches; raises Broken.

    A row is its values by column, or a text that says why it cannot be read.
    """
    file = open_file(stream)
    try:
        names = file.schema_arrow.names
        if len(set(names)) != len(names):
            raise Broken("two columns have the same name")
        unpacked = 0
        for batch in file.iter_batches(batch_size=_ROWS, use_threads=False):
            unpacked += batch.nbytes
            if unpacked > _MOST_UNPACKED:
                raise Broken(f"more than {_MOST_UNPACKED >> 30} GB unpacked: bring it in parts")
            yield _rows(_to_microseconds(batch))
    except MemoryError:
        raise  # of pyarrow's errors the one that is not about the file
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(error) from error


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
