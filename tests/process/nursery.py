"""Starts processes of the product as `manage.py up` does: forked from one that has imported all.

Each line of input is a name and a command, as JSON; the answer is a process id. What was started
goes on when the input ends: whoever asked for it ends it.
"""

import json
import os
import sys
from pathlib import Path

import django

from humanjudge.launcher.supervisor import Child, Program
from humanjudge.management.commands.up import preload
from tests.process.processes import ROOT


def main(folder: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
    django.setup()
    preload()
    pipes = (os.dup(0), os.dup(1))
    # What is forked reads nothing, and writes to its log.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    children: list[Child] = []
    with os.fdopen(pipes[0]) as commands, os.fdopen(pipes[1], "w", buffering=1) as answers:
        for line in commands:
            # One that has ended is a zombie until it is asked.
            children = [each for each in children if each.process and each.process.poll() is None]
            name, command = json.loads(line)
            child = Child(Program(name, command, cwd=ROOT), folder / f"{name}.log")
            print(child.spawn(close=pipes), file=answers)
            children.append(child)
    # Not as Python ends: it would wait for those that it has forked.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
