"""Checked values into a row, and the rules for what may stand beside what."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

from judge_eval.exchange.rows import Label, PairPart, Row, VerdictPart, VotePart

_OF_A_VERDICT = ("judge", "score_a", "score_b", "feedback", "consistent")
_OF_A_VOTE = ("voter", "voted_at", "comment", "left_side")
# What tells a pair from others in a file that has no names for them.
_TELLING = ("prompt", "prompt_id", "generator_a", "generator_b", "output_a", "output_b")
OF_A_PAIR = (
    "prompt",
    "prompt_id",
    "cluster",
    "tags",
    "kind",
    "generator_a",
    "generator_b",
    "output_a",
    "output_b",
)


class Misfit(ValueError):
    """A field that does not go with the others of its row."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field
        self.why = why


def assemble(
    file: str,
    line: int,
    values: Mapping[str, Any],
    labels: Mapping[str, Label],
    constants: Collection[str] = (),
) -> Row:
    """Build a row.

    Parameters
    ----------
    values : mapping
        Checked values by field (the names of `mapping.FIELDS`); what is absent or None is not
        there.
    labels : mapping
        Answers to further tasks.
    constants : collection of str
        Fields that every row of the file has, and that therefore claim no statement by themselves:
        the judge's name in a file of one judge, on a row that the judge was not asked about.

    Raises
    ------
    Misfit

    Examples
    --------
    >>> assemble("f", 1, {"pair": "7", "voter": "ann", "vote": "A"}, {}).vote.choice
    'A'
    """
    if values.get("pair") is None:
        raise Misfit("pair", "missing: every row must name its pair")
    given = {field: values[field] for field in OF_A_PAIR if values.get(field) is not None}
    verdict, vote = _verdict(values, constants), _vote(values, constants)
    if labels and (verdict is None) == (vote is None):
        raise Misfit("labels", "must stand beside one vote or one verdict, to say whose they are")
    pair = PairPart(values["pair"], **given)
    return Row(file, line, pair, verdict, vote, dict(labels), values.get("external_id"))


def told_by_content(values: Mapping[str, Any]) -> str:
    """Return a name for the pair of a row in a file without names: the same for the same content.

    Raises
    ------
    Misfit
        Neither outputs nor a prompt tell the pair.

    Examples
    --------
    >>> told_by_content({"prompt": "Why?", "generator_a": "x"})[:8]
    '13f63c69'
    """
    telling = {field: values[field] for field in _TELLING if values.get(field) is not None}
    if (
        not {"prompt", "prompt_id"} & telling.keys()
        and not {"output_a", "output_b"} <= telling.keys()
    ):
        raise Misfit("pair", "missing, and neither a prompt nor outputs tell which pair it is")
    return sha256(json.dumps(telling, sort_keys=True).encode()).hexdigest()[:32]


def _verdict(values: Mapping[str, Any], constants: Collection[str]) -> VerdictPart | None:
    winner, error, picks = values.get("verdict"), values.get("error"), _picks(values)
    if winner is None and error is None and picks is None:
        _refuse(values, _OF_A_VERDICT, constants, "stands without a verdict or an error")
        return None
    if values.get("judge") is None:
        raise Misfit("judge", "missing: a verdict must name its judge")
    if error is not None and (winner is not None or picks is not None):
        raise Misfit("error", "stands beside a verdict: it is one or the other")
    if error is not None:
        fields = ("score_a", "score_b", "consistent")
        _refuse(values, fields, constants, "a failed verdict has none")
        return VerdictPart(
            values["judge"], None, feedback=values.get("feedback"), error=values["error"]
        )
    consistent = values.get("consistent")
    if picks is not None and consistent is not None and consistent != (picks[0] == picks[1]):
        raise Misfit("consistent", f"the picks {picks[0]} and {picks[1]} say otherwise")
    return VerdictPart(
        values["judge"],
        winner,
        score_a=values.get("score_a"),
        score_b=values.get("score_b"),
        feedback=values.get("feedback"),
        consistent=consistent,
        picks=picks,
    )


def _picks(values: Mapping[str, Any]) -> tuple[Any, Any] | None:
    picks = (values.get("pick_ab"), values.get("pick_ba"))
    if picks == (None, None):
        return None
    for field, pick in zip(("pick_ab", "pick_ba"), picks, strict=True):
        if pick is None:
            raise Misfit(field, "missing: the other order's pick is there")
    return picks


def _vote(values: Mapping[str, Any], constants: Collection[str]) -> VotePart | None:
    choice = values.get("vote")
    if choice is None:
        _refuse(values, _OF_A_VOTE, constants, "stands without a vote")
        return None
    if values.get("voter") is None:
        raise Misfit("voter", "missing: a vote must name its voter")
    return VotePart(
        values["voter"],
        choice,
        at=values.get("voted_at"),
        comment=values.get("comment"),
        left=values.get("left_side"),
    )


def _refuse(
    values: Mapping[str, Any], fields: tuple[str, ...], constants: Collection[str], why: str
) -> None:
    for field in fields:
        if values.get(field) is not None and field not in constants:
            raise Misfit(field, why)
