"""Chatbot Arena: people's votes on conversations with two models, with one user a vote.

``model_a, model_b, winner, conversation_a, conversation_b`` and, by edition, ``judge`` (33k: the
user), ``evaluation_session_id`` (140k: a visit, several votes of one user) and ``turn``. A
conversation is a list of messages; its last answer is what is compared, and what stands before it
is the prompt, where both sides share it. Where they do not, both outputs are the whole
conversations, and the prompt is what the user said first.

Sources: the data cards of lmsys/chatbot_arena_conversations (33k) and
lmarena-ai/arena-human-preference-100k and -140k on the Hugging Face hub.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from judge_eval.exchange.formats.shapes import pair
from judge_eval.exchange.row_models import Misfit, Values, need

_COLUMNS = ("model_a", "model_b", "winner", "conversation_a", "conversation_b")
# What MT-bench's judgements lack, whose other columns are the same.
_OF_A_VISIT = ("tstamp", "timestamp", "evaluation_session_id")
_VOTER = ("judge", "user_id", "evaluation_session_id")
FITS = [(*_COLUMNS, it) for it in _OF_A_VISIT]


def read(record: Values, name: str) -> Iterator[Values]:
    model_a, model_b, winner, a, b = need(record, *_COLUMNS)
    prompt, output_a, output_b = sides(a, b)
    number = record.get("question_id", record.get("id"))
    yield pair(
        *(prompt, output_a, output_b),
        pair=number,
        tags=[record["language"]] if record.get("language") else [],
        generator_a=model_a,
        generator_b=model_b,
        voter=next((record[it] for it in _VOTER if record.get(it)), f"user of {number}"),
        vote=winner,
        voted_at=_moment(record.get("tstamp", record.get("timestamp"))),
    )


def sides(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return the prompt and the outputs of two conversations."""
    for name, side in (("conversation_a", a), ("conversation_b", b)):
        if not isinstance(side, list) or not all(isinstance(turn, dict) for turn in side):
            raise Misfit(name, "must be a list of messages")
    if a[:-1] == b[:-1]:
        return a[:-1] or None, a[-1:], b[-1:]
    return a[:1], a, b


def _moment(raw: object) -> object:
    """Return a time in seconds since 1970 as a time; one without a zone is in UTC."""
    if isinstance(raw, int | float):
        return datetime.fromtimestamp(raw, UTC)
    return raw.replace(tzinfo=UTC) if isinstance(raw, datetime) and not raw.tzinfo else raw
