"""Chatbot Arena: people's votes on conversations with two models, with one user a vote.

``model_a, model_b, winner, conversation_a, conversation_b`` and, by edition, ``judge`` (33k: the
user), ``evaluation_session_id`` (140k: a visit, several votes of one user) and ``turn``. A
conversation is a list of messages; its last answer is what is compared, and what stands before it
is the prompt, where both sides share it. Where they do not, both outputs are the whole
conversations, and the prompt is what the user said first.

As Kaggle gave them (55k), ``prompt``, ``response_a`` and ``response_b`` are JSON texts, each a list
with a text a turn, where a model may have given none, and ``winner_model_a``, ``winner_model_b`` or
``winner_tie`` is 1. Nobody is named: each vote is by another voter.

Sources: the data cards of lmsys/chatbot_arena_conversations (33k) and
lmarena-ai/arena-human-preference-100k and -140k on the Hugging Face hub, and the data page of the
Kaggle competition "LMSYS - Chatbot Arena Human Preference Predictions", 2024.
"""

from collections.abc import Iterator
from typing import Any

from humanjudge.core.strict_json import loads
from judge_eval.imports.formats.shapes import moment, pair, tags
from judge_eval.imports.row_models import InvalidField, MadeUp, Values, checked, need, plain

_COLUMNS = ("model_a", "model_b", "winner", "conversation_a", "conversation_b")
# What MT-bench's judgements lack, whose other columns are the same.
_OF_A_VISIT = ("tstamp", "timestamp", "evaluation_session_id")
_VOTER = ("judge", "user_id", "evaluation_session_id")
_TEXTS = ("prompt", "response_a", "response_b")
_WINNERS = {"winner_model_a": "A", "winner_model_b": "B", "winner_tie": "tie"}
_KAGGLE = ("model_a", "model_b", *_TEXTS, *_WINNERS)
FITS = [_KAGGLE, *((*_COLUMNS, column) for column in _OF_A_VISIT)]


def read(record: Values, name: str) -> Iterator[Values]:
    if record.keys() >= {*_KAGGLE}:
        yield _kaggle_row(record)
        return
    model_a, model_b, winner, a, b = need(record, *_COLUMNS)
    prompt, output_a, output_b = sides(a, b)
    number = record.get("question_id", record.get("id"))
    yield pair(
        prompt,
        output_a,
        output_b,
        pair=number,
        tags=tags(record, "language"),
        generator_a=model_a,
        generator_b=model_b,
        voter=next(
            (record[column] for column in _VOTER if record.get(column)), MadeUp(f"user of {number}")
        ),
        vote=winner,
        voted_at=moment("timestamp", record.get("tstamp", record.get("timestamp"))),
    )


def sides(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return the prompt and the outputs of two conversations."""
    for name, side in (("conversation_a", a), ("conversation_b", b)):
        if not isinstance(side, list) or not all(isinstance(turn, dict) for turn in side):
            raise InvalidField(name, "must be a list of messages")
    if a[:-1] == b[:-1]:
        return a[:-1] or None, a[-1:], b[-1:]
    return a[:1], a, b


def _kaggle_row(record: Values) -> Values:
    prompts, *answers = (_turns(text, record) for text in _TEXTS)
    a, b = (_conversation(prompts, answer) for answer in answers)
    number = plain("id", *need(record, "id"))
    winners = [choice for column, choice in _WINNERS.items() if str(record[column]) in ("1", "1.0")]
    if len(winners) > 1:
        raise InvalidField("winner_tie", "more than one winner is marked")
    models = {f"generator_{side}": record[f"model_{side}"] for side in "ab"}
    vote = {"voter": MadeUp(f"user of {number}"), "vote": winners[0]} if winners else {}
    prompt, output_a, output_b = sides(a, b)
    return pair(prompt, output_a, output_b, pair=number, **models, **vote)


def _turns(column: str, record: Values) -> list[str]:
    raw = record[column]
    turns = checked(column, raw, loads) if isinstance(raw, str) else raw
    if not isinstance(turns, list):
        raise InvalidField(column, "must be a list of texts")
    return ["" if turn is None else str(turn) for turn in turns]


def _conversation(prompts: list[str], answers: list[str]) -> list[Values]:
    if len(prompts) != len(answers):
        raise InvalidField("response_a", f"{len(answers)} turns, the prompt has {len(prompts)}")
    return [
        {"role": role, "content": text}
        for turn in zip(prompts, answers, strict=True)
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
