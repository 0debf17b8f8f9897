"""Votes that a script makes up, to try a run out with nobody there: never in a run of people."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from judge_eval.models import Run
from voting.assignment import ballot_for
from voting.ballots import Ballot
from voting.kinds import Answer, options_of
from voting.models import Voter
from voting.selectors import open_to
from voting.services import (
    cast_simulated_votes,
    insist_on_open,
    make_simulated,
    refuse_after_people,
)

AUTO = "auto"
# So many at most for one request: a web thread is busy with them.
MOST_VOTES = 5000
BATCH = 250


@dataclass(frozen=True)
class Simulated:
    """What came of it: votes cast, pairs that took none after all, pairs that still want one."""

    voted: int
    skipped: int
    left: int
    simulated: bool = True


def simulate(run: Run, voter: Voter, choice: str, *, limit: int | None, seed: int) -> Simulated:
    """Vote on the pairs that are pending for a voter, as pretend votes.

    Raises VotingClosed where people have voted, or nobody may vote any more.
    """
    insist_on_open(run.queue_id, voter.pk, simulated=True)
    refuse_after_people(run.queue)
    pending = open_to(voter, run.queue)
    most = MOST_VOTES if limit is None else min(limit, MOST_VOTES)
    votes = [
        _vote(
            ballot_for(voter, run.queue, item),
            chosen(choice, run.queue.ballot, seed, item.position),
        )
        for item in pending.only("position", "b").order_by("position")[:most]
    ]
    if votes:
        make_simulated(run.queue)
    batches = (votes[start : start + BATCH] for start in range(0, len(votes), BATCH))
    voted = sum(cast_simulated_votes(run.queue, batch) for batch in batches)
    return Simulated(voted, len(votes) - voted, pending.count())


def _vote(ballot: Ballot, choice: str) -> tuple[Ballot, Answer]:
    """Return what a choice comes to with a ballot: of a single item its value and labels too."""
    criteria = options_of(ballot).criteria
    grade = str(float(choice == "pass"))
    posted = {f"criterion.{each.name}": grade if each.graded else choice for each in criteria}
    return ballot, ballot.answer({"choice": choice, "value": grade} | posted, left="")


def chosen(choice: str, ballot: Sequence[str], seed: int, position: int) -> str:
    """Return the choice itself or, for `auto`, one drawn evenly for this pair and this seed."""
    if choice != AUTO:
        return choice
    return Random(f"{seed}:{position}").choice(ballot)  # noqa: S311  a draw that can be repeated
