"""Seals a project in small batches, in processes that are killed one after the other.

Each is a fork of a process that has Django ready, so that nearly all of its life is sealing.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from datetime import timedelta
from uuid import UUID

import django

LONGEST_LIFE = 0.08


def seal_for_ever(project: UUID, started: int) -> None:
    from django.conf import settings
    from django.utils import timezone

    from voting.ledger import ledger

    settings.SEAL_BATCH = 5
    while True:
        ledger.seal(project, now=timezone.now() + timedelta(hours=1))
        os.write(started, b".")


def main() -> None:
    project, kills = UUID(sys.argv[1]), int(sys.argv[2])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
    django.setup()
    for _ in range(kills):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            seal_for_ever(project, writer)
        os.close(writer)
        first_batch = os.read(reader, 1)
        if first_batch != b".":
            sys.exit("a sealer failed by itself")
        time.sleep(random.uniform(0, LONGEST_LIFE))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit("a sealer ended before it was killed")
        os.close(reader)
    print("killed", kills)


if __name__ == "__main__":
    main()
