"""Rows by the thousand are imported, exported and imported back in memory that does not grow."""

import gc
import io
import tracemalloc

import pytest

from bench.imports import Lines, records
from judge_eval.interchange.reading import read
from judge_eval.models import Run
from judge_eval.transfer.exporting import export_run
from judge_eval.transfer.importing import import_run
from judge_eval.transfer.restoring import restore
from tests.makers import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

# With pieces of fifty, five hundred rows take as much as they ever will.
PIECE, FEW, MANY = 50, 500, 2_000
# Rows that were all held would take twice this.
MARGIN = 500_000


def peak_of(do):
    # What waits to be collected is not what is held: with all that was there before set aside,
    # the collector does not wait until a quarter as much has come.
    usual = gc.get_threshold()
    gc.set_threshold(200, 2, 2)
    gc.collect()
    gc.freeze()
    tracemalloc.start()
    try:
        return do(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.unfreeze()
        gc.set_threshold(*usual)


def grows(low, do):
    """Whether it takes more, and takes it again: what a process loads once is no growth."""
    return all(peak_of(do)[1] >= low + MARGIN for _ in range(2))


def imported(count):
    stream = io.BufferedReader(Lines(lambda: records(count)))
    report = import_run(make_project(), f"{count} rows", read(stream, "rows.jsonl"))
    assert report.failures == 0
    return Run.objects.get(pk=report.run)


def copied(run):
    lines = Lines(lambda: (f"{line}\n".encode() for line in export_run(run)))
    report = restore(io.BufferedReader(lines), "run.jsonl", make_project("copy"))
    assert report.failures == 0


@pytest.fixture
def small_pieces(monkeypatch, settings):
    settings.SEAL_BATCH = PIECE
    for constant in (
        "import_rows.MOST_ROWS",
        "importing.MOST_ROWS",
        "import_pairs.MOST_ROWS",
        "exporting.AT_ONCE",
        "exporting.OUTPUTS_AT_ONCE",
        "restoring.MOST_RECORDS",
    ):
        monkeypatch.setattr(f"judge_eval.transfer.{constant}", PIECE)


def test_memory_does_not_grow_with_the_rows(small_pieces):
    few, low = peak_of(lambda: imported(FEW))
    many = []
    assert not grows(low, lambda: many.append(imported(MANY)))
    _, low = peak_of(lambda: copied(few))
    assert not grows(low, lambda: copied(many[0]))
