"""Rows by the thousand are imported, exported and imported back in memory that does not grow."""

import gc
import tracemalloc
from itertools import count

import pytest
from django.db import connection

from bench import imports
from bench.imports import records
from judge_eval.exports.export import export_run
from judge_eval.imports.formats import read
from judge_eval.models import Run
from tests.helpers.bundles import restore
from tests.helpers.imports import import_run
from tests.makers import make_project

pytestmark = [
    pytest.mark.process,
    pytest.mark.django_db,
    pytest.mark.slow,
]

# With pieces of ten, fifty rows take as much as they ever will.
PIECE, FEW, MANY = 10, 50, 150
LOOKS = 25
# Long enough that rows which are held are far more than all else that comes and goes.
LONG = "An answer of an unusual length. " * 640
# What is added when all rows are held, be it their texts alone.
FAULT = (MANY - FEW) * len(LONG)


def held_by(do, rows):
    """What it gives, and the most that it holds; what waits to be collected is not held.

    However many rows there are, it is looked as often: who looks more often sees more.
    """
    turns, held = count(), []

    def look(execute, *query):
        if next(turns) % (rows // LOOKS) == 0:
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


def imported(number, folder):
    path = folder / f"{number} rows.jsonl"
    with path.open("wb") as file:
        file.writelines(records(number))
    with path.open("rb") as stream:
        report = import_run(make_project(), path.stem, read(stream, path.name))
    assert report.failures == 0
    return Run.objects.get(pk=report.run_id)


def copied(run, folder):
    path = folder / "run.jsonl"
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in export_run(run))
    with path.open("rb") as stream:
        report = restore(stream, path.name, make_project("copy"))
    assert report.failures == 0


@pytest.fixture
def small_pieces(monkeypatch, settings, db):
    monkeypatch.setattr(imports, "TEXT", LONG)
    settings.SEAL_BATCH = PIECE
    for constant in ("imports.import_scratch.MOST_ROWS", "exports.export.AT_ONCE"):
        monkeypatch.setattr(f"judge_eval.{constant}", PIECE)
    # psycopg remembers its last hundred statements with all that is written in them.
    connection.ensure_connection()
    if connection.vendor == "postgresql":
        monkeypatch.setattr(connection.connection, "prepare_threshold", None)


def test_memory_does_not_grow_with_the_rows(small_pieces, tmp_path):
    imported(PIECE, tmp_path)  # what a process loads once is no growth
    few, low = held_by(lambda: imported(FEW, tmp_path), FEW)
    many, high = held_by(lambda: imported(MANY, tmp_path), MANY)
    assert high - low < FAULT / 2
    copied(few, tmp_path)
    _, low = held_by(lambda: copied(few, tmp_path), FEW)
    _, high = held_by(lambda: copied(many, tmp_path), MANY)
    assert high - low < FAULT / 2
