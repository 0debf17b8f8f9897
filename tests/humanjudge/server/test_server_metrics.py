"""`/metrics`: what is counted by all processes adds up, and is for whoever may read it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from humanjudge.celery import broker
from humanjudge.server import metrics
from tests.helpers.scene import make_scene
from voting.ballot.services import cast_vote
from voting.models import Entry

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def nothing_counted():
    metrics._counts.clear()
    metrics._times.clear()
    with broker() as client:
        client.delete(metrics.KEY)


def read(client, **headers):
    """The numbers that are told, by their names; each line as the format has it."""
    metrics.flush()
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    numbers = {}
    for line in answer.content.decode().splitlines():
        if line.startswith("# "):
            assert re.fullmatch(r"# (HELP|TYPE) humanjudge_\w+ .+", line)
            continue
        name, value = re.fullmatch(r'(\w+(?:\{(?:\w+="[^"]*",?)+\})?) (\S+)', line).groups()
        assert name not in numbers
        numbers[name] = float(value)
    return numbers


def test_requests_are_counted_by_the_pattern_of_their_address(client):
    client.get("/login/")
    client.get("/login/")
    client.get("/nothing-of-this-name/")
    client.get("/runs/00000000-0000-0000-0000-000000000000/")
    numbers = read(client)
    assert numbers['humanjudge_requests_total{route="login/",method="GET",status="200"}'] == 2
    assert numbers['humanjudge_requests_total{route="none",method="GET",status="404"}'] == 1
    assert not [name for name in numbers if "0000-0000" in name or "nothing-of" in name]
    assert numbers['humanjudge_request_seconds_count{route="login/"}'] == 2
    below = [
        numbers[f'humanjudge_request_seconds_bucket{{route="login/",le="{bound}"}}']
        for bound in (*metrics.BOUNDS, "+Inf")
    ]
    assert below == sorted(below)
    assert below[-1] == 2


def test_what_processes_count_adds_up(client):
    code = (
        "import django; django.setup(); from humanjudge.server import metrics; "
        "metrics.count('humanjudge_votes_total', 3); "
        "metrics.observe('humanjudge_seal_seconds', 0.2); metrics.flush()"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    metrics.count("humanjudge_votes_total", 4)
    numbers = read(client)
    assert numbers["humanjudge_votes_total"] == 10
    assert numbers['humanjudge_seal_seconds_bucket{le="0.1"}'] == 0
    assert numbers['humanjudge_seal_seconds_bucket{le="0.25"}'] == 2
    assert numbers["humanjudge_seal_seconds_sum"] == pytest.approx(0.4)


def test_while_the_broker_is_away_counting_goes_on(client, settings, monkeypatch):
    metrics.count("humanjudge_votes_total")
    metrics.observe("humanjudge_seal_seconds", 1)
    with monkeypatch.context() as patch:
        patch.setattr(metrics, "broker", away)
        metrics.flush()
    metrics.count("humanjudge_votes_total")
    numbers = read(client)
    assert numbers["humanjudge_votes_total"] == 2
    assert numbers["humanjudge_seal_seconds_count"] == 1


def away():
    raise OSError


def test_votes_and_what_waits_are_counted(client):
    scene = make_scene()
    before = Entry.objects.filter(seq__isnull=True).count()
    for pair in (0, 1, 1):
        cast_vote(scene.ballot(0, pair), "A")
    numbers = read(client)
    assert numbers["humanjudge_votes_total"] == 2, "the same vote again is none"
    assert numbers["humanjudge_entries_unsealed"] == before + 2
    assert numbers["humanjudge_oldest_unsealed_seconds"] >= 0
    assert 'humanjudge_queue_length{queue="votes"}' in numbers


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded"])
def test_without_a_token_only_this_machine_may_read(client, header):
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.1").status_code == 403
    assert client.get("/metrics", headers={header: "for=127.0.0.1"}).status_code == 403
    assert client.post("/metrics").status_code == 405


def test_a_token_opens_it_from_anywhere_and_nothing_else_does(client, settings):
    settings.METRICS_TOKEN = "a token of the operator's"
    for wrong in ("", "Bearer", "Bearer another", "Bearer ü", settings.METRICS_TOKEN):
        assert client.get("/metrics", headers={"Authorization": wrong}).status_code == 403
    right = {"Authorization": f"Bearer {settings.METRICS_TOKEN}"}
    assert client.get("/metrics", headers=right, REMOTE_ADDR="10.0.0.1").status_code == 200
