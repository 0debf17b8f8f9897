"""Celery workers that are forked and killed on demand: one line of input each, answered by one.

A fork of a process that has Django and Celery ready is at work within a moment. `start` answers
with the worker's process id, `kill` ends it with -9, and the end of the input ends all.
"""

import os
import signal
import sys

import django

from humanjudge.management.commands import up


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
    django.setup()
    from celery.apps import worker as _loaded  # noqa: F401  before the fork

    from humanjudge.celery import app
    from judge_eval.providers.chat import prepare

    prepare()
    app.finalize()
    app.loader.import_default_modules()
    options = ["worker", *up.WORKER_OPTIONS.split(), *up.WORKER_SILENCE.split(), "-Q", up.QUEUES]
    child = 0
    for line in sys.stdin:
        if line == "start\n":
            child = os.fork()
            if child == 0:
                os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
                app.worker_main(options)
        else:
            child = end(child)
        print(child, flush=True)
    end(child)


def end(child: int) -> int:
    if child:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    main()
