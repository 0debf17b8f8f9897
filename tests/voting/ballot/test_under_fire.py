"""People vote, workers seal, and meanwhile workers are killed and the broker forgets."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from humanjudge.celery import app
from tests.helpers.scene import assert_sound, make_scene
from tests.helpers.waiting import eventually
from tests.process.processes import Site, test_database_url
from voting.ballot import services
from voting.models import Entry, Item

pytestmark = pytest.mark.process

VOTERS = 8
SECONDS = 12
FLUSHES = (3, 8)


class Person:
    """Votes on pair after pair, undoes some votes, repeats some requests, and remembers it all."""

    def __init__(self, scene, number):
        self.scene, self.number = scene, number
        self.dice = random.Random(number)
        self.acknowledged = set()
        self.undone = set()

    def vote_until(self, stop):
        try:
            pairs = list(range(1, len(self.scene.pairs)))
            while pairs and not stop.is_set():
                pair = pairs.pop()
                if self.vote_on(pair) == "undone":
                    pairs.insert(0, pair)
                time.sleep(self.dice.uniform(0, 0.04))
        finally:
            connection.close()

    def vote_on(self, pair):
        ballot = self.scene.ballot(self.number, pair)
        choice = self.dice.choice("AB")
        recorded = services.cast_vote(ballot, choice)
        assert not recorded.repeated
        self.acknowledged.add(recorded.uid)
        event = self.dice.random()
        if event < 0.15:
            again = services.cast_vote(ballot, choice)
            assert (again.uid, again.repeated) == (recorded.uid, True)
        elif event < 0.2:
            with pytest.raises(services.VoteConflict):
                services.cast_vote(self.scene.ballot(self.number, pair), "both_bad")
        elif event < 0.3:
            services.undo_last_vote(self.scene.voters[self.number], self.scene.queue)
            self.undone.add(recorded.uid)
            return "undone"
        return "voted"


def forget_all_tasks():
    with app.connection_for_write() as broker:
        broker.default_channel.client.flushdb()


@pytest.mark.fault
@pytest.mark.slow
@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_every_acknowledged_vote_is_sealed_exactly_once(tmp_path, settings):
    forget_all_tasks()
    scene = make_scene(judges=6, pairs=800, voters=VOTERS)
    people = [Person(scene, number) for number in range(VOTERS)]
    stop = threading.Event()
    with Site(tmp_path, test_database_url(), settings.CELERY_BROKER_URL) as site:
        site.worker()
        site.beat()
        people[0].vote_on(0)
        eventually(lambda: not Entry.objects.filter(seq__isnull=True).exists())
        with ThreadPoolExecutor(VOTERS) as pool:
            voting = [pool.submit(person.vote_until, stop) for person in people]
            for second in range(SECONDS):
                mortal = site.worker()
                time.sleep(1)
                site.kill(mortal)
                if second in FLUSHES:
                    forget_all_tasks()
            scene.project.refresh_from_db()
            sealed_meanwhile = scene.project.head_seq
            stop.set()
        eventually(lambda: not Entry.objects.filter(seq__isnull=True).exists())

    assert [future.result() for future in voting] == [None] * VOTERS
    acknowledged = set().union(*(person.acknowledged for person in people))
    undone = set().union(*(person.undone for person in people))
    assert sealed_meanwhile > len(acknowledged) / 2
    votes = Entry.objects.filter(kind=Entry.Kind.VOTE)
    assert set(votes.values_list("uid", flat=True)) == acknowledged
    retractions = Entry.objects.filter(kind=Entry.Kind.RETRACTION)
    assert sorted(retractions.values_list("target__uid", flat=True)) == sorted(undone)
    assert_sound(scene.project)
    counted = sum(Item.objects.values_list("votes", flat=True))
    assert counted == len(acknowledged - undone)
