"""The Alternative Annotator Test: may this judge take a person's place?

Source: N. Calderon, R. Reichart and R. Dror, 2025, arXiv 2501.10970. One person after the other is
left out. On each item, does the judge or that person agree better with the other people? A person
loses to the judge when it is significantly no worse than them by more than epsilon, which stands
for what a person costs. A judge that wins against at least half of the people passes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias

import numpy as np

from judge_eval.stats.bootstrap import DEFAULT, FloatArray, IntArray, Resampling, interval_of
from judge_eval.stats.estimate import (
    PASSES,
    Estimate,
    LeftOut,
    check_option,
    left_out,
    no_figure,
    require,
    wilson,
)
from judge_eval.stats.labels import (
    HumanData,
    HumanLabels,
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
from judge_eval.stats.pairs import WILSON, mean_over_raters, partners, patterns_of, resampled_rates
from judge_eval.stats.significance import (
    benjamini_yekutieli,
    mean_of_means,
    penalty,
    t_test,
    wilcoxon,
)

Scoring: TypeAlias = Literal["accuracy", "neg_rmse", "jaccard_similarity"]
AnyScoring: TypeAlias = Literal["auto", "accuracy", "neg_rmse", "jaccard_similarity"]
Jaccard: TypeAlias = Literal["set", "positional"]

GRID: Final = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
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

    `epsilon` is that of the verdict; winning rates are computed over the grid and for
    `more_epsilons` too, and `penalty` tells what ``multiplicative`` is. `q` is the false discovery
    rate. Items with fewer than `min_humans_per_item`, and people with fewer items than
    `min_instances_per_human`, are left out; with `wilcoxon` people with fewer than 30 items are
    tested by signed ranks instead. With fewer than `min_humans` left there is no figure. The
    scoring ``auto`` goes by the labels, see `scoring_of`.
    """

    epsilon: float = 0.2
    more_epsilons: Sequence[float] = ()
    multiplicative: bool = False
    q: float = 0.05
    min_humans_per_item: int = 2
    min_instances_per_human: int = 30
    min_humans: int = 3
    wilcoxon: bool = False
    scoring: AnyScoring = "auto"
    jaccard: Jaccard = "set"
    resampling: Resampling = DEFAULT

    def __post_init__(self) -> None:
        others, least = self.min_humans_per_item, min(self.min_instances_per_human, self.min_humans)
        require(0 < self.q < 1, "q must be between 0 and 1")
        require(others >= 2, "min_humans_per_item must be at least 2: someone must be left")
        require(least >= 1, "min_instances_per_human and min_humans must be at least 1")
        check_option("scoring", self.scoring, AnyScoring)
        check_option("jaccard", self.jaccard, Jaccard)
        penalty(self.epsilons, self.multiplicative)

    @property
    def epsilons(self) -> tuple[float, ...]:
        return tuple(sorted({*GRID, self.epsilon, *self.more_epsilons}))

    @property
    def takes(self) -> str:
        return f"{self.min_humans} people with {self.enough} each that others labelled too"

    @property
    def least(self) -> int:
        return 1 if self.wilcoxon else self.min_instances_per_human

    @property
    def enough(self) -> str:
        return "an item" if self.least == 1 else f"{self.least} items or more"

    @property
    def too_few(self) -> str:
        return "no item" if self.least == 1 else f"fewer than {self.least} items"


@dataclass(frozen=True)
class AgainstHuman:
    """How a judge did against one person, left out, on `n` items, by t-test or Wilcoxon's test.

    The advantage is the share of items on which one agrees with the others at least as well as the
    other does; ties count for both. By epsilon there is the p-value of "the judge is no worse than
    this person by more than that", and whether it won, all people considered.
    """

    n: int
    test: str
    judge_advantage: float
    human_advantage: float
    p_values: Mapping[str, float]
    rejected: Mapping[str, bool]

    @property
    def figure(self) -> Estimate:
        low, high = wilson(round(self.judge_advantage * self.n), self.n) or (None, None)
        return Estimate(self.judge_advantage, low, high, self.n, WILSON)


@dataclass(frozen=True)
class AltTestResult:
    """What the test says of one judge.

    `winning_rate` is by epsilon, as "0.00", "0.05" …, of which `epsilon` decides. `by_human` are
    people with enough items, and `untested` how many the others have. Of the `items` that counted,
    `items_of_two` were labelled by two people only. `shortfall` is on how much more of the items
    the person left out agrees better than the judge, than the other way round: the mean over
    people of d, with an interval by items. Where it lies above epsilon, the judge is shown to be
    worse than it may be.
    """

    winning_rate: Mapping[str, Estimate]
    advantage_probability: Estimate
    shortfall: Estimate
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

    @property
    def outcome(self) -> str:
        return outcome_of(self.winning_rate[self.epsilon].value, self.shortfall, self.epsilon)


def outcome_of(winning_rate: float | None, shortfall: Estimate, epsilon: str) -> str:
    """Say how the test ends: who does not pass fails only where that is shown.

    Examples
    --------
    >>> outcome_of(0.0, Estimate(0.3, 0.25, 0.35), "0.20"), outcome_of(None, Estimate(0.3), "0.20")
    ('fails', 'not tested')
    >>> outcome_of(0.6, Estimate(0.1), "0.20"), outcome_of(0.4, Estimate(0.3, 0.1, 0.5), "0.20")
    ('passes', 'not shown')
    """
    if winning_rate is None:
        return "not tested"
    if winning_rate >= PASSES:
        return "passes"
    is_worse = shortfall.low is not None and shortfall.low > float(epsilon)
    return "fails" if is_worse else "not shown"


def alt_test(
    judges: Mapping[str, JudgeData], humans: HumanData, settings: AltTestSettings | None = None
) -> dict[str, AltTestResult]:
    """Test judges against the same people, each by itself on the items that it labelled.

    Examples
    --------
    >>> names = ("ann", "ben", "cem")
    >>> people = {name: {item: item % 3 == 0 for item in range(60)} for name in names}
    >>> people["ben"] |= {item: True for item in range(9)}
    >>> outcome = alt_test({"copy of ann": people["ann"]}, people)["copy of ann"]
    >>> outcome.winning_rate["0.20"].value, outcome.passes
    (1.0, True)
    >>> outcome.by_human["ben"].judge_advantage, outcome.by_human["ben"].human_advantage
    (1.0, 0.9)
    """
    settings, people = settings or AltTestSettings(), human_labels(humans)
    read = {name: judge_labels(data) for name, data in judges.items()}
    answers = [label for judge in read.values() for label in judge.values()]
    vocabulary, names, persons, item, human, code = numbered(people, answers)
    enough = np.bincount(item)[item] >= settings.min_humans_per_item
    item, human, code = item[enough], human[enough], code[enough]
    kinds = {kind_of(row.label) for row in people}
    by_human: dict[Scoring, FloatArray] = {}
    outcomes = {}
    for name, judge in read.items():
        scoring = settings.scoring
        if scoring == "auto":
            scoring = scoring_of(kinds | {kind_of(label) for label in judge.values()})
        compare = partial(_agreement_with_others, vocabulary, scoring, settings.jaccard)
        if scoring not in by_human:
            by_human[scoring] = compare(item, code, code)
        judged = np.array([vocabulary.code(judge.get(x)) for x in names], np.int64)[item]
        has = judged >= 0
        ahead = by_human[scoring][has] - compare(item[has], code[has], judged[has])
        gaps = _left_out(people, judge, settings)
        outcomes[name] = _test_judge(persons, item[has], human[has], ahead, scoring, settings, gaps)
    return outcomes


def scoring_of(kinds: AbstractSet[Kind]) -> Scoring:
    """Tell how labels are compared: numbers by RMSE, label sets by Jaccard, others by equality.

    Examples
    --------
    >>> scoring_of({"text"}), scoring_of({"truth"}), scoring_of({"number"}), scoring_of({"set"})
    ('accuracy', 'accuracy', 'neg_rmse', 'jaccard_similarity')
    """
    if kinds and kinds <= {"set", "vector"}:
        return "jaccard_similarity"
    return "neg_rmse" if kinds == {"number"} else "accuracy"


def _left_out(
    people: HumanLabels, judge: JudgeLabels, settings: AltTestSettings
) -> tuple[LeftOut, ...]:
    counts, least = Counter(row.item for row in people), settings.min_humans_per_item
    lonely = [item for item, n in counts.items() if n < least]
    unjudged = [item for item, n in counts.items() if n >= least and item not in judge]
    return (
        *left_out("items", lonely, f"labelled by fewer than {least} people"),
        *left_out("items", unjudged, "without a label of the judge"),
        *left_out("items", [item for item in judge if item not in counts], "labelled by nobody"),
    )


def _test_judge(
    names: Sequence[str],
    item: IntArray,
    human: IntArray,
    ahead: FloatArray,
    scoring: Scoring,
    settings: AltTestSettings,
    gaps: tuple[LeftOut, ...],
) -> AltTestResult:
    """Test one judge.

    `item` and `human`, of shape (n,), have one entry for each label of a person on an item that the
    judge labelled, in order of item; `ahead` tells how much better that person agrees with the
    other people there than the judge does.
    """
    judge_holds = ahead <= TIE
    kinds = (judge_holds & (ahead >= -TIE), ~judge_holds, ahead < -TIE)
    counts = np.stack([np.bincount(human[kind], minlength=len(names)) for kind in kinds], axis=1)
    n = counts.sum(axis=1)
    values, is_tested = penalty(settings.epsilons, settings.multiplicative), n >= settings.least
    p_values = t_test(counts, values)
    by_ranks = is_tested & (n < ENOUGH_FOR_T) & settings.wilcoxon
    for few in np.flatnonzero(by_ranks):
        p_values[few] = wilcoxon(counts[few], values)
    p_values[~is_tested] = np.nan
    rejected = benjamini_yekutieli(p_values.T, settings.q).T
    keys = [epsilon_key(epsilon) for epsilon in settings.epsilons]
    against = {}
    for person in map(int, np.flatnonzero(is_tested)):
        items, (both, human_only, judge_only) = int(n[person]), counts[person].tolist()
        against[names[person]] = AgainstHuman(
            items,
            "wilcoxon" if by_ranks[person] else "t-test",
            (both + judge_only) / items,
            (both + human_only) / items,
            dict(zip(keys, p_values[person].tolist(), strict=True)),
            dict(zip(keys, rejected[person].tolist(), strict=True)),
        )
    untested = {name: int(n[place]) for place, name in enumerate(names) if not is_tested[place]}
    gaps += left_out("humans", [*untested], f"they have {settings.too_few} to test on")
    is_counted = is_tested[human]
    counted = np.unique(item[is_counted])
    if len(against) < settings.min_humans:
        advantage = no_figure(_too_few_reason(len(against), settings), left_out=gaps)
        rates, shortfall = [advantage] * len(keys), advantage
    else:
        patterns = patterns_of(
            item[is_counted], (human[is_counted] * 2 + judge_holds[is_counted]).astype(np.uint64)
        )
        row = human[is_counted][patterns.pick]
        holds = judge_holds[is_counted][patterns.pick].astype(np.float64)
        _, drawn = resampled_rates(patterns, row, holds, len(names), settings.resampling)
        low, high, method = interval_of(mean_over_raters(drawn), len(counted), settings.resampling)
        total = int(n[is_tested].sum())
        mean = float(np.mean([result.judge_advantage for result in against.values()]))
        behind = np.where(judge_holds, -1.0 * (ahead < -TIE), 1.0)
        shortfall = mean_of_means(behind[is_counted], human[is_counted], item[is_counted])
        advantage = Estimate(mean, low, high, total, method, left_out=gaps)
        shares = rejected[is_tested].mean(axis=0).tolist()
        rates = [Estimate(share, n=total, left_out=gaps) for share in shares]
    return AltTestResult(
        winning_rate=dict(zip(keys, rates, strict=True)),
        advantage_probability=advantage,
        shortfall=shortfall,
        by_human=against,
        untested=untested,
        epsilon=epsilon_key(settings.epsilon),
        scoring=scoring,
        items=len(counted),
        items_of_two=int((np.bincount(item)[counted] == 2).sum()),
        left_out=gaps,
    )


def _too_few_reason(tested: int, settings: AltTestSettings) -> str:
    labelled = f"that the judge and at least {settings.min_humans_per_item} people labelled"
    if not tested:
        return f"everybody has {settings.too_few} {labelled}"
    has = "person has" if tested == 1 else "people have"
    takes = f"and the test takes {settings.min_humans}"
    return f"only {tested} {has} {settings.enough} {labelled}, {takes}"


def _agreement_with_others(
    vocabulary: Vocabulary,
    scoring: Scoring,
    jaccard: Jaccard,
    item: IntArray,
    code: IntArray,
    answers: IntArray,
) -> FloatArray:
    """Return how well `said` agrees with what the other people there said, each of shape (n,).

    The score is the mean over the others of ``[x = y]``; ``-sqrt(mean (x - y)²)``; or the mean of
    the Jaccard similarity.
    """
    if not len(item):
        return np.empty(0)
    labels, size = vocabulary.labels, len(vocabulary)
    others = np.bincount(item)[item] - 1
    if scoring == "accuracy":  # counted, since every two labels of a thousand people are too many
        keys, counts = np.unique(item * size + code, return_counts=True)
        expected = item * size + answers
        position = np.minimum(np.searchsorted(keys, expected), len(keys) - 1)
        return np.asarray(
            (np.where(keys[position] == expected, counts[position], 0) - (answers == code)) / others
        )
    first, second = partners(item)
    starts = np.cumsum(others) - others
    keys, pattern = np.unique(answers[first] * size + code[second], return_inverse=True)
    either = [(labels[key // size], labels[key % size]) for key in keys.tolist()]
    if scoring == "neg_rmse":
        apart = np.array([(_as_number(a) - _as_number(b)) ** 2 for a, b in either])
        return np.asarray(-np.sqrt(np.add.reduceat(apart[pattern], starts) / others))
    alike = np.array([jaccard_similarity(a, b, jaccard) for a, b in either])
    return np.asarray(np.add.reduceat(alike[pattern], starts) / others)


def _as_number(label: Label) -> float:
    if not isinstance(label, int | float):
        raise LabelsUnfit(f"the distance of numbers cannot be taken of a {kind_of(label)}: {label}")
    return float(label)


def jaccard_similarity(one: Label, other: Label, form: Jaccard = "set") -> float:
    """Return how alike two label sets or vectors are.

    By ``set`` it is elements of both over elements of either, and 1 where both are empty. By
    ``positional`` it is, for each label, positions that have it in both over those in either,
    averaged over the labels; so agreeing on what is absent counts too.

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
    >>> people = {name: dict.fromkeys(range(40), "A") for name in ("ann", "ben", "cem")}
    >>> print(in_words(alt_test({"judge": people["ann"]}, people)["judge"]))
    Passes at epsilon 0.20: it wins against 3 of 3 people, and half of them are enough. It agrees \
with the others at least as well as the person left out on 100 % of the items.
    """
    rate, advantage = result.winning_rate[result.epsilon], result.advantage_probability
    if rate.value is None or advantage.value is None:
        return f"Not tested: {rate.why}."
    people = len(result.by_human)
    wins = f"it wins against {round(rate.value * people)} of"
    return (
        f"{result.outcome.capitalize()} at epsilon {result.epsilon}: {wins} "
        f"{people} people, and half of them are enough. It agrees with the others at least as well "
        f"as the person left out on {advantage.value:.0%} of the items."
    ).replace("%", " %")


def advice(result: AltTestResult, settings: AltTestSettings) -> tuple[str, ...]:
    """Say what makes this test weak, if anything does; with the settings it was computed with."""
    tested = result.by_human if result.passes is not None else {}
    few = sorted(name for name, against in tested.items() if against.n < ENOUGH_FOR_T)
    most = max((against.n for against in tested.values()), default=0)
    is_few = f"Fewer than {ENOUGH_FOR_T} items: {', '.join(few)}."
    notes = {
        "Only one person has enough items to be compared with.": len(tested) == 1,
        "With two people the test asks only whether the judge is closer to one of them than the "
        "other is. Three or more make a consensus to be measured against.": len(tested) == 2,
        f"Only two people labelled {result.items_of_two} of the {result.items} items. On those the "
        "judge is compared with a single other person, which says little; labels of a third person "
        "would make the test stronger.": result.items_of_two and tested and len(tested) != 2,
        f"{is_few} They are tested by Wilcoxon's signed-rank test, since the t-test takes more "
        "items; the best remedy is more items.": few and settings.wilcoxon,
        f"{is_few} The t-test assumes more; allow Wilcoxon's signed-rank test, or better have more "
        "items labelled.": few and not settings.wilcoxon,
        f"At most {most} items per person: 50 to 100 are enough in most cases, and fewer make it "
        "hard for a good judge to pass.": not few and 0 < most < _COMFORTABLE,
    }
    return tuple(text for text, holds in notes.items() if holds)


def epsilon_advice() -> str:
    """Say how to choose epsilon.

    Examples
    --------
    >>> print(epsilon_advice().splitlines()[0])
    Epsilon is how much worse a judge may be since it costs less than a person:
    """
    lines = [f"{epsilon:g} for {annotator}" for epsilon, annotator in EPSILON_GUIDE.items()]
    end = "The less the people agree with each other, the smaller it should be."
    head = "Epsilon is how much worse a judge may be since it costs less than a person:"
    return "\n".join([head, *lines, end])
