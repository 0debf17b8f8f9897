"""Sealing: numbers without gaps in the order of the times, once, however often it is asked for."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.makers import (
    elos_of,
    entry_of,
    make_many_entries,
    make_many_votes,
    make_project,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ballot.services import undo_last_vote
from voting.ledger import chain, ledger
from voting.ledger.bulk_sql import LedgerConflict
from voting.models import Entry, Item, Project, Voter
from voting.tasks import seal as seal_task
from voting.tasks import sweep

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def voted(run, number, *, at=None):
    voter = make_voter(run)
    return [make_vote(voter, pair, at=at) for pair in pairs_of(run)[:number]]


def numbers_of(run):
    entries = Entry.objects.filter(project=run.queue.project, seq__isnull=False)
    return list(entries.order_by("seq").values_list("seq", flat=True))


def test_numbers_have_no_gap_and_the_head_is_the_last(settings):
    settings.SEAL_BATCH = 4
    run = make_run(pairs=9)
    voted(run, 9)
    assert seal_all(run.queue.project) == 9
    assert numbers_of(run) == list(range(1, 19))
    assert run.queue.project.head_seq == 18
    last = Entry.objects.get(project=run.queue.project, seq=18)
    assert bytes(last.hash).hex() == run.queue.project.ledger_head


def test_one_call_seals_one_batch_of_the_oldest(settings):
    run = make_run(pairs=5)
    votes = voted(run, 5)
    settings.SEAL_BATCH = 2
    assert ledger.seal(run.queue.project.pk, now=timezone.now() + timedelta(seconds=1)) == 2
    assert [entry_of(vote).seq for vote in votes] == [6, 7, None, None, None]


def test_the_order_is_that_of_the_times_then_of_the_rows():
    run = make_run(pairs=4)
    voter, pairs = make_voter(run), pairs_of(run)
    early = timezone.now() - timedelta(minutes=1)
    votes = [
        make_vote(voter, pairs[0]),
        make_vote(voter, pairs[1], at=early),
        make_vote(voter, pairs[2], at=early),
        make_vote(voter, pairs[3], at=early - timedelta(seconds=1)),
    ]
    seal_all(run.queue.project)
    assert [entry_of(vote).seq for vote in votes] == [8, 6, 7, 5]


def test_votes_younger_than_the_window_wait(settings):
    run = make_run(pairs=2)
    voter, pairs, now = make_voter(run), pairs_of(run), timezone.now()
    window = timedelta(milliseconds=settings.SEAL_WINDOW_MS)
    old = make_vote(voter, pairs[0], at=now - window)
    young = make_vote(voter, pairs[1], at=now - window / 2)
    assert ledger.seal(run.queue.project.pk, now=now) == 1
    assert (entry_of(old).seq, entry_of(young).seq) == (3, None)


def test_votes_cast_before_the_clock_went_back_do_not_wait_until_it_is_that_late_again():
    run = make_run(pairs=2)
    voter, pairs, now = make_voter(run), pairs_of(run), timezone.now()
    before = make_vote(voter, pairs[0], at=now + timedelta(hours=1))
    of_a_clock_ahead = make_vote(voter, pairs[1], at=now + timedelta(seconds=1))
    assert ledger.seal(run.queue.project.pk, now=now) == 1
    assert (entry_of(before).seq, entry_of(of_a_clock_ahead).seq) == (3, None)


def test_asked_again_there_is_nothing_to_do():
    run = make_run(pairs=3)
    votes = voted(run, 3)
    seal_all(run.queue.project)
    before = [(entry_of(vote).seq, bytes(entry_of(vote).hash)) for vote in votes], elos_of(run)
    assert seal_all(run.queue.project) == 0
    assert ([(entry_of(vote).seq, bytes(entry_of(vote).hash)) for vote in votes], elos_of(run)) == (
        before
    )


def test_an_older_vote_that_comes_late_is_numbered_behind():
    run = make_run(pairs=2)
    voter, pairs = make_voter(run), pairs_of(run)
    make_vote(voter, pairs[0])
    seal_all(run.queue.project)
    late = make_vote(voter, pairs[1], at=timezone.now() - timedelta(hours=1))
    seal_all(run.queue.project)
    assert entry_of(late).seq == 4
    assert ledger.replay(run.queue.project, write=False) == []


def test_projects_have_chains_of_their_own():
    one, other = make_run(), make_run()
    voted(one, 1)
    voted(other, 1)
    seal_all(one.queue.project)
    seal_all(other.queue.project)
    assert numbers_of(one) == numbers_of(other) == [1, 2]
    assert one.queue.project.ledger_head != other.queue.project.ledger_head


def test_an_export_verifies_to_the_head(settings):
    settings.SEAL_BATCH = 3
    run = make_run(pairs=7)
    voter = make_voter(run)
    for pair in pairs_of(run):
        make_vote(voter, pair)
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    project = run.queue.project
    verified = chain.verify(ledger.export(project, chunk=4), project.ledger_head)
    assert (verified.project, verified.entries) == (project.pk, 15)


def test_a_project_without_entries_exports_its_header():
    project = make_project()
    lines = list(ledger.export(project))
    assert chain.verify(lines, project.ledger_head).entries == 0


def test_unsealed_votes_are_not_exported():
    run = make_run()
    voted(run, 1)
    assert len(list(ledger.export(run.queue.project))) == 2


def test_a_full_batch_of_as_many_people_and_as_many_second_thoughts(settings):
    run = make_run(votes_wanted=2000)
    project, [pair] = run.queue.project, pairs_of(run)
    voters = Voter.objects.bulk_create(Voter(project=project) for _ in range(settings.SEAL_BATCH))
    votes = make_many_votes(run, [(voter, pair, "A") for voter in voters])
    assert seal_all(project) == settings.SEAL_BATCH
    Entry.objects.filter(pk__in=[vote.pk for vote in votes]).update(retracted=True)
    make_many_entries(
        run, "retraction", [{"voter": vote.voter, "item": pair, "target": vote} for vote in votes]
    )
    assert seal_all(project) == settings.SEAL_BATCH
    assert elos_of(run) == [1000.0, 1000.0]
    verified = chain.verify(ledger.export(project), project.ledger_head)
    assert verified.entries == 2 * settings.SEAL_BATCH + 1


def test_the_queries_of_a_batch_do_not_grow_with_its_votes():
    counts = []
    for votes in (1, 60):
        run = make_run(pairs=60)
        voted(run, votes)
        with CaptureQueriesContext(connection) as queries:
            ledger.seal(run.queue.project.pk, now=timezone.now() + timedelta(seconds=1))
        # executemany is one round trip, whatever the log of the driver makes of it.
        counts.append(len({query["sql"].split(" WHERE ")[0] for query in queries}))
    assert counts[1] <= counts[0] + 1


class Breaking:
    """A projection that fails in one of its steps; the others have written by then."""

    step = "write"

    def __init__(self, project):
        self.project = project

    def read(self, batch):
        self.fail("read")

    def compute(self):
        self.fail("compute")

    def write(self):
        self.fail("write")

    def fail(self, step):
        if step == self.step:
            raise RuntimeError("no room on the disk")

    def rebuild(self, *, write):
        return []


def unsealed_state(run):
    run.queue.project.refresh_from_db()
    project = run.queue.project
    votes = Item.objects.filter(queue=run.queue).values_list("votes", flat=True)
    return project.head_seq, project.ledger_head, elos_of(run), list(votes), numbers_of(run)


@pytest.mark.parametrize("step", ["read", "compute", "write"])
def test_a_projection_that_fails_rolls_everything_back(monkeypatch, step):
    run = make_run(pairs=2)
    voted(run, 2)
    before = unsealed_state(run)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "projections", lambda: (*_projections(), Breaking))
        patch.setattr(Breaking, "step", step)
        with pytest.raises(RuntimeError, match="no room"):
            seal_all(run.queue.project)
    assert unsealed_state(run) == before
    assert seal_all(run.queue.project) == 2


_projections = ledger.projections


def test_a_head_that_moved_rolls_everything_back(monkeypatch):
    run = make_run(pairs=2)
    voted(run, 2)

    class Moving(Breaking):
        def write(self):
            Project.objects.filter(pk=self.project.pk).update(head_seq=99)

    before = unsealed_state(run)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "projections", lambda: (*_projections(), Moving))
        with pytest.raises(LedgerConflict, match="head"):
            seal_all(run.queue.project)
    assert unsealed_state(run) == before


def test_a_vote_that_somebody_else_sealed_rolls_everything_back(monkeypatch):
    run = make_run(pairs=2)
    votes = voted(run, 2)

    class Sealing(Breaking):
        def write(self):
            Entry.objects.filter(uid=votes[0].uid).update(seq=77, hash=b"x" * 32)

    before = unsealed_state(run)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "projections", lambda: (*_projections(), Sealing))
        with pytest.raises(LedgerConflict, match="1 rows changed, 2 expected"):
            seal_all(run.queue.project)
    assert unsealed_state(run) == before


def test_the_task_seals_batch_after_batch(settings):
    settings.SEAL_BATCH = 2
    settings.SEAL_WINDOW_MS = 0
    run = make_run(pairs=5)
    voted(run, 5)
    seal_task(str(run.queue.project_id))
    assert numbers_of(run) == list(range(1, 11))


def test_nobody_waits_behind_the_backlog_of_others(settings, monkeypatch):
    settings.SEAL_BATCH, settings.SEAL_WINDOW_MS = 2, 0
    large, small = make_run(pairs=9), make_run()
    for run, votes in ((large, 9), (small, 1)):
        voted(run, votes)
    turns = []
    plain = ledger.seal
    monkeypatch.setattr(ledger, "seal", lambda project: turns.append(project) or plain(project))
    seal_task(str(large.queue.project_id))
    assert numbers_of(small) == [1, 2]
    assert turns.index(small.queue.project_id) <= 2
    assert len(numbers_of(large)) == 18


def test_the_sweep_finds_what_no_task_was_published_for(settings):
    settings.SEAL_WINDOW_MS = 0
    runs = [make_run(), make_run(), make_run()]
    for run in runs[:2]:
        voted(run, 1)
    sweep()
    assert [len(numbers_of(run)) for run in runs] == [2, 2, 1]
