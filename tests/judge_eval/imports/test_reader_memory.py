"""Thousands of rows are read in memory that does not grow with their number."""

import io
import json
import tracemalloc
from itertools import chain, islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judge_eval.imports.formats import read
from judge_eval.imports.row_models import ImportRow

pytestmark = pytest.mark.slow

TEXT = "<svg>" + "x" * 300


class Generated(io.RawIOBase):
    """A file that is made while it is read, so that only the reader's memory is counted."""

    def __init__(self, make):
        self._make = make
        self.seek(0)

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, place, whence=io.SEEK_SET):
        assert (place, whence) == (0, io.SEEK_SET)
        self._parts, self._rest = iter(self._make()), b""
        return 0

    def tell(self):
        return 0

    def readinto(self, buffer):
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = part
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def record(number):
    return {"pair": f"p{number}", "output_a": TEXT, "voter": f"v{number % 50}", "vote": "A"}


def csv_parts(count):
    yield b"pair,output_a,voter,vote\n"
    for number in range(count):
        yield ",".join(record(number).values()).encode() + b"\n"


def json_lines_parts(count):
    for number in range(count):
        yield json.dumps(record(number)).encode() + b"\n"


def json_parts(count):
    separators = chain([b'{"total": 1, "rows": ['], iter(lambda: b",", None))
    for number, separator in zip(range(count), separators, strict=False):
        yield separator + json.dumps(record(number)).encode()
    yield b"]}"


def peak_of(make, name, count):
    """Count the rows and tell the lower peak of two readings: other things come in between."""
    readings = [one_peak_of(make, name, count) for _ in range(2)]
    return min(readings, key=lambda reading: reading[1])


def one_peak_of(make, name, count):
    stream = io.BufferedReader(Generated(lambda: make(count)))
    tracemalloc.start()
    try:
        read_rows = sum(isinstance(item, ImportRow) for item in read(stream, name))
        return read_rows, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "make, name",
    [(csv_parts, "v.csv"), (json_lines_parts, "v.jsonl"), (json_parts, "v.json")],
    ids=["csv", "jsonl", "json"],
)
def test_memory_does_not_grow_with_the_rows(make, name):
    few, low = peak_of(make, name, 400)
    many, high = peak_of(make, name, 2_400)
    assert (few, many) == (400, 2_400)
    # Texts that were held would take more than twice this, and the rows more than that.
    assert high - low < (many - few) * len(TEXT) / 2


@pytest.mark.slow
def test_arrow_does_not_hold_a_file_of_one_large_row_group(tmp_path):
    path = tmp_path / "v.parquet"
    table = pa.Table.from_pylist([record(n) | {"comment": TEXT + str(n)} for n in range(30_000)])
    pq.write_table(table, path, row_group_size=30_000, use_dictionary=False)
    size = table.nbytes
    del table
    before = pa.total_allocated_bytes()
    peak = 0
    with path.open("rb") as stream:
        items = read(stream, path.name)
        while some := list(islice(items, 1000)):
            assert all(isinstance(item, ImportRow) for item in some)
            peak = max(peak, pa.total_allocated_bytes() - before)
    assert size > 18_000_000
    assert peak < size / 5
