"""The key of a provider stays in the environment: no row, event, log or error holds it."""

import logging

import pytest
from django.db import connection

from judge_eval.models import Call, Provider
from judge_eval.runs import lifecycle
from tests.helpers.model_calls import KEY
from tests.helpers.run_maker import go_on, make_judging, make_started, says
from tests.makers import seal_all
from tests.provider import provider

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

VARIABLE = "HUMANJUDGE_TEST_API_KEY"


@pytest.fixture
def at():
    with provider(key=KEY) as running:
        yield running


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(VARIABLE, KEY)


def everything_stored():
    """Every row of every table, as text."""
    rows = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            rows += [f"{table}: {row!r}" for row in cursor.fetchall()]
    return "\n".join(rows)


@pytest.mark.parametrize(
    "mode", ["ok", "echo_key", "500", "disconnect", "malformed", "refuse", "prose", "out_of_range"]
)
def test_whatever_the_provider_does(at, caplog, mode):
    caplog.set_level(logging.DEBUG)
    run = make_judging(at, {"key_variable": VARIABLE})
    at.control(mode=mode)
    run = go_on(run)
    lifecycle.retry_failed(run.pk)
    run = go_on(run)
    seal_all(run.queue.project)
    stored = everything_stored()
    assert VARIABLE in stored
    assert str(run.pk) in stored or run.pk.hex in stored
    for text in (stored, caplog.text, str([vars(record) for record in caplog.records])):
        assert KEY not in text
    assert all(request["authorized"] for request in at.requests)


@pytest.mark.parametrize("where", ["text", "model", "refusal", "output"])
def test_a_model_that_repeats_it_repeats_a_placeholder(at, where):
    message = {"role": "assistant", "content": f"You sent {KEY}.", "refusal": None}
    if where == "refusal":
        message |= {"content": None, "refusal": f"No, {KEY}."}
    name = f"judge-{KEY}" if where == "model" else "judge-long"
    if where == "output":
        says(at, f"My key is {KEY}.", models=["model-a"])
    run = make_judging(at, {"key_variable": VARIABLE})
    if where != "output":
        says(at, "", choices=[{"message": message, "finish_reason": "stop"}], model=name)
    run = go_on(run)
    assert run.state == "voting"
    assert KEY not in everything_stored()
    assert "[key]" in everything_stored()


def test_a_wrong_key_is_a_failure_that_does_not_name_it(at, monkeypatch):
    monkeypatch.setenv(VARIABLE, f"{KEY}-but-wrong")
    run = go_on(make_started(at, {"key_variable": VARIABLE}, judges=["judge-long"]))
    assert run.state == "failed"
    errors = set(Call.objects.values_list("error", flat=True))
    assert errors == {"401 Unauthorized: the key was refused (Incorrect API key provided.)"}
    assert KEY not in everything_stored()


def test_a_run_keeps_the_name_of_its_provider_only(at):
    run = make_started(at, {"key_variable": VARIABLE})
    assert (run.config["provider"], VARIABLE in str(run.config)) == ("default", False)
    assert KEY not in repr(Provider.objects.values())
    assert KEY not in everything_stored()


def test_the_search_finds_what_is_there():
    Provider.objects.create(name=KEY[:50], base_url="http://127.0.0.1:1/v1")
    assert KEY in everything_stored()
