"""People and a simulation reach for one run at the same moment: only one of the two gets it."""

import time
from functools import partial
from queue import Queue as Box
from threading import Thread

import pytest
from django.db import connection, transaction

from judge_eval.demo.load import Simulated, simulate
from tests.helpers.concurrent_calls import only, together
from tests.helpers.scene import assert_sound, make_scene
from tests.helpers.waiting import PATIENCE
from tests.makers import make_voter, seal_all
from voting.ballot import services
from voting.ballot.services import RecordedVote, VotingClosed, cast_simulated_votes, make_simulated
from voting.items.kinds import VoteAnswer
from voting.models import Entry, Queue

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]

PEOPLE = 4
PAIRS = 3


def votes_of(scene):
    return Entry.objects.filter(kind=Entry.Kind.VOTE, queue=scene.queue)


def kinds_in(scene):
    return set(votes_of(scene).values_list("simulated", flat=True))


@pytest.mark.parametrize("first", range(PEOPLE + 1))
def test_only_one_kind_of_vote_ends_up_in_a_run_whoever_comes_first(first):
    scene = make_scene(judges=2, pairs=PAIRS, voters=PEOPLE)
    script = make_voter(scene.run)
    pretend = partial(simulate, scene.run, script, "A", limit=None, seed=0)
    calls = [partial(services.cast_vote, scene.ballot(voter=n), "A") for n in range(PEOPLE)]
    calls.insert(first, pretend)

    answers = together(*calls, pretend)

    simulated, voted = only(Simulated, answers), only(RecordedVote, answers)
    assert len(only(VotingClosed, answers)) == len(answers) - len(simulated) - len(voted)
    assert bool(simulated) != bool(voted), answers
    assert kinds_in(scene) == {bool(simulated)}
    assert Queue.objects.get(pk=scene.queue.pk).is_simulated == bool(simulated)
    assert votes_of(scene).count() == (PAIRS if simulated else PEOPLE)
    seal_all(scene.project)
    assert_sound(scene.project)


def in_another_connection(call):
    """Begin a call; return a function that waits for what it raised or returned.

    It has begun to wait for a lock of this connection's transaction when this returns.
    """
    box = Box()

    def run():
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                box.put(cursor.fetchone()[0])
            box.put(call())
        except VotingClosed as closed:
            box.put(closed)
        finally:
            connection.close()

    thread = Thread(target=run)
    thread.start()
    pid = box.get(timeout=PATIENCE)
    deadline = time.monotonic() + 30
    while not is_blocked(pid):
        assert time.monotonic() < deadline, "it does not wait"
        time.sleep(0.01)
    return lambda: (thread.join(PATIENCE), box.get(timeout=PATIENCE))[1]


def is_blocked(pid):
    with connection.cursor() as cursor:
        cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid])
        return cursor.fetchone()[0]


@pytest.mark.postgresql_only
def test_a_vote_that_began_before_the_decision_waits_for_it_and_is_refused():
    scene = make_scene(judges=2, pairs=1, voters=1)
    with transaction.atomic():
        make_simulated(scene.queue)
        answer = in_another_connection(partial(services.cast_vote, scene.ballot(), "A"))
    assert str(answer()).startswith("This run holds simulated votes only")
    assert not votes_of(scene).exists()


@pytest.mark.postgresql_only
def test_a_vote_goes_on_when_the_decision_comes_to_nothing():
    scene = make_scene(judges=2, pairs=1, voters=1)
    with transaction.atomic():
        make_simulated(scene.queue)
        answer = in_another_connection(partial(services.cast_vote, scene.ballot(), "A"))
        transaction.set_rollback(True)
    assert isinstance(answer(), RecordedVote)
    assert kinds_in(scene) == {False}


@pytest.mark.postgresql_only
def test_a_decision_waits_for_a_vote_that_is_under_way_and_is_refused():
    scene = make_scene(judges=2, pairs=1, voters=1)
    with transaction.atomic():
        services.cast_vote(scene.ballot(), "A")
        answer = in_another_connection(partial(make_simulated, scene.queue))
    assert str(answer()).startswith("People have voted in this run")
    assert kinds_in(scene) == {False}


def test_simulations_of_one_key_at_once_vote_once_on_each_pair():
    scene = make_scene(judges=2, pairs=30, voters=0)
    script = make_voter(scene.run)
    pretend = partial(simulate, scene.run, script, "auto", limit=None, seed=1)

    answers = together(*[pretend] * 4)

    assert len(only(Simulated, answers)) == 4, answers
    assert sum(answer.voted for answer in answers) == 30
    assert votes_of(scene).count() == 30
    seal_all(scene.project)
    assert_sound(scene.project)


def test_many_who_decide_the_same_at_once_agree():
    scene = make_scene(judges=2, pairs=2, voters=1)
    assert together(*[partial(make_simulated, scene.queue)] * 4) == [None] * 4
    assert cast_simulated_votes(scene.queue, [(scene.ballot(), VoteAnswer("A"))]) == 1
