"""A figure that says how sure it is, or the reason why there is none. Imports no numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest
from math import isfinite, sqrt
from typing import Final, Literal, TypeAlias, get_args

Interval: TypeAlias = tuple[float, float]

SIGNIFICANCE: Final = 0.05
Z95: Final = 1.959963984540054
_NAMES_KEPT: Final = 20


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was not counted, and why.

    Attributes
    ----------
    what : str
        ``items``, ``labels`` (of a person on an item), ``humans`` or ``tasks``.
    why : str
        To be read after "left out: ".
    names : tuple of str
        Each once; of many only the alphabetically first 20.
    """

    what: str
    count: int
    why: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, or the reason why there is none.

    Attributes
    ----------
    n : int
        Labels (pairs of a judge's and a person's) that it was computed from.
    reason : str or None
        A sentence for people where, and only where, `value` is None.
    interval : (low, high) or None
        95 % interval; `method` says how it was made, or why there is none.

    Raises
    ------
    ValueError
        Where there are both a value and a reason, or neither, or the value is not finite.

    Examples
    --------
    >>> Figure(0.8, n=10, interval=(0.49, 0.94), method="Wilson").value
    0.8
    """

    value: float | None
    n: int
    reason: str | None = None
    interval: Interval | None = None
    method: str | None = None
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        if self.value is not None and not isfinite(self.value):
            raise ValueError(f"{self.value} is no figure: give None and a reason")
        if (self.value is None) == (self.reason is None):
            raise ValueError("a figure has a value, or a reason why there is none")


def no_figure(reason: str, n: int = 0, left_out: tuple[LeftOut, ...] = ()) -> Figure:
    return Figure(None, n=n, reason=reason, left_out=left_out)


def left_out(what: str, names: Sequence[object], why: str) -> tuple[LeftOut, ...]:
    """Return what was left out as a tuple, empty where nothing was."""
    few = tuple(nsmallest(_NAMES_KEPT, set(map(str, names))))
    return (LeftOut(what, len(names), why, few),) if names else ()


@dataclass(frozen=True, slots=True)
class Share:
    """A share in [0, 1], how sure it is, and of how many; None when there were no trials.

    Attributes
    ----------
    low, high : float or None
        95 % interval.
    successes, trials, comparisons : int
        The comparisons are those with at least one trial.
    method : {"wilson", "bootstrap", "prompts"} or None
        What made the interval.
    why : str or None
        Why the share or its interval is missing.
    """

    value: float | None
    low: float | None
    high: float | None
    successes: int
    trials: int
    comparisons: int
    method: Literal["wilson", "bootstrap", "prompts"] | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Rating:
    """One rating on the ELO scale, how sure it is, and the ranks it may take.

    The mean of all ratings is 1000. `low` and `high` are a 95 % interval by bootstrap over
    comparisons, `best_rank` and `worst_rank` the ranks in its central 95 %; ranks begin at 1, and
    equal ratings share one. `comparisons` counts those on which it had a game; `why` tells why the
    rating or its interval is missing.
    """

    value: float | None
    low: float | None
    high: float | None
    rank: int | None
    best_rank: int | None
    worst_rank: int | None
    comparisons: int
    why: str | None = None

    def ranks(self, dash: str = "\N{EN DASH}") -> str:
        """Write the ranks that are possible; nothing where none is known."""
        best, worst = self.best_rank, self.worst_rank
        if best is None:
            return ""
        return f"{best}" if best == worst else f"{best}{dash}{worst}"


@dataclass(frozen=True, slots=True)
class AmongPeople:
    """Agreement among people.

    Attributes
    ----------
    pairs : Share
        Of all pairs of people who voted on the same comparison, those that chose the same. It
        stands beside a judge's agreement with votes, and is what papers print.
    votes : Share
        The mean over votes of the share of the other people there who chose the same. A comparison
        weighs as much as it has votes, as in a judge's agreement, so that it can be set beside
        `JudgeFigures.beside_people`; in `pairs` it weighs as much as it has pairs of people.
        Its successes are no whole numbers, and rounded.
    with_majority : Share
        Of all votes, those that equal the strict majority of the others' on the comparison. It
        stands beside a judge's agreement with majorities.
    no_majority : int
        Votes left out of it, because the others have no strict majority.
    alone : int
        Votes left out of both, because nobody else voted on the comparison.
    """

    pairs: Share
    votes: Share
    with_majority: Share
    no_majority: int
    alone: int


def wilson(successes: float, trials: int) -> Interval | None:
    """Return the 95 % Wilson score interval of a proportion, None when there were no trials.

    The successes are a whole number, except where a trial may succeed in part.
    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    1927.

    Examples
    --------
    >>> [round(bound, 4) for bound in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials cannot be")
    if trials == 0:
        return None
    share = successes / trials
    spread = Z95 * Z95 / trials
    middle = (share + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == trials else min(1.0, middle + half)
    return low, high


def one_of(name: str, value: object, literal: object) -> None:
    """Refuse a value that a `Literal` type does not name."""
    if value not in get_args(literal):
        raise ValueError(f"{name} must be one of {', '.join(get_args(literal))}")


def best_first(values: Sequence[float | None]) -> list[int]:
    """Return positions from the highest value to the lowest; what has none stands last.

    Examples
    --------
    >>> best_first([0.5, None, 0.7])
    [2, 0, 1]
    """
    placed = [float("inf") if value is None else -value for value in values]
    return sorted(range(len(placed)), key=placed.__getitem__)
