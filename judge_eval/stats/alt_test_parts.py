"""How the Alt-Test is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

import numpy as np

from judge_eval.stats.figures import Figure, LeftOut
from judge_eval.stats.labels import Kind
from judge_eval.stats.leave_one_out import Jaccard, Scoring, scoring_of
from judge_eval.stats.resampling import Resampling
from judge_eval.stats.significance import Penalty
from judge_eval.stats.vocabulary import BoolArray, IntArray

GRID: Final = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
PASSES: Final = 0.5
ENOUGH_FOR_T: Final = 30


@dataclass(frozen=True)
class AltTestSettings:
    """How the test is made.

    Attributes
    ----------
    epsilon : float
        Of the verdict. Winning rates are computed over the whole grid 0.00, 0.05 … 0.30.
    more_epsilons : sequence of float
        Further ones, beside the grid and `epsilon`.
    multiplicative : bool
        See `Penalty`.
    q : float
        False discovery rate.
    min_humans_per_item : int
        Items with fewer people are left out.
    min_instances_per_human : int
        People with fewer items are left out.
    min_humans : int
        With fewer people left to test, there is no figure. With one person nothing is corrected,
        and a single win would pass; with two, each is measured against the other alone.
    wilcoxon : bool
        Test people with fewer than 30 items by Wilcoxon's signed-rank test, and do not leave them
        out. Below that, the t-test's assumption of a normal mean is doubtful.
    scoring : {'auto', 'accuracy', 'neg_rmse', 'jaccard_similarity'}
        ``auto``: by the labels, see `scoring_of`.
    jaccard : {'set', 'positional'}
    resampling : Resampling
        Of items, for the interval of the advantage probability.

    Raises
    ------
    ValueError
        When a setting makes no sense.
    """

    epsilon: float = 0.2
    more_epsilons: Sequence[float] = ()
    multiplicative: bool = False
    q: float = 0.05
    min_humans_per_item: int = 2
    min_instances_per_human: int = 30
    min_humans: int = 3
    wilcoxon: bool = False
    scoring: Scoring | Literal["auto"] = "auto"
    jaccard: Jaccard = "set"
    resampling: Resampling = field(default_factory=Resampling)

    def __post_init__(self) -> None:
        if not 0 < self.q < 1:
            raise ValueError("q must be between 0 and 1")
        if self.min_humans_per_item < 2:
            raise ValueError("min_humans_per_item must be at least 2: someone must be left")
        if self.min_instances_per_human < 1:
            raise ValueError("min_instances_per_human must be at least 1")
        if self.min_humans < 1:
            raise ValueError("min_humans must be at least 1")
        for name, value, known in (
            ("scoring", self.scoring, ("auto", *get_args(Scoring))),
            ("jaccard", self.jaccard, get_args(Jaccard)),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}")
        _ = self.penalty

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Every epsilon that is tested, ascending."""
        return tuple(sorted({*GRID, self.epsilon, *self.more_epsilons}))

    @property
    def penalty(self) -> Penalty:
        return Penalty(np.array(self.epsilons), self.multiplicative)

    @property
    def takes(self) -> str:
        """Who it takes at least, in words."""
        return f"{self.min_humans} people with {self.enough} each that others labelled too"

    @property
    def too_few(self) -> str:
        """How many items are too few, in words."""
        return "no item" if self._least == 1 else f"fewer than {self._least} items"

    @property
    def enough(self) -> str:
        """How many items are enough, in words."""
        return "an item" if self._least == 1 else f"{self._least} items or more"

    @property
    def _least(self) -> int:
        return 1 if self.wilcoxon else self.min_instances_per_human

    def is_enough(self, items: IntArray) -> BoolArray:
        """Tell which people are tested, from their numbers of items."""
        few = (items > 0) & (items < ENOUGH_FOR_T)
        return np.asarray((items >= self.min_instances_per_human) | (self.wilcoxon & few))

    def scoring_of(self, kinds: AbstractSet[Kind]) -> Scoring:
        """Return how labels of these kinds are compared."""
        return scoring_of(kinds) if self.scoring == "auto" else self.scoring


@dataclass(frozen=True)
class AgainstHuman:
    """How a judge did against one person, left out.

    Attributes
    ----------
    n : int
        Items.
    test : str
        ``t-test`` or ``wilcoxon``.
    judge_advantage, human_advantage : float
        Share of the items on which the judge, or the person, agrees with the others at least as
        well as the other one does. Ties count for both.
    p_values : mapping of str to float
        By epsilon: of "the judge is no worse than this person by more than that".
    rejected : mapping of str to bool
        By epsilon: whether it won against this person, all people considered.
    """

    n: int
    test: str
    judge_advantage: float
    human_advantage: float
    p_values: Mapping[str, float]
    rejected: Mapping[str, bool]


@dataclass(frozen=True)
class AltTestResult:
    """What the test says of one judge.

    Attributes
    ----------
    winning_rate : mapping of str to Figure
        By epsilon, as "0.00", "0.05" …: the share of people that the judge won against.
    advantage_probability : Figure
        Mean over people of `AgainstHuman.judge_advantage`, with a bootstrap interval.
    by_human : mapping of str to AgainstHuman
        Only people with enough items; also where they are too few for a figure.
    untested : mapping of str to int
        The items of the other people, those that the judge labelled too.
    epsilon : str
        The key of the epsilon that decides.
    scoring : str
    items, items_of_two : int
        Items that counted, and those of them that only two people labelled.
    left_out : tuple of LeftOut
    """

    winning_rate: Mapping[str, Figure]
    advantage_probability: Figure
    by_human: Mapping[str, AgainstHuman]
    untested: Mapping[str, int]
    epsilon: str
    scoring: Scoring
    items: int
    items_of_two: int
    left_out: tuple[LeftOut, ...]

    @property
    def passes(self) -> bool | None:
        """Whether the judge wins against at least half of the people; None without a figure."""
        rate = self.winning_rate[self.epsilon].value
        return None if rate is None else rate >= PASSES


def epsilon_key(epsilon: float) -> str:
    """Return how an epsilon is called in results.

    Examples
    --------
    >>> epsilon_key(0.1), epsilon_key(0.125)
    ('0.10', '0.125')
    """
    short = f"{epsilon:.2f}"
    return short if abs(float(short) - epsilon) < 1e-9 else f"{epsilon:g}"
