"""HumanJudge on a PostgreSQL and a Valkey of its own, with Django of this process on the same."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

import django
from django.core.management import call_command

from tests.concurrency.processes import Site
from tests.servers import PostgresServer, ValkeyServer, postgres_server, short_folder, valkey_server

# Far above what a person does: a bench is a flood, which the product rightly refuses.
NO_LIMIT = {"VOTES_PER_SECOND": "1000000", "VOTES_BURST": "1000000"}


@dataclass(frozen=True)
class Installation:
    site: Site
    database: PostgresServer
    broker: ValkeyServer


@contextlib.contextmanager
def installation() -> Iterator[Installation]:
    """An empty HumanJudge. PostgreSQL is durable here, as it is where votes matter."""
    folder = short_folder("hj-bench-")
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        database = stack.enter_context(postgres_server(durable=True))
        broker = stack.enter_context(valkey_server())
        site = stack.enter_context(
            Site(folder, database.url, broker.url, SECRET_KEY="bench" * 10, **NO_LIMIT)
        )
        os.environ.update(site.environment)
        os.environ["DJANGO_SETTINGS_MODULE"] = "humanjudge.settings"
        django.setup()
        call_command("migrate", verbosity=0)
        call_command("collectstatic", verbosity=0, interactive=False)
        stack.callback(_disconnect)
        print(f"  on {database.programs} (durable) and {broker.programs}, {os.cpu_count()} cores")
        yield Installation(site, database, broker)


def _disconnect() -> None:
    from django.db import connection

    connection.close()
    connection.close_pool()
