"""AlpacaEval: annotations of two outputs, ``preference`` from 1 (the first) to 2 (the second).

What is below 1.5 is for the first, above it for the second; 1.5 and 0 are a tie, and nothing is an
annotation that failed. The number itself is kept as the label ``preference``. An annotator is a
judge, but for those whose name begins with ``human`` or is a number: these are people.

Source: the README of github.com/tatsu-lab/alpaca_eval, on annotations and on human ones.
"""

from collections.abc import Iterator

from judge_eval.exchange import fields
from judge_eval.exchange.row_models import Misfit, Values, need, plain

_TEXTS = ("instruction", "output_1", "output_2")
_MIDDLE = 1.5


def fits(record: Values) -> bool:
    return record.keys() >= {*_TEXTS, "preference"}


def read(record: Values, name: str) -> Iterator[Values | str]:
    instruction, output_1, output_2 = need(record, *_TEXTS)
    annotator = plain("annotator", record.get("annotator", "annotator"))
    more = record.get("input")
    pair = {
        "prompt": f"{instruction}\n\n{more}" if more else instruction,
        "kind": "text",
        "tags": [record["dataset"]] if record.get("dataset") else [],
        "generator_a": record.get("generator_1", "output_1"),
        "generator_b": record.get("generator_2", "output_2"),
        "output_a": output_1,
        "output_b": output_2,
    }
    is_person = annotator.isdigit() or annotator.lower().startswith("human")
    try:
        preference = (
            fields.number(record["preference"]) if record["preference"] is not None else None
        )
    except ValueError as error:
        raise Misfit("preference", str(error)) from error
    if preference is None:
        if is_person:
            yield pair
            yield f"{annotator} has no preference"
        else:
            yield pair | {"judge": annotator, "error": "no preference could be read"}
        return
    choice = "tie" if preference in (0, _MIDDLE) else "A" if preference < _MIDDLE else "B"
    answer: Values = {"voter": annotator, "vote": choice}
    if not is_person:
        answer = {"judge": annotator, "verdict": choice, "feedback": _reason(record)}
    yield pair | answer | {"labels": {"preference": preference}}


def _reason(record: Values) -> str | None:
    raw = record.get("raw_completion")
    return raw if isinstance(raw, str) else None
