"""Signed ballots: what a page may say about one pair without the server looking anything up."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

from django.core import signing

from voting.choices import Choice, Position, Side, choice_at

MAX_AGE = timedelta(hours=24)
_SALT = "voting.ballot"


class BallotInvalid(ValueError):
    """The ballot was not issued by this server, was altered, or is too old."""


@dataclass(frozen=True)
class Ballot:
    """One presentation of one item to one voter; good for one vote."""

    uid: uuid.UUID
    project: uuid.UUID
    queue: uuid.UUID
    item: uuid.UUID
    voter: uuid.UUID
    rubric: int
    left: Side
    choices: tuple[Choice, ...]

    def choice(self, position: Position) -> Choice | None:
        """Return the stored choice behind a button, None when this ballot does not offer it."""
        choice = choice_at(position, self.left)
        return choice if choice in self.choices else None


def issue(ballot: Ballot) -> str:
    identifiers = (ballot.uid, ballot.project, ballot.queue, ballot.item, ballot.voter)
    return _signer().sign_object(
        [*(i.hex for i in identifiers), ballot.rubric, ballot.left, ",".join(ballot.choices)]
    )


@cache
def _signer() -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=_SALT)


def read(token: str) -> Ballot:
    try:
        *identifiers, rubric, left, choices = _signer().unsign_object(token, max_age=MAX_AGE)
        uid, project, queue, item, voter = (uuid.UUID(hex=text) for text in identifiers)
    except signing.SignatureExpired as error:
        raise BallotInvalid("this page is a day old; reload it to go on voting") from error
    except signing.BadSignature as error:
        raise BallotInvalid("this ballot was not issued here; reload the page") from error
    return Ballot(
        uid=uid,
        project=project,
        queue=queue,
        item=item,
        voter=voter,
        rubric=rubric,
        left=left,
        choices=tuple(choices.split(",")),
    )
