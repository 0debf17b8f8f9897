"""Parquet files, read and written a few rows at a time; the only module that imports pyarrow."""

from collections.abc import Iterable, Iterator, Sequence
from io import RawIOBase
from itertools import islice
from typing import Any, BinaryIO

from humanjudge.core.strict_json import MAX_RECORD, MOST_COLUMNS
from judge_eval.imports.row_models import UnreadableFile

try:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
except ImportError as missing:
    reason = f"Parquet is read and written by pyarrow, which cannot be loaded here: {missing}"
    raise UnreadableFile(reason) from missing

# A record may have 2 MB, and is held twice while it is read.
_ROWS = 16
# Far more than a table of texts has; a footer that describes more is not read.
_MOST_FOOTER = 16_000_000
# One text can stand for that of every row: what a few bytes become is counted as it comes.
_MOST_UNPACKED = 4 << 30
# Names of columns are decoded by Python, everything else by pyarrow.
_DAMAGED = (pa.ArrowException, OSError, UnicodeError)
# What is written as one group of rows is held at once.
_CELLS, _LEAST_ROWS = 1 << 18, 100
_TYPES = {str: pa.string(), float: pa.float64(), list: pa.list_(pa.string())}
_LARGE = f"a record of more than {MAX_RECORD:,} bytes"


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
    except _DAMAGED as error:
        raise _unreadable(error) from error
    if file.metadata.num_columns > MOST_COLUMNS:
        raise UnreadableFile(
            f"{file.metadata.num_columns:,} columns; at most {MOST_COLUMNS:,} are read"
        )
    for group in _groups(file):
        for column in map(group.column, range(group.num_columns)):
            # It cannot be as large as it is without a record that is too large.
            if column.total_uncompressed_size > MAX_RECORD * max(group.num_rows, 1):
                raise UnreadableFile(f"column {column.path_in_schema!r} has {_LARGE}")
    return file


def size_of(stream: BinaryIO) -> tuple[int, int]:
    file = open_file(stream)
    return file.metadata.num_rows, sum(group.total_byte_size for group in _groups(file))


def _groups(file: Any) -> Iterator[Any]:
    return map(file.metadata.row_group, range(file.metadata.num_row_groups))


def _unreadable(error: Exception) -> UnreadableFile:
    return UnreadableFile(f"not readable as Parquet: {' '.join(str(error).split())[:200]}")


def parquet_rows(stream: BinaryIO) -> Iterator[tuple[int, object]]:
    file = open_file(stream)
    try:
        names = file.schema_arrow.names
        if len(set(names)) != len(names):
            raise UnreadableFile("two columns have the same name")
        number = unpacked = 0
        for batch in file.iter_batches(batch_size=_ROWS, use_threads=False):
            unpacked += batch.nbytes
            if unpacked > _MOST_UNPACKED:
                raise UnreadableFile(
                    f"more than {_MOST_UNPACKED >> 30} GB unpacked: bring it in parts"
                )
            for row in _rows(_to_microseconds(batch)):
                number += 1
                yield number, row
    except MemoryError:
        raise  # of pyarrow's errors the one that is not about the file
    except _DAMAGED as error:
        raise _unreadable(error) from error


def _to_microseconds(batch: Any) -> Any:
    """Cut nanoseconds off: Python's times hold none, and pyarrow refuses to lose them."""
    for number, column in enumerate(batch.schema):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            coarser = batch.column(number).cast(pa.timestamp("us", column.type.tz), safe=False)
            batch = batch.set_column(number, column.name, coarser)
    return batch


def _rows(batch: Any) -> list[object]:
    is_one = batch.num_rows == 1
    if batch.nbytes > MAX_RECORD and is_one:
        return [ValueError(_LARGE)]
    if batch.nbytes <= MAX_RECORD:
        try:
            return list(batch.to_pylist(maps_as_pydicts="strict"))
        except (OverflowError, ValueError, pa.ArrowException) as error:
            if is_one:
                return [ValueError(f"a value cannot be read: {error}")]
    # Something is wrong with one of them: find out which.
    return [row for number in range(batch.num_rows) for row in _rows(batch.slice(number, 1))]


class _PieceBuffer(RawIOBase):
    """A file that gives away what was written since it was last taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._size += len(self._pieces[-1])
        return len(self._pieces[-1])

    def tell(self) -> int:
        return self._size

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def parquet_file(
    names: Sequence[str], cells: type, rows: Iterable[Sequence[object]]
) -> Iterator[bytes]:
    """Yield a file of rows that begin with a name; all other cells are of one type, or None."""
    schema = pa.schema([(names[0], pa.string()), *((name, _TYPES[cells]) for name in names[1:])])
    buffer, at_once = _PieceBuffer(), max(_LEAST_ROWS, _CELLS // len(names))
    rows = iter(rows)
    with pq.ParquetWriter(buffer, schema) as writer:
        while group := list(islice(rows, at_once)):
            columns = zip(zip(*group, strict=True), schema.types, strict=True)
            arrays = [pa.array(column, cell_type) for column, cell_type in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            yield buffer.take()
    yield buffer.take()
