"""Security headers and cookies on every page, and errors that a person can read."""

import re
from uuid import uuid4

import pytest
from django.test import Client

from tests.helpers.pages import HTMX, text_of
from tests.makers import (
    make_invite,
    make_key,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    user_client,
    voter_client,
)
from voting.voters import invite_token

pytestmark = pytest.mark.django_db


def pages():
    """Return (name, client, address) of every page and endpoint."""
    run = make_run(pairs=2)
    voter = make_voter(run)
    vote = make_vote(voter, pairs_of(run)[0])
    _, token = make_key("read", "vote")
    script = Client(headers={"Authorization": f"Bearer {token}"})
    owner, browser, stranger = user_client(), voter_client(voter), Client()
    vote_page, board = f"/vote/{run.queue_id}/", f"/runs/{run.pk}/"
    return [
        ("start", stranger, "/"),
        ("login", stranger, "/login/"),
        ("join", stranger, f"/join/{invite_token(make_invite(run))}/"),
        ("not found", stranger, "/nowhere/"),
        ("refused", stranger, vote_page),
        ("vote", browser, vote_page),
        ("more pairs", browser, f"{vote_page}pairs"),
        ("my votes", browser, f"{vote_page}mine"),
        ("reveal", browser, f"/reveal/{vote.uid}/"),
        ("runs", owner, "/runs/"),
        ("board", owner, board),
        ("pairs", owner, f"{board}pairs/"),
        ("pair", owner, f"{board}pairs/{pairs_of(run)[0].pk}/"),
        ("voting tab", owner, f"{board}vote/"),
        ("health", stranger, "/healthz"),
        ("API", script, f"/api/runs/{run.pk}/judge-eval/results"),
        ("API refused", stranger, f"/api/runs/{run.pk}/judge-eval/results"),
        ("API docs", stranger, "/api/docs"),
        ("OpenAPI", stranger, "/api/openapi.json"),
        ("admin", stranger, "/admin/login/"),
    ]


def test_every_answer_has_the_security_headers():
    for name, client, address in pages():
        response = client.get(address)
        policy = response["Content-Security-Policy"]
        for directive in (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ):
            assert directive in policy, name
        assert "unsafe" not in policy, name
        assert response["X-Content-Type-Options"] == "nosniff", name
        assert response["X-Frame-Options"] == "DENY", name
        assert response["Referrer-Policy"] == "same-origin", name


def test_no_page_needs_what_the_policy_forbids():
    """No inline script or style, no handler in an attribute, nothing from elsewhere."""
    for name, client, address in pages():
        response = client.get(address)
        if "html" not in response["Content-Type"]:
            continue
        body = response.content.decode()
        scripts = re.findall(r"<script([^>]*)>(.*?)</script>", body, re.DOTALL)
        for attributes, content in scripts:
            data = 'type="application/json"' in attributes
            assert "src=" in attributes or data, f"{name}: {content[:80]}"
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", body), name
        for source in re.findall(r'(?:src|href)="(?:https?:)?//([^"/]+)', body):
            assert source == "testserver", f"{name}: {source}"


def test_cookies_cannot_be_read_by_scripts_or_sent_by_other_sites():
    run = make_run()
    client = Client()
    client.post(f"/join/{invite_token(make_invite(run))}/", {"name": ""})
    client.get(f"/vote/{run.queue_id}/")
    owner = user_client()
    cookies = [*client.cookies.values(), *owner.cookies.values()]
    voter = [cookie for cookie in cookies if cookie.key.startswith("voter-")]
    assert len(voter) == 1
    assert voter[0]["httponly"]
    assert all(cookie["samesite"] == "Lax" for cookie in [*client.cookies.values()])


def test_a_session_cookie_is_http_only(settings):
    assert settings.SESSION_COOKIE_HTTPONLY
    assert settings.SESSION_COOKIE_SAMESITE == "Lax"


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["browser", "htmx"])
def test_an_error_is_a_page_for_browsers_and_a_fragment_for_htmx(headers):
    response = Client().get(f"/vote/{uuid4()}/", headers=headers)
    assert response.status_code == 404
    assert "There is no such page" in text_of(response)
    assert (b"<html" in response.content) == (headers == {})


def test_an_error_of_ours_is_said_without_details(monkeypatch):
    def broken(*_):
        raise RuntimeError("secret detail")

    run = make_run()
    monkeypatch.setattr("judge_eval.selectors.board", broken)
    client = user_client(raise_request_exception=False)
    response = client.get(f"/runs/{run.pk}/")
    assert response.status_code == 500
    assert "What was recorded before is safe" in text_of(response)
    assert b"secret detail" not in response.content


def test_a_host_that_is_not_ours_is_a_bad_request():
    response = Client().get("/", headers={"Host": "evil.example"})
    assert response.status_code == 400
    assert "not as this server expects it" in text_of(response)
