"""The admin of runs: providers are listed; calls and events only to be read."""

import pytest

from judge_eval.models import Provider, RunEvent
from tests.db.test_admin import admin_client
from tests.helpers.pages import text_of
from tests.helpers.run_rows import make_asked_run, make_outputs, make_provider

pytestmark = pytest.mark.django_db

LIST = "/admin/judge_eval/provider/"


def test_providers_are_listed_and_deleted_here_and_changed_on_their_page():
    provider = make_provider(name="x")
    client, one = admin_client(), f"{LIST}{provider.pk}/change/"
    assert f'href="/providers/{provider.pk}/"' in client.get(one).content.decode()
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(one, {"name": "y", "base_url": "http://127.0.0.1:1/v1"}).status_code == 403
    assert client.post(f"{LIST}{provider.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Provider.objects.exists()


def test_whether_the_key_is_set_here_and_never_the_key(monkeypatch):
    provider = make_provider(name="x", key_variable="OF_THIS_TEST_API_KEY")
    make_provider(name="y")
    client = admin_client()
    monkeypatch.delenv("OF_THIS_TEST_API_KEY", raising=False)
    page = f"{LIST}{provider.pk}/change/"
    assert "Key is set here: no" in text_of(client.get(page))
    monkeypatch.setenv("OF_THIS_TEST_API_KEY", "sk-secret-value")
    for url in (page, LIST):
        response = client.get(url)
        assert b"sk-secret-value" not in response.content
        assert "yes" in text_of(response)
    assert "none is named" in text_of(client.get(LIST))


def test_what_the_workers_share_is_not_shown():
    provider = make_provider(name="x")
    body = admin_client().get(f"{LIST}{provider.pk}/change/").content.decode()
    assert "next_start_at" not in body
    assert "pauses" not in body


@pytest.mark.parametrize("model", ["call", "runevent"])
def test_calls_and_events_can_only_be_read(model):
    run = make_asked_run()
    [call] = make_outputs(run, 1, reply="<script>alert(1)</script>")
    run.record("started", "It began.")
    pk = call.pk if model == "call" else RunEvent.objects.get().pk
    client = admin_client()
    lists = f"/admin/judge_eval/{model}/"
    one = f"{lists}{pk}/change/"
    assert client.get(lists).status_code == 200
    shown = client.get(one)
    assert shown.status_code == 200
    assert b"<script>alert" not in shown.content
    assert client.get(f"{lists}add/").status_code == 403
    assert client.post(one, {"text": "x", "reply": "x"}).status_code == 403
    assert client.post(f"{lists}{pk}/delete/", {"post": "yes"}).status_code == 403
