"""A start: everything HumanJudge needs on one machine, as one process tree. Without Django."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import socket
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from humanjudge.launcher import embedded
from humanjudge.launcher.supervisor import CAN_FORK, Program, Supervisor

ROOT = Path(__file__).parents[2]
BROKER_SECONDS = 60
HEALTH_SECONDS = 90
# Votes are sealed by a worker of their own: what takes long (judges that are tried out, drawings,
# findings, score files) may take every thread of the other one.
QUEUES_OF_VOTES = "votes,celery"
QUEUES_OF_WORK = "judging,rendering"
# A worker process that dies is replaced at once, and one that hangs cannot hold up a stop.
WEB_OPTIONS = (
    "--interface rsgi --http 1 --workers 2 --no-ws --log-level warning "
    "--respawn-failed-workers --respawn-interval 0.2 --workers-kill-timeout 5"
)
# Workers of one machine have nothing to gossip about.
WORKER_OPTIONS = (
    "--pool threads --loglevel WARNING --without-gossip --without-mingle --without-heartbeat"
)
RULE = "─" * 78

# What load_demo writes to access.json.
Access: TypeAlias = Mapping[str, Any]


def up(
    data: Path,
    host: str,
    port: int,
    *,
    prepare: Callable[[], None],
    preload: Callable[[], None],
    say: Callable[[str], None],
) -> int:
    """Start everything and look after it until a signal comes; return the exit code.

    `prepare` makes the database, static files and the demo what they must be, in a process of its
    own: this one, which others are forked from, keeps no connection. `preload` imports what they
    all need. `say` gets each line for the terminal.
    """
    # What is written here, by whichever process, is for this user alone.
    os.umask(0o077)
    embedded.refuse_full_disk(data)
    lock = embedded.lock(data)
    refuse_busy_port(host, port)
    try:
        with Supervisor(data / "logs", say, keep_open=[lock]) as supervisor:
            if not os.environ.get("REDIS_URL"):
                _start_broker(supervisor, data)
            _prepare(supervisor, prepare)
            if not supervisor.stopping:
                preload()
                _serve(supervisor, data, host, port)
    except OSError as error:
        where = error.filename or data
        raise embedded.RefusalError(f"cannot start: {where}: {error.strerror or error}") from error
    say("Stopped after a failure." if supervisor.exit_code else "Stopped.")
    return supervisor.exit_code


def _start_broker(supervisor: Supervisor, data: Path) -> None:
    supervisor.start(Program("broker", embedded.valkey_command(data), echo=False))
    path = embedded.broker_socket(data)
    ready = supervisor.wait_for(lambda: _broker_answers(path), BROKER_SECONDS)
    if not ready and not supervisor.stopping:
        raise embedded.RefusalError(f"the broker does not answer; see {data}/logs/broker.log")


def _prepare(supervisor: Supervisor, prepare: Callable[[], None]) -> None:
    if not CAN_FORK:
        prepare()
        return
    preparing = multiprocessing.get_context("fork").Process(target=prepare)
    preparing.start()
    supervisor.wait_for(lambda: preparing.exitcode is not None)
    preparing.join()
    if preparing.exitcode:
        sys.exit(1)


def _serve(supervisor: Supervisor, data: Path, host: str, port: int) -> None:
    url = base_url(host, port)
    # The command line on this machine finds the server by it.
    _write_private(data / "url", f"{url}\n")
    supervisor.say("starting the web server, two workers and their clock")
    for program in (web(data, host, port), *workers(data), beat(data)):
        supervisor.start(program)
    healthy = supervisor.wait_for(lambda: _answers(f"{url}/healthz"), HEALTH_SECONDS)
    supervisor.is_settled = True
    if healthy:
        # Not there on another machine that shares the database.
        path = data / "access.json"
        text = summary(json.loads(path.read_text()) if path.exists() else {}, url, data)
        _write_private(data / "access.txt", text)
        sys.stdout.write(text)
        sys.stdout.flush()
    elif not supervisor.stopping:
        supervisor.say(f"{url}/healthz does not say that all is well; see {data}/logs")
    supervisor.watch()


def web(data: Path, host: str, port: int) -> Program:
    where = f"--host {host} --port {port} humanjudge.rsgi:application"
    return _program("web", f"granian {WEB_OPTIONS} {where}", data)


def worker(
    data: Path,
    name: str = "worker",
    queues: str = f"{QUEUES_OF_VOTES},{QUEUES_OF_WORK}",
    threads: int = 4,
) -> Program:
    own = f"--hostname {name}@%h --concurrency {threads} --queues {queues}"
    return _program(name, f"celery -A humanjudge --quiet worker {WORKER_OPTIONS} {own}", data)


def workers(data: Path) -> tuple[Program, Program]:
    """Return one that seals votes and nothing else, and one for all that may take long."""
    sealer = worker(data, "sealer", QUEUES_OF_VOTES, threads=2)
    return sealer, worker(data, "worker", QUEUES_OF_WORK)


def beat(data: Path) -> Program:
    # Not the worker's own --beat: nobody would notice the death of that process.
    program = _program("beat", "celery -A humanjudge --quiet beat --loglevel WARNING", data)
    # It holds nothing, and a signal to stop is lost where it comes while a task is published.
    return replace(program, stop_seconds=2)


def _program(name: str, module: str, data: Path) -> Program:
    environment = {**os.environ, "HUMANJUDGE_DATA": str(data), "PYTHONUNBUFFERED": "1"}
    return Program(name, [sys.executable, "-m", *module.split()], environment, ROOT)


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
        message = f"cannot listen on {host} port {port}: {error.strerror}{hint}"
        raise embedded.RefusalError(message) from None


def base_url(host: str, port: int) -> str:
    """Return where a browser on this machine finds it."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _broker_answers(path: Path) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2)
        client.connect(str(path))
        client.sendall(b"PING\r\n")
        return client.recv(16).startswith(b"+PONG")
    return False


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as reply:  # noqa: S310
        return bool(reply.status == 200)
    return False


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def summary(access: Access, url: str, data: Path) -> str:
    """Return the framed text that ends a start."""
    lines = _summary_lines(access, url, data)
    body = "\n".join(f"  {label:<19} {value}".rstrip() for label, value in lines)
    return f"\n{RULE}\n{body}\n{RULE}\n"


def _summary_lines(access: Access, url: str, data: Path) -> Iterator[tuple[str, str]]:
    yield "HumanJudge runs at", f"{url}/"
    yield "", ""
    for label, links in (("Board", access.get("board", [])), ("Vote", access.get("invites", []))):
        for number, link in enumerate(links):
            yield "" if number else label, f"{link['name']:<10} {url}{link['path']}"
    admin = access.get("admin") or {"path": "/admin/"}
    yield "Admin", f"{url}{admin['path']}"
    if admin.get("password"):
        yield "", f"user {admin['username']}, password {admin['password']}"
    if access.get("api_key"):
        yield "API key", access["api_key"]
        if scopes := access.get("api_key_scopes"):
            yield "", f"may {' and '.join(scopes)}; for one that may manage runs too:"
            yield "", f"{url}/admin/voting/apikey/add/"
    yield "API docs", f"{url}/api/docs"
    if access.get("cli_key"):
        yield "Command line", ".venv/bin/humanjudge --help"
    yield "", ""
    yield "Data and logs", str(data)
    yield "This again", str(data / "access.txt")
    yield "Stop", "Ctrl-C"
