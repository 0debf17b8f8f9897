"""Guessing passwords is slow, and the right person is kept out no longer than the answer says."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from humanjudge.core.ratelimit import RateLimit
from voting.access import login

pytestmark = pytest.mark.django_db

RIGHT = "a long enough password"


@pytest.fixture(autouse=True)
def now(monkeypatch):
    """A clock of the limits that the tests set, and limits that nobody has used."""
    at = [1000.0]
    for name in ("BY_ADDRESS", "BY_BOTH", "BY_ACCOUNT"):
        limit = getattr(login, name)
        fresh = RateLimit(limit.per_second, limit.burst, clock=lambda: at[0])
        monkeypatch.setattr(login, name, fresh)
    monkeypatch.setattr(login, "_owners", set())
    User.objects.create_user("ada", password=RIGHT, is_staff=True)
    return at


def attempt(password="wrong", *, name="ada", address="203.0.113.1", **headers):
    data = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post("/login/", data, headers=headers)


def refused_after(tries):
    """How many tries are made before one is refused; the refusal."""
    for number, one in enumerate(tries):
        response = one()
        if response.status_code == 429:
            return number, response
        assert response.status_code in (200, 302)
    raise AssertionError("none was refused")


def test_a_few_wrong_passwords_are_answered_with_a_wait_in_words():
    number, response = refused_after([attempt] * 40)
    wait = int(response["Retry-After"])
    assert (number, wait) == (5, 15)
    assert f"Too many tries to log in. Wait {wait} seconds" in response.content.decode()


def test_the_right_person_is_let_in_after_the_wait(now):
    _, response = refused_after([attempt] * 40)
    assert attempt(RIGHT).status_code == 429
    now[0] += int(response["Retry-After"])
    assert attempt(RIGHT).status_code == 302


def test_guesses_from_one_place_keep_nobody_out_elsewhere():
    refused_after([attempt] * 40)
    assert attempt(RIGHT, address="203.0.113.2").status_code == 302
    assert attempt(RIGHT, name="ADA", address="203.0.113.1").status_code == 429


def test_many_accounts_from_one_address_are_few_tries_in_all():
    names = (f"user-{n}" for n in range(100))
    number, response = refused_after([lambda: attempt(name=next(names))] * 100)
    assert (number, response["Retry-After"]) == (30, "3")


def test_one_account_from_many_addresses_is_few_tries_in_all_but_for_its_owner():
    assert attempt(RIGHT, address="198.51.100.7").status_code == 302
    addresses = (f"203.0.113.{n}" for n in range(100))
    number, response = refused_after([lambda: attempt(address=next(addresses))] * 100)
    assert (number, response["Retry-After"]) == (19, "5")
    assert attempt(RIGHT, address="198.51.100.7").status_code == 302


def test_behind_a_proxy_its_last_word_is_the_address(settings):
    settings.HTTPS = True
    places = (f"10.0.0.{n}, 203.0.113.{n}" for n in range(7))
    for _ in range(7):
        assert attempt(x_forwarded_for=next(places)).status_code == 200
    forged = (f"10.0.0.{n}, 192.0.2.1" for n in range(7))
    assert refused_after([lambda: attempt(x_forwarded_for=next(forged))] * 7)[0] == 5


def test_without_a_proxy_a_client_cannot_say_where_it_is():
    forged = (f"192.0.2.{n}" for n in range(7))
    assert refused_after([lambda: attempt(x_forwarded_for=next(forged))] * 7)[0] == 5


def test_the_admin_asks_for_a_login_on_the_same_page():
    first = Client().get("/admin/", follow=True)
    assert first.redirect_chain[-1][0] == "/login/?next=%2Fadmin%2F"
    client = Client()
    data = {"username": "ada", "password": RIGHT, "next": "/admin/"}
    assert client.post("/login/", data)["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200


def test_who_may_not_see_the_admin_is_told_as_whom_they_are_logged_in():
    client = Client()
    client.force_login(User.objects.create_user("ben"))
    page = client.get("/admin/", follow=True)
    assert "logged in as ben, and this account may not see that page" in page.content.decode()
