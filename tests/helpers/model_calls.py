"""What the tests of calls to a model share; each test module makes fixtures of the first three."""

import uuid
from dataclasses import replace

import pytest

from judge_eval.judging.prompts.judge import JudgeQuestion, messages, schema
from judge_eval.judging.providers.chat import ChatRequest, Endpoint, chat
from judge_eval.judging.providers.errors import CallFailed
from tests.provider import provider

KEY = "sk-of-this-test-0123456789"


def server():
    with provider(key=KEY) as running:
        yield running


def model(server):
    """The provider, well-behaved and with an empty log."""
    server.control(reset=True, mode="ok", retry_after=None, latency_ms=0, drip_ms=50)
    return server


def endpoint(model):
    return Endpoint("local", model.base_url, KEY, timeout_s=30)


def question(**changes):
    """A request for a verdict, to a model that no other test asked."""
    asked = messages(
        "1",
        JudgeQuestion("AB"),
        kind="text",
        prompt="Hi",
        rubric="Be brief",
        outputs=["Hello", "Hi"],
    )
    request = ChatRequest(f"judge-{uuid.uuid4().hex}", asked, 0.5, 300, schema(JudgeQuestion("AB")))
    return replace(request, **changes)


def failure(endpoint, request=None):
    with pytest.raises(CallFailed) as caught:
        chat(endpoint, request or question())
    return caught.value


def completion(content="Fine.", **more):
    message = {"role": "assistant", "content": content}
    return {"choices": [{"message": message, "finish_reason": "stop"}], **more}
