"""How many items, votes and people does a study need before its judges can be told apart?

The model. Of all items a share `ties` is a tie or both bad, and no judge is right on them. On any
other one side is right: a person says so with probability a, a judge with its own, and all err
independently, so that two people agree on ``a² + (1 - a)²`` of these items. The better of two
judges is right as often as a person, the other less often, by so much that their overall agreement
differs by `difference`. Every item has a prompt of its own, and all its votes come in.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count, islice
from math import ceil, comb, sqrt
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from judge_eval.stats.bootstrap import FloatArray
from judge_eval.stats.estimate import SIGNIFICANCE, require
from judge_eval.stats.evidence import NODES, WEIGHTS

Method = Literal["evidence", "interval"]
MOST_ITEMS: Final = 20_000
# Below so many prompts a board withholds the interval.
LEAST_ITEMS: Final = 10
# Bets behind which there is no more to win: what is left of it counts as lost.
_SETTLED: Final = 0.9999
_NEGLIGIBLE: Final = 1e-14


@dataclass(frozen=True)
class Study:
    """What is supposed of a study; shares between 0 and 1.

    Parameters
    ----------
    judges : int
        How many are compared, baselines left aside.
    people_agreement : float
        Share of the pairs of people who would choose the same, above 0.5 and up to 1.
    difference : float
        The smallest difference in overall agreement that matters, above 0.
    votes_per_item : int
        By as many different people.
    ties : float
        Share of items that are a tie or both bad, below 1.
    power : float
        How sure to be that such a difference is found, between 0.5 and 0.99.

    Raises
    ------
    ValueError
        Where it cannot be: people who agree so little cannot show so large a difference.

    Examples
    --------
    >>> study = Study(judges=3, people_agreement=0.68, difference=0.1)
    >>> round(study.person, 3), round(study.worse, 3)
    (0.8, 0.633)
    """

    judges: int
    people_agreement: float
    difference: float
    votes_per_item: int = 1
    ties: float = 0.0
    power: float = 0.8

    def __post_init__(self) -> None:
        require(self.judges >= 2, "judges: at least 2 are compared")
        require(0.5 < self.people_agreement <= 1, "people_agreement: above 0.5, and up to 1")
        require(0 < self.difference <= 1, "difference: above 0, and up to 1")
        require(1 <= self.votes_per_item <= 99, "votes_per_item: between 1 and 99")
        require(0 <= self.ties < 1, "ties: at least 0, and below 1")
        require(0.5 <= self.power <= 0.99, "power: between 0.5 and 0.99")
        most = (1 - self.ties) * (2 * self.person - 1) * self.person
        points = f"{100 * most:.0f} points"
        message = f"difference: such people on such items tell judges apart by {points} at most"
        require(self.difference <= most + 1e-9, message)

    @cached_property
    def person(self) -> float:
        """How often a person is right on items that are no tie: ``(1 + sqrt(2 p - 1)) / 2``."""
        return (1 + sqrt(2 * self.people_agreement - 1)) / 2

    @property
    def worse(self) -> float:
        """How often the worse judge is right on items that are no tie."""
        less = self.difference / ((1 - self.ties) * (2 * self.person - 1))
        return max(0.0, self.person - less)

    @property
    def differing(self) -> float:
        """Share of items on which one of the two judges is right and the other wrong."""
        x, y = self.person, self.worse
        return (1 - self.ties) * (x * (1 - y) + y * (1 - x))

    @property
    def votes_moments(self) -> tuple[float, float]:
        """Moments of d = share of votes for the right side - share for the wrong one.

        ``E d**2`` and ``E d**3 / E d``, of binomial votes on an item that is no tie.
        """
        lead, n = 2 * self.person - 1, self.votes_per_item
        noise = (1 - lead**2) / n
        return lead**2 + noise, lead**2 + noise * (3 - 2 / n)

    @property
    def steps(self) -> tuple[float, float, float]:
        """How likely an item speaks for the better judge and against it, and by how much.

        The claims bet on D = d where the better judge alone is right, and -d where the other is.
        Here all D that are not 0 have the same size: the one that gives D its true first three
        moments. With one or two votes per item that is exact.

        Examples
        --------
        >>> [round(each, 3) for each in Study(2, 0.68, 0.1, votes_per_item=3).steps]
        [0.194, 0.086, 0.926]
        """
        square, ratio = self.votes_moments
        size = min(sqrt(ratio), 1.0)
        moving, ahead = self.differing * square / ratio, self.difference / size
        return (moving + ahead) / 2, max(0.0, (moving - ahead) / 2), size

    @property
    def variance(self) -> float:
        """Variance over items of the difference between the shares of votes two judges equal."""
        square, _ = self.votes_moments
        return max(self.differing * square - self.difference**2, 1e-12)

    @property
    def threshold(self) -> float:
        """The evidence that a claim takes: k (k - 1) / 0.05."""
        return self.judges * (self.judges - 1) / SIGNIFICANCE


def power_by_evidence(study: Study) -> Callable[[int], float]:
    """Return how likely the better judge is said to beat the other by so many items, or before.

    The bets of `evidence.log_wealth` are a random walk that ends where the evidence reaches its
    threshold; see `Study.steps` for the size of its steps.

    Examples
    --------
    >>> power = power_by_evidence(Study(2, 1.0, 0.3))
    >>> [round(power(items), 2) for items in (20, 30, 40)]
    [0.23, 0.72, 0.94]
    """
    ahead, behind, size = study.steps
    moving = ahead + behind
    reached = _reach_chances(round(ahead / moving, 12), study.threshold, moving, round(size, 12))

    def power(items: int) -> float:
        spread = 9 * sqrt(items * moving * (1 - moving)) + 9
        first = max(0, int(items * moving - spread))
        moves = np.arange(first, min(items, int(items * moving + spread)) + 1)
        from scipy.stats import binom  # type: ignore[import-untyped]  # slow to import

        chances = binom.pmf(moves, items, moving)
        return float((chances * reached[np.minimum(moves, len(reached) - 1)]).sum())

    return power


@lru_cache(maxsize=64)
def _reach_chances(ahead: float, threshold: float, moving: float, size: float) -> FloatArray:
    """Return how likely so many items that tell two judges apart have reached the threshold."""
    most = min(MOST_ITEMS, int(MOST_ITEMS * moving + 9 * sqrt(MOST_ITEMS)) + 1)
    chances, low, done, reached = np.ones(1), 0, 0.0, [0.0]
    for least in islice(_least_wins(threshold, size), most):
        step = np.zeros(len(chances) + 1)
        step[1:] = chances * ahead
        step[:-1] += chances * (1 - ahead)
        room = max(0, least - low)
        done += float(step[room:].sum())
        step = step[:room]
        open_places = np.flatnonzero(step > _NEGLIGIBLE)
        reached.append(done)
        if done > _SETTLED or not len(open_places):
            break
        chances, low = step[open_places[0] : open_places[-1] + 1], low + int(open_places[0])
    return np.array(reached)


def _least_wins(threshold: float, size: float) -> Iterator[int]:
    """Yield how many of 1, 2, 3 … bets of a size must be won for enough evidence.

    It is one more than there are where all of them are too few.
    """
    log_threshold = np.log(threshold)
    gain, loss, weights = np.log1p(size * NODES), np.log1p(-size * NODES), np.log(WEIGHTS)
    wins = 0
    for bets in count(1):
        # One bet more takes as many wins, or one more.
        while wins <= bets:
            if np.logaddexp.reduce(weights + wins * gain + (bets - wins) * loss) >= log_threshold:
                break
            wins += 1
        yield wins


def power_by_interval(study: Study) -> Callable[[int], float]:
    """Return how likely the 95 % interval of the difference leaves out 0, looked at once.

    Normal approximation, for a number of items that was fixed beforehand.

    Examples
    --------
    >>> power = power_by_interval(Study(3, 0.68, 0.1))
    >>> round(power(300), 2)
    0.77
    """
    normal = NormalDist()
    bound = normal.inv_cdf(1 - SIGNIFICANCE / 2)

    def power(items: int) -> float:
        return normal.cdf(study.difference / sqrt(study.variance / items) - bound)

    return power


POWERS: Final[dict[Method, Callable[[Study], Callable[[int], float]]]] = {
    "evidence": power_by_evidence,
    "interval": power_by_interval,
}


def items_for(study: Study, method: Method) -> int | None:
    """Return the least items that tell the two judges apart often enough; None beyond 20,000.

    A claim takes a whole number of bets won, so by evidence the items move in small steps: one
    vote more per item may need up to 1 % more of them.

    Examples
    --------
    >>> study = Study(judges=3, people_agreement=0.68, difference=0.1)
    >>> items_for(study, "evidence"), items_for(study, "interval")
    (744, 322)
    >>> items_for(Study(3, 0.68, 0.001), "interval") is None
    True
    """
    power, low, high = POWERS[method](study), LEAST_ITEMS - 1, MOST_ITEMS
    if power(high) < study.power:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= study.power else (middle, high)
    return high


def most_saved(study: Study) -> float:
    """Return the share of the votes on models' win rates that a judge as good as a person saves.

    By `judge_eval.stats.corrected`, however many items without votes it judges: the square of the
    correlation between the majority of an item's votes and the judge. For models that win half of
    their pairs; of others it saves less.

    Examples
    --------
    >>> studies = [Study(2, 0.68, 0.1, votes_per_item=votes) for votes in (1, 3)]
    >>> [round(most_saved(study), 4) for study in studies]
    [0.1296, 0.2258]
    """
    n, right = study.votes_per_item, study.person
    chances = [comb(n, k) * right**k * (1 - right) ** (n - k) for k in range(n + 1)]
    lead = sum(chance * ((2 * k > n) - (2 * k < n)) for k, chance in enumerate(chances))
    decided = 1 - (chances[n // 2] if n % 2 == 0 else 0)
    return (1 - study.ties) * (lead * (2 * right - 1)) ** 2 / decided


@dataclass(frozen=True)
class StudyPlan:
    """What a study needs; nothing but its votes per item where no number of items is enough."""

    votes_per_item: int
    items: int | None
    votes: int | None = None
    hours: float | None = None
    people: int | None = None


def plan(
    study: Study, method: Method, *, seconds_per_vote: float, hours_per_person: float
) -> StudyPlan:
    """Return the items, votes, hours and people that a study needs.

    People are as many as the hours take, and at least one for each vote on an item.

    Examples
    --------
    >>> study = Study(judges=3, people_agreement=0.68, difference=0.1, votes_per_item=3)
    >>> plan(study, "evidence", seconds_per_vote=20, hours_per_person=2)
    StudyPlan(votes_per_item=3, items=388, votes=1164, hours=6.466666666666667, people=4)
    """
    require(seconds_per_vote > 0, "seconds_per_vote: above 0")
    require(hours_per_person > 0, "hours_per_person: above 0")
    items = items_for(study, method)
    if items is None:
        return StudyPlan(study.votes_per_item, None)
    votes = items * study.votes_per_item
    hours = votes * seconds_per_vote / 3600
    people = max(study.votes_per_item, ceil(hours / hours_per_person))
    return StudyPlan(study.votes_per_item, items, votes, hours, people)
