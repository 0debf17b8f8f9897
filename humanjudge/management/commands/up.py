"""`manage.py up`: everything HumanJudge needs on one machine, as one process tree."""

import contextlib
import ctypes
import errno
import gc
import hashlib
import io
import json
import multiprocessing
import os
import socket
import sys
import urllib.error
import urllib.request
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import replace
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
from humanjudge.launcher import embedded
from humanjudge.launcher.start_summary import summary
from humanjudge.launcher.supervisor import CAN_FORK, Program, Supervisor

BROKER_SECONDS = 60
HEALTH_SECONDS = 90
# Votes are sealed by a worker of their own: what takes long (judges that are tried out, drawings,
# findings, score files) may take every thread of the other one.
QUEUES_OF_VOTES = "votes,celery"
QUEUES_OF_WORK = "judging,rendering"
QUEUES = f"{QUEUES_OF_VOTES},{QUEUES_OF_WORK}"
WEB_OPTIONS = "--interface rsgi --http 1 --workers 2 --no-ws --log-level warning"
# A worker process that dies is replaced at once, and one that hangs cannot hold up a stop.
WEB_CARE = "--respawn-failed-workers --respawn-interval 0.2 --workers-kill-timeout 5"
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
WORKER_OPTIONS = "--pool threads --loglevel WARNING"
# Workers of one machine have nothing to gossip about.
WORKER_SILENCE = "--without-gossip --without-mingle --without-heartbeat"


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
        # What is written here, by whichever process, is for this user alone.
        os.umask(0o077)
        data: Path = settings.DATA
        embedded.refuse_full_disk(data)
        lock = embedded.lock(data)
        refuse_busy_port(host, port)
        try:
            with Supervisor(data / "logs", self._say, keep_open=[lock]) as supervisor:
                code = self._run(supervisor, data, host, port)
        except OSError as error:
            where = error.filename or data
            raise CommandError(f"cannot start: {where}: {error.strerror or error}") from error
        self._say("Stopped." if code == 0 else "Stopped after a failure.")
        sys.exit(code)

    def _run(self, supervisor: Supervisor, data: Path, host: str, port: int) -> int:
        if not os.environ.get("REDIS_URL"):
            self._start_broker(supervisor, data)
        self._prepare(supervisor)
        if supervisor.stopping:
            return supervisor.exit_code
        url = base_url(host, port)
        # The command line on this machine finds the server by it.
        write_private(data / "url", f"{url}\n")
        self._say("starting the web server, two workers and their clock")
        preload()
        for program in (web(data, host, port), *workers(data), beat(data)):
            supervisor.start(program)
        healthy = supervisor.wait_for(answering(f"{url}/healthz"), HEALTH_SECONDS)
        supervisor.is_settled = True
        if healthy:
            self._show(summary(read_access(data), url, data), data)
        elif not supervisor.stopping:
            self._say(f"{url}/healthz does not say that all is well; see {data}/logs")
        return supervisor.watch()

    def _start_broker(self, supervisor: Supervisor, data: Path) -> None:
        supervisor.start(Program("broker", embedded.valkey_command(data), echo=False))
        path = embedded.broker_socket(data)
        ready = supervisor.wait_for(lambda: broker_answers(path), BROKER_SECONDS)
        if not ready and not supervisor.stopping:
            raise CommandError(f"the broker does not answer; see {data}/logs/broker.log")

    def _prepare(self, supervisor: Supervisor) -> None:
        """Make the database, static files and the demo what they must be.

        In a process of its own: this one, which others are forked from, keeps no connection.
        """
        if not CAN_FORK:
            prepare(self._say)
            close_databases()
            return
        preparing = multiprocessing.get_context("fork").Process(
            target=end_in_words, args=(partial(prepare, self._say),)
        )
        preparing.start()
        supervisor.wait_for(lambda: preparing.exitcode is not None)
        preparing.join()
        if preparing.exitcode:
            sys.exit(1)

    def _show(self, text: str, data: Path) -> None:
        write_private(data / "access.txt", text)
        self.stdout.write(text)
        self.stdout.flush()

    def _say(self, line: str) -> None:
        # Where it goes may be a file on a disk that is full.
        with contextlib.suppress(OSError):
            self.stderr.write(f"humanjudge: {line}", self.style.NOTICE)


def write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def refuse_busy_port(host: str, port: int) -> None:
    """Find out before anything is touched."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        hint = f"; try another: PORT={port + 1}" if error.errno == errno.EADDRINUSE else ""
        raise embedded.RefusalError(
            f"cannot listen on {host} port {port}: {error.strerror}{hint}"
        ) from None


def web(data: Path, host: str, port: int) -> Program:
    options = [*WEB_OPTIONS.split(), *WEB_CARE.split(), "--host", host, "--port", str(port)]
    command = [sys.executable, "-m", "granian", *options, "humanjudge.rsgi:application"]
    return Program("web", command, child_environment(data), settings.BASE_DIR)


def worker(data: Path, name: str = "worker", queues: str = QUEUES, threads: int = 4) -> Program:
    own = ["--hostname", f"{name}@%h", "--concurrency", str(threads), "--queues", queues]
    return celery(name, ["worker", *WORKER_OPTIONS.split(), *WORKER_SILENCE.split(), *own], data)


def workers(data: Path) -> tuple[Program, Program]:
    """Return one that seals votes and nothing else, and one for all that may take long."""
    sealer = worker(data, "sealer", QUEUES_OF_VOTES, threads=2)
    return sealer, worker(data, "worker", QUEUES_OF_WORK)


def beat(data: Path) -> Program:
    # Not the worker's own --beat: nobody would notice the death of that process.
    program = celery("beat", ["beat", "--loglevel", "WARNING"], data)
    # It holds nothing, and a signal to stop is lost where it comes while a task is published.
    return replace(program, stop_seconds=2)


def celery(name: str, arguments: list[str], data: Path) -> Program:
    command = [sys.executable, "-m", "celery", "-A", "humanjudge", "--quiet", *arguments]
    return Program(name, command, child_environment(data), settings.BASE_DIR)


def child_environment(data: Path) -> dict[str, str]:
    return {**os.environ, "HUMANJUDGE_DATA": str(data), "PYTHONUNBUFFERED": "1"}


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
        except DatabaseError as error:
            raise CommandError(f"the database cannot be used: {error}".strip()) from error
        except OSError as error:
            where = error.filename or settings.DATA
            raise CommandError(f"cannot write {where}: {error.strerror or error}") from error


def end_in_words(step: Callable[[], None]) -> None:
    """End this process as Django's command line ends: an error of a command is one line."""
    try:
        step()
    except CommandError as error:
        sys.exit(f"CommandError: {error}")


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


def read_access(data: Path) -> dict[str, Any]:
    """What load_demo wrote, unless it wrote it on another machine that shares the database."""
    path = data / "access.json"
    access: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return access


def close_databases() -> None:
    """What waits here for hours needs no connection."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()


def broker_answers(path: Path) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2)
        client.connect(str(path))
        client.sendall(b"PING\r\n")
        return client.recv(16).startswith(b"+PONG")
    return False


def base_url(host: str, port: int) -> str:
    """Where a browser on this machine finds it."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def answering(url: str) -> Callable[[], bool]:
    def answers() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as reply:  # noqa: S310
            return bool(reply.status == 200)
        return False

    return answers
