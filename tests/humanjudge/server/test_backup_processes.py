"""A backup goes from one database to the other and back; a killed restore leaves nothing."""

import json
import signal
import subprocess
import sys
from zipfile import ZipFile

import psycopg
import pytest

from humanjudge.server.backup import BATCH
from tests.process.up import ROOT, environment
from tests.servers import postgres_server

pytestmark = [pytest.mark.process, pytest.mark.fault, pytest.mark.slow]

TWO_COMMANDS = """
from django.core.management import call_command
call_command("restore", "{}")
call_command("backup", "{}")
"""


def command(data, *words, database="", program=("manage.py",)):
    return {
        "args": [sys.executable, *program, *map(str, words)],
        "cwd": ROOT,
        "env": environment(data, DATABASE_URL=database),
        "text": True,
    }


def run(data, *words, **how):
    done = subprocess.run(**command(data, *words, **how), capture_output=True)
    assert done.returncode == 0, done.stderr
    return done


def tables(path):
    with ZipFile(path) as file:
        return json.loads(file.read("manifest.json"))["tables"]


def kill_in_the_middle(data, backup, server):
    """Kill a restore that is at work on its tables; return the database it was to fill."""
    for number in range(10):
        name = f"restored_{number}"
        with psycopg.connect(server.url, autocommit=True) as link:
            link.execute(f"CREATE DATABASE {name}")
        restoring = subprocess.Popen(
            **command(data, "restore", backup, database=server.url_for(name)),
            stderr=subprocess.PIPE,
        )
        with restoring:
            while "voting.item: " not in restoring.stderr.readline():
                assert restoring.poll() is None
            restoring.send_signal(signal.SIGKILL)
        # On a busy machine it may have ended before it was killed.
        if restoring.returncode == -signal.SIGKILL:
            return server.url_for(name)
    raise AssertionError("it was always done before it was killed")


def test_from_sqlite_to_postgresql_and_back(tmp_path):
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    names = ("of-sqlite", "of-postgresql", "again")
    of_sqlite, of_postgresql, again = (tmp_path / name for name in names)
    run(one, of_sqlite, program=("-m", "tests.process.backup_scene"))
    with postgres_server() as server:
        database = kill_in_the_middle(two, of_sqlite, server)
        done = run(two, "restore", of_sqlite, database=database)
        assert "restored and verified" in done.stdout
        assert "entries verifies, figures are equal" in done.stderr
        run(two, "backup", of_postgresql, database=database)
    run(three, "shell", "--no-imports", "-c", TWO_COMMANDS.format(of_postgresql, again))
    before = tables(of_sqlite)
    assert before["voting.entry"]["rows"] > BATCH
    assert sum(table["rows"] > 0 for table in before.values()) > 15
    assert tables(of_postgresql) == tables(again) == before
    pictures = {path.name for path in (one / "pictures").rglob("*.png")}
    assert len(pictures) == 2
    assert {path.name for path in (three / "pictures").rglob("*.png")} == pictures
