"""A provider is tried with one small call: by a worker, within its limits, its key never shown."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from judge_eval.judging import leases, trial
from judge_eval.models import Call, Judge, Provider, Verdict
from tests.helpers.pages import HTMX, queries_of, text_of
from tests.helpers.run_maker import PRICES, make_provider
from tests.makers import make_run, user_client
from tests.process.processes import free_port
from tests.provider import provider

pytestmark = pytest.mark.django_db

KEY = "sk-of-this-trial-0123456789"
MODEL = "judge-hash"


@pytest.fixture(scope="module")
def server():
    with provider(key=KEY) as running:
        yield running


@pytest.fixture
def at(server, monkeypatch):
    monkeypatch.setenv("TRIAL_API_KEY", KEY)
    server.control(reset=True, mode="ok", models=[], times=None, canned={})
    make_provider(server, key_variable="TRIAL_API_KEY", prices={MODEL: PRICES})
    return server


def row():
    return Provider.objects.get()


def try_it(model=MODEL):
    """Ask over the page, do what a worker would, and return what the page says then."""
    answer = user_client().post("/providers/default/try", {"model": model})
    assert answer.url == "/providers/#provider-default"
    trial.make_call(row().trial_id)
    return text_of(user_client().get("/providers/"))


def test_an_answer_its_time_and_what_it_cost(at):
    text = try_it()
    assert "It works. judge-hash answered '" in text
    assert " ms. Its price is known:" in text or " s. Its price is known:" in text
    assert "This call cost $0.0" in text
    [asked] = at.requests
    assert asked["model"] == MODEL


def test_a_model_without_a_price_says_so(at):
    text = try_it("judge-first")
    assert "It works." in text
    assert "Nobody has said what judge-first costs; a run with a budget needs its price." in text


def test_a_reply_that_does_not_count_tokens_has_a_price_and_no_cost(at):
    at.control(mode="usage_missing")
    assert "The reply does not say how many it took." in try_it()


@pytest.mark.parametrize(
    "mode, words",
    [
        ("429", "429 Too Many Requests: rate limit reached"),
        ("500", "500 Internal Server Error: The server had an error."),
        ("insufficient_quota", "the account has no credit"),
        ("malformed", "200 OK"),
        ("error_200", "Upstream failed."),
    ],
)
def test_what_went_wrong_is_said_in_the_words_of_the_transport(at, mode, words):
    at.control(mode=mode)
    text = try_it()
    assert "judge-hash did not answer:" in text
    assert words in text
    # A trial pauses nothing: it is no call of a run.
    assert row().pauses == {}


def test_an_empty_answer_is_an_answer(at):
    at.control(mode="empty")
    assert "answered without a text in" in try_it()


def test_a_wrong_key_is_said_and_never_shown(at, monkeypatch):
    monkeypatch.setenv("TRIAL_API_KEY", "sk-another-key-0123456789")
    text = try_it()
    assert "401 Unauthorized: the key was refused" in text
    assert "sk-" not in text
    assert "sk-" not in row().trial.error


def test_a_key_that_the_reply_repeats_is_not_shown(at):
    at.control(mode="echo_key")
    assert KEY not in try_it()
    assert KEY not in row().trial.reply


def test_a_key_that_is_not_there_is_said_without_a_call(at, monkeypatch):
    monkeypatch.delenv("TRIAL_API_KEY")
    text = try_it()
    assert "the workers' environment has no TRIAL_API_KEY" in text
    assert "TRIAL_API_KEY is not set here" in text
    assert at.requests == []


def test_nobody_at_the_address(at):
    Provider.objects.update(base_url=f"http://127.0.0.1:{free_port()}/v1")
    assert "judge-hash did not answer: " in try_it()


def test_what_the_model_says_is_harmless(at):
    reply = {"role": "assistant", "content": "<script>alert(1)</script>"}
    at.answers({"choices": [{"message": reply, "finish_reason": "stop"}]})
    try_it()
    page = user_client().get("/providers/").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


class TestWithinItsLimits:
    def test_no_call_where_all_places_are_taken(self, at):
        Provider.objects.update(concurrency=1)
        verdict = Verdict.objects.filter(judge__run=make_run()).first()
        Call.objects.create(
            run=verdict.judge.run,
            purpose="judge",
            verdict=verdict,
            provider="default",
            model=MODEL,
            lease=uuid4(),
            leased_until=timezone.now() + timedelta(minutes=1),
        )
        assert "default takes no more calls at this moment" in try_it()
        assert at.requests == []

    def test_it_counts_among_the_calls_of_a_minute(self, at):
        Provider.objects.update(requests_per_minute=1)
        assert "It works." in try_it()
        assert "default takes no more calls at this moment" in try_it()
        assert len(at.requests) == 1

    def test_a_paused_model_is_left_alone(self, at):
        leases.pause("default", MODEL, 30, "rate limit reached")
        assert "judge-hash is rate limited for another" in try_it()
        assert at.requests == []

    def test_its_place_is_free_again_behind_it(self, at):
        Provider.objects.update(concurrency=1)
        for _ in range(2):
            assert "It works." in try_it()
        assert (row().guests, row().trial.lease) == ({}, None)

    def test_it_is_made_once_however_often_it_is_delivered(self, at):
        try_it()
        for _ in range(2):
            trial.make_call(row().trial_id)
        trial.make_call(row().trial_id + 1)
        assert len(at.requests) == 1

    def test_one_at_a_time(self, at):
        trial.try_provider("default", MODEL)
        answer = user_client().post("/providers/default/try", {"model": MODEL})
        assert answer.status_code == 409
        assert "is being tried; wait for its answer" in text_of(answer)


class TestThePage:
    def test_it_asks_again_until_the_answer_is_there(self, at):
        trial.try_provider("default", MODEL)
        part = "/providers/?trial=default"
        waiting = user_client().get(part, headers=HTMX).content.decode()
        assert 'hx-get="/providers/?trial=default"' in waiting
        assert "Asking judge-hash" in waiting
        trial.make_call(row().trial_id)
        done = user_client().get(part, headers=HTMX).content.decode()
        assert "hx-get" not in done
        assert "It works." in done

    def test_a_worker_that_does_not_come_is_said(self, at):
        trial.try_provider("default", MODEL)
        early = timezone.now() - trial.TAKEN_UP_WITHIN - timedelta(seconds=1)
        Call.objects.update(not_before=early)
        assert "No worker has taken this up." in text_of(user_client().get("/providers/"))
        trial.try_provider("default", MODEL)  # so it can be tried again

    def test_models_that_judge_or_have_a_price_are_offered(self, at):
        run = make_run()
        Judge.objects.filter(run=run, position=0).update(provider="default", model="gpt-x")
        page = user_client().get("/providers/").content.decode()
        for model in (MODEL, "gpt-x"):
            assert f'<option value="{model}">' in page

    @pytest.mark.parametrize("model", ["", "x" * 201, "a\x00b"])
    def test_a_model_that_cannot_be_is_refused(self, at, model):
        answer = user_client().post("/providers/default/try", {"model": model})
        assert answer.status_code == 422
        assert row().trial is None

    def test_what_is_not_there(self, at):
        assert user_client().post("/providers/other/try", {"model": "m"}).status_code == 404
        assert user_client().get("/providers/?trial=other").status_code == 404

    def test_it_costs_the_same_however_many_there_are(self, at):
        few = queries_of(user_client(), "/providers/")
        for number in range(9):
            make_provider(at, name=f"provider {number}")
        assert queries_of(user_client(), "/providers/") == few


def test_without_a_provider_the_page_says_what_to_do():
    assert "No provider yet" in text_of(user_client().get("/providers/"))
