"""When votes on an item are so divided that a curator should look at it, and how long it waits."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from voting.items.disputes import lacks_majority


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


class ReviewFlag(NamedTuple):
    """A flag on an item, by `F` or by a flag vote: when, as what if a category was chosen, by whom.

    A category or a comment is a reason.
    """

    flagged_at: datetime
    category: str
    voter: UUID | None = None
    has_reason: bool = True
    # By a lead who asks curators to look: it waits alone.
    is_asked: bool = False


UNSAFE: Final = "unsafe"


def flag_to_review(flags: Sequence[ReviewFlag], setting: str) -> ReviewFlag | None:
    """Return the newest of the flags, in order of time, that puts an item before curators.

    None where no flag does by the setting of the project.

    Examples
    --------
    >>> day = datetime(2026, 1, 1)
    >>> one, same = ReviewFlag(day, "format", UUID(int=1)), ReviewFlag(day, "other", UUID(int=1))
    >>> other = ReviewFlag(day, "", UUID(int=2), has_reason=False)
    >>> [bool(flag_to_review(f, "two_or_unsafe")) for f in ([one], [one, same], [one, other])]
    [False, False, True]
    >>> flag_to_review([one._replace(category=UNSAFE)], "two_or_unsafe").category
    'unsafe'
    >>> flag_to_review([one, other], "with_reason").category, flag_to_review([one], "none")
    ('format', None)
    """
    if setting == "with_reason":
        flags = [flag for flag in flags if flag.has_reason]
    elif setting == "two_or_unsafe":
        is_urgent = any(flag.category == UNSAFE or flag.is_asked for flag in flags)
        flags = flags if is_urgent or len({flag.voter for flag in flags}) > 1 else []
    return flags[-1] if flags and setting != "none" else None


class StandingDecision(NamedTuple):
    """The decision that stands on an item: what, when, and how many votes it asked for."""

    action: str
    decided_at: datetime
    votes_wanted: int = 0


def waits(
    *, divided: bool, votes: int, flagged_at: datetime | None, decided: StandingDecision | None
) -> bool:
    """Say whether an item waits for a curator.

    One that was decided on comes back only when something new has happened: somebody flagged it
    since, or the other round that was asked for is over and has settled nothing.

    Examples
    --------
    >>> early, late = datetime(2026, 1, 1), datetime(2026, 1, 2)
    >>> waits(divided=True, votes=3, flagged_at=None, decided=None)
    True
    >>> waits(divided=True, votes=9, flagged_at=early, decided=StandingDecision("keep", late))
    False
    >>> waits(divided=True, votes=9, flagged_at=late, decided=StandingDecision("keep", early))
    True
    >>> again = StandingDecision("another_round", late, votes_wanted=6)
    >>> [waits(divided=True, votes=n, flagged_at=None, decided=again) for n in (5, 6)]
    [False, True]
    """
    if decided is None:
        return divided or flagged_at is not None
    is_flagged = flagged_at is not None and flagged_at > decided.decided_at
    is_over = decided.action == "another_round" and votes >= decided.votes_wanted
    return is_flagged or (divided and is_over)
