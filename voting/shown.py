"""What a voter is shown of a pair: never more than the two outputs."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.safestring import SafeString

from humanjudge.lib.markdown import render
from voting import ballots
from voting.assignment import ballot_for
from voting.choices import TABLE, WITHOUT_SIDE, ChoiceRow, Side, spoken
from voting.models import Comparison, Entry, Inference, Picture, Queue, Voter


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


@dataclass(frozen=True)
class OwnVote:
    """A vote as its voter saw it."""

    vote: Entry
    prompt: str
    chosen: str
    left: Picture | None
    right: Picture | None


def own_vote(vote: Entry) -> OwnVote:
    comparison = vote.comparison
    assert comparison is not None  # only votes on pairs are listed
    left: Side = "B" if vote.left_side == "B" else "A"
    first, second = (comparison.a, comparison.b) if left == "A" else (comparison.b, comparison.a)
    chosen = spoken(vote.choice, left)
    return OwnVote(vote, comparison.a.prompt, chosen, first.picture, second.picture)


def buttons(queue: Queue) -> list[ChoiceRow]:
    """The ballot's buttons in the order of the page: what is for a side stands on that side."""
    return [TABLE[choice] for choice in ("A", *WITHOUT_SIDE, "B") if choice in queue.ballot]
