"""`manage.py up`: everything HumanJudge needs on one machine, as one process tree."""

import contextlib
import ctypes
import errno
import gc
import hashlib
import io
import json
import os
import socket
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from multiprocessing.context import ForkProcess
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
from humanjudge.core.environment import PROGRAM, RefusalError
from humanjudge.core.strict_json import JsonObject
from humanjudge.server.alive import healthz
from humanjudge.server.launcher import embedded, programs
from humanjudge.server.launcher.embedded import refusing
from humanjudge.server.launcher.supervisor import CAN_FORK, Child, Supervisor

BROKER_SECONDS = 60
HEALTH_SECONDS = 90
RULE = "─" * 78
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
        # What is written here, by whichever process, is for this user alone.
        os.umask(0o077)
        # Of every program that is started. What stays the same is not set again: what shows in `ps`
        # is found through its place.
        os.chdir(settings.BASE_DIR)
        environment = {"HUMANJUDGE_DATA": str(settings.DATA), "PYTHONUNBUFFERED": "1"}
        os.environ.update(environment.items() - os.environ.items())
        embedded.refuse_full_disk(settings.DATA)
        lock = embedded.lock(settings.DATA)
        refuse_busy_port(host, port)
        self._say(f"everything is kept in {settings.DATA}")
        try:
            with Supervisor(settings.DATA / "logs", self._say, keep_open=(lock,)) as supervisor:
                start(supervisor, host, port)
        except OSError as error:
            text = f"cannot start: {error.filename or settings.DATA}: {error.strerror or error}"
            raise RefusalError(text) from error
        self._say("Stopped after a failure." if supervisor.exit_code else "Stopped.")
        sys.exit(supervisor.exit_code)

    def _say(self, line: str) -> None:
        # Where it goes may be a file on a disk that is full.
        with contextlib.suppress(OSError):
            self.stderr.write(f"humanjudge: {line}", self.style.NOTICE)


def start(supervisor: Supervisor, host: str, port: int) -> None:
    if not os.environ.get("REDIS_URL"):
        start_broker(supervisor)
    # What prepares ends soon, and what is imported stays.
    gc.disable()
    if CAN_FORK:
        # In a process of its own: this one, which others are forked from, keeps no connection.
        preparing = ForkProcess(target=prepare, args=(supervisor.say,))
        preparing.start()
        preload()
        supervisor.wait_for(lambda: preparing.exitcode is not None)
        preparing.join()
        if preparing.exitcode:
            sys.exit(1)
    else:
        prepare(supervisor.say)
        preload()
    if not supervisor.stopping:
        serve(supervisor, host, port)


def start_broker(supervisor: Supervisor) -> None:
    supervisor.start(Child("broker", embedded.valkey_command(settings.DATA), echo=False))
    path = embedded.broker_socket(settings.DATA)
    ready = supervisor.wait_for(lambda: _broker_answers(path), BROKER_SECONDS)
    if not ready and not supervisor.stopping:
        raise RefusalError(f"the broker does not answer; see {supervisor.logs}/broker.log")


def serve(supervisor: Supervisor, host: str, port: int) -> None:
    url = base_url(host, port)
    # The command line on this machine finds the server by it.
    (settings.DATA / "url").write_text(f"{url}\n")
    supervisor.say("starting the web server, two workers and their clock")
    supervisor.start(Child("web", programs.web(host, port, settings.WEB_PROCESSES)))
    for name in ("sealer", "worker"):
        supervisor.start(Child(name, programs.WORKERS[name]()))
    # It holds nothing, and a signal to stop is lost where it comes while a task is published.
    supervisor.start(Child("beat", programs.beat(), stop_seconds=2))
    healthy = supervisor.wait_for(lambda: is_well(url), HEALTH_SECONDS)
    supervisor.is_settled = True
    if healthy:
        # Not there on another machine that shares the database.
        path = settings.DATA / "access.json"
        access = json.loads(path.read_text()) if path.exists() else {}
        text = summary(access, url)
        (settings.DATA / "access.txt").write_text(text)
        # A log is read by more people than a terminal, and kept.
        sys.stdout.write(text if sys.stdout.isatty() else summary({}, url))
        sys.stdout.flush()
    elif not supervisor.stopping:
        supervisor.say(f"{url}/healthz does not say that all is well; see {supervisor.logs}")
    supervisor.wait_for(lambda: False)


def refuse_errors(tag: str, databases: Sequence[str] = ()) -> None:
    """Refuse in one line what a system check finds; all checks would cost most of a second."""
    for error in run_checks(tags=[tag], databases=databases):
        if error.is_serious():
            raise RefusalError(f"{error.msg} {error.hint or ''}".strip())


def prepare(say: Callable[[str], None]) -> None:
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
    close_connections()


def close_connections() -> None:
    """Keep none, and no thread of a pool, in a process that others are forked from."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()


def collect_static() -> None:
    """Collect static files, unless they are the ones of the last time.

    A folder that cannot be written was filled by whoever installed the product, as in a container.
    """
    folder = Path(settings.STATIC_ROOT)
    if folder.joinpath("staticfiles.json").exists() and not os.access(folder, os.W_OK):
        return
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            file_state = Path(storage.path(name)).stat()
            digest.update(f"{name} {file_state.st_size} {file_state.st_mtime_ns}\n".encode())
    mark, now = folder / ".collected", digest.hexdigest()
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
        ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX
    # What is never looked through for garbage stays shared between processes.
    gc.freeze()
    gc.enable()


def refuse_busy_port(host: str, port: int) -> None:
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        socket.create_server((host, port), family=family, dualstack_ipv6=both).close()
    except OSError as error:
        hint = f"; try another: PORT={port + 1}" if error.errno == errno.EADDRINUSE else ""
        # Python writes the address a second time behind the reason.
        reason = str(error.strerror).partition(" (")[0]
        message = f"cannot listen on {host} port {port}: {reason}{hint}"
        raise RefusalError(message) from None


def base_url(host: str, port: int) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def is_well(url: str) -> bool:
    return healthz(url.removeprefix("http://")).get("status") == "ok"


def _broker_answers(path: Path) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2)
        client.connect(str(path))
        client.sendall(b"PING\r\n")
        return client.recv(16).startswith(b"+PONG")
    return False


def summary(access: JsonObject, url: str) -> str:
    lines = _summary_lines(access, url)
    body = "\n".join(f"  {label:<19} {value}".rstrip() for label, value in lines)
    return f"\n{RULE}\n{body}\n{RULE}\n"


def _summary_lines(access: JsonObject, url: str) -> Iterator[tuple[str, str]]:
    yield "HumanJudge runs at", f"{url}/"
    yield "", ""
    for label, links in (("Board", access.get("board", [])), ("Vote", access.get("invites", []))):
        for number, link in enumerate(links):
            yield "" if number else label, f"{link['name']:<16} {url}{link['path']}"
    yield "Admin", f"{url}/admin/"
    if access:
        if access["admin"]["password"]:
            yield "", "user {username}, password {password}".format_map(access["admin"])
        yield "API key", access["api_key"]
        yield "", f"may {' and '.join(access['api_key_scopes'])}; for one that may manage runs too:"
        yield "", f"{url}/admin/voting/apikey/add/"
    yield "Command line", f"{PROGRAM} --help"
    yield "API docs", f"{url}/api/docs"
    yield "", ""
    yield "Data and logs", str(settings.DATA)
    # Where no key stands here, that file has them.
    yield "This again" if access else "Links and keys", str(settings.DATA / "access.txt")
    yield "Stop", "Ctrl-C"
