"""Imports that are asked for, by workers that are at work together, beside voters, or die."""

import pytest

from judge_eval.imports import import_jobs
from judge_eval.models import Import
from tests.helpers.concurrent_calls import only, together
from tests.helpers.imports import assert_whole, imported, pair, vote, votes_of
from tests.helpers.reference import assert_as_expected
from tests.judge_eval.imports.test_import_jobs import PAIRS, SOURCE, asked, file_of, kill_at, worked
from tests.makers import make_vote, make_voter, pairs_of
from voting.models import Entry

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def small_chunks(monkeypatch, settings):
    settings.SEAL_BATCH = 4
    monkeypatch.setattr("judge_eval.imports.import_scratch.MOST_ROWS", 4)


def test_people_vote_while_an_import_is_written(small_chunks):
    run = imported(*[pair(n) for n in PAIRS], votes_per_pair=5)
    pairs, person = pairs_of(run), make_voter(run)
    asked(run.queue.project, file_of(*SOURCE), run=run, baselines=False)
    answers = together(worked, lambda: [make_vote(person, each, "B") for each in pairs])
    assert not only(Exception, answers)
    assert Import.objects.get().state == "done"
    assert Entry.objects.filter(kind="vote").count() == 2 * len(PAIRS)


def test_one_import_at_a_time_and_none_twice():
    run = imported(pair(0))
    for _ in range(3):
        asked(run.queue.project, file_of(*SOURCE), run=run)
    answers = together(*[worked] * 3)
    assert not only(Exception, answers)
    worked()
    reports = [job.report for job in Import.objects.order_by("done_at")]
    assert [report["new"]["votes"] for report in reports] == [len(PAIRS), 0, 0]
    assert [report["already"]["votes"] for report in reports] == [0, len(PAIRS), len(PAIRS)]
    assert_as_expected(run)
    assert_whole(run.queue.project)


def test_a_run_that_is_added_to_gets_everything_once_whoever_dies(small_chunks):
    run = imported(pair(0), vote(0, "v0", "A"))
    asked(run.queue.project, file_of(*SOURCE), run=run, baselines=False)
    for step in (1, 2, 3, 4, 3, 3):
        kill_at(import_jobs.claim(), step)
    worked()
    job = Import.objects.get()
    assert (job.state, job.report["already"]["votes"], job.report["new"]["votes"]) == (
        "done",
        1,
        len(PAIRS) - 1,
    )
    assert len(votes_of(run)) == len(PAIRS)
    assert_as_expected(run)
    assert_whole(run.queue.project)
