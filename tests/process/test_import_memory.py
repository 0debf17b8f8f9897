"""Rows by the thousand are imported, exported and imported back in memory that does not grow."""

import gc
import io
import tracemalloc
from itertools import count

import pytest
from django.db import connection

from bench.imports import Lines, records
from judge_eval.exchange.export import export_run
from judge_eval.exchange.formats import read
from judge_eval.models import Run
from tests.helpers.bundles import restore
from tests.helpers.imports import import_run
from tests.makers import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.timeout(400)]

# With pieces of twenty, two hundred rows take as much as they ever will.
PIECE, FEW, MANY = 20, 200, 1_000
# Eight hundred rows that were all held would take 700 kB and more.
MARGIN = 500_000


def held_by(do):
    """What it gives, and the most that it holds; what waits to be collected is not held."""
    turns, held = count(), []

    def look(execute, *query):
        if next(turns) % 20 == 0:
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
        return execute(*query)

    gc.collect()
    gc.freeze()
    tracemalloc.start()
    try:
        with connection.execute_wrapper(look):
            return do(), max(held)
    finally:
        tracemalloc.stop()
        gc.unfreeze()


def imported(number):
    stream = io.BufferedReader(Lines(lambda: records(number)))
    report = import_run(make_project(), f"{number} rows", read(stream, "rows.jsonl"))
    assert report.failures == 0
    return Run.objects.get(pk=report.run_id)


def copied(run):
    lines = Lines(lambda: (f"{line}\n".encode() for line in export_run(run)))
    report = restore(io.BufferedReader(lines), "run.jsonl", make_project("copy"))
    assert report.failures == 0


@pytest.fixture
def small_pieces(monkeypatch, settings):
    settings.SEAL_BATCH = PIECE
    for constant in ("import_scratch.MOST_ROWS", "export.AT_ONCE"):
        monkeypatch.setattr(f"judge_eval.exchange.{constant}", PIECE)


def test_memory_does_not_grow_with_the_rows(small_pieces):
    imported(FEW)  # what a process loads once is no growth
    few, low = held_by(lambda: imported(FEW))
    many, high = held_by(lambda: imported(MANY))
    assert high < low + MARGIN
    copied(few)
    _, low = held_by(lambda: copied(few))
    _, high = held_by(lambda: copied(many))
    assert high < low + MARGIN
