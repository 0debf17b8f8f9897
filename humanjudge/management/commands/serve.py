"""`manage.py serve`: one process of a deployment, checked before it starts."""

import os
import runpy
import sys
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, DatabaseError

from humanjudge.management.commands.up import close_connections
from humanjudge.server.launcher import programs


class Command(BaseCommand):
    help = "Be one process of a deployment: the web server, a worker, or the one beat."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("program", choices=["web", *programs.WORKERS, "beat"])
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument("--port", type=int, default=os.environ.get("PORT") or 8000)

    def handle(self, *args: Any, program: str, host: str, port: int, **options: Any) -> None:
        refuse_what_is_wrong()
        os.umask(0o077)
        if program == "web":
            command = programs.web(host, port, settings.WEB_PROCESSES)
        else:
            command = programs.beat() if program == "beat" else programs.WORKERS[program]()
        # Here, where most of what it imports is imported already.
        sys.argv = command[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def refuse_what_is_wrong() -> None:
    try:
        call_command("check", deploy=True, fail_level="WARNING", databases=[DEFAULT_DB_ALIAS])
        call_command("migrate", check_unapplied=True, verbosity=0)
    except DatabaseError as error:
        raise CommandError(f"the database cannot be used: {error}".strip()) from error
    except SystemExit as error:
        raise CommandError("the database is not up to date: run `migrate` first") from error
    finally:
        close_connections()
