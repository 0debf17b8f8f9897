"""GET …/events: by cursor, settled, without anybody's verdicts; and the text of a stream."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.models import RunEvent
from judge_eval.runs import api_events
from judge_eval.tasks import refresh_findings
from tests.makers import key_client, make_key, make_run, make_vote, make_voter, pairs_of, seal_all
from voting.models import Item

pytestmark = pytest.mark.django_db


def make_event(run, text="It happened.", *, ago=10.0, kind="state", **data):
    at = timezone.now() - timedelta(seconds=ago)
    return RunEvent.objects.create(run=run, kind=kind, text=text, data=data, at=at)


def ask(run, query="", **headers):
    client = key_client(make_key("read")[1])
    return client.get(f"/api/runs/{run.pk}/events{query}", headers=headers)


def numbers(response):
    return [event["id"] for event in response.json()["events"]]


def test_an_event_is_told_whole():
    run = make_run()
    event = make_event(run, state="voting")
    answer = ask(run).json()
    at = answer["events"][0].pop("at")
    assert answer == {
        "events": [
            {"id": event.pk, "kind": "state", "text": "It happened.", "data": {"state": "voting"}}
        ],
        "next_cursor": event.pk,
    }
    assert at.startswith(event.at.date().isoformat())


def test_a_cursor_leads_through_all_events_of_one_run_and_stays_at_its_end():
    run, other = make_run(), make_run()
    made = [make_event(run).pk for _ in range(5)]
    make_event(other)
    seen, cursor = [], 0
    while found := numbers(answer := ask(run, f"?cursor={cursor}&limit=2")):
        seen += found
        cursor = answer.json()["next_cursor"]
    assert seen == made
    assert ask(run, f"?cursor={cursor}").json() == {"events": [], "next_cursor": cursor}


def test_an_event_of_this_very_moment_is_told_in_the_next():
    """One with a smaller number may not be committed yet: a listener would pass it by."""
    run = make_run()
    settled, young = make_event(run), make_event(run, ago=0)
    assert numbers(ask(run)) == [settled.pk]
    RunEvent.objects.filter(pk=young.pk).update(at=timezone.now() - api_events.SETTLED)
    assert numbers(ask(run, f"?cursor={settled.pk}")) == [young.pk]


def test_votes_and_judged_items_are_told_as_they_grow():
    run = make_run(pairs=3)
    Item.objects.filter(pk=pairs_of(run)[2].pk).update(opened_at=None)
    seen = []
    for pair in pairs_of(run)[:2]:
        make_vote(make_voter(run), pair)
        seal_all(run.queue.project)
        refresh_findings()
        refresh_findings()
        [told] = RunEvent.objects.filter(run=run, kind="progress")
        seen.append((told.pk, told.data["votes"]))
        assert (told.data["judged"], told.data["items"]) == (2, 3)
    assert [votes for _, votes in seen] == [1, 2]
    assert seen[0] < seen[1]
    assert told.text == "2 votes; 2 of 3 pairs judged."


@pytest.mark.parametrize("query", ["?limit=0", "?limit=1001", "?limit=x", "?cursor=x"])
def test_a_strange_question_is_refused(query):
    assert ask(make_run(), query).status_code == 422


@pytest.mark.parametrize("cursor", ["-5", "0", str(10**18), str(10**30)])
def test_any_number_is_a_cursor(cursor):
    assert ask(make_run(), f"?cursor={cursor}").status_code == 200


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 40, "٣"])
def test_a_last_event_that_is_none_is_refused_and_takes_no_place(last):
    response = ask(make_run(), Accept="text/event-stream", last_event_id=last)
    assert response.status_code == 422
    assert "Last-Event-ID" in str(response.json()["detail"])
    assert not api_events._streaming.locked()


class Clock:
    """Stands in for time: sleeping is over at once."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        self.sleeps = []
        monkeypatch.setattr(api_events, "monotonic", lambda: self.now)
        monkeypatch.setattr(api_events, "sleep", self.sleep)

    def sleep(self, seconds):
        self.sleeps.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def told(text):
    """The events in the text of a stream."""
    data = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(each)["id"] for each in data]


@pytest.mark.django_db(transaction=True)
def test_a_stream_tells_what_came_after_the_last_event_and_ends_by_itself(clock):
    run = make_run()
    first, second = make_event(run), make_event(run, "two\nlines")
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(first.pk)}
    response = key_client(make_key("read")[1]).get(f"/api/runs/{run.pk}/events", headers=headers)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/event-stream"
    assert response["Cache-Control"] == "no-store"
    text = b"".join(response.streaming_content).decode()
    assert told(text) == [second.pk]
    assert f"id: {second.pk}\nevent: state\ndata: " in text
    assert text.startswith("retry: ")
    assert sum(clock.sleeps) == pytest.approx(api_events.STREAM_SECONDS)
    assert text.count(": still here\n\n") >= 5
    assert not api_events._streaming.locked()


@pytest.mark.django_db(transaction=True)
def test_a_stream_tells_each_event_once_and_those_that_come_meanwhile(clock, monkeypatch):
    run = make_run()
    made = [make_event(run).pk]

    def sleep(seconds):
        clock.sleep(seconds)
        if len(made) < 4:
            made.append(make_event(run).pk)

    monkeypatch.setattr(api_events, "sleep", sleep)
    text = b"".join(ask(run, Accept="text/event-stream").streaming_content).decode()
    assert told(text) == made


@pytest.mark.django_db(transaction=True)
def test_the_second_listener_of_a_process_is_told_to_poll(clock):
    run = make_run()
    first = ask(run, Accept="text/event-stream")
    second = ask(run, Accept="text/event-stream")
    assert second.status_code == 429
    assert int(second["Retry-After"]) > 0
    assert "without text/event-stream" in second.json()["detail"]
    assert ask(run).status_code == 200
    first.close()
    third = ask(run, Accept="text/event-stream")
    assert third.status_code == 200
    third.close()


@pytest.mark.django_db(transaction=True)
def test_a_place_is_given_back_once_however_a_stream_ends(clock):
    run = make_run()
    for texts in (0, 1):
        response = ask(run, Accept="text/event-stream")
        for _ in range(texts):
            next(response.streaming_content)
        response.close()
        assert api_events._streaming.acquire(blocking=False), "the place is free again"
        response.close()
        assert api_events._streaming.locked(), "it is another's now"
        api_events._streaming.release()


def test_who_does_not_ask_for_a_stream_gets_json():
    for accept in ("application/json", "*/*", "text/html"):
        assert ask(make_run(), Accept=accept)["Content-Type"].startswith("application/json")
