"""Lists of messages in every shape that files have them, and hostile ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voting.items.conversations import ROLES, assistant_text, conversation, latest, messages_of

TEXT = st.text(max_size=60)
ROLE = st.sampled_from(sorted({*ROLES, "User", " ASSISTANT "}))
PART = TEXT | st.builds(lambda text: {"type": "text", "text": text, "image": None}, TEXT)
CONTENT = st.none() | TEXT | st.lists(PART, max_size=3)
MESSAGE = st.builds(lambda role, content: {"role": role, "content": content}, ROLE, CONTENT)
SHARED = st.builds(lambda role, content: {"from": role, "value": content}, ROLE, TEXT)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "from", "value", "type", "text", "tool_calls", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.lists(MESSAGE | SHARED, min_size=1, max_size=6))
def test_a_conversation_has_one_form_that_is_read_as_itself(value):
    text = conversation(value)
    assert text is not None
    text.encode()
    assert "\0" not in text
    messages = messages_of(text)
    assert [each.role for each in messages] == [
        ROLES[(each.get("role") or each["from"]).strip().lower()] for each in value
    ]
    assert conversation(json.loads(text)) == text
    assert messages_of(json.dumps(value)) == messages


@given(JSON | st.lists(JSON))
def test_whatever_a_record_holds_is_a_conversation_or_not(value):
    text = conversation(value)
    assert text is None or messages_of(text)
    written = json.dumps(value)
    if messages_of(written) is None:
        assert assistant_text(written) == latest(written) == written


@given(TEXT.map(lambda text: f"[{{{text}") | TEXT)
def test_no_text_is_too_odd(text):
    if messages_of(text) is None:
        assert assistant_text(text) == latest(text, "assistant") == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[]",
        "[1]",
        '["Hi"]',
        "[x](https://example.org)",
        '[{"role":"user"}]',
        '[{"role":"king","content":"Hi"}]',
        '[{"role":"user","content":5}]',
        '[{"role":"user","content":[5]}]',
        '[{"role":"user","content":"Hi"},"Hi"]',
        '[{"role":"user","role":"system","content":"Hi"}]',
        '{"role":"user","content":"Hi"}',
        '[{"role":"user","content":"Hi"}] and more',
        "[" * 100_000,
        '[{"role":' * 50_000,
        '[{"role":"user","content":"Hi","n":' + "9" * 5_000 + "}]",
        json.dumps([{"role": "user", "content": "Hi"}] * 1_001),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_conversation_stays_text(text):
    assert messages_of(text) is None


def test_parts_and_tool_calls_become_text():
    call = {"function": {"name": "weather", "arguments": '{"in":"Rome"}'}}
    data = {"url": "data:image/png;base64,AAAA"}
    messages = messages_of(
        json.dumps(
            [
                {
                    "role": "developer",
                    "content": [{"type": "input_text", "text": "a"}, {"type": "input_audio"}],
                },
                {"role": "human", "content": [{"type": "image_url", "image_url": data}]},
                {"role": "assistant", "content": None, "tool_calls": [call, "odd"]},
                {"role": "function", "content": "\ud800\0rain"},
            ]
        )
    )
    assert [tuple(each) for each in messages] == [
        ("system", "a\n\n[input_audio]"),
        ("user", "[picture: image_url]"),
        ("assistant", '[tool call: weather({"in":"Rome"})]\n\n[tool call]'),
        ("tool", "\ufffd\ufffdrain"),
    ]


def test_lengths_count_every_turn_of_the_assistant_and_nothing_else():
    turns = [("user", "why?"), ("assistant", "so"), ("user", "and?"), ("assistant", "that")]
    text = conversation([{"role": role, "content": content} for role, content in turns])
    assert assistant_text(text) == "so\n\nthat"
    assert (latest(text), latest(text, "assistant"), latest(text, "system")) == (
        "and?",
        "that",
        "that",
    )
