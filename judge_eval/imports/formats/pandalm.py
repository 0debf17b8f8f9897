"""PandaLM: a test set with full texts and three people's labels, and files of judges' results.

``testset-v1.json`` holds per pair ``idx``, the generators as ``cmp_key``, ``instruction``,
``input``, two responses and three labels: 1 and 2 for the better response, 0 for a tie. A judge's
file holds per ``idx`` its ``*_result`` and ``*_reason``. They are aligned by ``idx``.

gpt-3.5-turbo's file says ``"Tie"`` 38 times and never ``"0"``: that is a tie. Its 25 ``"garbage"``
are failed verdicts. What was written stands unchanged in the label ``result``, which gives the
published figures (docs/importing.md).

``idx`` numbers pairs, not prompts: of the published 999, up to ten share one of 170 instructions,
which is what holds them together.

A few responses are the JSON values true and false; they are read as the texts ``True`` and
``False``, which is how the tools that made the file print them.

Source: PandaLM, arXiv 2306.05087.
"""

from collections.abc import Iterator
from pathlib import PurePath

from judge_eval.imports.formats.shapes import pair, tags
from judge_eval.imports.row_models import MadeUp, Values, meaning_of, need, plain

TEXTS = ("idx", "cmp_key", "instruction", "response1", "response2")
PEOPLE = ("annotator1", "annotator2", "annotator3")
_CHOICES = {"1": "A", "2": "B", "0": "tie"}
_VERDICTS = {**_CHOICES, "Tie": "tie"}
_RESULT = "_result"


def fits(record: Values) -> bool:
    is_of_a_judge = "idx" in record and judge_prefix(record) is not None
    return is_of_a_judge or record.keys() >= {*TEXTS, *PEOPLE}


def read(record: Values, name: str) -> Iterator[Values]:
    """Read the test set (a vote per person) or a judge's file (a verdict per pair).

    The judge is called as its file is: ``pandalm-7b-testset-v1.json`` is by ``pandalm-7b``.
    """
    if prefix := judge_prefix(record):
        stem, marker, _ = PurePath(name).name.partition("-testset")
        yield _verdict(record, prefix, stem if marker and stem else prefix)
    else:
        yield from _votes(record)


def judge_prefix(record: Values) -> str | None:
    """Return what the columns of a judge's file begin with, None for any other file."""
    for column in record:
        prefix = column.removesuffix(_RESULT)
        if prefix != column and f"{prefix}_reason" in record:
            return prefix
    return None


def _verdict(record: Values, prefix: str, judge: str) -> Values:
    idx, result = need(record, "idx", prefix + _RESULT)
    word = plain(prefix + _RESULT, result)
    answer: Values = {"verdict": _VERDICTS.get(word)}
    if word not in _VERDICTS:
        answer = {"error": f"{word!r} is not one of {', '.join(_VERDICTS)}"}
    return answer | {
        "pair": idx,
        "kind": "text",
        "judge": judge,
        "feedback": record.get(f"{prefix}_reason"),
        "labels": {"result": word, "reference": record.get(f"{prefix}_reference")},
    }


def _votes(record: Values) -> Iterator[Values]:
    idx, generators, instruction, *responses = need(record, *TEXTS)
    first, _, second = str(generators).partition("_")
    parts = [plain("instruction", instruction), plain("input", record.get("input") or "")]
    output_a, output_b = (str(r) if isinstance(r, bool) else r for r in responses)
    item = pair(
        "\n\n".join(filter(None, parts)),
        output_a,
        output_b,
        pair=idx,
        tags=tags(record, "motivation_app"),
        generator_a=first,
        generator_b=second,
    )
    for person in PEOPLE:
        word = plain(person, *need(record, person))
        choice = meaning_of(person, word, _CHOICES)
        yield item | {"voter": MadeUp(person), "vote": choice, "labels": {"result": word}}
