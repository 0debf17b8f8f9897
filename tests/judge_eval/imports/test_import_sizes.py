"""Files to import that are small and hold very much."""

import gzip
import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.db import connection

from judge_eval.imports import import_jobs
from judge_eval.imports.import_jobs import SourceFile
from judge_eval.models import Import, Run
from tests.helpers.workbooks import HIDDEN_BOMB, workbook
from tests.judge_eval.imports.test_import_jobs import asked, worked
from tests.makers import make_project

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

MOST_MEMORY = 256 << 20
IMPORT_WAITING = [sys.executable, "-m", "humanjudge", "manage", "import_waiting"]


# A dictionary and statistics of a very large cell take the writer seconds, and the file no byte.
PLAIN = {"use_dictionary": False, "write_statistics": False}


def parquet(name, columns, times=1, **how):
    """A file of few bytes: the same rows again and again, or a cell that packs well."""
    table, file = pa.table(columns), io.BytesIO()
    with pq.ParquetWriter(file, table.schema, compression="zstd", **how) as writer:
        for _ in range(times):
            writer.write_table(table)
    assert file.tell() < 600_000
    file.seek(0)
    return SourceFile(name, file)


def repeated(text, number):
    return pa.DictionaryArray.from_arrays(pa.array([0] * number, pa.int8()), [text])


def bombs():
    many = {"pair": repeated("p", 10**6), "voter": repeated("v", 10**6)}
    yield parquet("rows.parquet", many | {"vote": repeated("A", 10**6)}, times=8)
    yield parquet("cell.parquet", {"pair": ["p"], "output_a": ["x" * 200_000_000]}, **PLAIN)
    # One cell of many, which the average of its column does not give away.
    cells = ["x" * 200_000_000, *["y"] * 399]
    pairs = [f"p{n}" for n in range(400)]
    yield parquet("hidden.parquet", {"pair": pairs, "output_a": cells}, **PLAIN)


def environment(**more):
    database = f"sqlite:///{connection.settings_dict['NAME']}"
    return {**os.environ, "DATABASE_URL": database, **more}


def without(folder, package, why):
    """Return the search path of a process in which a package cannot be imported."""
    (folder / f"{package}.py").write_text(f"raise ImportError({why!r})\n")
    return str(folder)


@pytest.mark.django_db(transaction=True)
def test_only_parquet_needs_pyarrow(tmp_path):
    path = without(tmp_path, "pyarrow", "libarrow.so.1: not found")
    project = make_project()
    asked(project, SourceFile("v.csv", io.BytesIO(b"pair,voter,vote\np,ann,A\n")), name="v.csv")
    asked(project, parquet("p.parquet", {"pair": ["p"], "vote": ["A"]}), name="p.parquet")
    subprocess.run(IMPORT_WAITING, env=environment(PYTHONPATH=path), check=True)
    jobs = {job.name: job for job in Import.objects.all()}
    assert jobs["v.csv"].state == "done"
    [error] = jobs["p.parquet"].report["errors"]
    assert "pyarrow, which cannot be loaded here: libarrow.so.1" in error["why"]


def test_an_import_whose_process_cannot_start_fails_and_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", without(tmp_path, "django", "libxyz.so.1: not found"))
    project = make_project()
    job = asked(project, SourceFile("v.csv", io.BytesIO(b"pair,voter,vote\np,ann,A\n")))
    for _ in range(import_jobs.MOST_ATTEMPTS):
        job.refresh_from_db()
        assert (job.state, job.leased_until) == ("waiting", None)
        import_jobs.do_in_a_process()
    job.refresh_from_db()
    assert (job.state, job.status) == ("failed", 503)
    assert job.detail == (
        "The process that reads files cannot start: ImportError: libxyz.so.1: not found"
    )
    assert not import_jobs.unfinished().exists()


@pytest.mark.django_db(transaction=True)
def test_an_import_whose_process_ends_after_its_claim_fails_too(monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    job = asked(make_project(), SourceFile("v.csv", io.BytesIO(b"pair,voter,vote\np,ann,A\n")))
    del job.form["files"]
    job.save()
    for _ in range(import_jobs.MOST_ATTEMPTS + 1):
        import_jobs.do_in_a_process()
    job.refresh_from_db()
    assert (job.state, job.status) == ("failed", 503)
    assert "KeyError: 'files'" in job.detail


@pytest.mark.django_db(transaction=True)
def test_what_reading_dies_of_is_not_tried_again(monkeypatch):
    project = make_project()
    bombs = {
        "b.xlsx": workbook(HIDDEN_BOMB),
        # Blank lines are no rows: nothing else would stop it.
        "b.jsonl.gz": gzip.compress(b"\n" * 30_000_000),
    }
    for name, content in bombs.items():
        asked(project, SourceFile(name, io.BytesIO(content)), name=name)
    for name, value in environment(IMPORT_MAX_SECONDS="2").items():
        monkeypatch.setenv(name, value)
    for _ in bombs:
        import_jobs.do_in_a_process()
    jobs = {job.name: (job.state, job.status, job.detail) for job in Import.objects.all()}
    memory, seconds = jobs["b.xlsx"], jobs["b.jsonl.gz"]
    assert memory == ("refused", 413, "Reading it takes more memory than an import may use.")
    assert seconds[:2] == ("refused", 413)
    assert seconds[2] == "Reading it takes more time of a processor than an import may use."
    assert [job.attempts for job in Import.objects.all()] == [1, 1]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_no_file_takes_more_memory_than_an_import_may():
    project = make_project()
    for bomb in bombs():
        asked(project, bomb, name=bomb.name)
    most = 0
    with subprocess.Popen(IMPORT_WAITING, env=environment()) as child:
        while child.poll() is None:
            # Not what the kernel says at the end: that counts what this process had when it forked.
            status = Path(f"/proc/{child.pid}/status").read_text()
            most = max(most, *map(int, re.findall(r"VmHWM:\s+(\d+)", status)), 0)
            time.sleep(0.01)
    assert child.returncode == 0
    assert 0 < most * 1024 < MOST_MEMORY
    told = {job.name: (job.state, job.status) for job in Import.objects.all()}
    assert told["rows.parquet"] == ("refused", 413)
    assert told["cell.parquet"] == ("refused", 422)
    assert told["hidden.parquet"] == ("refused", 413)
    assert not Run.every.exists()


def test_a_parquet_file_that_is_too_large_unpacked_is_413(settings):
    settings.IMPORT_MAX_UNPACKED_MB = 1
    texts = [f"{n}" * 400_000 for n in range(4)]
    asked(make_project(), parquet("p.parquet", {"pair": ["1", "2", "3", "4"], "prompt": texts}))
    worked()
    job = Import.objects.get()
    assert (job.status, job.detail) == (413, "p.parquet is more than 1 MB when it is unpacked.")


def test_one_text_that_stands_for_that_of_every_row_is_413_as_soon_as_it_is_too_much(settings):
    settings.IMPORT_MAX_UNPACKED_MB = 2
    number = 400
    same = {"judge": repeated("j", number), "verdict": repeated("A", number)}
    same |= {"feedback": repeated("x" * 10_000, number), "pair": [f"p{n}" for n in range(number)]}
    asked(make_project(), parquet("f.parquet", same))
    worked()
    job = Import.objects.get()
    assert (job.status, job.detail) == (
        413,
        "There are more than 2,097,152 characters; import less at once.",
    )
