"""Drafts of runs: nothing was asked or voted on yet, so they alone may be deleted."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import ProtectedError

from judge_eval.config.run_config import RunConfig
from judge_eval.models import Judge, Run
from judge_eval.runs.lifecycle import LifecycleRefused, create_draft
from voting.models import Project


def create(project: Project | str, config: RunConfig) -> Run:
    """Draft a run in a project, or in a new one of this name."""
    with transaction.atomic():
        if isinstance(project, str):
            project = Project.objects.create(name=project)
        return create_draft(project, config)


def delete(run_id: UUID) -> None:
    """Delete a draft with its judges and its queue; its project and its rubric stay."""
    try:
        with transaction.atomic():
            runs = Run.objects.select_for_update(of=("self",), no_key=True)
            run = runs.select_related("queue").get(pk=run_id)
            if run.state != Run.State.DRAFT:
                raise LifecycleRefused(f"This run is {run.state}; only a draft can be deleted.")
            Judge.objects.filter(run=run).delete()
            run.delete()
            run.queue.delete()
    except ProtectedError as error:
        raise LifecycleRefused("Something refers to this draft already, so it stays.") from error
