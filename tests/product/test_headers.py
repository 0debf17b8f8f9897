"""Cookies that scripts and other sites cannot use, and errors that a person can read."""

from uuid import uuid4

import pytest
from django.test import Client

from tests.helpers.pages import HTMX, text_of
from tests.makers import make_run, user_client

pytestmark = pytest.mark.django_db


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
    monkeypatch.setattr("judge_eval.runs.queries.board", broken)
    client = user_client(raise_request_exception=False)
    response = client.get(f"/runs/{run.pk}/")
    assert response.status_code == 500
    assert "What was recorded before is safe" in text_of(response)
    assert b"secret detail" not in response.content


def test_a_host_that_is_not_ours_is_a_bad_request():
    response = Client().get("/", headers={"Host": "evil.example"})
    assert response.status_code == 400
    assert "not as this server expects it" in text_of(response)
