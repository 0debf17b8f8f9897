"""Figures of votes over HTTP: the recorded replies, what is refused, and a step of the score."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from reports.grandjury import api as access
from reports.quality.parameters import change
from tests.helpers.recorded_votes import ROWS, SHARES, VOTERS
from tests.makers import key_client, make_key, make_project, seal_all
from voting.people.voters import voter_of_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    limit = access.RateLimit(per_second=1, burst=10)
    monkeypatch.setattr(access, "PUBLIC_LIMIT", limit)
    return limit


def post(path, body, client=None):
    return (client or Client()).post(f"/api/v1/{path}", body, content_type="application/json")


def figure(name, **options):
    response = post(f"verdict/{name}", {"data": ROWS, **options})
    assert response.status_code == 200
    return response.json()


def refusals(response, status=422):
    assert response.status_code == status
    return {each["path"]: each["message"] for each in response.json()["detail"]}


def person():
    return key_client(make_key("read", kind="gj_pat")[1])


def test_recorded_replies_without_a_key():
    assert figure("histogram", duration_minutes=120, gross=True) == {
        "2024-07-07 18:00:00": 2,
        "2024-08-06 18:00:00": 3,
        "2024-10-06 18:00:00": 2,
    }
    assert figure("completeness", voter_list=VOTERS, inference_ids=[1, 2, 3, 4]) == SHARES
    assert figure("completeness", voter_list=VOTERS, gross=True) == 0.75
    assert figure("population-confidence", voter_list=VOTERS, inference_ids=[1, 2, 3, 4]) == SHARES
    assert figure("population-confidence", voter_list=VOTERS) == 0.75
    assert figure("majority-good", good_vote=True, threshold=0.5) == {"count": 2}
    assert figure("majority-good", good_vote="flag") == {"count": 1}
    assert list(figure("votes-distribution").items())[:2] == [("3", 3), ("4", 2)]
    assert figure("votes-distribution", inference_ids=[1]) == {"1": 1}


def test_a_histogram_of_each_item():
    found = figure("histogram", duration_minutes=120, gross=False)
    assert found["3"] == {"2024-08-06 18:00:00": 3}


@pytest.mark.parametrize(
    "name, options, path",
    [
        ("histogram", {"duration_minutes": 0}, "duration_minutes"),
        ("completeness", {}, "voter_list"),
        ("completeness", {"voter_list": []}, "voter_list"),
        ("majority-good", {"threshold": 1.5}, "threshold"),
        ("votes-distribution", {"data": "votes.csv"}, "data"),
        ("votes-distribution", {"data": [ROWS[0], {"vote": True}]}, "data.1.inference_id"),
        ("histogram", {"data": [{"vote_time": "soon"}]}, "data.0.vote_time"),
    ],
)
def test_what_is_wrong_is_named(name, options, path):
    assert path in refusals(post(f"verdict/{name}", {"data": ROWS, **options}))


def test_who_asks_too_often_waits_and_others_do_not():
    for _ in range(10):
        figure("votes-distribution")
    response = post("verdict/votes-distribution", {"data": ROWS})
    assert response.status_code == 429
    assert response.json() == {"detail": "too many requests; wait 1 s"}
    assert response.headers["Retry-After"] == "1"
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert post("verdict/votes-distribution", {"data": ROWS}, elsewhere).status_code == 200


def test_a_body_that_is_too_large_is_refused():
    rows = [{"inference_id": "x" * 1000}] * 3000
    assert post("verdict/votes-distribution", {"data": rows}).status_code == 413


# --- a step of the score ------------------------------------------------------------------------


def evaluated(**body):
    response = post("evaluate", body, person())
    assert response.status_code == 200, response.json()
    return response.json()


def ago(**time):
    return (timezone.now() - timedelta(**time)).isoformat()


def test_the_recorded_reply_of_the_hosted_service():
    found = evaluated(
        previous_score=0.5,
        previous_timestamp=ago(hours=2),
        votes=[0.8, 0.6, 0.9, 0.7, 0.5],
        reputations=[1, 0.8, 1.2, 0.9, 0.7],
    )
    assert found["score"] == pytest.approx(0.7261, abs=5e-5)
    assert found["freshness"] == pytest.approx(1, abs=1e-4)
    at = datetime.fromisoformat(found["timestamp"])
    assert abs(timezone.now() - at) < timedelta(minutes=1)


def test_without_reputations_all_are_one_and_a_naive_time_is_utc():
    naive = (datetime.now(UTC) - timedelta(seconds=7)).replace(tzinfo=None).isoformat()
    found = evaluated(previous_score=0.5, previous_timestamp=naive, votes=[0], reputations=[])
    assert found["score"] == pytest.approx(0.466197, abs=0.01)
    assert found["freshness"] == pytest.approx(0.067606, abs=0.02)


def test_without_votes_nothing_moves():
    at = "2026-01-01T00:00:00Z"
    found = evaluated(previous_score=0.72, previous_timestamp=at, votes=[], reputations=[])
    assert found == {"score": 0.72, "freshness": 0.0, "timestamp": at}


def test_a_time_to_come_counts_as_now():
    found = evaluated(previous_score=0.5, previous_timestamp=ago(hours=-1), votes=[1])
    assert (found["score"], found["freshness"]) == (0.5, 0)


@pytest.mark.parametrize(
    "wrong, path",
    [
        ({"reputations": [1]}, "reputations"),
        ({"reputations": [1, 0]}, "reputations.1"),
        ({"votes": [1, 1.1]}, "votes.1"),
        ({"votes": [-0.1, 1]}, "votes.0"),
        ({"previous_score": 2}, "previous_score"),
        ({"previous_timestamp": "yesterday"}, "previous_timestamp"),
    ],
)
def test_what_is_wrong_with_a_step_is_named(wrong, path):
    body = {"previous_score": 0.5, "previous_timestamp": ago(hours=1), "votes": [1, 0]} | wrong
    assert path in refusals(post("evaluate", body, person()))


def test_a_step_follows_the_settings_of_the_keys_project():
    project = make_project()
    ada = User.objects.create(username="ada")
    change(project, {"decay_rate": 0.1, "decay_unit": "day"}, voter_of_user(project, ada))
    seal_all(project)
    body = {"previous_score": 0.72, "previous_timestamp": ago(days=3), "votes": [0.9, 0.8, 0.6]}
    client = key_client(make_key("read", project=project, kind="gj_sk")[1])
    found = post("evaluate", body, client).json()
    assert found["score"] == pytest.approx(0.732095, abs=1e-5)
    assert found["freshness"] == pytest.approx(0.259182, abs=1e-5)
