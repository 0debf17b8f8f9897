"""Sealing under fire: many sealers, late commits, and a process that dies in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction
from django.utils import timezone

from tests.helpers.concurrent_calls import only, together
from tests.helpers.scene import assert_sound, assert_whole, make_scene
from tests.helpers.waiting import PATIENCE
from tests.makers import seal_all
from tests.process.processes import ROOT, test_database_url
from voting.ballot import services
from voting.ledger import ledger
from voting.models import Entry, Project

pytestmark = [
    pytest.mark.process,
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgresql_only,
]


def vote_on_everything(scene, voters):
    for voter in voters:
        for pair in range(len(scene.pairs)):
            services.cast_vote(scene.ballot(voter, pair), "AB"[(voter + pair) % 2])


def later():
    """A moment at which every vote of the test is old enough to be sealed."""
    return timezone.now() + timedelta(hours=1)


def test_eight_sealers_at_once_seal_every_entry_once(settings):
    settings.SEAL_BATCH = 7
    scene = make_scene(pairs=20, voters=4)
    vote_on_everything(scene, range(4))

    def seal_everything():
        sealed = 0
        while batch := ledger.seal(scene.project.pk, now=later()):
            sealed += batch
        return sealed

    sealed = together(*[seal_everything] * 8)

    assert sum(sealed) == 80
    assert_sound(scene.project)


def test_sealers_and_voters_at_once(settings):
    settings.SEAL_BATCH = 5
    scene = make_scene(pairs=25, voters=4)
    voting = threading.Event()
    voting.set()

    def seal_meanwhile():
        while voting.is_set():
            ledger.seal(scene.project.pk, now=later())

    def vote(voter):
        for pair in range(25):
            services.cast_vote(scene.ballot(voter, pair), "A")
            if pair % 4 == 0:
                services.undo_last_vote(scene.voters[voter], scene.queue)

    def vote_then_stop():
        try:
            return together(*[partial(vote, voter) for voter in range(4)])
        finally:
            voting.clear()

    voted, *sealers = together(vote_then_stop, *[seal_meanwhile] * 3)

    assert not only(Exception, [*voted, *sealers])
    seal_all(scene.project)
    assert_sound(scene.project)
    assert Entry.objects.filter(kind=Entry.Kind.VOTE).count() == 100
    assert Entry.objects.filter(kind=Entry.Kind.RETRACTION).count() == 28


def test_a_vote_that_commits_late_is_sealed_behind_votes_with_larger_ids():
    scene = make_scene(pairs=10, voters=2)
    inserted, may_commit = threading.Event(), threading.Event()

    def vote_and_hesitate():
        with transaction.atomic():
            recorded = services.cast_vote(scene.ballot(voter=1), "B")
            inserted.set()
            assert may_commit.wait(timeout=PATIENCE)
        return recorded

    def vote_meanwhile():
        assert inserted.wait(timeout=PATIENCE)
        try:
            vote_on_everything(scene, [0])
            seal_all(scene.project)
            assert_sound(scene.project)
        finally:
            may_commit.set()

    late, meanwhile = together(vote_and_hesitate, vote_meanwhile)

    assert meanwhile is None
    entry = Entry.objects.get(uid=late.uid)
    assert entry.seq is None
    seal_all(scene.project)
    assert_sound(scene.project)
    entry.refresh_from_db()
    assert entry.seq == Entry.objects.count()
    assert Entry.objects.filter(id__gt=entry.id, seq__lt=entry.seq).count() == 10


def test_a_sealer_that_waited_for_the_lock_sees_what_the_other_one_sealed():
    scene = make_scene(pairs=10)
    vote_on_everything(scene, [0])
    locked, may_seal = threading.Event(), threading.Event()

    def seal_slowly():
        with transaction.atomic():
            Project.objects.select_for_update(no_key=True).get(pk=scene.project.pk)
            locked.set()
            assert may_seal.wait(timeout=PATIENCE)
            return ledger.seal(scene.project.pk, now=later())

    def seal_second():
        assert locked.wait(timeout=PATIENCE)
        threading.Timer(0.2, may_seal.set).start()
        return ledger.seal(scene.project.pk, now=later())

    assert together(seal_slowly, seal_second) == [10, 0]
    assert_sound(scene.project)


def test_voting_goes_on_while_a_batch_is_being_sealed():
    """The lock of sealing is not one that an INSERT of a vote waits for."""
    scene = make_scene(pairs=10, voters=2)
    vote_on_everything(scene, [0])
    with transaction.atomic():
        ledger.seal(scene.project.pk, now=later())
        (answer,) = together(partial(services.cast_vote, scene.ballot(voter=1), "A"))

    assert isinstance(answer, services.RecordedVote)
    seal_all(scene.project)
    assert_sound(scene.project)


@pytest.mark.fault
def test_a_process_killed_in_the_middle_of_sealing_leaves_nothing_half_written():
    scene = make_scene(pairs=200, voters=8, judges=6)
    vote_on_everything(scene, range(4))
    for _ in range(30):
        services.undo_last_vote(scene.voters[1], scene.queue)
    sealer = subprocess.Popen(
        [sys.executable, "-m", "tests.process.killed_sealer", str(scene.project.pk), "20"],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": test_database_url()},
        stdout=subprocess.PIPE,
        text=True,
    )
    vote_on_everything(scene, range(4, 8))
    output, _ = sealer.communicate(timeout=PATIENCE)

    assert sealer.returncode == 0
    assert output.split() == ["killed", "20"]
    assert_whole(scene.project)
    seal_all(scene.project)
    assert_sound(scene.project)
    assert Entry.objects.filter(kind=Entry.Kind.VOTE).count() == 1600
