"""Calls to a model over a real connection: what is sent and what comes back."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from judge_eval.judging.prompts.judge import JudgeQuestion, schema
from judge_eval.judging.providers import chat as endpoints
from judge_eval.judging.providers.chat import Endpoint, chat
from judge_eval.judging.providers.errors import RAW_LIMIT
from tests.helpers import model_calls
from tests.helpers.model_calls import KEY, completion, failure, question
from tests.helpers.waiting import eventually
from tests.provider import provider

server = pytest.fixture(model_calls.server, scope="module")
model = pytest.fixture(model_calls.model)
endpoint = pytest.fixture(model_calls.endpoint)


class TestReply:
    def test_what_the_model_said_and_what_it_took(self, endpoint):
        asked = question(model="judge-long")

        reply = chat(endpoint, asked)

        assert json.loads(reply.text)["winner"] == "A"
        assert (reply.model, reply.finish_reason, reply.refusal) == ("judge-long", "stop", None)
        assert reply.prompt_tokens > 0
        assert reply.completion_tokens > 0
        assert reply.latency_ms > 0
        assert json.loads(reply.raw)["choices"][0]["message"]["content"] == reply.text

    def test_what_is_sent(self, endpoint, model):
        asked = question()

        chat(endpoint, asked)

        (sent,) = model.requests
        assert sent["path"] == "/v1/chat/completions"
        assert sent["authorized"]
        assert sent["body"] == {
            "model": asked.model,
            "messages": asked.messages,
            "temperature": 0.5,
            "max_tokens": 300,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "verdict",
                    "strict": True,
                    "schema": schema(JudgeQuestion("AB")),
                },
            },
        }

    def test_what_is_not_wanted_is_not_sent(self, endpoint, model):
        plain = question(schema=None, temperature=None)
        without = replace(endpoint, structured_output=False)

        chat(endpoint, plain)
        chat(without, question())

        first, second = (sent["body"] for sent in model.requests)
        assert first.keys() == {"model", "messages", "max_tokens"}
        assert "response_format" not in second

    def test_no_key_is_no_header(self):
        with provider() as open_to_all:
            chat(Endpoint("local", open_to_all.base_url, ""), question())
            assert not open_to_all.requests[0]["authorized"]

    @pytest.mark.parametrize(
        "body,text,refusal",
        [
            (completion(""), "", None),
            (completion(None), "", None),
            ({"choices": []}, "", None),
            ({"choices": [None]}, "", None),
            (
                completion([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
                "ab",
                None,
            ),
            (completion([{"type": "reasoning", "text": "hm"}, {"text": "c"}, None]), "c", None),
            (completion([{"type": "refusal", "refusal": "No."}]), "", "No."),
            (completion("\x00 and \ud800"), "\ufffd and \ufffd", None),
        ],
    )
    def test_content_in_every_shape(self, endpoint, model, body, text, refusal):
        model.answers(body)

        reply = chat(endpoint, question())

        assert (reply.text, reply.refusal) == (text, refusal)

    def test_refusal(self, endpoint, model):
        model.control(mode="refuse")
        reply = chat(endpoint, question())
        assert (reply.text, reply.refusal) == ("", "I cannot help with that.")

    def test_reasoning_is_no_part_of_the_text(self, endpoint, model):
        body = completion("Fine.")
        body["choices"][0]["message"] |= {"reasoning": "Hm.", "reasoning_content": "Hm."}
        model.answers(body)
        assert chat(endpoint, question()).text == "Fine."

    @pytest.mark.parametrize("usage", [None, [], {"prompt_tokens": -1, "completion_tokens": "9"}])
    def test_usage_missing_or_senseless_is_none(self, endpoint, model, usage):
        model.answers(completion(usage=usage))
        reply = chat(endpoint, question())
        assert (reply.prompt_tokens, reply.completion_tokens) == (None, None)

    def test_model_as_reported_back_else_as_requested(self, endpoint, model):
        asked = question()
        model.answers(completion(model="judge-2026-11-21"))
        assert chat(endpoint, asked).model == "judge-2026-11-21"
        model.answers(completion())
        assert chat(endpoint, asked).model == asked.model

    def test_raw_is_what_json_and_a_database_can_hold(self, endpoint, model):
        model.answers('{"choices": [], "logprob": NaN, "bottom": -Infinity, "nul": "\\u0000"}')
        raw = json.loads(chat(endpoint, question()).raw)
        assert raw == {"choices": [], "logprob": None, "bottom": None, "nul": "\ufffd"}

    def test_raw_is_capped_and_the_text_is_not(self, endpoint, model):
        model.answers(completion("x" * 200_000))
        reply = chat(endpoint, question())
        assert len(reply.text) == 200_000
        assert len(reply.raw) == RAW_LIMIT


class TestRefusedFields:
    def test_refused_again_is_a_failure(self, endpoint, model):
        refusal = {"error": {"message": "response_format and max_completion_tokens are wrong."}}
        model.answers(refusal, status=400)
        assert failure(endpoint).status == 400
        assert len(model.requests) == 3


class TestConnections:
    def test_many_threads_share_a_client(self):
        asked = [question(model=f"judge-{number}") for number in range(40)]

        with provider() as shared, ThreadPoolExecutor(8) as pool:
            endpoint = Endpoint("local", shared.base_url, KEY)
            replies = list(pool.map(lambda one: chat(endpoint, one), asked))
            assert connections(shared) <= 8

        assert [reply.model for reply in replies] == [one.model for one in asked]

    def test_a_client_long_unused_hangs_up(self):
        with provider() as other:
            chat(Endpoint("old", other.base_url, "sk-old-key"), question())
            assert connections(other) == 1

            with provider() as busy:
                for number in range(endpoints.CLIENTS):
                    chat(Endpoint("new", busy.base_url, f"sk-new-key-{number}"), question())

            eventually(lambda: connections(other) == 0)

    def test_a_client_put_out_of_use_ends_its_call_first(self):
        with provider(latency_ms=1000) as slow, provider() as busy, ThreadPoolExecutor(1) as pool:
            under_way = pool.submit(chat, Endpoint("old", slow.base_url, "sk-old-key"), question())
            eventually(lambda: slow.log()["now"] == 1)
            for number in range(endpoints.CLIENTS):
                chat(Endpoint("new", busy.base_url, f"sk-new-key-{number}"), question())
            assert under_way.result().text


def connections(server):
    """How many there are beside the one that asks."""
    return server.log()["connections"] - 1
