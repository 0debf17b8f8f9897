"""What a voter is shown of a pair: never more than the two outputs."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.safestring import SafeString

from humanjudge.lib.markdown import render
from voting import ballots
from voting.assignment import ballot_for
from voting.choices import Side, spoken
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
    first, second = comparison.seen(ballot.left)
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
    first, second = comparison.seen(left)
    chosen = spoken(vote.choice, left)
    return OwnVote(vote, comparison.a.prompt, chosen, first.picture, second.picture)
