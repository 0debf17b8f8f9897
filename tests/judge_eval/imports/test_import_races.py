"""Imports at the same moment as each other, as votes, and as what else moves a run."""

from functools import partial
from io import BytesIO
from itertools import count, groupby

import pytest
from django.db import connection

from judge_eval.exports.export import export_run
from judge_eval.imports.restore import Restoring
from judge_eval.models import Import, Run
from judge_eval.runs import lifecycle
from judge_eval.runs.queries import board
from tests.helpers.bundles import as_file, empty_the_instance, facts_of, restored
from tests.helpers.concurrent_calls import only, together
from tests.helpers.imports import added, assert_whole, imported, pair, study
from tests.helpers.reference import assert_as_expected
from tests.judge_eval.exports.test_export_round_trip import make_eventful_run
from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all
from voting.ledger import ledger
from voting.models import Entry

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]

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


def test_between_any_two_chunks_of_a_bundle_people_vote(monkeypatch):
    monkeypatch.setattr("judge_eval.imports.import_scratch.MOST_ROWS", 4)
    lines = list(export_run(make_eventful_run()))
    empty_the_instance()
    busy = make_run(pairs=40)
    project, person, pairs = busy.queue.project, make_voter(busy), iter(pairs_of(busy))
    steps, votes, before = [], [], Entry.objects.count()

    class Watched(BytesIO):
        def readline(self, size=-1):
            assert not connection.in_atomic_block
            assert list(Run.objects.all()) == [busy]
            if len(steps) > len(votes):
                votes.append(make_vote(person, next(pairs)))
                seal_all(project)
            return super().readline(size)

    job = Import.objects.create(project=project, is_bundle=True, form={})
    job.on_progress = lambda: steps.append(1) if connection.in_atomic_block else None
    Restoring(job, Watched(as_file(lines).read())).write()
    report = job.report
    assert Run.objects.filter(pk__in=report["runs"], queue__is_open=True).exists()
    assert len(steps) > 10
    # Behind the last chunk, which may be short, and behind the end nothing is read.
    assert board(busy).votes == len(votes)
    assert len(steps) - len(votes) in (1, 2)
    entries = Entry.objects.order_by("seq").values_list("queue", flat=True)[before:]
    in_a_row = [list(of_one) for queue, of_one in groupby(entries) if queue != busy.queue_id]
    assert max(map(len, in_a_row)) == 4
    assert_whole(project)


def test_people_vote_and_seals_go_on_while_a_bundle_is_restored():
    run = imported(*SOURCE)
    lines = list(export_run(run))
    expected = facts_of(run)
    empty_the_instance()
    busy = make_run(pairs=40, votes_wanted=2)
    project, people = busy.queue.project, [make_voter(busy) for _ in range(2)]

    def vote_on_all(person):
        return [make_vote(person, each) for each in pairs_of(busy)]

    answers = together(
        partial(restored, lines, project),
        lambda: sum(ledger.seal(project.pk) for _ in range(20)),
        *[partial(vote_on_all, person) for person in people],
    )
    assert not only(Exception, answers)
    seal_all(project)
    [[back], *_] = answers
    assert facts_of(back) == expected
    assert board(busy).votes == 80
    assert_whole(project)
