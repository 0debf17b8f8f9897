import logging
import os
import resource
import signal
import sys
import time
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand
from django.db import connection

from judge_eval.imports import import_jobs, preview
from judge_eval.models import Import

# How much more an import may take than this process takes by itself.
MEMORY = 150 << 20
# What may hold Parquet, whose reader takes memory of its own.
MAY_BE_PARQUET = (".parquet", ".pq", ".zip")

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Do the imports that wait. Workers start this by themselves."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--lease", type=UUID, help="what this process leases imports by")

    def handle(self, *args: Any, **options: Any) -> None:
        # Told to stop, it gives its import back on the way out: another goes on with it at once.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        os.nice(10)
        # Arrow's other pools take much more at once than they need.
        os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
        # Its threads count, too.
        connection.ensure_connection()
        # Whatever a file says of itself.
        preview.limit_memory(MEMORY)
        import_jobs.when_unlocked(lambda: do_all(options["lease"]), logger.warning)


def do_all(lease: UUID | None = None) -> None:
    while job := import_jobs.claim(lease=lease):
        is_parquet = job.form.get("format") == "parquet"
        if is_parquet or any(name.lower().endswith(MAY_BE_PARQUET) for name in job.form["files"]):
            preview.load_parquet()
        limit_reading(job)
        import_jobs.run(job)


def limit_reading(job: Import) -> None:
    """Let this process end by SIGXCPU when it reads for too long; writing takes its time."""

    def limit(seconds: int) -> None:
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))

    def end_limit_when_read() -> None:
        if job.state == Import.State.WRITING:
            limit(resource.RLIM_INFINITY)

    if not job.is_local:
        limit(int(time.process_time()) + import_jobs.seconds_to_read(job))
        job.on_progress = end_limit_when_read
