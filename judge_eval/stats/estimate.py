"""A figure that says how sure it is, or the reason why there is none. Imports no numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest
from math import isfinite, sqrt
from typing import Annotated, Final, TypeAlias, get_args

from pydantic import ConfigDict, Field

Interval: TypeAlias = tuple[float, float]

SIGNIFICANCE: Final = 0.05
# Less evidence than this is none in words.
LEADS: Final = 3.0
# From this winning rate on a judge passes the Alt-Test.
PASSES: Final = 0.5
# Below it words name coverage too.
WELL_COVERED: Final = 0.95
Z95: Final = 1.959963984540054
# So far apart in agreement per vote two judges may be and still be practically the same, where a
# team states nothing else.
MARGIN: Final = 0.10
# With fewer of them no share has an interval.
FEWEST_PROMPTS: Final = 10
# Of fewer prompts with votes, a judge that has read nothing seems to save some in 5 to 9 % of runs.
FEWEST_FOR_SAVING: Final = 30
_NAMES_KEPT: Final = 20


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Items, labels, humans or tasks that were not counted, and why; of many the first 20 names."""

    what: str
    count: int
    why: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number with its 95 % interval, or `why` one of them is missing.

    `n` counts what it was computed from. `method` says how the interval was made, or why there is
    none. A number that is not finite, or none without a reason, is a ValueError.

    Examples
    --------
    >>> Estimate(0.8, 0.49, 0.94, n=10, method="Wilson").interval
    (0.49, 0.94)
    """

    # In JSON, `n` has the name of what is counted.
    __pydantic_config__ = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    method: str | None = None
    why: str | None = None
    left_out: Annotated[tuple[LeftOut, ...], Field(exclude=True)] = ()

    def __post_init__(self) -> None:
        is_number = self.value is None or isfinite(self.value)
        require(is_number, f"{self.value} is no figure: give None and a reason")
        has_one = self.value is not None or self.why
        require(has_one, "a figure has a value, or a reason why there is none")

    @property
    def interval(self) -> Interval | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def no_figure(reason: str, n: int = 0, left_out: tuple[LeftOut, ...] = ()) -> Estimate:
    return Estimate(None, n=n, why=reason, left_out=left_out)


def left_out(kind: str, names: Sequence[object], reason: str) -> tuple[LeftOut, ...]:
    few = tuple(nsmallest(_NAMES_KEPT, set(map(str, names))))
    return (LeftOut(kind, len(names), reason, few),) if names else ()


@dataclass(frozen=True, slots=True)
class Share(Estimate):
    """A share in [0, 1] of `n` trials, on `comparisons` with at least one trial."""

    n: Annotated[int, Field(alias="trials")] = 0
    # Whole numbers, except where a trial may succeed in part.
    successes: int | float = 0
    comparisons: int = 0


@dataclass(frozen=True, slots=True)
class Rating(Estimate):
    """One rating on the ELO scale, its interval by bootstrap, and the ranks it may take.

    The mean of all ratings is 1000. Ranks begin at 1, and equal ratings share one. It had a game on
    `n` comparisons.
    """

    n: Annotated[int, Field(alias="comparisons")] = 0
    method: Annotated[str | None, Field(exclude=True)] = None
    rank: int | None = None
    best_rank: int | None = None
    worst_rank: int | None = None

    def ranks(self, dash: str = "\N{EN DASH}") -> str:
        """Write the ranks that are possible; nothing where none is known."""
        ranks = [rank for rank in (self.best_rank, self.worst_rank) if rank is not None]
        return dash.join(map(str, dict.fromkeys(ranks)))


@dataclass(frozen=True, slots=True)
class AmongPeople:
    """Agreement among people.

    Of all `pairs` of people who voted on the same comparison, those that chose the same, as papers
    print it; the mean over `votes` of the share of the other people there who chose the same, in
    which a comparison weighs as much as in `JudgeFigures.beside_people`; and the votes that equal
    the strict majority of the others', without those where there is none, or nobody else.
    """

    pairs: Share
    votes: Share
    with_majority: Share
    no_majority: int
    alone: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelRates:
    """How well a judge finds one label.

    Of the votes for the label, those that the judge gave it too (sensitivity, or recall), and of
    the others, those that it did not (specificity).
    """

    label: str = ""
    sensitivity: Share
    specificity: Share


@dataclass(frozen=True, slots=True)
class McNemar:
    """Exact tests of judges in both directions for a fixed number of votes, in the board's order.

    ``beats[i][j]`` tells that judge i is better than j, by two-sided p after Holm's correction and
    (`p_single`) before it; 1 on the diagonal. ``ahead[i][j]`` are comparisons that i was right and
    j was wrong about, `together` those on which both have a verdict, of those that are `labelled`
    by a strict majority.
    """

    beats: list[list[bool]]
    p: list[list[float]]
    p_single: list[list[float]]
    ahead: list[list[int]]
    together: list[list[int]]
    labelled: int
    unlabelled: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelBoard:
    """Models ranked `by` people, or by the judge of that identifier.

    Models share a letter of `ties` when their intervals overlap. ``wins[i][j]`` are votes for i
    against j, a tie being half a vote for each. Left out are votes for both bad (`both_bad`), and
    those on comparisons without two different known models (`unpaired`).
    """

    by: str = ""
    name: str = ""
    is_baseline: bool = False
    ratings: list[Rating]
    ties: list[str]
    wins: list[list[float]]
    win_rates: list[list[float | None]]
    both_bad: int
    unpaired: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Corrected:
    """How often people prefer or pass some outputs, by one judge.

    By its verdicts alone; how much higher these are than people's, where both are there; and
    `corrected` by that, with the share of people's votes that this saves, where enough prompts have
    votes to tell. `by_rates` is the same by how well it finds what passes and what is flagged. On
    `unvoted` items it alone has an answer.
    """

    judge: Share
    error: Estimate
    corrected: Estimate
    by_rates: Estimate | None
    unvoted: int
    saving: float | None


def wilson(successes: float, trials: int) -> Interval | None:
    """Return the 95 % score interval of a proportion (E. B. Wilson, 1927), None without trials.

    The successes are a whole number, except where a trial may succeed in part.

    Examples
    --------
    >>> [round(bound, 4) for bound in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    require(0 <= successes <= trials, f"{successes} successes in {trials} trials cannot be")
    if trials == 0:
        return None
    share = successes / trials
    spread = Z95 * Z95 / trials
    middle = (share + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return (
        0.0 if successes == 0 else max(0.0, middle - half),
        1.0 if successes == trials else min(1.0, middle + half),
    )


def require(holds: object, reason: str, error: type[ValueError] = ValueError) -> None:
    """Raise an error that says why, unless something holds."""
    if not holds:
        raise error(reason)


def check_option(
    name: str, value: object, literal: object, error: type[ValueError] = ValueError
) -> None:
    options = get_args(literal)
    require(value in options, f"{name} must be one of {', '.join(options)}", error)


def best_first(values: Sequence[float | None]) -> list[int]:
    """Return positions from the highest value to the lowest; what has none stands last.

    Examples
    --------
    >>> best_first([0.5, None, 0.7])
    [2, 0, 1]
    """
    placed = [float("inf") if value is None else -value for value in values]
    return sorted(range(len(placed)), key=placed.__getitem__)
