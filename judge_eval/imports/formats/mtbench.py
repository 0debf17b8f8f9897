"""MT-bench: ``human.jsonl`` (people's votes) and ``gpt4_pair.jsonl`` (a judge's verdicts).

Both hold ``question_id, model_a, model_b, winner, judge, turn``, and those of the Hugging Face hub
the texts too, ``conversation_a`` and ``conversation_b``, of both turns whichever is judged. The
models of a pair stand in either order there; here the alphabetical order is stored and the winner
turned with it, so a pair's id, ``QUESTION__MODEL__MODEL__TURN``, is also the item id of the
Alt-Test data.

Both turns of a question are one conversation, so they are no independent evidence: the question is
what their pairs share (`cluster`).

``tie (inconsistent)``, a judge that changed its mind when the order changed, is a tie that is not
consistent.

Source: MT-bench, arXiv 2306.05685, and huggingface.co/datasets/lmsys/mt_bench_human_judgments.
"""

from collections.abc import Iterator
from typing import BinaryIO

from judge_eval.imports.formats.arena import sides
from judge_eval.imports.mapping import own_rows, rows_of
from judge_eval.imports.row_models import (
    ImportRow,
    InvalidField,
    Item,
    LeftOut,
    Values,
    meaning_of,
    need,
    plain,
)
from judge_eval.imports.sources import Record
from voting.items.choices import SWAPPED

COLUMNS = ("question_id", "model_a", "model_b", "winner", "judge", "turn")
PEOPLE = ("expert", "author")
_WINNERS = {"model_a": "A", "model_b": "B", "tie": "tie", "tie (inconsistent)": "tie"}
FITS = (COLUMNS,)


def rows(stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
    """Read a file of MT-bench judgements: votes of experts and authors, verdicts of all others.

    A person or judge counts once per pair: the first statement stands, as it does in a ledger, and
    a later one on the same two models, in whichever order, is left out.
    """
    identities: set[str] = set()

    def make(record: Record) -> Iterator[Item]:
        for row in own_rows(name, record.line, _values(record)):
            identity = f"{row.item}__{row.judge or row.voter}" if isinstance(row, ImportRow) else ""
            if identity in identities:
                yield LeftOut(name, record.line, f"{identity} was stated before")
                return
            identities.update([identity] if identity else [])
            yield row

    return rows_of(stream, name, file_format, make)


def is_person(judge: str) -> bool:
    return judge.rpartition("_")[0] in PEOPLE


def pair_of(*facts: object) -> tuple[Values, bool]:
    """Return a pair by its question, its models and its turn, and whether the models are turned."""
    names = ("question_id", "model_a", "model_b", "turn")
    question, model_a, model_b, turn = (plain(*fact) for fact in zip(names, facts, strict=True))
    if turn not in ("1", "2"):
        raise InvalidField("turn", f"{turn!r} is not 1 or 2")
    if model_a == model_b:
        raise InvalidField("model_b", "must be another model than model_a")
    first, second = sorted((model_a, model_b))
    pair = {
        "pair": f"{question}__{first}__{second}__{turn}",
        "prompt_id": f"{question}__{turn}",
        "cluster": question,
        "tags": [f"turn-{turn}"],
        "kind": "text",
        "generator_a": first,
        "generator_b": second,
    }
    return pair, first != model_a


def _values(record: Record) -> Values:
    question, model_a, model_b, winner, judge, turn = need(record.values, *COLUMNS)
    pair, is_turned = pair_of(question, model_a, model_b, turn)
    if not isinstance(judge, str):
        raise InvalidField("judge", "must be text")
    choice = meaning_of("winner", winner, _WINNERS)
    choice = SWAPPED[choice] if is_turned else choice
    statement: Values = {"voter": judge, "vote": choice}
    if not is_person(judge):
        consistent = winner != "tie (inconsistent)"
        statement = {"judge": judge, "verdict": choice, "consistent": consistent}
    return pair | statement | _texts(record.values, int(plain("turn", turn)), is_turned=is_turned)


def _texts(values: Values, turn: int, *, is_turned: bool) -> Values:
    """Return the prompt and the answers of a turn, where the file has them."""
    talks = [values.get(name) for name in ("conversation_a", "conversation_b")]
    if None in talks:
        return {}
    # A turn is a question and its answer.
    talks = [talk[: 2 * turn] if isinstance(talk, list) else talk for talk in talks]
    prompt, *outputs = sides(*(reversed(talks) if is_turned else talks))
    return {"prompt": prompt} | dict(zip(("output_a", "output_b"), outputs, strict=True))
