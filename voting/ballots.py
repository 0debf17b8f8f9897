"""Signed ballots: what a page may say about one item without the server looking anything up."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from uuid import UUID

from django.core import signing

from voting.choices import Choice, Side
from voting.kinds import kind_of

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
    left: Side
    choices: tuple[Choice, ...]

    def choice(self, position: str) -> Choice | None:
        choice = kind_of(self).choice_at(position, self.left)
        return choice if choice in self.choices else None


@cache
def _signer() -> signing.TimestampSigner:
    return signing.TimestampSigner(salt="voting.ballot")


def issue(ballot: Ballot) -> str:
    identifiers = (ballot.uid, ballot.project, ballot.queue, ballot.item, ballot.voter)
    return _signer().sign_object(
        [*(i.hex for i in identifiers), ballot.rubric, ballot.left, ",".join(ballot.choices)]
    )


def read(token: str) -> Ballot:
    try:
        *identifiers, rubric, left, choices = _signer().unsign_object(token, max_age=MAX_AGE)
        uid, project, queue, item, voter = (UUID(hex=text) for text in identifiers)
    except signing.SignatureExpired as error:
        raise BallotInvalid("this page is a day old; reload it to go on voting") from error
    except signing.BadSignature as error:
        raise BallotInvalid("this ballot was not issued here; reload the page") from error
    return Ballot(uid, project, queue, item, voter, rubric, left, tuple(choices.split(",")))
