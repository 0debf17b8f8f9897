"""Tasks of the `votes` queue: a few lines each; the rows say what is left to do."""

from uuid import UUID

from celery import shared_task
from django.conf import settings

from humanjudge.metrics import count, timed
from voting.ledger import ledger
from voting.selectors import projects_with_unsealed


@shared_task
def seal(project_id: str) -> None:
    sealed = settings.SEAL_BATCH
    while sealed == settings.SEAL_BATCH:
        with timed("humanjudge_seal_seconds"):
            sealed = ledger.seal(UUID(project_id))
        count("humanjudge_entries_sealed_total", sealed)


@shared_task
def sweep() -> None:
    """Seal what a lost task or an unreachable broker left behind."""
    for project_id in projects_with_unsealed():
        seal(str(project_id))
