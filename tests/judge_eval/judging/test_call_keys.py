"""Which competitor answers, and which stored reply may be used again."""

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.judging.prompts.judge import JudgeQuestion, messages
from judge_eval.judging.prompts.request_hash import judge_fingerprint, request_hash

PNG = b"\x89PNG first", b"\x89PNG second"
HASHES = [sha256(png).hexdigest() for png in PNG]
JUDGE = {
    "model": "vision-1",
    "provider": "default",
    "prompt_version": "1",
    "parameters": {"temperature": 0.7, "max_tokens": 400},
    "renderer": "resvg 0.45",
}
parameters = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    max_size=4,
)


def asked(first=PNG[0], second=PNG[1]):
    return messages(
        "1",
        JudgeQuestion(["A", "B"]),
        kind="svg",
        prompt="a cat",
        rubric="Which?",
        outputs=[first, second],
    )


def key(**changes):
    call = {
        "model": "vision-1",
        "parameters": {"temperature": 0.7, "max_tokens": 400},
        "messages": asked(),
        "order": "AB",
        "sample": 0,
    }
    return request_hash(**(call | changes))


def fingerprint(**changes):
    return judge_fingerprint(**(JUDGE | changes))


def test_keys_are_sha256_of_canonical_json():
    """Spelled out: a rule that changes by itself would make every stored reply a stranger."""
    text = {"messages": [{"role": "user", "content": "é"}]}
    call = (
        '{"messages":[{"content":"é","role":"user"}],"model":"vision-1","order":"AB",'
        '"parameters":{"max_tokens":400,"temperature":"0.7"},"sample":0,"version":1}'
    )
    assert key(**text) == sha256(call.encode()).hexdigest()
    judge = (
        '{"model":"vision-1","parameters":{"max_tokens":400,"temperature":"0.7"},'
        '"prompt_version":"1","provider":"default","renderer":"resvg 0.45","version":1}'
    )
    assert fingerprint() == sha256(judge.encode()).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"model": "vision-2"},
        {"parameters": {"temperature": 0.8, "max_tokens": 400}},
        {"parameters": {"temperature": 0.7}},
        {"order": "BA"},
        {"sample": 1},
        {"messages": asked(*reversed(PNG))},
        {"messages": [*asked(), {"role": "user", "content": "Again."}]},
    ],
)
def test_another_question_has_another_key(change):
    assert key(**change) != key()


@pytest.mark.parametrize("name", JUDGE)
def test_another_competitor_has_another_fingerprint(name):
    other = {"temperature": 0.7, "max_tokens": 401} if name == "parameters" else "other"
    assert fingerprint(**{name: other}) != fingerprint()
    assert fingerprint(renderer=None) != fingerprint(renderer="")


def test_the_bytes_of_a_picture_matter():
    other = b"\x89PNG secone"
    changed = key(messages=asked(second=other))
    assert changed != key()


def test_a_picture_stands_there_by_its_hash():
    """Spelled out, as above."""
    png = b64encode(PNG[0]).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}
    messages = [{"role": "user", "content": [part]}]
    call = (
        '{"messages":[{"content":[{"image_url":{"url":"sha256:%s"},"type":"image_url"}],'
        '"role":"user"}],"model":"vision-1","order":"AB",'
        '"parameters":{"max_tokens":400,"temperature":"0.7"},"sample":0,"version":1}'
    )
    assert key(messages=messages) == sha256((call % HASHES[0]).encode()).hexdigest()
    assert part["image_url"]["url"].endswith(png)


def test_detail_of_a_picture_matters():
    def shown(**more):
        image = {"url": f"data:image/png;base64,{b64encode(PNG[0]).decode()}", **more}
        part = {"type": "image_url", "image_url": image}
        return key(messages=[{"role": "user", "content": [part]}])

    assert shown() != shown(detail="low")


@pytest.mark.parametrize("same", [0, 0.0, -0.0])
def test_the_same_number_is_the_same_question(same):
    assert key(parameters={"temperature": same}) == key(parameters={"temperature": 0})


def test_order_of_parameters_does_not_matter():
    assert key(parameters={"max_tokens": 400, "temperature": 0.7}) == key()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_cannot_be_sent_are_refused(number):
    with pytest.raises(ValueError, match="cannot be sent"):
        key(parameters={"nested": [{"temperature": number}]})


@given(parameters, parameters)
def test_equal_keys_mean_equal_parameters(one, other):
    assert fingerprint(parameters=one) != fingerprint(parameters=other) or one == other
    assert fingerprint(parameters=one) == fingerprint(parameters=dict(reversed(one.items())))
