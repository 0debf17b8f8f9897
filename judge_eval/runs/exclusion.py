"""Judges that somebody leaves out of a run's figures: an entry of the ledger, and reversible."""

from datetime import datetime
from typing import NamedTuple

from humanjudge.lib.strict_json import JsonObject
from judge_eval.models import Judge, Run
from judge_eval.runs.lifecycle import LifecycleRefused
from voting.curating import (
    AlreadyDecided,
    CannotDecide,
    decisions_on_judges,
    exclude_judge,
    include_judge,
)
from voting.models import Entry, Voter


class JudgeLeftOut(NamedTuple):
    """A judge that is left out, by whom, when and why."""

    judge: Judge
    who: str
    at: datetime
    why: str


def leave_out(judge: Judge, curator: Voter, why: str) -> None:
    """Leave a judge out of every figure of its run, until it is included again."""
    try:
        exclude_judge(judge.pk, judge.run.queue, curator, why)
    except AlreadyDecided as late:
        raise LifecycleRefused(f"{judge.name} is left out already.") from late


def include(judge: Judge, curator: Voter, why: str = "") -> None:
    """Let a judge count again that was left out."""
    try:
        include_judge(judge.pk, judge.run.queue, curator, why)
    except (AlreadyDecided, CannotDecide) as late:
        raise LifecycleRefused(f"{judge.name} is not left out.") from late


def left_out_of(run: Run) -> list[JudgeLeftOut]:
    """Return the judges that are left out as decisions stand, those too that are not sealed yet."""
    latest: dict[str, tuple[JsonObject, Entry]] = {}
    for decision in reversed(list(decisions_on_judges(run.queue))):
        payload = decision.payload or {}
        latest[payload["judge"]] = (payload, decision)
    if not latest:
        return []
    by = [payload["by"] for payload, _ in latest.values()]
    voters = Voter.objects.filter(project=run.queue.project_id, pseudonym__in=by)
    names = {voter.pseudonym: str(voter) for voter in voters}
    return [
        JudgeLeftOut(
            judge, names.get(payload["by"]) or str(payload["by"]), decision.at, decision.comment
        )
        for judge in run.judges.filter(pk__in=latest).order_by("position")
        for payload, decision in [latest[str(judge.pk)]]
        if payload["action"] == "exclude"
    ]
