"""Runs with findings for the tests of their pages, computed as a worker would."""

from django.utils import timezone

from judge_eval.board import cache
from judge_eval.models import Findings, Judge
from tests.helpers.waiting import eventually
from tests.makers import make_many_votes, make_run, make_voter, pairs_of, seal_all

JUDGES = ["near-judge", "contrary-judge", "floor-baseline"]


def compute(run, part=""):
    """Compute findings as the background does, and return them."""
    Findings.objects.get_or_create(run=run, part=part)
    row = Findings.objects.filter(run=run, part=part)
    row.update(not_before=timezone.now(), computed_at=None)
    if not cache.compute(run.pk, part):
        # A worker of the running product, where there is one, was quicker.
        eventually(row.filter(computed_at__isnull=False).exists)
    return row.get()


def voted_run(*, people=3, pairs=40, computed=True, **fields):
    """A run in which everybody votes A, which is what generator-0 wrote, on three of four pairs.

    One judge says what people say on all pairs but two, one says B, and a baseline says A.
    """
    said = ["B" if place % 4 == 0 else "A" for place in range(pairs)]
    says = [
        ["AB"[(choice == "B") ^ (place in (1, 2))], "B", "A"] for place, choice in enumerate(said)
    ]
    run = make_run(pairs=pairs, says=says, names=JUDGES, votes_wanted=max(1, people), **fields)
    Judge.objects.filter(run=run).exclude(name="floor-baseline").update(provider="imported")
    voters = [make_voter(run) for _ in range(people)]
    chosen = list(zip(pairs_of(run), said, strict=True))
    make_many_votes(run, [(voter, *vote) for voter in voters for vote in chosen])
    seal_all(run.queue.project)
    if computed:
        compute(run)
    return run
