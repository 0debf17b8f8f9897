"""Tasks of the `votes` queue: a few lines each; the rows say what is left to do."""

from collections.abc import Iterable
from uuid import UUID

from celery import shared_task
from django.conf import settings

from humanjudge.server.metrics import count, timed
from voting.ballot.queries import projects_with_unsealed
from voting.ledger import ledger


@shared_task
def seal(project_id: str) -> None:
    _seal_by_turns([UUID(project_id)])


@shared_task
def sweep() -> None:
    """Seal what a lost task or an unreachable broker left behind."""
    _seal_by_turns(projects_with_unsealed())


def _seal_by_turns(projects: Iterable[UUID]) -> None:
    """Seal a batch of each project, and go on with all that wait while one has a backlog.

    So a vote elsewhere waits for a few batches of the others, never for all they have.
    """
    is_behind = True
    while is_behind:
        is_behind = False
        for project in projects:
            with timed("humanjudge_seal_seconds"):
                sealed = ledger.seal(project)
            count("humanjudge_entries_sealed_total", sealed)
            is_behind |= sealed == settings.SEAL_BATCH
        projects = projects_with_unsealed() if is_behind else ()
