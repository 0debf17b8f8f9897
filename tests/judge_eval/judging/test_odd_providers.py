"""Model servers as they are: each odd answer is read, or refused by naming what to do."""

from dataclasses import replace

import pytest

from judge_eval.judging.prompts.judge import JudgeQuestion
from judge_eval.judging.prompts.parse import ReplyUnreadable, parse_verdict
from judge_eval.judging.providers.chat import chat, left_out
from judge_eval.judging.providers.errors import CallFailed
from tests.helpers import model_calls
from tests.helpers.model_calls import question
from tests.provider_behaviour import MODES
from tests.provider_oddities import ODD

server = pytest.fixture(model_calls.server, scope="module")
model = pytest.fixture(model_calls.model)
endpoint = pytest.fixture(model_calls.endpoint)

ELSEWHERE = "its answer stands only in its reasoning: raise max_tokens"
BROKEN_OFF = "the connection ended before the reply was complete"
# What comes of those that are not read.
REFUSED = {
    "answer in reasoning_content": ELSEWHERE,
    "answer in reasoning": ELSEWHERE,
    "tool call": "it answered with a tool call; ask a model that answers in text",
    "refusal": "I cannot compare these.",
    "stream that ends early": "the stream ended before the reply was complete",
    "cut by its length": "its last JSON object is broken",
    "HTML with 200": "200 OK: the reply is not a JSON object",
    "HTML with 502": "502 Bad Gateway: no reason given",
    "error in a 200": "502 Bad Gateway: Upstream failed.",
    "error in the choice": "503 Service Unavailable: the provider is overloaded or down (Busy.)",
    "no choices": "200 OK: the reply is not a chat completion",
    "empty": "the reply is empty",
    "prose": "it has no JSON object",
    "broken": "its last JSON object is broken",
    "gzip that is none": BROKEN_OFF,
    "gzip that ends early": BROKEN_OFF,
    "gzip bomb": "the reply is larger than 10 MB",
    "brotli unasked": "the reply is compressed ('br')",
    "quotes brackets": "it has no JSON object: 'Output A says '[[A]]''",
    "quotes brackets on a line": "it has no JSON object: 'Output A ends so: [[A]]'",
    "two brackets": "it has no JSON object: 'The output says [[A]]. I say [[B]]'",
    "letter in prose": "it has no JSON object: 'A is better than B in some ways.'",
    "two keys apart": "its JSON object says A and B",
    "two objects apart": "its JSON object says A and B",
    "brackets against its object": "it says A, and something else at its end: '[[B]]'",
    "winner as both": "the winner 'both' must be one of A, B",
    "winner as a list": "the winner '[\"A\"]' must be one of A, B",
    "winner in a sentence": "the winner 'A, by a little' must be one of A, B",
}
# What a model is asked without, where it is not all that was sent.
LEFT_OUT = {
    "refuses a system role": ["system role"],
    "refuses developer instructions": ["system role"],
    "wants roles to alternate": ["system role"],
    "refuses temperature": ["temperature"],
    "refuses temperature, as a validator": ["temperature"],
    "refuses response_format": ["response_format"],
    "refuses json_schema": ["response_format"],
    "refuses reasoning_effort": ["reasoning_effort"],
    "refuses every limit of tokens": ["max_tokens"],
    "refuses a word of the schema": ["response_format"],
    "refuses the schema": ["response_format"],
    "refuses guided decoding": ["response_format"],
    "refuses strict": ["response_format"],
    "refuses all, one by one": ["response_format", "temperature"],
    "refuses all at once": ["max_tokens", "response_format", "temperature"],
}


def outcome(endpoint, refused=()):
    """Return the winner and what the model refuses, or why there is no verdict."""
    endpoint = replace(endpoint, refused={"judge-long": refused})
    try:
        reply = chat(endpoint, question(model="judge-long", reasoning_effort="low"))
        if reply.refusal:
            return reply.refusal
        return parse_verdict(reply.text, JudgeQuestion("AB")).winner, reply.refused
    except (CallFailed, ReplyUnreadable) as failed:
        return str(failed)


def test_there_are_many_of_them():
    assert len(MODES) >= 110


@pytest.mark.parametrize("mode", ODD)
def test_it_is_read_or_refused_in_words(endpoint, model, mode):
    if "Azure" in mode:
        endpoint = replace(endpoint, base_url=f"{endpoint.base_url}?api-version=2024-06-01")
    model.control(mode=mode)
    first = outcome(endpoint)
    if mode in REFUSED:
        assert first.startswith(REFUSED[mode])
        return
    winner, refused = first
    assert (winner, left_out(refused)) == ("A", LEFT_OUT.get(mode, []))
    # What was refused once is not sent again.
    count = len(model.requests)
    assert outcome(endpoint, refused) == first
    assert len(model.requests) == count + 1


def test_scores_are_read_as_they_are_written():
    for score in ("8", "8.0", " 8 ", "8/10", "8 / 10", 8):
        verdict = parse_verdict(
            f'{{"winner": "A", "score_a": {score!r}}}'.replace("'", '"'), JudgeQuestion("AB")
        )
        assert verdict.score_a == 8.0
    for score in ("8/5", "eight", "11", "nan", "1e1000"):
        verdict = parse_verdict(f'{{"winner": "A", "score_a": "{score}"}}', JudgeQuestion("AB"))
        assert (verdict.winner, verdict.score_a) == ("A", None)
