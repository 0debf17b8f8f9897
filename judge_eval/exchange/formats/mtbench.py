"""MT-bench: ``human.jsonl`` (people's votes) and ``gpt4_pair.jsonl`` (a judge's verdicts).

Both hold ``question_id, model_a, model_b, winner, judge, turn`` and no texts. The two models of a
pair stand in either order there; here the alphabetical order is stored and the winner turned with
it, so a pair's id, ``QUESTION__MODEL__MODEL__TURN``, is also the item id of the Alt-Test data.

Both turns of a question are one conversation, so they are no independent evidence: the question is
what their pairs share (`cluster`).

``tie (inconsistent)``, a judge that changed its mind when the order changed, is a tie that is not
consistent.

Source: MT-bench, arXiv 2306.05685.
"""

from collections.abc import Iterator
from typing import BinaryIO

from judge_eval.exchange.mapping import own_rows, rows_of
from judge_eval.exchange.row_models import Item, LeftOut, Misfit, Row, Values, need, one_of, plain
from judge_eval.exchange.sources import Record

COLUMNS = ("question_id", "model_a", "model_b", "winner", "judge", "turn")
PEOPLE = ("expert", "author")
_WINNERS = {"model_a": "A", "model_b": "B", "tie": "tie", "tie (inconsistent)": "tie"}
_TURNED = {"A": "B", "B": "A", "tie": "tie"}


def fits(record: Values) -> bool:
    return record.keys() >= {*COLUMNS}


def rows(stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
    """Read a file of MT-bench judgements: votes of experts and authors, verdicts of all others.

    A person or judge counts once per pair: the first statement stands, as it does in a ledger, and
    a later one on the same two models, in whichever order, is left out.
    """
    seen: set[str] = set()

    def make(record: Record) -> Iterator[Item]:
        for row in own_rows(name, record.line, _values(record)):
            identity = f"{row.item}__{row.judge or row.voter}" if isinstance(row, Row) else ""
            if identity in seen:
                yield LeftOut(name, record.line, f"{identity} was stated before")
                return
            seen.update([identity] if identity else [])
            yield row

    return rows_of(stream, name, file_format, make)


def is_person(judge: str) -> bool:
    return judge.rpartition("_")[0] in PEOPLE


def _values(record: Record) -> Values:
    raw_question, model_a, model_b, winner, judge, raw_turn = need(record.values, *COLUMNS)
    question, turn = plain("question_id", raw_question), plain("turn", raw_turn)
    if turn not in ("1", "2"):
        raise Misfit("turn", f"{turn!r} is not 1 or 2")
    if not isinstance(judge, str):
        raise Misfit("judge", "must be text")
    first, second = sorted((plain("model_a", model_a), plain("model_b", model_b)))
    if first == second:
        raise Misfit("model_b", "must be another model than model_a")
    choice = one_of("winner", winner, _WINNERS)
    if first != model_a:
        choice = _TURNED[choice]
    pair = f"{question}__{first}__{second}__{turn}"
    statement: Values = {"voter": judge, "vote": choice}
    if not is_person(judge):
        consistent = winner != "tie (inconsistent)"
        statement = {"judge": judge, "verdict": choice, "consistent": consistent}
    return statement | {
        "pair": pair,
        "prompt_id": f"{question}__{turn}",
        "cluster": question,
        "tags": [f"turn-{turn}"],
        "kind": "text",
        "generator_a": first,
        "generator_b": second,
    }
