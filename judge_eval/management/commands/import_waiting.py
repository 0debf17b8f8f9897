import logging
import os
import signal
import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection

from judge_eval.exchange import import_jobs, preview

# How much more an import may take than this process takes by itself.
MEMORY = 150 << 20

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Do the imports that wait. Workers start this by themselves."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        # Told to stop, it gives its import back on the way out: another goes on with it at once.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        os.nice(10)
        limit_memory()
        import_jobs.when_unlocked(do_all, logger.warning)


def do_all() -> None:
    while job := import_jobs.claim():
        import_jobs.run(job)


def limit_memory() -> None:
    """Refuse this process more memory than an import needs, whatever a file says of itself."""
    # The other pools take much more at once than they need.
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401  what it takes is no import's

    # Its threads count, too.
    connection.ensure_connection()
    preview.limit_memory(MEMORY)
