"""Web servers and workers are killed with -9 in the middle of their work."""

import io
import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

from judge_eval.demo import load
from judge_eval.imports import import_jobs
from judge_eval.imports.import_jobs import SourceFile
from judge_eval.models import Import, Run, Verdict
from tests.helpers.imports import pair, verdict, vote
from tests.helpers.scene import assert_sound, make_scene
from tests.helpers.waiting import eventually
from tests.makers import make_invite, make_project, seal_all
from tests.process.http_voter import HttpVoter
from tests.process.processes import Site, test_database_url
from voting.models import Entry, Inference, Item, Picture, Project
from voting.people.voters import invite_token

pytestmark = [
    pytest.mark.process,
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.postgresql_only,
    pytest.mark.django_db(transaction=True),
]

VOTERS = 4
VOTES_EACH = 60
WEB_KILLS = 3
WORKER_KILLS = 4


@pytest.fixture
def site(tmp_path, static, settings):
    with Site(
        tmp_path,
        test_database_url(),
        settings.CELERY_BROKER_URL,
        SECRET_KEY=settings.SECRET_KEY,
    ) as processes:
        processes.serve_static(static)
        yield processes


def test_votes_sent_to_a_web_server_that_is_killed_again_and_again(site):
    scene = make_scene(pairs=VOTES_EACH, voters=0)
    invite = f"/join/{invite_token(make_invite(scene.run))}/"
    web = site.web()
    with ThreadPoolExecutor(VOTERS) as pool:
        people = [HttpVoter(site.url, invite) for _ in range(VOTERS)]
        voting = [pool.submit(vote_on_everything, person) for person in people]
        for kill in range(1, WEB_KILLS + 1):
            due = kill * VOTERS * VOTES_EACH // (WEB_KILLS + 1)
            eventually(lambda: Entry.objects.filter(kind="vote").count() >= due)  # noqa: B023
            site.kill(web)
            web = site.web()
        tries = sum((future.result() for future in voting), Counter())

    assert tries["acknowledged"] == VOTERS * VOTES_EACH
    assert tries["failed"] > 0
    votes = Entry.objects.filter(kind="vote").values_list("voter", "item")
    assert len(set(votes)) == len(votes) == VOTERS * VOTES_EACH
    seal_all(scene.project)
    assert_sound(scene.project)


def vote_on_everything(person):
    """Send each ballot until it is acknowledged; say how often that took another try."""
    tries = Counter()
    with closing(person):
        while ballots := patiently(person.ballots, tries):
            for ballot in ballots:
                patiently(lambda: accept(person.vote(ballot)), tries)  # noqa: B023
                tries["acknowledged"] += 1
    return tries


def patiently(call, tries):
    deadline = time.monotonic() + 60
    while True:
        try:
            return call()
        except httpx.HTTPError:
            tries["failed"] += 1
            assert time.monotonic() < deadline
            time.sleep(0.05)


def accept(reply):
    assert reply.status_code == 200, reply.text


def test_a_run_gets_to_voting_by_itself_though_its_workers_are_killed(site):
    for kind, name in load.RUNS.items():
        load.make_run(make_project(name), kind, name)
    load.make_jokes(make_project("Jokes"))
    site.beat()
    dice = random.Random(5)
    for _ in range(WORKER_KILLS):
        worker = site.worker()
        before = done()
        eventually(lambda: done() > before or all_open())  # noqa: B023
        time.sleep(dice.uniform(0, 0.5))
        site.kill(worker)
    site.worker()
    eventually(all_open)

    assert not Picture.objects.exclude(state="done").exists()
    items = Item.objects.all()
    assert set(Verdict.objects.values_list("state", flat=True)) == {"done"}
    comparisons = items.filter(opened_at__isnull=False, unusable="")
    assert comparisons.count() == items.count() == 90
    entries = Entry.objects.filter(kind="verdicts").values_list("item", flat=True)
    assert sorted(entries) == sorted(comparisons.values_list("pk", flat=True))
    eventually(lambda: not Entry.objects.filter(seq__isnull=True).exists())
    for project in Project.objects.all():
        assert_sound(project)


def test_an_import_goes_on_with_another_worker_when_its_own_is_killed(site, settings):
    settings.DATA = Path(site.environment["HUMANJUDGE_DATA"])
    project, number = make_project(), 1500
    source = [
        record
        for n in range(number)
        for record in (pair(n), verdict(n, "gpt", "AB"[n % 2]), vote(n, f"v{n % 9}", "A"))
    ]
    text = "".join(f"{json.dumps(record)}\n" for record in source)
    form = {"options": {"baselines": False}, "mapping": None, "format": None}
    job = Import(project=project, name="Imported", form=form)
    import_jobs.submit(job, [SourceFile("rows.jsonl", io.BytesIO(text.encode()))])
    site.beat()

    def written():
        return Import.objects.get(pk=job.pk).written

    for share in (0.1, 0.6):
        worker = site.worker()
        eventually(lambda: written() > share * 4 * number)  # noqa: B023
        site.kill(worker)
        assert (Run.objects.count(), Run.every.get().state) == (0, "importing")
        # Nobody gave it back, so it is free when its time is over: now, instead of in a minute.
        Import.objects.filter(pk=job.pk).update(leased_until=timezone.now())
    site.workers()
    eventually(lambda: Import.objects.get(pk=job.pk).state == "done")

    run = Run.objects.get()
    # Complete as soon as a sweep has seen that every pair has its vote.
    assert run.state in ("voting", "complete")
    assert written() == 4 * number
    names = Item.objects.filter(queue=run.queue_id).values_list("external_id", flat=True)
    assert sorted(names) == sorted(f"p{n}" for n in range(number))
    assert Inference.objects.count() == 2 * number
    said = Verdict.objects.filter(judge__run=run).values_list("item", "judge")
    assert len(set(said)) == len(said) == number
    for kind in ("verdicts", "vote"):
        about = Entry.objects.filter(queue=run.queue_id, kind=kind).values_list("item")
        assert len(set(about)) == len(about) == number
    eventually(lambda: not Entry.objects.filter(seq__isnull=True).exists())
    assert_sound(project)


def done():
    """How much of the work of all runs is done: pictures drawn and verdicts given."""
    pictures = Picture.objects.exclude(state="waiting").count()
    return pictures + Verdict.objects.exclude(state="waiting").count()


def all_open():
    return not Run.objects.exclude(state=Run.State.VOTING).exists()
