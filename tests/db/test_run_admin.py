"""The admin of runs: providers and their prices; calls and events only to be read."""

import json

import pytest

from judge_eval.models import Provider, RunEvent
from tests.db.test_admin import admin_client
from tests.helpers.pages import text_of
from tests.helpers.run_rows import make_asked_run, make_outputs, make_provider

pytestmark = pytest.mark.django_db

LIST = "/admin/judge_eval/provider/"


def filled(**changes):
    data = {
        "name": "openrouter",
        "base_url": "https://openrouter.example/api/v1",
        "key_variable": "OPENROUTER_API_KEY",
        "structured_output": "on",
        "timeout_s": "60",
        "concurrency": "8",
        "requests_per_minute": "",
        "prices": '{"gpt": {"input": "2.50", "output": 10}}',
    }
    return data | changes


def test_a_provider_is_added():
    response = admin_client().post(f"{LIST}add/", filled())
    assert response.status_code == 302
    provider = Provider.objects.get()
    assert (provider.name, provider.key_variable) == ("openrouter", "OPENROUTER_API_KEY")
    assert provider.prices == {"gpt": {"input": "2.50", "output": 10}}


def test_without_prices_there_are_none():
    admin_client().post(f"{LIST}add/", filled(prices=""))
    assert Provider.objects.get().prices == {}


@pytest.mark.parametrize(
    "field, value, error",
    [
        ("prices", "[]", "must be an object, not a list"),
        ("prices", "{", "Enter a valid JSON"),
        ("prices", '{"m": 3}', "m: must be an object, not a number"),
        ("prices", '{"m": {"input": 1}}', "m.output: is missing"),
        ("prices", '{"m": {"input": 1, "output": 1, "inptu": 1}}', "m.inptu: unknown"),
        ("prices", '{"m": {"input": "-1", "output": 1}}', "m.input: must be at least 0"),
        ("prices", '{"m": {"input": "NaN", "output": 1}}', "m.input: must be a finite number"),
        ("prices", '{"m": {"input": 1, "output": true}}', "m.output: must be a number, not true"),
        ("prices", '{"m": {"input": "a", "output": 1}}', "m.input: must be a number, not text"),
        (
            "prices",
            '{"m": {"input": 1, "output": 1, "picture_tokens": true}}',
            "m.picture_tokens: must be a whole number",
        ),
        ("name", "baseline", "baseline is what judges that are not asked go by"),
        ("name", "imported", "imported is what"),
        ("key_variable", "SECRET_KEY", "ends in _API_KEY"),
        ("key_variable", "sk-1234567890", "ends in _API_KEY"),
        ("base_url", "openrouter.example", "An http or https address"),
        ("base_url", "file:///etc/passwd", "An http or https address"),
        ("concurrency", "0", "violated"),
        ("timeout_s", "0", "violated"),
    ],
)
def test_what_cannot_be_is_refused(field, value, error):
    response = admin_client().post(f"{LIST}add/", filled(**{field: value}))
    assert response.status_code == 200
    assert error in text_of(response)
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


def test_what_the_workers_share_cannot_be_typed_in():
    provider = make_provider(name="x")
    body = admin_client().get(f"{LIST}{provider.pk}/change/").content.decode()
    assert "next_start_at" not in body
    assert "pauses" not in body


def test_a_provider_is_changed():
    provider = make_provider(name="x")
    url = f"{LIST}{provider.pk}/change/"
    data = filled(name="x", prices=json.dumps({"m": {"input": "0", "output": "0.5"}}))
    assert admin_client().post(url, data).status_code == 302
    provider.refresh_from_db()
    assert provider.prices == {"m": {"input": "0", "output": "0.5"}}


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
