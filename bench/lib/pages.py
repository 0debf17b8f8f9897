"""How long pages take on the server, from address to page, on either database."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import django
from django.core.management import call_command

from bench.lib.report import figure, note, quantile
from tests.servers import postgres_server

if TYPE_CHECKING:
    from django.test import Client

TIMES = 7
AIM = "at most 100"


def on_both_databases(module: str) -> None:
    """Run a module with the name of a database: settings read once which one there is."""
    with postgres_server() as server, tempfile.TemporaryDirectory() as data:
        for database, url in (("PostgreSQL", server.url), ("SQLite", "")):
            environment = os.environ | {"DATABASE_URL": url, "HUMANJUDGE_DATA": data}
            environment |= {"SECRET_KEY": "bench" * 10, "REDIS_URL": "redis://127.0.0.1:1"}
            child = [sys.executable, "-u", "-m", module, database]
            subprocess.run(child, env=environment, check=True)


def prepare() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "humanjudge.settings"
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)


def analyze() -> None:
    """Tell the database how its rows are spread, as it finds out by itself in time."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def time_page(
    client: Client, address: str, name: str, aim: str = AIM, *, status: int = 200
) -> None:
    """Note the median of several requests, and how much of it this process worked."""
    milliseconds, used = [], time.process_time()
    for _ in range(TIMES):
        started = time.perf_counter()
        assert client.get(address).status_code == status
        milliseconds.append((time.perf_counter() - started) * 1000)
    figure(name, quantile(milliseconds, 0.5), "ms", aim)
    note(f"of it {(time.process_time() - used) / TIMES * 1000:.0f} ms of processor time here")
