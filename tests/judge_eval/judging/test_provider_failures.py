"""Calls to a model that fail: how the failure is named, and that every call ends."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from judge_eval.judging.providers.chat import ChatReply, Endpoint, chat
from judge_eval.judging.providers.errors import RAW_LIMIT, retry_seconds
from judge_eval.judging.providers.transport import ConnectionLine
from tests.helpers import model_calls
from tests.helpers.model_calls import KEY, failure, question
from tests.helpers.receiver import Receiver
from tests.process.processes import free_port

server = pytest.fixture(model_calls.server, scope="module")
model = pytest.fixture(model_calls.model)
endpoint = pytest.fixture(model_calls.endpoint)


class TestFailure:
    @pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
    def test_worth_another_try(self, endpoint, model, status):
        model.answers({"error": {"message": "Not now."}}, status=status)
        failed = failure(endpoint)
        assert failed.retryable
        assert failed.status == status
        assert failed.reason.startswith(str(status))
        assert "Not now." in failed.reason

    @pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 405, 413, 422])
    def test_final(self, endpoint, model, status):
        model.answers({"error": {"message": "Never."}}, status=status, headers={"Retry-After": "1"})
        failed = failure(endpoint)
        assert not failed.retryable
        assert failed.retry_after is None
        assert failed.status == status

    @pytest.mark.parametrize(
        "status,code",
        [(402, None), (429, "insufficient_quota"), (429, "billing_hard_limit_reached")],
    )
    def test_no_credit_is_final_and_said(self, endpoint, model, status, code):
        model.answers({"error": {"message": "Pay first.", "code": code}}, status=status)
        failed = failure(endpoint)
        assert not failed.retryable
        assert "the account has no credit (Pay first.)" in failed.reason

    def test_rate_limit_in_words(self, endpoint, model):
        model.control(mode="429", retry_after=3)
        failed = failure(endpoint)
        assert failed.retry_after == 3
        assert failed.reason == (
            "429 Too Many Requests: rate limit reached (Rate limit reached.); asked to wait 3 s"
        )

    def test_rate_limit_without_a_wait(self, endpoint, model):
        model.answers("", status=429)
        failed = failure(endpoint)
        assert (failed.retryable, failed.retry_after) == (True, None)
        assert failed.reason == "429 Too Many Requests: rate limit reached"

    @pytest.mark.parametrize(
        "body,words",
        [
            ({"detail": "Not here."}, "(Not here.)"),
            ({"message": "Not\n\there.\x1b[31m"}, "(Not here. [31m)"),
            ({"error": "Not here."}, "(Not here.)"),
            ("plain words", "(plain words)"),
            ("<!doctype html><title>404</title>", "no such model or address"),
            (
                {"detail": [{"loc": ["body", "top_p"], "msg": "too high", "input": "my prompt"}]},
                "(body.top_p: too high)",
            ),
        ],
    )
    def test_the_provider_s_own_words_in_one_line(self, endpoint, model, body, words):
        model.answers(body, status=404)
        assert failure(endpoint).reason.endswith(words)

    def test_long_words_and_long_bodies_are_cut(self, endpoint, model):
        model.answers({"error": {"message": "x" * 90_000}}, status=500)
        failed = failure(endpoint)
        assert len(failed.reason) < 400
        assert len(failed.raw) == RAW_LIMIT

    @pytest.mark.parametrize("body", ["", "<html></html>", '{"choices": [{"mess', "[1]", '"text"'])
    def test_no_json_object_is_malformed(self, endpoint, model, body):
        model.answers(body)
        failed = failure(endpoint)
        assert failed.retryable
        assert failed.reason == "200 OK: the reply is not a JSON object"

    def test_json_of_something_else_is_malformed(self, endpoint, model):
        model.answers({"status": "up"})
        assert failure(endpoint).reason == "200 OK: the reply is not a chat completion"

    def test_json_nested_beyond_reason_is_malformed(self, endpoint, model):
        model.answers("[" * 100_000)
        assert failure(endpoint).retryable

    @pytest.mark.parametrize(
        "error,status,retryable",
        [
            ({"code": 502, "message": "Upstream failed."}, 502, True),
            ({"code": "429", "message": "Slow down."}, 429, True),
            ({"code": 401, "message": "No."}, 401, False),
            ({"code": "rate_limit_exceeded"}, 429, True),
            ({"code": "insufficient_quota"}, 200, False),
            ({"message": "Something."}, 200, True),
            ("Something.", 200, True),
        ],
    )
    def test_error_inside_a_reply_200(self, endpoint, model, error, status, retryable):
        for body in ({"error": error}, {"choices": [{"error": error, "message": {}}]}):
            model.answers(body)
            failed = failure(endpoint)
            assert (failed.status, failed.retryable) == (status, retryable)

    def test_disconnected_in_mid_reply(self, endpoint, model):
        model.control(mode="disconnect")
        failed = failure(endpoint)
        assert failed.retryable
        assert failed.reason == "the connection ended before the reply was complete"
        assert failed.may_be_billed

    def test_nobody_listens(self):
        failed = failure(Endpoint("gone", f"http://127.0.0.1:{free_port()}/v1", KEY))
        assert failed.retryable
        assert failed.reason == "no connection: Connection refused"
        assert not failed.may_be_billed

    def test_what_no_encoding_can_hold_is_not_sent(self, endpoint, model):
        half = [{"role": "user", "content": "secret \ud800"}]
        failed = failure(endpoint, question(messages=half))
        assert failed.reason == "the request holds half a surrogate pair, which is no text"
        assert failed.__context__ is None
        assert not failed.may_be_billed
        assert not model.requests

    def test_the_next_call_after_a_fault_is_well(self, endpoint, model):
        for mode in ("disconnect", "500", "malformed"):
            model.control(mode=mode, times=1)
            failure(endpoint)
            assert isinstance(chat(endpoint, question()), ChatReply)

    def test_survives_the_way_to_another_process(self, endpoint, model):
        model.control(mode="429", retry_after=3)
        failed = failure(endpoint)
        assert vars(pickle.loads(pickle.dumps(failed))) == vars(failed)


class TestWait:
    @pytest.mark.parametrize(
        "headers,seconds",
        [
            ({"retry-after": "3"}, 3),
            ({"retry-after": "0"}, 0),
            ({"retry-after": "0.25"}, 0.25),
            ({"retry-after-ms": "250"}, 0.25),
            ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
            ({"retry-after-ms": "soon", "retry-after": "3"}, 3),
            ({"retry-after": "86400"}, 600),
            ({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}, 600),
            ({"retry-after": "Fri, 01 Jan 2010 00:00:00 GMT"}, None),
            ({"retry-after": "-3"}, None),
            ({"retry-after": "soon"}, None),
            ({"retry-after": "nan"}, None),
            ({"retry-after": "inf"}, None),
            ({"retry-after": ""}, None),
            ({}, None),
        ],
    )
    def test_seconds_asked(self, headers, seconds):
        assert retry_seconds(headers) == seconds

    def test_a_date_is_as_far_off_as_it_is(self):
        then = datetime.now(UTC) + timedelta(minutes=5)
        assert retry_seconds({"retry-after": format_datetime(then, usegmt=True)}) == pytest.approx(
            300, abs=60
        )

    def test_a_header_really_sent(self, endpoint, model):
        model.answers("", status=503, headers={"Retry-After-MS": "1500"})
        failed = failure(endpoint)
        assert failed.retry_after == 1.5
        assert failed.reason.endswith("; asked to wait 1.5 s")


class TestTime:
    @pytest.mark.parametrize("mode", ["slow", "drip", "drip_head"])
    def test_a_call_ends_however_slowly_the_reply_comes(self, endpoint, model, mode):
        # Each byte comes well within the time-out; all of them take many times as long.
        model.control(mode=mode)
        failed = failure(replace(endpoint, timeout_s=0.5))
        assert failed.retryable
        assert failed.reason == "no complete reply within 0.5 s"

    def test_a_reply_that_is_merely_slow_is_read(self, endpoint, model):
        model.control(mode="drip", drip_ms=1)
        assert chat(endpoint, question()).text

    def test_time_spent_on_a_refused_field_counts(self, endpoint, model):
        model.control(mode="no_structured", latency_ms=400)
        assert "no complete reply" in failure(replace(endpoint, timeout_s=0.6)).reason


class TestSize:
    def test_a_reply_beyond_all_measure_is_not_read(self, endpoint, model):
        model.control(mode="huge")
        failed = failure(endpoint)
        assert failed.reason == "the reply is larger than 10 MB"
        assert not failed.retryable

    def test_a_compressed_reply_is_unpacked_no_further_than_a_reply_may_be_large(
        self, endpoint, model
    ):
        model.control(mode="gzip bomb")
        assert failure(endpoint).reason == "the reply is larger than 10 MB"
        model.answers("x", headers={"Content-Encoding": "br"})
        reason = "the reply is compressed ('br'), which was not asked for"
        assert failure(endpoint).reason == reason

    @pytest.mark.parametrize("mode", ["gzip that is none", "gzip that ends early"])
    def test_a_compressed_reply_that_is_damaged_is_asked_for_again(self, endpoint, model, mode):
        model.control(mode=mode)
        failed = failure(endpoint)
        assert failed.reason == "the connection ended before the reply was complete"
        assert failed.retryable


def test_a_server_that_hangs_up_behind_its_reply_is_read_to_the_end():
    with Receiver() as server:
        server.mode = "late"
        status, _, body = ConnectionLine("local", server.url, "").send({}, 5, "/chat/completions")
    assert (status, body) == (500, b'{"it": "broke"}')
