"""Whether people disagree about an item, and how many more votes it wants then."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeAlias

from voting.items.choices import MILLION

# A choice, and the value of a vote that has one, in millionths.
Vote: TypeAlias = tuple[str, int | None]


def population_variance(votes: int, total: int, squares: int) -> float | None:
    """Return the population variance of votes in [0, 1]; None where there is no vote.

    `total` is their sum in millionths, `squares` that of their squares in millionths of millionths:
    whole numbers, so that the order in which votes come and go leaves no trace. Source: GrandJury,
    arXiv 2508.02926, which prints 0.111 for the second example; that is an error.

    >>> def of(*votes):
    ...     return population_variance(len(votes), sum(votes), sum(v * v for v in votes))
    >>> round(of(900_000, 800_000, 600_000), 6)
    0.015556
    >>> round(of(1_000_000, 0, 0), 6)
    0.222222
    """
    if not votes:
        return None
    return (votes * squares - total * total) / (votes * votes * MILLION * MILLION)


def lacks_majority(votes_by_choice: Collection[int]) -> bool:
    """Say whether no choice holds two thirds of the votes.

    >>> lacks_majority([2, 1, 0]), lacks_majority([3, 2]), lacks_majority([])
    (False, True, False)
    """
    return 3 * max(votes_by_choice, default=0) < 2 * sum(votes_by_choice)


def majority(votes: Sequence[Vote]) -> str:
    """Return what more than half of the votes chose; nothing where no choice has that many.

    >>> majority([("A", None), ("B", None), ("A", None)]), majority([("A", None), ("B", None)])
    ('A', '')
    """
    [(choice, number)] = Counter(choice for choice, _ in votes).most_common(1) or [("", 0)]
    return choice if 2 * number > len(votes) else ""


def is_disputed(votes: Sequence[Vote], critical_variance: float) -> bool:
    """Say whether no choice holds two thirds of the votes, or their values lie far apart.

    `critical_variance` is the largest population variance, in (0, 0.25), of values that agree.

    >>> is_disputed([("pun", None), ("pun", None), ("dark", None)], 0.05)
    False
    >>> is_disputed([("pass", 900_000), ("pass", 800_000), ("pass", 600_000)], 0.05)
    False
    >>> is_disputed([("pass", 1_000_000), ("flag", 0), ("flag", 0)], 0.05)
    True
    """
    values = [value for _, value in votes if value is not None]
    squares = sum(value * value for value in values)
    variance = population_variance(len(values), sum(values), squares)
    by_choice = Counter(choice for choice, _ in votes).values()
    return lacks_majority(by_choice) or (variance or 0) > critical_variance


def extra_votes(votes: Sequence[Vote], required: int, most: int, critical_variance: float) -> int:
    """Return how many votes an item wants beyond `wanted`, at most `most`.

    One at a time: the next one is wanted only while those before it, in the order of the ledger,
    leave the item disputed.

    >>> said = [("pass", None), ("flag", None), ("pass", None)]
    >>> [extra_votes(said[:number], 2, 3, 0.05) for number in range(4)]
    [0, 0, 1, 1]
    """
    extra = 0
    while extra < most and 0 < required + extra <= len(votes):
        if not is_disputed(votes[: required + extra], critical_variance):
            break
        extra += 1
    return extra
