"""A start: everything HumanJudge needs on one machine, as one process tree. Without Django."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from humanjudge.launcher import embedded
from humanjudge.launcher.supervisor import CAN_FORK, Child, Supervisor

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
    # Of every program that is started. What stays the same is not set again: what shows in `ps` is
    # found through its place.
    os.chdir(ROOT)
    environment = {"HUMANJUDGE_DATA": str(data), "PYTHONUNBUFFERED": "1"}
    os.environ.update(environment.items() - os.environ.items())
    embedded.refuse_full_disk(data)
    lock = embedded.lock(data)
    refuse_busy_port(host, port)
    try:
        with Supervisor(data / "logs", say, keep_open=(lock,)) as supervisor:
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
    supervisor.start(Child("broker", embedded.valkey_command(data), echo=False))
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
    (data / "url").write_text(f"{url}\n")
    supervisor.say("starting the web server, two workers and their clock")
    for child in (web(host, port), *workers(), beat()):
        supervisor.start(child)
    healthy = supervisor.wait_for(lambda: _answers(url), HEALTH_SECONDS)
    supervisor.is_settled = True
    if healthy:
        # Not there on another machine that shares the database.
        path = data / "access.json"
        text = summary(json.loads(path.read_text()) if path.exists() else {}, url, data)
        (data / "access.txt").write_text(text)
        sys.stdout.write(text)
        sys.stdout.flush()
    elif not supervisor.stopping:
        supervisor.say(f"{url}/healthz does not say that all is well; see {data}/logs")
    supervisor.wait_for(lambda: False)


def web(host: str, port: int) -> Child:
    where = f"--host {host} --port {port} humanjudge.rsgi:application"
    return Child("web", _module(f"granian {WEB_OPTIONS} {where}"))


def worker(
    name: str = "worker", queues: str = f"{QUEUES_OF_VOTES},{QUEUES_OF_WORK}", threads: int = 4
) -> Child:
    own = f"--hostname {name}@%h --concurrency {threads} --queues {queues}"
    return Child(name, _module(f"celery -A humanjudge --quiet worker {WORKER_OPTIONS} {own}"))


def workers() -> tuple[Child, Child]:
    """Return one that seals votes and nothing else, and one for all that may take long."""
    return worker("sealer", QUEUES_OF_VOTES, threads=2), worker("worker", QUEUES_OF_WORK)


def beat() -> Child:
    # Not the worker's own --beat: nobody would notice the death of that process. It holds nothing,
    # and a signal to stop is lost where it comes while a task is published.
    command = _module("celery -A humanjudge --quiet beat --loglevel WARNING")
    return Child("beat", command, stop_seconds=2)


def _module(words: str) -> list[str]:
    return [sys.executable, "-m", *words.split()]


def refuse_busy_port(host: str, port: int) -> None:
    """Find out before anything is touched."""
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        socket.create_server((host, port), family=family, dualstack_ipv6=both).close()
    except OSError as error:
        hint = f"; try another: PORT={port + 1}" if error.errno == errno.EADDRINUSE else ""
        # Python writes the address a second time behind the reason.
        reason = str(error.strerror).partition(" (")[0]
        message = f"cannot listen on {host} port {port}: {reason}{hint}"
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
    # Not as urllib does it: a proxy of this network knows no server of this machine.
    connection = HTTPConnection(urlsplit(url).netloc, timeout=5)
    with contextlib.closing(connection), contextlib.suppress(OSError, HTTPException):
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    return False


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
    yield "Admin", f"{url}/admin/"
    if access:
        if access["admin"]["password"]:
            yield "", "user {username}, password {password}".format_map(access["admin"])
        yield "API key", access["api_key"]
        yield "", f"may {' and '.join(access['api_key_scopes'])}; for one that may manage runs too:"
        yield "", f"{url}/admin/voting/apikey/add/"
        yield "Command line", ".venv/bin/humanjudge --help"
    yield "API docs", f"{url}/api/docs"
    yield "", ""
    yield "Data and logs", str(data)
    yield "This again", str(data / "access.txt")
    yield "Stop", "Ctrl-C"
