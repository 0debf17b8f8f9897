"""What a voter is shown of a pair: never more than the two outputs."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.safestring import SafeString

from humanjudge.lib.markdown import render
from voting import ballots
from voting.assignment import ballot_for
from voting.choices import Side, spoken
from voting.models import Entry, Inference, Item, Picture, Queue, Voter


@dataclass(frozen=True)
class ShownOutput:
    """One side of a pair: the picture the judges were sent, or a text."""

    kind: str
    picture: Picture | None
    html: SafeString | None
    text: str


@dataclass(frozen=True)
class ShownPair:
    item: Item
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


def shown_pair(voter: Voter, queue: Queue, item: Item) -> ShownPair:
    ballot = ballot_for(voter, queue, item)
    first, second = item.seen(ballot.left)
    return ShownPair(
        item=item,
        prompt=item.a.prompt,
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
    item = vote.item
    assert item is not None  # only votes on pairs are listed
    left: Side = "B" if vote.left_side == "B" else "A"
    first, second = item.seen(left)
    chosen = spoken(vote.choice, left)
    return OwnVote(vote, item.a.prompt, chosen, first.picture, second.picture)
