"""AlpacaEval: annotations of two outputs, ``preference`` from 1 (the first) to 2 (the second).

What is below 1.5 is for the first, above it for the second; 1.5 and 0 are a tie, and nothing is an
annotation that failed. The number itself is kept as the label ``preference``. An annotator is a
judge, but for those whose name begins with ``human`` or is a number: these are people.

Source: the README of github.com/tatsu-lab/alpaca_eval, on annotations and on human ones.
"""

from collections.abc import Iterator

from judge_eval.imports.formats import shapes
from judge_eval.imports.row_models import MadeUp, Values, need, plain

_TEXTS = ("instruction", "output_1", "output_2")
FITS = ((*_TEXTS, "preference"),)


def read(record: Values, name: str) -> Iterator[Values | str]:
    instruction, output_1, output_2 = need(record, *_TEXTS)
    annotator = plain("annotator", record.get("annotator", "annotator"))
    context = record.get("input")
    pair = shapes.pair(
        f"{instruction}\n\n{context}" if context else instruction,
        output_1,
        output_2,
        tags=shapes.tags(record, "dataset"),
        generator_a=record.get("generator_1", "output_1"),
        generator_b=record.get("generator_2", "output_2"),
    )
    is_person = annotator.isdigit() or annotator.lower().startswith("human")
    preference = shapes.number("preference", record["preference"])
    choice, labels = None, {"labels": {"preference": preference}}
    if preference is not None:
        choice = "tie" if preference in (0, 1.5) else "A" if preference < 1.5 else "B"
    if not is_person:
        reason, verdict = record.get("raw_completion"), shapes.verdict_of(choice, "preference")
        facts = labels | {"feedback": reason if isinstance(reason, str) else None}
        yield pair | {"judge": annotator} | verdict | (facts if choice else {})
    elif choice:
        yield pair | {"voter": MadeUp(annotator), "vote": choice} | labels
    else:
        yield pair
        yield f"{annotator} has no preference"
