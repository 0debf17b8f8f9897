"""Signed ballots: what a page may say about one item without the server looking anything up."""

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Literal
from uuid import UUID

from django.core import signing

from voting.items.choices import Side
from voting.items.kinds import COMPARISON, Posted, StoredOptions, VoteAnswer, kind_of, options_of

MAX_AGE = timedelta(hours=24)


class BallotInvalid(ValueError):
    """The ballot was not issued by this server, was altered, or is too old."""


@dataclass(frozen=True)
class Ballot:
    """One presentation of one item to one voter; good for one vote."""

    uid: UUID
    project: UUID
    queue: UUID
    item: UUID
    voter: UUID
    rubric: int
    # Of a pair; a single output has no sides.
    left: Side | Literal[""]
    choices: tuple[str, ...]
    kind: str = COMPARISON.name
    options: StoredOptions = field(default_factory=dict, hash=False)

    def answer(self, posted: Posted, left: str | None = None) -> VoteAnswer:
        """Return what a form says; raise AnswerInvalid for what this ballot does not offer.

        A script is told A and B and is shown no sides: for it `left` is empty.
        """
        side = self.left if left is None else left
        return kind_of(self).answer(posted, self.choices, options_of(self), side)


@cache
def _signer() -> signing.TimestampSigner:
    return signing.TimestampSigner(salt="voting.ballot")


def issue(ballot: Ballot) -> str:
    identifiers = (ballot.uid, ballot.project, ballot.queue, ballot.item, ballot.voter)
    return _signer().sign_object(
        [
            *(i.hex for i in identifiers),
            *(ballot.rubric, ballot.left, ballot.choices, ballot.kind, ballot.options),
        ]
    )


def read(token: str) -> Ballot:
    try:
        *identifiers, rubric, left, choices, kind, options = _signer().unsign_object(
            token, max_age=MAX_AGE
        )
        uid, project, queue, item, voter = (UUID(hex=text) for text in identifiers)
    except signing.SignatureExpired as error:
        raise BallotInvalid("this page is a day old; reload it to go on voting") from error
    except (signing.BadSignature, ValueError) as error:  # one of an earlier version has less
        raise BallotInvalid("this ballot was not issued here; reload the page") from error
    return Ballot(uid, project, queue, item, voter, rubric, left, tuple(choices), kind, options)
