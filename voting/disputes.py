"""Whether people disagree about an item, and how many more votes it wants then."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypeAlias

# A choice, and the value of a vote that has one, in millionths.
Vote: TypeAlias = tuple[str, int | None]
ONE: Final = 1_000_000


def is_disputed(votes: Sequence[Vote], critical_variance: float) -> bool:
    """Say whether no choice holds two thirds of the votes, or their values lie far apart.

    Parameters
    ----------
    votes
        At least one. The values of all that have one are compared, on a scale from 0 to 1.
    critical_variance
        The largest population variance, in (0, 0.25), of values that agree.

    Examples
    --------
    >>> is_disputed([("pun", None), ("pun", None), ("dark", None)], 0.05)
    False
    >>> is_disputed([("pass", 900_000), ("pass", 800_000), ("pass", 600_000)], 0.05)
    False
    >>> is_disputed([("pass", 1_000_000), ("flag", 0), ("flag", 0)], 0.05)
    True
    """
    [(_, most)] = Counter(choice for choice, _ in votes).most_common(1)
    values = [value for _, value in votes if value is not None]
    return 3 * most < 2 * len(votes) or _variance(values) > critical_variance


def extra_votes(votes: Sequence[Vote], wanted: int, most: int, critical_variance: float) -> int:
    """Return how many votes an item wants beyond `wanted`, at most `most`.

    One at a time: the next one is wanted only while those before it leave the item disputed.

    Parameters
    ----------
    votes
        All that count, in the order of the ledger.

    Examples
    --------
    >>> said = [("pass", None), ("flag", None), ("pass", None)]
    >>> [extra_votes(said[:number], 2, 3, 0.05) for number in range(4)]
    [0, 0, 1, 1]
    """
    extra = 0
    while extra < most and 0 < wanted + extra <= len(votes):
        if not is_disputed(votes[: wanted + extra], critical_variance):
            break
        extra += 1
    return extra


def _variance(values: Sequence[int]) -> float:
    """Of whole numbers, so that it does not hang on their order."""
    number = len(values)
    squares = number * sum(value * value for value in values) - sum(values) ** 2
    return squares / (number * ONE) ** 2 if number else 0.0
