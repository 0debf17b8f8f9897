"""Another wording of a variant's instructions, suggested by a model: one call, its reply a draft.

Workers make it as they make those of trials: it is made once, within the budget of the run.
"""

from typing import NamedTuple

from humanjudge.celery import enqueue
from judge_eval.judging import provider_access, trial
from judge_eval.models import Call, Judge, Run
from judge_eval.runs.lifecycle import JOINABLE, LifecycleRefused, forget_trials, locked_run
from judge_eval.workshop.disagreements import tagged


class Suggestion(NamedTuple):
    """The last one of a run: its text, or why there is none; neither while it is waited for."""

    judge: Judge
    model: str
    text: str
    error: str

    @property
    def is_waiting(self) -> bool:
        return not (self.text or self.error)


def suggest(run: Run, judge: Judge, provider: str, model: str) -> None:
    """Let a worker ask a model for another wording; one at a time."""
    if not run.queue.is_tuning:
        raise LifecycleRefused("Wordings are suggested while the tuning is open.")
    if provider_access.find(provider, run.queue.project_id) is None:
        raise LifecycleRefused(provider_access.no_such(provider))
    if not tagged(judge):
        raise LifecycleRefused(f"Tag some disagreements of {judge.name} first.")
    with locked_run(run.pk, *JOINABLE, otherwise="wait until it has asked its judges") as fresh_run:
        former = latest(fresh_run)
        if former and former.is_waiting:
            raise LifecycleRefused(f"{former.model} is being asked; wait for its answer.")
        forget_trials(fresh_run)
        Call.objects.create(
            run=fresh_run, purpose=Call.Purpose.SUGGEST, judge=judge, provider=provider, model=model
        )
        fresh_run.record("suggestion", f"{model} is asked for another wording of {judge.name}.")
        enqueue("judge_eval.tasks.work")


def latest(run: Run) -> Suggestion | None:
    call = run.calls.filter(purpose=Call.Purpose.SUGGEST).select_related("judge").first()
    if call is None or call.judge is None:
        return None
    error = call.error if call.state == Call.State.FAILED else trial.why_lost(call)
    text = call.reply if call.state == Call.State.DONE else ""
    return Suggestion(call.judge, call.model, text, error)
