"""`manage.py up`: what a start needs of Django; the rest is `humanjudge.launcher.up`."""

import contextlib
import ctypes
import gc
import hashlib
import io
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.checks import Tags
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections
from django.db import Error as DatabaseError
from django.utils.module_loading import import_string

from humanjudge.celery import app
from humanjudge.launcher.embedded import RefusalError
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
        environment = os.environ.get
        parser.add_argument("--host", default=environment("HOST") or "127.0.0.1")
        parser.add_argument("--port", type=port, default=environment("PORT") or "8000")

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        self.check(tags=["humanjudge"])
        prepares = partial(prepare, self._say)
        sys.exit(up(settings.DATA, host, port, prepare=prepares, preload=preload, say=self._say))

    def _say(self, line: str) -> None:
        # Where it goes may be a file on a disk that is full.
        with contextlib.suppress(OSError):
            self.stderr.write(f"humanjudge: {line}", self.style.NOTICE)


def prepare(say: Callable[[str], None]) -> None:
    """Do what must be done before the first request, and say what takes its time."""
    for words, step in (
        ("looking after the database", migrate),
        ("collecting static files", collect_static),
        ("looking for the demo", load_demo),
    ):
        say(words)
        try:
            step()
        except CommandError as error:
            raise RefusalError(str(error)) from error
        except DatabaseError as error:
            raise RefusalError(f"the database cannot be used: {error}".strip()) from error
        except OSError as error:
            where = error.filename or settings.DATA
            raise RefusalError(f"cannot write {where}: {error.strerror or error}") from error
    # What waits for hours after this needs no connection.
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()


def migrate() -> None:
    # All checks would cost each start most of a second.
    Command().check(tags=[Tags.database], databases=[DEFAULT_DB_ALIAS])
    call_command("migrate", verbosity=0, interactive=False)


def collect_static() -> None:
    """Collect static files, unless they are the ones of the last time."""
    mark = Path(settings.STATIC_ROOT, ".collected")
    now = static_fingerprint()
    if mark.exists() and mark.read_text() == now:
        return
    call_command("collectstatic", verbosity=0, interactive=False)
    mark.write_text(now)


def static_fingerprint() -> str:
    found = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            seen = Path(storage.path(name)).stat()
            found.update(f"{name} {seen.st_size} {seen.st_mtime_ns}\n".encode())
    return found.hexdigest()


def load_demo() -> None:
    call_command("load_demo", verbosity=0, stdout=io.StringIO())


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
