"""Runs that are open for tuning, with votes, and variants that join them."""

from judge_eval.board.filters import TUNING_HALF
from judge_eval.judging.config.run_config import JoiningJudges
from judge_eval.models import Run
from judge_eval.workshop import services
from judge_eval.workshop.findings import tuning_figures
from tests.helpers.run_findings import compute
from tests.helpers.run_maker import make_provider
from tests.makers import make_single_run, make_vote, make_voter, seal_all


def make_voted_run(items=24, *, outputs=None, **options):
    """A finished run of texts with a vote on each."""
    outputs = outputs or [f"Answer {n} {'x' * n}" for n in range(items)]
    run = make_single_run(outputs=outputs, **options)
    voter = make_voter(run)
    for n, item in enumerate(run.queue.items.order_by("position")):
        make_vote(voter, item, "pass" if n % 2 else "flag")
    seal_all(run.queue.project)
    return Run.objects.select_related("queue").get(pk=run.pk)


def disagreeing(texts):
    """Let judge-careful say of each text what the vote on it does not: it counts characters."""
    return [text + "x" * ((len(text) + n + 1) % 2) for n, text in enumerate(texts)]


def opened(at, **options):
    make_provider(at)
    run = make_voted_run(**options)
    services.open_for_tuning(run)
    return fresh(run)


def fresh(run):
    seal_all(run.queue.project)
    return Run.objects.select_related("queue__project", "queue__rubric", "board").get(pk=run.pk)


def counted(run):
    """The figures of the tuning half, computed as a worker would."""
    run = fresh(run)
    compute(run, str(TUNING_HALF))
    figures, behind, _ = tuning_figures(run)
    assert not behind
    return figures


def joining(*specs, **beside):
    return JoiningJudges.model_validate({"judges": specs, **beside})
