"""FastChat's judgments: ``gpt-4_pair.jsonl`` and ``gpt-4_single.jsonl`` of ``llm_judge``.

A pair is judged in both orders, ``g1`` with ``model_1`` shown first; the winners are models, so
they hold in the stored orientation. Pairs are named as those of MT-bench, whose votes they join.
A single answer is rated from 1 to 10. ``error`` and -1 are verdicts that failed.

Source: github.com/lm-sys/FastChat, fastchat/llm_judge/common.py, ``play_a_match_pair``.
"""

from collections.abc import Iterator

from judge_eval.imports.formats import mtbench
from judge_eval.imports.formats.shapes import in_both_orders, single, verdict_of
from judge_eval.imports.row_models import Values, need, plain
from voting.items.choices import SWAPPED

_PAIR = {"model_1", "model_2", "g1_winner", "g2_winner", "judge"}
_SINGLE = {"question_id", "model", "judge", "score", "judgment", "turn"}
_WINNERS = {"model_1": "A", "model_2": "B", "tie": "tie"}
FITS = (_PAIR, _SINGLE)


def read(record: Values, name: str) -> Iterator[Values]:
    yield _pair(record) if "g1_winner" in record else _single(record)


def _judge(record: Values) -> object:
    """Return the model that judged; the name of its prompt, which changes by turn, is left out."""
    judge = record["judge"]
    return judge[0] if isinstance(judge, list) and judge else judge


def _pair(record: Values) -> Values:
    question, model_1, model_2, turn = need(record, "question_id", "model_1", "model_2", "turn")
    pair, is_turned = mtbench.pair_of(question, model_1, model_2, turn)
    games = [_WINNERS.get(str(record[f"g{game}_winner"])) for game in (1, 2)]
    reasons = in_both_orders([record.get(f"g{game}_judgment") for game in (1, 2)])
    answer = verdict_of(None)
    if all(games):
        if is_turned:
            games = [SWAPPED[str(winner)] for winner in reversed(games)]
        answer = dict(zip(("pick_ab", "pick_ba"), games, strict=True))
    return pair | answer | {"judge": _judge(record), "feedback": reasons}


def _single(record: Values) -> Values:
    names = ("question_id", "model", "turn")
    question, model, turn = map(plain, names, need(record, *names))
    score = record["score"]
    is_rating = isinstance(score, int | float) and not isinstance(score, bool) and score >= 0
    about: Values = {"item": f"{question}__{model}__{turn}", "prompt_id": f"{question}__{turn}"}
    about |= {"tags": [f"turn-{turn}"], "judge": _judge(record)}
    answer = verdict_of(score if is_rating else None, "rating")
    facts = {"vote_kind": "rating", "generator": model, "feedback": record.get("judgment") or None}
    return single(None, None, **about, **answer, **facts)
