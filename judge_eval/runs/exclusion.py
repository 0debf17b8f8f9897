"""Judges that somebody leaves out of a run's figures: an entry of the ledger, and reversible."""

from datetime import datetime
from typing import NamedTuple

from django.db.models import Count

from humanjudge.celery import enqueue
from judge_eval.judging.providers.errors import LEFT_OUT
from judge_eval.models import Judge, Run
from judge_eval.runs import lifecycle
from judge_eval.runs.lifecycle import LifecycleRefused
from voting.curating.services import (
    AlreadyDecided,
    CannotDecide,
    exclude_judge,
    include_judge,
    latest_on_judges,
)
from voting.models import Voter


class JudgeLeftOut(NamedTuple):
    """A judge that is left out, by whom, when and why, and how many calls wait for its return."""

    judge: Judge
    who: str
    at: datetime
    why: str
    held: int


def leave_out(judge: Judge, curator: Voter, reason: str) -> None:
    """Leave a judge out of every figure of its run, and ask it nothing, until it is included."""
    try:
        exclude_judge(judge.pk, judge.run.queue, curator, reason)
    except AlreadyDecided as late:
        raise LifecycleRefused(f"{judge.name} is left out already.") from late
    enqueue("judge_eval.tasks.advance", str(judge.run_id))


def include(judge: Judge, curator: Voter, reason: str = "") -> None:
    """Let a judge count again that was left out, and make the calls that were held."""
    try:
        include_judge(judge.pk, judge.run.queue, curator, reason)
    except (AlreadyDecided, CannotDecide) as late:
        raise LifecycleRefused(f"{judge.name} is not left out.") from late
    lifecycle.ask_held(judge)


def left_out_of(run: Run) -> list[JudgeLeftOut]:
    """Return the judges that are left out as decisions stand, those too that are not sealed yet."""
    latest = latest_on_judges(run.queue)
    if not latest:
        return []
    pseudonyms = [payload["by"] for payload, _ in latest.values()]
    voters = Voter.objects.filter(project=run.queue.project_id, pseudonym__in=pseudonyms)
    names = {voter.pseudonym: str(voter) for voter in voters}
    held_calls = run.calls.filter(error=LEFT_OUT).order_by()
    held_counts = dict(held_calls.values_list("verdict__judge").annotate(n=Count("pk")))
    return [
        JudgeLeftOut(
            judge=judge,
            who=names.get(payload["by"]) or str(payload["by"]),
            at=decision.at,
            why=decision.comment,
            held=held_counts.get(judge.pk, 0),
        )
        for judge in run.judges.filter(pk__in=latest).order_by("position")
        for payload, decision in [latest[str(judge.pk)]]
        if payload["action"] == "exclude"
    ]
