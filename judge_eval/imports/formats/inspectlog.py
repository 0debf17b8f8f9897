"""Inspect: the samples of an evaluation log, ``.eval`` or ``.json``.

Each scorer is a judge of the output; ``C``, ``P`` and ``I`` (or ``N``, no answer) are 1, 0.5 and 0,
any other value stands as it is. A score that was edited keeps its history: what the scorer gave
first is the verdict, and the last edit of each ``author`` a vote.

Source: inspect.aisi.org.uk/eval-logs.html, and github.com/UKGovernmentBEIS/inspect_ai,
src/inspect_ai/scorer/_metric.py (Score, ScoreEdit).
"""

from collections.abc import Iterator
from typing import Any, Final

from judge_eval.imports.formats.shapes import content_of, filled, single
from judge_eval.imports.row_models import MadeUp, Values, need

_VALUES: Final = {"C": "pass", "I": "flag", "P": 0.5, "N": "flag"}
_APART: Final = "attachment://"
_UNCHANGED: Final = "UNCHANGED"
FITS = (("input", "target", "output", "epoch"),)


def read(record: Values, name: str) -> Iterator[Values | str]:
    sample, epoch = need(record, "id", "epoch")
    evaluation, output = record.get("eval") or {}, record.get("output") or {}
    choices = output.get("choices") or [{}]
    completion = output.get("completion") or (choices[0].get("message") or {}).get("content")
    if completion is None:
        error = record.get("error") or output.get("error") or "the sample failed"
        yield f"no output: {error.get('message') if isinstance(error, dict) else error}"
        return
    prompt, completion = (
        content_of(_with_attachments(text, record.get("attachments") or {}))
        for text in (record["input"], completion)
    )
    model = evaluation.get("model") or output.get("model")
    names = {"item": f"{sample}__{epoch}__{model}", "prompt_id": str(sample), "generator": model}
    item = single(prompt, completion, **names)
    scores = record.get("scores") or {}
    for scorer, score in scores.items():
        yield item | {"judge": scorer, "vote_kind": "graded", **_verdict(score)}
        yield from (item | vote for vote in _votes(score))
    if not scores:
        yield item


def _with_attachments(value: Any, attachments: Values) -> Any:
    """Return a text or messages with what the log keeps apart, such as long texts and pictures."""
    if isinstance(value, list):
        return [_with_attachments(part, attachments) for part in value]
    if isinstance(value, dict):
        return {name: _with_attachments(part, attachments) for name, part in value.items()}
    is_apart = isinstance(value, str) and value.startswith(_APART)
    return attachments.get(value.removeprefix(_APART), value) if is_apart else value


def _verdict(score: Values) -> Values:
    first = next((edit for edit in score.get("history") or [] if not edit.get("provenance")), score)
    facts = filled({"feedback": first.get("explanation")})
    answer = _answer(first.get("value"), "verdict")
    return facts | (answer or {"error": "the scorer gave no score"})


def _votes(score: Values) -> Iterator[Values]:
    votes: dict[str, Values] = {}
    for edit in score.get("history") or []:
        provenance = edit.get("provenance") or {}
        if provenance and edit.get("value") not in (_UNCHANGED, None):
            facts = filled(
                {"comment": provenance.get("reason"), "voted_at": provenance.get("timestamp")}
            )
            author = str(provenance.get("author") or "") or MadeUp("editor")
            votes[author] = {"voter": author} | _answer(edit["value"], "vote") | facts
    yield from votes.values()


def _answer(value: Any, field: str) -> Values:
    if isinstance(value, dict):
        return {"labels": filled(value)} if filled(value) else {}
    value = _VALUES.get(value, value) if isinstance(value, str) else value
    return {} if value is None else {field: value}
