"""`manage.py up`: what a start needs of Django; the rest is `humanjudge.launcher.up`."""

import contextlib
import ctypes
import gc
import hashlib
import io
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.checks import Tags, run_checks
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections
from django.db import Error as DatabaseError
from django.utils.module_loading import import_string

from humanjudge.celery import app
from humanjudge.launcher.embedded import RefusalError, refusing
from humanjudge.launcher.up import up

# What the modules that are run import when they begin.
PRELOADED = (
    "humanjudge.urls",
    "celery.bin.celery",
    "celery.apps.worker",
    "celery.concurrency.thread",
    "kombu.transport.redis",
    "granian.cli",
    "granian.server",
)
# Of mallopt in glibc: how many arenas there may be.
M_ARENA_MAX = -8


def port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ArgumentTypeError(f"PORT must be a number from 1 to 65535, not {text!r}")
    return int(text)


class Command(BaseCommand):
    help = "Start everything HumanJudge needs on this machine and look after it until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument("--port", type=port, default=os.environ.get("PORT") or "8000")

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        refuse_errors("humanjudge")
        prepares = partial(prepare, self._say)
        sys.exit(up(settings.DATA, host, port, prepare=prepares, preload=preload, say=self._say))

    def _say(self, line: str) -> None:
        # Where it goes may be a file on a disk that is full.
        with contextlib.suppress(OSError):
            self.stderr.write(f"humanjudge: {line}", self.style.NOTICE)


def refuse_errors(tag: str, databases: Sequence[str] = ()) -> None:
    """Refuse in one line what a system check finds; all checks would cost most of a second."""
    for error in run_checks(tags=[tag], databases=databases):
        raise RefusalError(f"{error.msg} {error.hint or ''}".strip())


def prepare(say: Callable[[str], None]) -> None:
    """Do what must be done before the first request, and say what takes its time."""
    try:
        say("looking after the database")
        refuse_errors(Tags.database, [DEFAULT_DB_ALIAS])
        call_command("migrate", verbosity=0, interactive=False)
        say("collecting static files")
        with refusing(f"cannot write {settings.STATIC_ROOT}"):
            collect_static()
        say("looking for the demo")
        with refusing(f"cannot write {settings.DATA}"):
            call_command("load_demo", verbosity=0, stdout=io.StringIO())
    except CommandError as error:
        raise RefusalError(str(error)) from error
    except DatabaseError as error:
        raise RefusalError(f"the database cannot be used: {error}".strip()) from error
    # What waits for hours after this needs no connection.
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()


def collect_static() -> None:
    """Collect static files, unless they are the ones of the last time."""
    found = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            seen = Path(storage.path(name)).stat()
            found.update(f"{name} {seen.st_size} {seen.st_mtime_ns}\n".encode())
    mark, now = Path(settings.STATIC_ROOT, ".collected"), found.hexdigest()
    if not mark.exists() or mark.read_text() != now:
        call_command("collectstatic", verbosity=0, interactive=False)
        mark.write_text(now)


def preload() -> None:
    """Import what web servers and workers need, once for all that are forked from this process."""
    for name in PRELOADED:
        import_module(name)
    for middleware in settings.MIDDLEWARE:
        import_string(middleware)
    app.loader.import_default_modules()
    # Memory that threads free goes back only where they share one arena. Not every libc knows it.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    # What is never looked through for garbage stays shared between processes.
    gc.freeze()
