"""Which outputs meet, and which of the two is stored as A."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import TypeVar

from voting.order import keyed_number

Output = TypeVar("Output", bound=Hashable)


def all_pairs(outputs: Sequence[Output], key: str) -> list[tuple[Output, Output]]:
    """Pair every output of one prompt with every other; a keyed hash decides who is A.

    Parameters
    ----------
    outputs : sequence, shape (n,)
        Things with a stable text, for instance identifiers.
    key : str
        Secret of the installation.

    Returns
    -------
    list of (a, b), length n * (n - 1) / 2

    Examples
    --------
    >>> len(all_pairs(["x", "y", "z"], "key"))
    3
    """
    return [
        (second, first) if keyed_number(key, "pair", first, second) & 1 else (first, second)
        for first, second in combinations(outputs, 2)
    ]


def wants_overlap(key: str, item: object, share: float) -> bool:
    """Say whether an item is one of the share that several people vote on.

    Parameters
    ----------
    key : str
        Secret of the installation.
    item
        Anything with a stable text; the same one always gets the same answer.
    share : float
        Fraction of items in [0, 1].

    Raises
    ------
    ValueError
        When the share is outside [0, 1].

    Examples
    --------
    >>> wants_overlap("key", 1, 0.0), wants_overlap("key", 1, 1.0)
    (False, True)
    """
    if not 0 <= share <= 1:
        raise ValueError(f"a share lies in [0, 1], not {share}")
    return keyed_number(key, "overlap", item) < share * 2**64
