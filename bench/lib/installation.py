"""HumanJudge on a PostgreSQL and a Valkey of its own, with Django of this process on the same."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import django
from django.core.management import call_command

from tests.process.processes import ROOT, Site, free_port
from tests.servers import (
    PostgresServer,
    ValkeyServer,
    lifeline,
    postgres_server,
    short_folder,
    valkey_server,
)

# Far above what a person does: a bench is a flood, which the product rightly refuses.
NO_LIMIT = {"VOTES_PER_SECOND": "1000000", "VOTES_BURST": "1000000"}


@dataclass(frozen=True)
class Installation:
    site: Site
    database: PostgresServer
    broker: ValkeyServer


@contextlib.contextmanager
def installation(*, is_sqlite: bool = False) -> Iterator[Installation]:
    """An empty HumanJudge. PostgreSQL is durable here, as it is where votes matter.

    SQLite is where a process asks for it that has not asked for PostgreSQL before.
    """
    folder = short_folder("hj-bench-")
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        database = stack.enter_context(postgres_server(durable=True))
        broker = stack.enter_context(valkey_server())
        site = stack.enter_context(
            Site(
                folder,
                f"sqlite:///{folder / 'db.sqlite3'}" if is_sqlite else database.url,
                broker.url,
                afresh=True,
                SECRET_KEY="bench" * 10,
                **NO_LIMIT,
            )
        )
        os.environ.update(site.environment)
        os.environ["DJANGO_SETTINGS_MODULE"] = "humanjudge.settings"
        django.setup()
        call_command("migrate", verbosity=0)
        call_command("collectstatic", verbosity=0, interactive=False)
        stack.callback(_disconnect)
        programs = "SQLite" if is_sqlite else f"{database.programs} (durable)"
        print(f"  on {programs} and {broker.programs}, {os.cpu_count()} cores")
        yield Installation(site, database, broker)


@contextlib.contextmanager
def as_make_run_installs_it() -> Iterator[list[int]]:
    """All that `make run` starts, by its process id, and Django of this process on the same."""
    data = short_folder("hj-bench-")
    os.environ.update(HUMANJUDGE_DATA=str(data), DATABASE_URL="", REDIS_URL="")
    os.environ["DJANGO_SETTINGS_MODULE"] = "humanjudge.settings"
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, data, ignore_errors=True)
        options = ["--port", str(free_port())]
        running = stack.enter_context(_running(data, "manage.py", "up", *options))
        while not (data / "access.txt").exists():
            if running.poll() is not None:
                raise RuntimeError((data / "bench.log").read_text(errors="replace"))
            time.sleep(0.2)
        django.setup()
        print(f"  as `make run` installs it, {os.cpu_count()} cores")
        yield [running.pid]


def another_worker(name: str) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """A worker process beside those of `make run`, as docs/operations.md says."""
    options = f"-A humanjudge worker -n {name}@%h -P threads -c 4 -Q judging,rendering -l WARNING"
    return _running(Path(os.environ["HUMANJUDGE_DATA"]), "-m", "celery", *options.split())


@contextlib.contextmanager
def _running(data: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with (data / "bench.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    lifeline().add(process.pid)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        lifeline().remove(process.pid)


def _disconnect() -> None:
    from django.db import connection

    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()
