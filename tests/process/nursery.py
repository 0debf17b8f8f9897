"""Starts processes of the product as `manage.py up` does: forked from one that has imported all.

One process for all tests imports the libraries. For each installation it forks one, which reads
its settings and imports the product, and which forks the programs that are asked for. What was
started goes on when the tests have gone: they end it themselves.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
# Where the environment of an installation says which constants of the product are others in it.
CONSTANTS = "HUMANJUDGE_TEST_CONSTANTS"
# They take long to import, and need no settings.
LIBRARIES = (
    "celery.bin.celery",
    "celery.concurrency.thread",
    "django.contrib.staticfiles.finders",
    "django.db.models",
    "django.forms",
    "django.test",
    "environs",
    "granian.cli",
    "granian.server",
    "kombu.transport.redis",
    "markdown_it",
    "psycopg",
    "pydantic.main",
    "redis.asyncio",
    "yaml",
)


class Nursery:
    """Forks the programs of one installation."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        paths = folder / "nursery.commands", folder / "nursery.answers"
        for path in paths:
            os.mkfifo(path)
        _ask(_root(), [str(folder), environment])
        self._commands, self._answers = paths[0].open("w"), paths[1].open()

    def start(self, name: str, command: list[str]) -> int:
        """Start a program and return its process id."""
        _ask(self._commands, [name, command])
        return int(self._answers.readline())

    def close(self) -> None:
        self._commands.close()
        self._answers.read()
        self._answers.close()


def _ask(stream: IO[str], what: list[Any]) -> None:
    print(json.dumps(what), file=stream, flush=True)


@cache
def _root() -> IO[str]:
    command = [sys.executable, "-m", "tests.process.nursery"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    assert process.stdin
    return process.stdin


def main() -> None:
    for library in LIBRARIES:
        import_module(library)
    # Nobody waits for what is forked here.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        folder, environment = json.loads(line)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.environ.clear()
            os.environ.update(environment)
            fork_programs(Path(folder))


def change_constants(seconds: dict[str, float]) -> None:
    """Let what takes its time in production take so many seconds here."""
    for name, wanted in seconds.items():
        module, _, constant = name.rpartition(".")
        place = import_module(module)
        kind = type(getattr(place, constant))
        setattr(place, constant, timedelta(seconds=wanted) if kind is timedelta else kind(wanted))


def fork_programs(folder: Path) -> None:
    import django

    from humanjudge.server.launcher.supervisor import Child

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
    django.setup()
    from humanjudge.management.commands.up import preload

    preload()
    change_constants(json.loads(os.environ.get(CONSTANTS, "{}")))
    # What is forked reads nothing, and writes to its log.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(ROOT)
    children: list[Child] = []
    commands, answers = folder / "nursery.commands", folder / "nursery.answers"
    with commands.open() as asked, answers.open("w") as answer:
        pipes = asked.fileno(), answer.fileno()
        for line in asked:
            # One that has ended is a zombie until it is looked at.
            children = [each for each in children if each.process.exitcode is None]
            name, command = json.loads(line)
            child = Child(name, command, log=folder / f"{name}.log")
            print(child.spawn(close=pipes), file=answer, flush=True)
            children.append(child)
    # Not as Python ends: it would wait for those that it has forked.
    os._exit(0)


if __name__ == "__main__":
    main()
