"""What a voter is shown of a pair: never more than the two outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from humanjudge.markdown import render
from voting import ballots
from voting.allotment import ballot_for
from voting.models import Comparison, Inference, Picture, Queue, Voter


@dataclass(frozen=True)
class ShownOutput:
    """One side of a pair: the picture the judges were sent, or a text."""

    kind: str
    picture: Picture | None
    html: SafeString | None
    text: str


@dataclass(frozen=True)
class ShownPair:
    comparison: Comparison
    prompt: str
    left: ShownOutput
    right: ShownOutput
    token: str


def shown_output(inference: Inference) -> ShownOutput:
    is_text = inference.kind == Inference.Kind.TEXT
    return ShownOutput(
        kind=inference.kind,
        picture=inference.picture,
        html=render(inference.output) if is_text else None,
        text="" if inference.kind == Inference.Kind.SVG else inference.output,
    )


def shown_pair(voter: Voter, queue: Queue, comparison: Comparison) -> ShownPair:
    ballot = ballot_for(voter, queue, comparison)
    first, second = (
        (comparison.a, comparison.b) if ballot.left == "A" else (comparison.b, comparison.a)
    )
    return ShownPair(
        comparison=comparison,
        prompt=comparison.a.prompt,
        left=shown_output(first),
        right=shown_output(second),
        token=ballots.issue(ballot),
    )


def buttons(queue: Queue) -> list[dict[str, Any]]:
    """The ballot's buttons in the order of the page, each with its keys."""
    offered = {
        "left": {"label": "Left is better", "keys": "← 1", "needs": "A"},
        "tie": {"label": "Tie", "keys": "↑ 4", "needs": "tie"},
        "both_bad": {"label": "Both bad", "keys": "↓ 3", "needs": "both_bad"},
        "right": {"label": "Right is better", "keys": "→ 2", "needs": "B"},
    }
    return [
        {"position": position, **button}
        for position, button in offered.items()
        if button["needs"] in queue.ballot
    ]
