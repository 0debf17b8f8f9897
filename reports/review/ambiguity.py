"""When votes on an item are so divided that a curator should look at it, and how long it waits."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from voting.disputes import lacks_majority


def is_ambiguous(
    variance: float | None, votes: int, critical_variance: float = 0.05, min_votes: int = 3
) -> bool:
    """Say whether graded or pass/flag votes are divided more than chance would divide them.

    Examples
    --------
    >>> is_ambiguous(0.015556, 3), is_ambiguous(0.222222, 3), is_ambiguous(0.222222, 2)
    (False, True, False)
    """
    return variance is not None and variance > critical_variance and votes >= min_votes


def is_disputed(votes_by_choice: Collection[int], min_votes: int = 3) -> bool:
    """Say whether no choice holds two thirds of the votes, of which there are enough.

    Examples
    --------
    >>> is_disputed([2, 1, 0]), is_disputed([1, 1, 1]), is_disputed([3, 2]), is_disputed([1, 1])
    (False, True, True, False)
    """
    return sum(votes_by_choice) >= min_votes and lacks_majority(votes_by_choice)


class Decided(NamedTuple):
    """The decision that stands on an item: what, when, and how many votes it asked for."""

    action: str
    at: datetime
    votes_wanted: int = 0


def waits(
    *, divided: bool, votes: int, flagged_at: datetime | None, decided: Decided | None
) -> bool:
    """Say whether an item waits for a curator.

    One that was decided on comes back only when something new has happened: somebody flagged it
    since, or the other round that was asked for is over and has settled nothing.

    Examples
    --------
    >>> early, late = datetime(2026, 1, 1), datetime(2026, 1, 2)
    >>> waits(divided=True, votes=3, flagged_at=None, decided=None)
    True
    >>> waits(divided=True, votes=9, flagged_at=early, decided=Decided("keep", late))
    False
    >>> waits(divided=True, votes=9, flagged_at=late, decided=Decided("keep", early))
    True
    >>> again = Decided("another_round", late, votes_wanted=6)
    >>> [waits(divided=True, votes=n, flagged_at=None, decided=again) for n in (5, 6)]
    [False, True]
    """
    if decided is None:
        return divided or flagged_at is not None
    is_flagged = flagged_at is not None and flagged_at > decided.at
    is_over = decided.action == "another_round" and votes >= decided.votes_wanted
    return is_flagged or (divided and is_over)
