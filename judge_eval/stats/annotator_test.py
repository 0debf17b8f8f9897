"""The Alternative Annotator Test: may this judge take a person's place?

Source: arXiv 2501.10970. One person after the other is left out. On each item, does the judge or
that person agree better with the other people? A person loses to the judge when it is significantly
no worse than them by more than epsilon, which stands for what a person costs. A judge that wins
against at least half of the people passes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from judge_eval.stats.averages import mean_over_raters
from judge_eval.stats.bootstrap import Resampling, interval_of, resampled_rates
from judge_eval.stats.estimate import Figure, LeftOut, left_out, no_figure
from judge_eval.stats.labels import (
    MISSING,
    BoolArray,
    FloatArray,
    HumanData,
    HumanLabels,
    IntArray,
    JudgeData,
    JudgeLabels,
    Kind,
    Label,
    LabelsUnfit,
    Vocabulary,
    elements_of,
    human_labels,
    judge_labels,
    kind_of,
    numbered,
)
from judge_eval.stats.pairs import partners, patterns_of
from judge_eval.stats.significance import Penalty, benjamini_yekutieli, t_test, wilcoxon

Scoring: TypeAlias = Literal["accuracy", "neg_rmse", "jaccard_similarity"]
Jaccard: TypeAlias = Literal["set", "positional"]

GRID: Final = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
PASSES: Final = 0.5
ENOUGH_FOR_T: Final = 30
TIE: Final = 1e-12
EPSILON_GUIDE: Final = {
    0.2: "experts: reliable, and costly or hard to get",
    0.15: "skilled people: trained, less reliable than experts",
    0.1: "crowd workers",
}
_COMFORTABLE: Final = 50


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
    min_humans_per_item, min_instances_per_human : int
        Items with fewer people, and people with fewer items, are left out.
    min_humans : int
        With fewer people left to test, there is no figure. With one person nothing is corrected,
        and a single win would pass; with two, each is measured against the other alone.
    wilcoxon : bool
        Test people with fewer than 30 items by Wilcoxon's signed-rank test, and do not leave them
        out. Below that, the t-test's assumption of a normal mean is doubtful.
    scoring : {'auto', 'accuracy', 'neg_rmse', 'jaccard_similarity'}
        ``auto``: by the labels, see `scoring_of`.
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
    items, items_of_two : int
        Items that counted, and those of them that only two people labelled.
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


def alt_test(
    judges: Mapping[str, JudgeData], humans: HumanData, settings: AltTestSettings | None = None
) -> dict[str, AltTestResult]:
    """Test judges against the same people.

    Parameters
    ----------
    judges : mapping of str to rows of (item, label) or ``{item: label}``
    humans : rows of (item, human, label), or ``{human: {item: label}}``

    Returns
    -------
    dict of str to AltTestResult
        Each judge is tested on the items that it labelled; other judges make no difference.

    References
    ----------
    N. Calderon, R. Reichart and R. Dror, "The Alternative Annotator Test for LLM-as-a-Judge", 2025,
    arXiv 2501.10970.

    Examples
    --------
    >>> names = ("ann", "ben", "cem")
    >>> people = {name: {item: item % 3 == 0 for item in range(60)} for name in names}
    >>> people["ben"] |= {item: True for item in range(9)}
    >>> found = alt_test({"copy of ann": people["ann"]}, people)["copy of ann"]
    >>> found.winning_rate["0.20"].value, found.passes
    (1.0, True)
    >>> found.by_human["ben"].judge_advantage, found.by_human["ben"].human_advantage
    (1.0, 0.9)
    """
    settings, people = settings or AltTestSettings(), human_labels(humans)
    read = {name: judge_labels(data) for name, data in judges.items()}
    alike: dict[Scoring, dict[str, JudgeLabels]] = defaultdict(dict)
    for name, judge in read.items():
        alike[settings.scoring_of(people.kinds | judge.kinds)][name] = judge
    found = {
        name: result
        for scoring, some in alike.items()
        for name, result in _tested(some, people, scoring, settings).items()
    }
    return {name: found[name] for name in read}


def _tested(
    judges: Mapping[str, JudgeLabels],
    people: HumanLabels,
    scoring: Scoring,
    settings: AltTestSettings,
) -> dict[str, AltTestResult]:
    """Test judges whose labels are compared in the same way, all at once."""
    scores = leave_one_out(judges, people, settings.min_humans_per_item, scoring, settings.jaccard)
    counts = scores.outcomes(len(people.humans))
    p_values = _p_values(counts, settings)
    rejected = benjamini_yekutieli(p_values.swapaxes(-1, -2), settings.q).swapaxes(-1, -2)
    parts = zip(judges.items(), scores.by_judge, counts, p_values, rejected, strict=True)
    return {
        name: _OfJudge(people, judge, settings, scores, *arrays).result(scoring)
        for (name, judge), *arrays in parts
    }


def _p_values(counts: IntArray, settings: AltTestSettings) -> FloatArray:
    """Return p per judge, person and epsilon; NaN where a person is not tested."""
    n = counts.sum(axis=-1)
    p = t_test(counts, settings.penalty)
    if settings.wilcoxon:
        for judge, human in np.argwhere((n > 0) & (n < ENOUGH_FOR_T)):
            p[judge, human] = wilcoxon(counts[judge, human], settings.penalty)
    p[~settings.is_enough(n)] = np.nan
    return p


@dataclass(frozen=True)
class _OfJudge:
    """What was computed of one judge: its scores, and by person counts, p-values and rejections."""

    people: HumanLabels
    judge: JudgeLabels
    settings: AltTestSettings
    scores: LeftOutScores
    by_judge: FloatArray
    counts: IntArray
    p_values: FloatArray
    rejected: BoolArray

    @cached_property
    def n(self) -> IntArray:
        return np.asarray(self.counts.sum(axis=-1))

    @cached_property
    def tested(self) -> IntArray:
        """The people who were tested, by number."""
        return np.flatnonzero(self.settings.is_enough(self.n))

    @cached_property
    def kept(self) -> BoolArray:
        """The labels that count: of people who were tested, on items that the judge labelled."""
        return np.asarray(~np.isnan(self.by_judge) & np.isin(self.scores.human, self.tested))

    def result(self, scoring: Scoring) -> AltTestResult:
        keys = [epsilon_key(epsilon) for epsilon in self.settings.epsilons]
        names, enough = self.people.humans, set(self.tested.tolist())
        people = enumerate(zip(names, self.n.tolist(), strict=True))
        untested = {name: n for number, (name, n) in people if number not in enough}
        gaps = self._left_out(list(untested))
        rates, advantage = self._figures(gaps)
        items, sizes = np.unique(self.scores.item, return_counts=True)
        counted = np.isin(items, self.scores.item[self.kept])
        return AltTestResult(
            winning_rate=dict(zip(keys, rates, strict=True)),
            advantage_probability=advantage,
            by_human={names[human]: self._against(human, keys) for human in self.tested},
            untested=untested,
            epsilon=epsilon_key(self.settings.epsilon),
            scoring=scoring,
            items=int(counted.sum()),
            items_of_two=int((sizes[counted] == 2).sum()),
            left_out=gaps,
        )

    def _figures(self, gaps: tuple[LeftOut, ...]) -> tuple[list[Figure], Figure]:
        """Return the winning rate of each epsilon, and the advantage probability."""
        if len(self.tested) < self.settings.min_humans:
            nothing = no_figure(self._why_none(), left_out=gaps)
            return [nothing] * len(self.settings.epsilons), nothing
        n = int(self.n[self.tested].sum())
        rates = self.rejected[self.tested].mean(axis=0)
        mean = float(np.mean([self._advantages(human)[0] for human in self.tested]))
        values, items = self._resampled_advantage()
        found = interval_of(values, items, self.settings.resampling)
        advantage = Figure(mean, n, None, found.interval, found.method, gaps)
        return [Figure(float(rate), n, left_out=gaps) for rate in rates], advantage

    def _resampled_advantage(self) -> tuple[FloatArray, int]:
        """Return the advantage probability of each resample, and how many items there are."""
        human = self.scores.human[self.kept]
        holds = self.by_judge[self.kept] >= self.scores.by_human[self.kept] - TIE
        found = patterns_of(self.scores.item[self.kept], (human * 2 + holds).astype(np.uint64))
        rates = resampled_rates(
            found,
            human[found.pair],
            holds[found.pair].astype(np.float64),
            len(self.people.humans),
            self.settings.resampling,
        )
        return mean_over_raters(rates), int(found.counts.sum())

    def _against(self, human: int, keys: Sequence[str]) -> AgainstHuman:
        n = int(self.n[human])
        return AgainstHuman(
            n,
            "wilcoxon" if self.settings.wilcoxon and n < ENOUGH_FOR_T else "t-test",
            *self._advantages(human),
            dict(zip(keys, self.p_values[human].tolist(), strict=True)),
            dict(zip(keys, self.rejected[human].tolist(), strict=True)),
        )

    def _advantages(self, human: int) -> tuple[float, float]:
        """Return the shares of items on which the judge, and the person, hold their own."""
        both, person_only, judge_only = map(int, self.counts[human])
        n = both + person_only + judge_only
        return (both + judge_only) / n, (both + person_only) / n

    def _left_out(self, untested: Sequence[str]) -> tuple[LeftOut, ...]:
        people = Counter(row.item for row in self.people)
        least, judged = self.settings.min_humans_per_item, self.judge.by_item
        lonely = [item for item, n in people.items() if n < least]
        unjudged = [item for item, n in people.items() if n >= least and item not in judged]
        unseen = [item for item in judged if item not in people]
        return (
            *left_out("items", lonely, f"labelled by fewer than {least} people"),
            *left_out("items", unjudged, "without a label of the judge"),
            *left_out("items", unseen, "labelled by nobody"),
            *left_out("humans", untested, f"they have {self.settings.too_few} to test on"),
        )

    def _why_none(self) -> str:
        settings, tested = self.settings, len(self.tested)
        labelled = f"that the judge and at least {settings.min_humans_per_item} people labelled"
        if not tested:
            return f"everybody has {settings.too_few} {labelled}"
        has = "person has" if tested == 1 else "people have"
        return (
            f"only {tested} {has} {settings.enough} {labelled}, and the test takes "
            f"{settings.min_humans}"
        )


@dataclass(frozen=True)
class LeftOutScores:
    """How well each person, left out, and each judge agree with the others on each item.

    Attributes
    ----------
    item, human : int array, shape (n,)
        One entry for each label of a person on an item with enough people, in order of item.
    by_human : float array, shape (n,)
        Agreement of the person left out with the others.
    by_judge : float array, shape (n_judges, n)
        Agreement of the judges with the same others; NaN where the judge gave no label.
    """

    item: IntArray
    human: IntArray
    by_human: FloatArray
    by_judge: FloatArray

    def outcomes(self, humans: int) -> IntArray:
        """Count who agrees better with the others, per judge and person left out.

        Returns
        -------
        int array, shape (n_judges, n_humans, 3)
            Items on which both agree equally well, the person alone better, the judge alone.
        """
        judge = self.by_judge >= self.by_human - TIE
        human = self.by_human >= self.by_judge - TIE
        kinds = (judge & human, human & ~judge, judge & ~human)
        counted = [
            [np.bincount(self.human[row], minlength=humans) for row in kind] for kind in kinds
        ]
        return np.array(counted, np.int64).transpose(1, 2, 0)


def scoring_of(kinds: AbstractSet[Kind]) -> Scoring:
    """Tell how labels of these kinds are compared.

    Text and truth values by equality, numbers by RMSE, label sets by Jaccard; a mix by equality.

    Examples
    --------
    >>> scoring_of({"text"}), scoring_of({"truth"}), scoring_of({"number"}), scoring_of({"set"})
    ('accuracy', 'accuracy', 'neg_rmse', 'jaccard_similarity')
    """
    if kinds and kinds <= {"set", "vector"}:
        return "jaccard_similarity"
    return "neg_rmse" if kinds == {"number"} else "accuracy"


def leave_one_out(
    judges: Mapping[str, JudgeLabels],
    people: HumanLabels,
    min_humans_per_item: int,
    scoring: Scoring,
    jaccard: Jaccard = "set",
) -> LeftOutScores:
    """Score every label of a person, and the judges' on that item, against the other people's.

    Parameters
    ----------
    min_humans_per_item : int
        Items with fewer labels are left out; at least 2, since someone must be left to agree with.
    scoring : {'accuracy', 'neg_rmse', 'jaccard_similarity'}
        The mean over the others of ``[x = y]``; ``-sqrt(mean (x - y)²)``; the mean of the Jaccard
        similarity.
    jaccard : {'set', 'positional'}
        See `jaccard_similarity`.
    """
    items = numbered(row.item for row in people)
    people_numbers = numbered(people.humans)
    item = np.array([items[row.item] for row in people], np.int64)
    human = np.array([people_numbers[row.human] for row in people], np.int64)
    said = [[judge.by_item.get(name) for name in items] for judge in judges.values()]
    vocabulary = Vocabulary(
        [row.label for row in people] + [x for labels in said for x in labels if x is not None]
    )
    code = vocabulary.codes([row.label for row in people])
    enough = np.bincount(item, minlength=len(items)) >= max(2, min_humans_per_item)
    order = np.argsort(item, kind="stable")
    order = order[enough[item[order]]]
    item, human, code = item[order], human[order], code[order]
    judged = np.array([vocabulary.codes(labels)[item] for labels in said])
    judged = judged.reshape(len(said), len(item))
    if scoring == "accuracy":
        scores = [_matches(item, code, one, len(vocabulary)) for one in (code, *judged)]
    else:
        compare = _Comparison(item, code, vocabulary, scoring, jaccard)
        scores = [compare.with_others(one) for one in (code, *judged)]
    by_judge = np.array(scores[1:]).reshape(judged.shape)
    return LeftOutScores(item, human, scores[0], np.where(judged == MISSING, np.nan, by_judge))


def _matches(item: IntArray, code: IntArray, said: IntArray, size: int) -> FloatArray:
    """Return the share of the other people who gave the label `said`, shape (n,)."""
    keys, counts = np.unique(item * size + code, return_counts=True)
    wanted = item * size + said
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    matching = np.where(keys[at] == wanted, counts[at], 0) - (said == code)
    others = np.bincount(item)[item] - 1
    return np.asarray(matching / others)


class _Comparison:
    """Compares labels two by two, each combination of labels once."""

    def __init__(
        self,
        item: IntArray,
        code: IntArray,
        vocabulary: Vocabulary,
        scoring: Scoring,
        jaccard: Jaccard,
    ) -> None:
        self._labels, self._scoring, self._jaccard = vocabulary.labels, scoring, jaccard
        self._one, other = partners(item)
        self._other = code[other]
        _, self._starts = np.unique(self._one, return_index=True)

    def with_others(self, said: IntArray) -> FloatArray:
        """Return how well `said`, shape (n,), agrees with the other people, shape (n,)."""
        if not len(said):
            return np.empty(0)
        mine = said[self._one]
        if self._scoring == "neg_rmse":
            numbers = np.array([_as_number(label) for label in self._labels])
            squares = (numbers[mine] - numbers[self._other]) ** 2
            return np.asarray(-np.sqrt(self._mean(squares)))
        keys, where = np.unique(mine * len(self._labels) + self._other, return_inverse=True)
        alike = [
            jaccard_similarity(self._labels[a], self._labels[b], self._jaccard)
            for a, b in (divmod(int(key), len(self._labels)) for key in keys)
        ]
        return self._mean(np.array(alike)[where])

    def _mean(self, values: FloatArray) -> FloatArray:
        sizes = np.diff(self._starts, append=len(values))
        return np.asarray(np.add.reduceat(values, self._starts) / sizes)


def _as_number(label: Label) -> float:
    if not isinstance(label, int | float):
        raise LabelsUnfit(f"the distance of numbers cannot be taken of a {kind_of(label)}: {label}")
    return float(label)


def jaccard_similarity(one: Label, other: Label, form: Jaccard = "set") -> float:
    """Return how alike two label sets or vectors are.

    Parameters
    ----------
    form : {'set', 'positional'}
        ``set``: elements of both over elements of either, and 1 where both are empty.
        ``positional``: for each label the positions that have it in both over those in either,
        averaged over the labels; so agreeing on what is absent counts too.

    Raises
    ------
    LabelsUnfit
        When vectors are compared by position and their lengths differ.

    Examples
    --------
    >>> a, b = ("hateful", "FALSE", "sexual"), ("hateful", "FALSE", "FALSE")
    >>> jaccard_similarity(a, b), jaccard_similarity(a, b, "positional")
    (0.5, 0.5)
    """
    if form == "set":
        mine, theirs = elements_of(one), elements_of(other)
        return len(mine & theirs) / len(mine | theirs) if mine | theirs else 1.0
    if not (isinstance(one, tuple) and isinstance(other, tuple)) or len(one) != len(other):
        raise LabelsUnfit("labels are compared by position only where they have as many positions")
    either = list(zip(one, other, strict=True))
    shares = [
        sum(a == b == label for a, b in either) / sum(label in pair for pair in either)
        for label in {*one, *other}
    ]
    return sum(shares) / len(shares) if shares else 1.0


def epsilon_key(epsilon: float) -> str:
    """Return how an epsilon is called in results.

    Examples
    --------
    >>> epsilon_key(0.1), epsilon_key(0.125)
    ('0.10', '0.125')
    """
    short = f"{epsilon:.2f}"
    return short if abs(float(short) - epsilon) < 1e-9 else f"{epsilon:g}"


def in_words(result: AltTestResult) -> str:
    """Say whether the judge may take a person's place.

    Examples
    --------
    >>> from judge_eval.stats import alt_test
    >>> people = {name: dict.fromkeys(range(40), "A") for name in ("ann", "ben", "cem")}
    >>> print(in_words(alt_test({"judge": people["ann"]}, people)["judge"]))
    Passes at epsilon 0.20: it wins against 3 of 3 people, and half of them are enough. It agrees \
with the others at least as well as the person left out on 100 % of the items.
    """
    rate, advantage = result.winning_rate[result.epsilon], result.advantage_probability
    if rate.value is None or advantage.value is None:
        return f"Not tested: {rate.reason}."
    verdict = "Passes" if rate.value >= PASSES else "Fails"
    people = len(result.by_human)
    return (
        f"{verdict} at epsilon {result.epsilon}: it wins against {round(rate.value * people)} of "
        f"{people} people, and half of them are enough. It agrees with the others at least as well "
        f"as the person left out on {advantage.value:.0%} of the items."
    ).replace("%", " %")


def advice(result: AltTestResult, settings: AltTestSettings) -> tuple[str, ...]:
    """Say what makes this test weak, if anything does; with the settings it was computed with."""
    tested = result.by_human if result.passes is not None else {}
    few = sorted(name for name, against in tested.items() if against.n < ENOUGH_FOR_T)
    most = max((against.n for against in tested.values()), default=0)
    found = []
    if len(tested) == 1:
        found.append("Only one person has enough items to be compared with.")
    if len(tested) == 2:
        found.append(
            "With two people the test asks only whether the judge is closer to one of them than "
            "the other is. Three or more make a consensus to be measured against."
        )
    elif tested and result.items_of_two:
        found.append(
            f"Only two people labelled {result.items_of_two} of the {result.items} items. On those "
            "the judge is compared with a single other person, which says little; labels of a "
            "third person would make the test stronger."
        )
    if few:
        found.append(_few_items(few, settings))
    elif 0 < most < _COMFORTABLE:
        found.append(
            f"At most {most} items per person: 50 to 100 are enough in most cases, and fewer make "
            "it hard for a good judge to pass."
        )
    return tuple(found)


def epsilon_advice() -> str:
    """Say how to choose epsilon.

    Examples
    --------
    >>> print(epsilon_advice().splitlines()[0])
    Epsilon is how much worse a judge may be since it costs less than a person:
    """
    lines = [f"{epsilon:g} for {who}" for epsilon, who in EPSILON_GUIDE.items()]
    end = "The less the people agree with each other, the smaller it should be."
    head = "Epsilon is how much worse a judge may be since it costs less than a person:"
    return "\n".join([head, *lines, end])


def _few_items(names: list[str], settings: AltTestSettings) -> str:
    who = ", ".join(names)
    if settings.wilcoxon:
        return (
            f"Fewer than {ENOUGH_FOR_T} items: {who}. They are tested by Wilcoxon's signed-rank "
            "test, since the t-test takes more items; the best remedy is more items."
        )
    return (
        f"Fewer than {ENOUGH_FOR_T} items: {who}. The t-test assumes more; allow Wilcoxon's "
        "signed-rank test, or better have more items labelled."
    )
