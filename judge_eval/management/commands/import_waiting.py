import logging
import os
import signal
import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand
from django.db import connection

from judge_eval.exchange import import_jobs, preview

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
        if is_parquet or any(it.lower().endswith(MAY_BE_PARQUET) for it in job.form["files"]):
            preview.load_parquet()
        import_jobs.run(job)
