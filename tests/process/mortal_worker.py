"""A Celery worker that is killed with -9 every second and replaced, until the input ends.

Each is a fork of a process that has Django and Celery ready, so that it works for most of its
second.
"""

import os
import select
import signal
import sys

import django

from humanjudge.management.commands import up

LIFE = 1.0


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
    django.setup()
    from celery.apps import worker as _loaded  # noqa: F401  before the fork

    from humanjudge.celery import app

    app.finalize()
    app.loader.import_default_modules()
    options = ["worker", *up.WORKER_OPTIONS.split(), *up.WORKER_SILENCE.split(), "-Q", up.QUEUES]
    print("ready", flush=True)
    kills = 0
    while True:
        child = os.fork()
        if child == 0:
            # What a worker greets with would be taken for an answer.
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            app.worker_main(options)
        input_ended, _, _ = select.select([sys.stdin], [], [], LIFE)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
        if input_ended:
            break
    print(kills)


if __name__ == "__main__":
    main()
