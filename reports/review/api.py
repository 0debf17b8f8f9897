from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Body, Field, Schema, Status
from ninja.errors import HttpError

from humanjudge.core.validation import Text
from judge_eval.runs.api_access import KeyRouter, insist, keep_blind, key_of
from reports.models import Review
from reports.review import services
from voting.access.roles import projects_where
from voting.curating.services import MOST_VOTES, decisions_on
from voting.ledger.decisions import Action
from voting.models import ApiKey, Entry, Item, Voter
from voting.people.voters import voter_of_key

router = KeyRouter("review")
MOST: int = 200


class ReviewOut(Schema):
    """An item that a curator has to look at, or did; `after` is the latest decision on it."""

    item: UUID = Field(alias="item_id")
    project: UUID = Field(alias="project_id")
    queue: UUID = Field(alias="item.queue_id")
    kind: str = Field(alias="item.queue.kind")
    votes: int = Field(alias="item.votes")
    votes_wanted: int = Field(alias="item.votes_wanted")
    variance: float | None
    is_divided: bool
    flags: int
    category: str
    decided: str
    waits: bool
    since: datetime
    after: UUID | None


class Reviews(Schema):
    items: list[ReviewOut]
    next_cursor: int | None


Reason: TypeAlias = Annotated[Text, Field(max_length=services.LONGEST_WHY)]


class SettleIn(Schema):
    """`after` is the latest decision that the curator knows of; `votes` are those of a round."""

    action: Literal["exclude", "keep", "another_round"]
    why: Reason | None = None
    votes: Annotated[int, Field(ge=1, le=MOST_VOTES)] | None = None
    after: UUID | None = None


class NoteIn(Schema):
    action: Literal["note"]
    why: Reason
    after: UUID | None = None


class SendBackIn(Schema):
    """`voter` is the pseudonym of whoever is to look at it again, and reads `why`."""

    action: Literal["send_back"]
    voter: Annotated[Text, Field(max_length=16)]
    why: Reason
    after: UUID | None = None


class ReverseIn(Schema):
    """`after` is the decision that is taken back."""

    action: Literal["reverse"]
    why: Reason | None = None
    after: UUID


DecisionIn: TypeAlias = Annotated[
    SettleIn | NoteIn | SendBackIn | ReverseIn, Field(discriminator="action")
]


class DecisionOut(Schema):
    id: UUID
    item: UUID
    action: Action
    at: datetime


def _reviews(api_key: ApiKey, state: str = "all") -> QuerySet[Review]:
    rows = services.reviews(state, api_key, projects_where(api_key, "see people"))
    return rows.select_related("item__queue__project", "item__queue__run")


@router.get("", response=Reviews)
def list_reviews(
    request: HttpRequest,
    state: Literal["waits", "decided", "all", "flags"] = "waits",
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50,
    cursor: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0,
) -> Any:
    """What needs a curator, or did; pass `next_cursor` on until it is null.

    The state `flags` lists all that is flagged, whether that needs a curator or not.

    Items that the key, or its person, has to vote on first are left out.
    """
    api_key = key_of(request, ApiKey.Scope.MANAGE, ApiKey.Scope.READ)
    reviews = _reviews(api_key, state)
    rows = list(reviews.filter(pk__gt=cursor).order_by("pk")[: limit + 1])
    following = rows[limit - 1].pk if len(rows) > limit else None
    return {"items": rows[:limit], "next_cursor": following}


@router.post("/{item_id}/decisions", response={201: DecisionOut})
def decide(request: HttpRequest, item_id: UUID, body: Annotated[DecisionIn, Body()]) -> Any:
    """Decide on an item; 409 where somebody else has decided since the one that `after` names.

    `another_round` may say how many `votes` more. `send_back` asks a `voter`, by pseudonym, for
    another answer, which is not blind. `reverse` takes back the decision that `after`
    names.
    """
    api_key = key_of(request, ApiKey.Scope.MANAGE)
    review = _review(api_key, item_id)
    item, curator = review.item, voter_of_key(review.project_id, api_key)
    if isinstance(body, ReverseIn):
        decision = services.reverse(_named(review, body.after), curator, body.why or "")
    else:
        about: dict[str, Any] = {"votes": body.votes} if isinstance(body, SettleIn) else {}
        if isinstance(body, SendBackIn):
            voters = Voter.objects.filter(project=review.project_id, pseudonym=body.voter)
            about = {"voter": voters.values_list("pk", flat=True).first()}
        decision = services.decide(
            item, body.action, curator, body.why or "", after=body.after, **about
        )
    return Status(
        201, {"id": decision.uid, "item": item.pk, "action": body.action, "at": decision.at}
    )


def _review(api_key: ApiKey, item_id: UUID) -> Review:
    readable = projects_where(api_key, "see people")
    items = Item.objects.filter(queue__project__in=readable).select_related("queue")
    # Before the list is read: whether an item is on it tells of its votes.
    if item := items.filter(pk=item_id).first():
        insist(api_key, "decide", item.queue.project_id)
    review = _reviews(api_key).filter(item=item).first() if item else None
    if review is None:
        raise HttpError(404, f"the item {item_id} was never on the list")
    keep_blind(api_key, services.run_of(review.item.queue))
    return review


def _named(review: Review, uid: UUID) -> Entry:
    decision = decisions_on(review.item_id).filter(uid=uid).first()
    if decision is None:
        raise HttpError(404, f"there is no decision {uid} on this item")
    return decision
