"""Listeners of run events on the real web server: they are served, and never in anybody's way."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from threading import Event

import httpx
import pytest
from django.utils import timezone

from judge_eval.models import RunEvent
from tests.helpers.scene import make_scene
from tests.helpers.waiting import PATIENCE, eventually
from tests.makers import make_invite, make_key
from tests.process.http_voter import HttpVoter
from tests.process.nursery import CONSTANTS
from tests.process.processes import Site, test_database_url
from voting.models import Entry
from voting.people.voters import invite_token

pytestmark = [
    pytest.mark.process,
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.postgresql_only,
    pytest.mark.django_db(transaction=True),
]

# Of the web server: see WEB_OPTIONS.
PROCESSES = 2
LISTENERS = 20
VOTES = 40
# A stream ends, and a listener who hung up is found out, sooner than in production.
QUICK = {
    "judge_eval.runs.api_events.STREAM_SECONDS": 5,
    "judge_eval.runs.api_events.BEAT_SECONDS": 0.5,
}


@pytest.fixture
def scene():
    return make_scene(judges=2, pairs=VOTES + 10, voters=0)


@pytest.fixture
def site(scene, tmp_path, static, settings):
    told = {"SECRET_KEY": settings.SECRET_KEY, CONSTANTS: json.dumps(QUICK)}
    with Site(tmp_path, test_database_url(), settings.CELERY_BROKER_URL, **told) as processes:
        processes.serve_static(static)
        processes.web()
        yield processes


@pytest.fixture
def listener(site):
    """A client of the API that asks for streams."""
    headers = {"Authorization": f"Bearer {make_key('read')[1]}", "Accept": "text/event-stream"}
    with httpx.Client(
        base_url=f"{site.url}/api/runs/", headers=headers, timeout=PATIENCE
    ) as client:
        yield client


def make_event(scene, text):
    earlier = timezone.now() - timedelta(seconds=10)
    return RunEvent.objects.create(run=scene.run, kind="state", text=text, at=earlier)


def events_of(lines, number):
    """The next events of a stream, as (id, data)."""
    found, last = [], None
    for line in lines:
        if line.startswith("id: "):
            last = int(line[4:])
        elif line.startswith("data: "):
            found.append((last, line[6:]))
            if len(found) == number:
                return found
    raise AssertionError(f"the stream ended after {found}")


def opened(listener, scene, **headers):
    """A stream that is open, or None where the server has enough of them."""
    request = listener.build_request("GET", f"{scene.run.pk}/events", headers=headers)
    stream = listener.send(request, stream=True)
    if stream.status_code == 200:
        return stream
    with closing(stream):
        detail = stream.read().decode()
    assert stream.status_code == 429, detail
    assert "ask without text/event-stream" in detail
    assert int(stream.headers["retry-after"]) > 0
    return None


def test_a_listener_hears_what_was_and_then_what_happens(scene, listener):
    first = make_event(scene, "one")
    with closing(opened(listener, scene)) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        lines = stream.iter_lines()
        [(number, data)] = events_of(lines, 1)
        assert (number, '"text": "one"' in data) == (first.pk, True)
        second = make_event(scene, "two")
        assert [number for number, _ in events_of(lines, 1)] == [second.pk]
    third = make_event(scene, "three")
    last = {"Last-Event-ID": str(second.pk)}
    with closing(eventually(lambda: opened(listener, scene, **last))) as stream:
        assert [number for number, _ in events_of(stream.iter_lines(), 1)] == [third.pk]


def test_a_listener_who_hangs_up_makes_room_for_the_next(scene, listener):
    for _ in range(2 * PROCESSES):
        eventually(lambda: opened(listener, scene)).close()


class Crowd:
    """Listeners who all ask for streams, again and again, until they are told to stop."""

    def __init__(self, listener, scene):
        self.listener, self.scene = listener, scene
        self.stop = Event()
        self.told = Counter()

    def listen(self):
        while not self.stop.is_set():
            stream = opened(self.listener, self.scene)
            self.told[stream is not None] += 1
            if stream is None:
                self.stop.wait(0.5)
                continue
            with closing(stream):
                lines = stream.iter_lines()
                while not self.stop.is_set() and next(lines, None) is not None:
                    pass


def test_twenty_listeners_do_not_stop_votes_and_pages(scene, site, listener):
    crowd = Crowd(listener, scene)
    with ThreadPoolExecutor(LISTENERS) as pool:
        listening = [pool.submit(crowd.listen) for _ in range(LISTENERS)]
        try:
            eventually(lambda: crowd.told[True] and crowd.told[False] > LISTENERS)
            with closing(HttpVoter(site.url, invite_of(scene))) as person:
                replies = voted(person, VOTES)
            assert site.health()[1]["database"] == "ok"
        finally:
            crowd.stop.set()
        for future in listening:
            future.result(timeout=PATIENCE)
    assert crowd.told[True] >= 1
    assert replies == Counter({200: VOTES})
    assert Entry.objects.filter(kind="vote").count() == VOTES
    assert "Traceback" not in site.log("web")


def invite_of(scene):
    return f"/join/{invite_token(make_invite(scene.run))}/"


def voted(person, number):
    """Vote on so many pairs, each page and each vote within seconds; count the answers."""
    replies = Counter()
    while sum(replies.values()) < number:
        for ballot in person.ballots()[: number - sum(replies.values())]:
            replies[person.vote(ballot, timeout=10).status_code] += 1
    return replies
