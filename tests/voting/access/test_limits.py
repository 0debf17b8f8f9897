"""Wrong keys and links are few for each address, and the right ones are never counted."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from humanjudge.core.ratelimit import RateLimit
from judge_eval.runs import api_access
from tests.makers import key_client, make_invite, make_key, make_run
from voting.access import login
from voting.ballot import views
from voting.models import Voter
from voting.people.voters import invite_token

pytestmark = pytest.mark.django_db

WRONG_LINK = "/join/00000000000000000000000000000000:no-signature/"


@pytest.fixture(autouse=True)
def now(monkeypatch):
    """A clock of the limits that the tests set, and limits that nobody has used."""
    at = [1000.0]
    for module, names in (
        (api_access, ("WRONG_KEYS",)),
        (views, ("WRONG_LINKS", "JOINS")),
        (login, ("BY_ADDRESS", "BY_BOTH", "BY_ACCOUNT")),
    ):
        for name in names:
            limit = getattr(module, name)
            fresh = RateLimit(limit.per_second, limit.burst, clock=lambda: at[0])
            monkeypatch.setattr(module, name, fresh)
    return at


def statuses(number, ask):
    return [ask().status_code for _ in range(number)]


def a_key_of(kind):
    return {"hj": "hj_00000000_wrong", "gj": "gj_sk_00000000_wrong", "odd": "no key at all"}[kind]


@pytest.mark.parametrize(
    "kind, address",
    [("hj", "/api/runs"), ("gj", "/api/v1/models/bot/evaluations"), ("odd", "/api/runs")],
)
def test_wrong_keys_are_refused_with_a_wait_and_the_right_one_goes_on(kind, address, now):
    right = make_key("read")[1]
    wrong = key_client(a_key_of(kind))
    assert statuses(30, lambda: wrong.get(address)) == [401] * 30
    refused = wrong.get(address)
    assert (refused.status_code, refused["Retry-After"]) == (429, "3")
    text = "Too many wrong API keys from your address. Wait 3 seconds, then try again."
    assert refused.json() == {"detail": text}
    assert set(statuses(40, lambda: key_client(right).get("/api/runs"))) == {200}
    assert key_client(a_key_of(kind), REMOTE_ADDR="203.0.113.9").get(address).status_code == 401
    now[0] += 3
    assert statuses(2, lambda: wrong.get(address)) == [401, 429]


def test_no_key_at_all_is_no_guess():
    assert set(statuses(40, lambda: Client().get("/api/runs"))) == {401}


def test_wrong_invite_links_are_refused_with_a_wait_and_the_right_one_is_not():
    right = f"/join/{invite_token(make_invite(make_run()))}/"
    assert statuses(30, lambda: Client().get(WRONG_LINK)) == [404] * 30
    refused = Client().get(WRONG_LINK)
    assert (refused.status_code, refused["Retry-After"]) == (429, "3")
    assert "Too many wrong invite links" in refused.content.decode()
    assert Client().get(right).status_code == 200
    assert Client().post(right, {"name": "Ada"}).status_code == 302


def test_a_class_behind_one_address_joins_at_once_and_a_script_does_not_go_on_for_ever():
    link = f"/join/{invite_token(make_invite(make_run()))}/"
    assert set(statuses(40, lambda: Client().post(link, {"name": "One of a class"}))) == {302}
    assert set(statuses(160, lambda: Client().post(link, {}))) == {302}
    refused = Client().post(link, {})
    assert (refused.status_code, refused["Retry-After"]) == (429, "2")
    assert Voter.objects.count() == 200


def test_a_class_behind_one_address_logs_in_at_once():
    for number in range(40):
        User.objects.create_user(f"user-{number}", password="a long enough password")
    answers = set()
    for number in range(40):
        data = {"username": f"user-{number}", "password": "a long enough password"}
        answers.add(Client().post("/login/", data).status_code)
    assert answers == {302}
