"""Prometheus: feedback on a response with a score from 1 to 5, or on which of two is better.

In the Feedback and the Preference Collection, ``orig_instruction`` …, all of it is GPT-4's; rows of
``instruction, response, feedback, score`` are the model's own gradings.

Sources: huggingface.co/datasets/prometheus-eval/Feedback-Collection and .../Preference-Collection.
"""

from collections.abc import Iterator

from judge_eval.imports import fields
from judge_eval.imports.formats.shapes import choice_of, filled, pair, single, verdict_of
from judge_eval.imports.row_models import Values, need

_OF_PAIRS = ("orig_instruction", "orig_response_A", "orig_response_B", "orig_preference")
_OF_ITEMS = ("instruction", "response", "feedback", "score")
FITS = (_OF_PAIRS, _OF_ITEMS, [f"orig_{column}" for column in _OF_ITEMS])


def read(record: Values, name: str) -> Iterator[Values]:
    prefix = "" if "response" in record and "orig_response" not in record else "orig_"
    judge: Values = {
        "judge": "gpt-4" if prefix else "prometheus",
        "feedback": record.get(f"{prefix}feedback"),
    }
    if "orig_preference" in record:
        item = pair(*need(record, *_OF_PAIRS[:3]))
        answer = verdict_of(choice_of(record["orig_preference"]), "score")
        answer |= {
            f"score_{side}": _number(record.get(f"orig_score_{side.upper()}")) for side in "ab"
        }
    else:
        item = single(*need(record, f"{prefix}instruction", f"{prefix}response"))
        item["vote_kind"] = "rating"
        answer = verdict_of(_number(record[f"{prefix}score"]), "score")
    yield item | judge | filled(answer)


def _number(raw: object) -> float | None:
    try:
        return fields.number(raw)
    except ValueError:
        return None
