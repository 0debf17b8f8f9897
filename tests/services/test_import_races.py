"""Imports at the same moment as each other, as votes, and as what else moves a run."""

from functools import partial
from itertools import count

import pytest

from judge_eval.engine import lifecycle
from judge_eval.models import Run
from tests.concurrency.together import only, together
from tests.makers import make_vote, make_voter, pairs_of, seal_all
from tests.services.imports import added, assert_whole, imported, pair, study
from tests.services.reference import assert_as_expected
from voting import ledger
from voting.models import Entry

pytestmark = pytest.mark.django_db(transaction=True)

PAIRS = range(40)
SOURCE = study(PAIRS, voters=7)


def test_people_vote_and_seals_go_on_while_an_import_is_written():
    run = imported(*[pair(n) for n in PAIRS], votes_per_pair=5)
    project, pairs = run.queue.project, pairs_of(run)
    people = [make_voter(run) for _ in range(2)]

    def vote_on_all(person):
        return [make_vote(person, each, "B") for each in pairs]

    def keep_sealing():
        return sum(ledger.seal(project.pk) for _ in range(20))

    answers = together(
        partial(added, run, *SOURCE), keep_sealing, *[partial(vote_on_all, p) for p in people]
    )
    assert not only(Exception, answers)
    seal_all(project)
    assert Entry.objects.filter(kind="vote", seq__isnull=False).count() == 3 * 40
    assert_as_expected(run)
    assert_whole(project)


def test_a_run_may_be_stopped_and_resumed_while_an_import_is_written():
    run = imported(*[pair(n) for n in PAIRS])
    turns = count()

    def stop_and_resume():
        while next(turns) < 5:
            lifecycle.stop(run.pk)
            lifecycle.resume(run.pk)
            Run.objects.filter(pk=run.pk).update(state="voting")

    answers = together(partial(added, run, *SOURCE), stop_and_resume)
    assert not only(Exception, answers)
    assert_as_expected(run)
    assert_whole(run.queue.project)
