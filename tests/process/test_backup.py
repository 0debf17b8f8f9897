"""A backup goes from one database to the other and back; a killed restore leaves nothing."""

import json
import signal
import subprocess
import sys
from zipfile import ZipFile

import pytest

from tests.process.up import ROOT, environment, first_start
from tests.servers import postgres_server

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(900)]


def command(data, *words, database=""):
    return {
        "args": [sys.executable, "manage.py", *map(str, words)],
        "cwd": ROOT,
        "env": environment(data, DATABASE_URL=database),
        "text": True,
    }


def run(data, *words, database=""):
    done = subprocess.run(**command(data, *words, database=database), capture_output=True)
    assert done.returncode == 0, done.stderr
    return done


def tables(path):
    with ZipFile(path) as file:
        return json.loads(file.read("manifest.json"))["tables"]


def test_from_sqlite_to_postgresql_and_back(tmp_path):
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    first_start().copied(one)
    run(one, "backup", tmp_path / "of-sqlite")
    with postgres_server() as database:
        killed = subprocess.Popen(
            **command(two, "restore", tmp_path / "of-sqlite", database=database.url),
            stderr=subprocess.PIPE,
        )
        with killed:
            # In the middle of the tables.
            while "voting.item: " not in killed.stderr.readline():
                assert killed.poll() is None
            killed.send_signal(signal.SIGKILL)
        done = run(two, "restore", tmp_path / "of-sqlite", database=database.url)
        assert "restored and verified" in done.stdout
        assert "entries verifies, figures are equal" in done.stderr
        run(two, "backup", tmp_path / "of-postgresql", database=database.url)
    run(three, "restore", tmp_path / "of-postgresql")
    run(three, "backup", tmp_path / "again")
    before = tables(tmp_path / "of-sqlite")
    assert before["voting.entry"]["rows"] > 1000
    assert tables(tmp_path / "of-postgresql") == tables(tmp_path / "again") == before
    pictures = {path.name for path in (one / "pictures").rglob("*.png")}
    assert {path.name for path in (three / "pictures").rglob("*.png")} == pictures
