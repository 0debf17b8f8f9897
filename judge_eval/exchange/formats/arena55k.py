"""The Arena's votes as Kaggle gave them: ``winner_model_a``, ``winner_model_b``, ``winner_tie``.

``prompt``, ``response_a`` and ``response_b`` are JSON texts, each a list with a text a turn, where
a model may have given none. Nobody is named: each vote is by another voter.

Source: the data page of the Kaggle competition "LMSYS - Chatbot Arena Human Preference
Predictions", 2024.
"""

from collections.abc import Iterator

from humanjudge.lib.strict_json import loads
from judge_eval.exchange.formats.arena import sides
from judge_eval.exchange.formats.shapes import pair
from judge_eval.exchange.row_models import Misfit, Values, checked, need, plain

_TEXTS = ("prompt", "response_a", "response_b")
_WINNERS = {"winner_model_a": "A", "winner_model_b": "B", "winner_tie": "tie"}
FITS = (("model_a", "model_b", *_TEXTS, *_WINNERS),)


def read(record: Values, name: str) -> Iterator[Values]:
    prompts, *answers = (_turns(text, record) for text in _TEXTS)
    a, b = (_conversation(prompts, answer) for answer in answers)
    number = plain("id", *need(record, "id"))
    winners = [choice for column, choice in _WINNERS.items() if str(record[column]) in ("1", "1.0")]
    if len(winners) > 1:
        raise Misfit("winner_tie", "more than one winner is marked")
    models = {f"generator_{side}": record[f"model_{side}"] for side in "ab"}
    vote = {"voter": f"user of {number}", "vote": winners[0]} if winners else {}
    prompt, output_a, output_b = sides(a, b)
    yield pair(prompt, output_a, output_b, pair=number, **models, **vote)


def _turns(column: str, record: Values) -> list[str]:
    raw = record[column]
    turns = checked(column, raw, loads) if isinstance(raw, str) else raw
    if not isinstance(turns, list):
        raise Misfit(column, "must be a list of texts")
    return ["" if turn is None else str(turn) for turn in turns]


def _conversation(prompts: list[str], answers: list[str]) -> list[Values]:
    if len(prompts) != len(answers):
        raise Misfit("response_a", f"{len(answers)} turns, the prompt has {len(prompts)}")
    return [
        {"role": role, "content": text}
        for turn in zip(prompts, answers, strict=True)
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
