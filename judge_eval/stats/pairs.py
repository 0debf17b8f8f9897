"""Pairs of labels of the same item, and figures averaged over the people they are of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.bootstrap import (
    DEFAULT,
    BoolArray,
    Bounds,
    FloatArray,
    IntArray,
    Resampling,
    bootstrap,
    interval_of,
    sparse,
)
from judge_eval.stats.estimate import Estimate, LeftOut, left_out, no_figure, wilson
from judge_eval.stats.labels import (
    NO_LABEL,
    HumanData,
    HumanLabels,
    Item,
    JudgeData,
    Vocabulary,
    human_labels,
    judge_labels,
    numbered,
)

Missing: TypeAlias = Literal["drop", "wrong"]
NOTHING_IN_COMMON: Final = "no item has a label both of the judge and of a person"
NOBODY_IN_COMMON: Final = "no item has labels of two people"
WILSON: Final = "Wilson score interval"


class Patterns(NamedTuple):
    """Items that look alike, taken together.

    `counts`, of shape (n_patterns,), tells how many items have each pattern; `pick`, of shape
    (n_kept,), where what was said of one item of each stands, and `pattern` which one that is.
    """

    counts: IntArray
    pick: IntArray
    pattern: IntArray


def patterns_of(item: IntArray, labels: NDArray[np.uint64]) -> Patterns:
    """Find the items on which the same was said; they are sorted.

    What was said is a number, and its order does not matter: an item's pattern is the sum of a hash
    (the finaliser of splitmix64) of each.

    Examples
    --------
    >>> patterns = patterns_of(np.array([1, 1, 2, 2, 3]), np.array([7, 8, 8, 7, 9], np.uint64))
    >>> sorted(map(int, patterns.counts)), len(patterns.pick)
    ([1, 2], 3)
    """
    starts = np.flatnonzero(np.diff(item, prepend=-1))
    z = labels + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    keys = np.add.reduceat(z ^ (z >> np.uint64(31)), starts)
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    of_item = np.full(len(starts), -1)
    of_item[first] = np.arange(len(first))
    pattern = np.repeat(of_item, np.diff(starts, append=len(item)))
    pick = np.flatnonzero(pattern >= 0)
    return Patterns(counts, pick, pattern[pick])


def partners(group: IntArray) -> tuple[IntArray, IntArray]:
    """Pair every element with each other one of its group, in both orders; a group is together.

    Examples
    --------
    >>> [list(map(int, side)) for side in partners(np.array([4, 4, 7]))]
    [[0, 1], [1, 0]]
    """
    _, first, inverse, sizes = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    size = sizes[inverse]
    left = np.repeat(np.arange(len(group)), size)
    within = np.arange(len(left)) - np.repeat(np.cumsum(size) - size, size)
    right = first[inverse][left] + within
    return left[left != right], right[left != right]


@dataclass(frozen=True)
class Paired:
    """Pairs of labels, in order of item: a judge's on the left, a person's on the right.

    `raters` are the people; between people, the names of both. `item` and `rater`, of shape (n,),
    are numbers of `names` and `raters`; `left` and `right` are codes of the `vocabulary`.
    """

    vocabulary: Vocabulary
    raters: tuple[str, ...]
    names: tuple[Item, ...]
    item: IntArray
    rater: IntArray
    left: IntArray
    right: IntArray
    between_people: bool = False
    left_out: tuple[LeftOut, ...] = ()

    def __len__(self) -> int:
        return len(self.item)

    @property
    def items(self) -> int:
        return int(self.patterns.counts.sum())

    @cached_property
    def n_by_rater(self) -> IntArray:
        return np.bincount(self.rater, minlength=len(self.raters))

    @property
    def unlabelled(self) -> int:
        """Items that the judge gave no label, where these are kept."""
        return len(np.unique(self.item[self.left == self.vocabulary.code(NO_LABEL)]))

    def select(self, keep: BoolArray | NDArray[np.intp]) -> Self:
        selected = {name: getattr(self, name)[keep] for name in ("item", "rater", "left", "right")}
        return replace(self, **selected)

    def pooled(self, name: str) -> Self:
        return replace(self, raters=(name,), rater=np.zeros_like(self.rater))

    @property
    def merged(self) -> Self:
        """The pairs with one code for all labels that say the same; see `Vocabulary.same`."""
        same = self.vocabulary.same
        return replace(self, left=same[self.left], right=same[self.right])

    @cached_property
    def patterns(self) -> Patterns:
        """Items on which everybody said the same, as one pattern with a count."""
        width = np.uint64(len(self.vocabulary))
        labels = (self.rater.astype(np.uint64) * width + self.left.astype(np.uint64)) * width
        return patterns_of(self.item, labels + self.right.astype(np.uint64))


JudgeOrPairs: TypeAlias = JudgeData | Paired


def paired(
    judge: JudgeOrPairs,
    humans: HumanData = (),
    *,
    missing: Missing = "drop",
    free_text: bool = False,
) -> Paired:
    """Line up a judge's labels with those of every person who labelled the same items.

    The judge may have been lined up already. Who has no item in common with it is left out, and
    reported. An item that it gave no label is left out (`missing` is ``drop``), or has `NO_LABEL`,
    which equals nothing (``wrong``).

    Examples
    --------
    >>> pairs = paired({"q1": "A", "q2": "B"}, {"ann": {"q1": "A", "q3": "B"}, "ben": {"q4": "A"}})
    >>> len(pairs), pairs.raters, pairs.left_out[0].why
    (1, ('ann',), 'the judge gave that item no label')
    """
    if isinstance(judge, Paired):
        return judge
    people = human_labels(humans, free_text=free_text)
    by_item = dict(judge_labels(judge, free_text=free_text))
    if missing == "wrong":
        by_item = {row.item: NO_LABEL for row in people} | by_item
    common = [row for row in people if row.item in by_item]
    all_labels = [*by_item.values(), *(row.label for row in people)]
    vocabulary, names, raters, item, rater, right = numbered(common, all_labels)
    left = vocabulary.codes(by_item[name] for name in names)[item]
    labelled = {row.item for row in people}
    unjudged = [row.item for row in people if row.item not in by_item]
    apart = sorted({*people.humans} - {*raters}) if common else []
    gaps = (
        *left_out("labels", unjudged, "the judge gave that item no label"),
        *left_out("items", [x for x in by_item if x not in labelled], "no person labelled it"),
        *left_out("humans", apart, "they labelled no item that the judge labelled"),
        *_missing(people),
    )
    return Paired(vocabulary, raters, names, item, rater, left, right, left_out=gaps)


def paired_people(humans: HumanData, *, ordered: bool = False, free_text: bool = False) -> Paired:
    """Line up the labels of every two people who labelled the same items.

    With `ordered` each of the two is on the left once, for figures that tell the judge from the
    person (precision, recall).

    Examples
    --------
    >>> people = {"ann": {"q1": "A"}, "ben": {"q1": "B"}, "cem": {"q1": "A"}}
    >>> paired_people(people).raters
    ('ann & ben', 'ann & cem', 'ben & cem')
    """
    people = human_labels(humans, free_text=free_text)
    vocabulary, names, persons, item, person, code = numbered(people)
    left, right = partners(item)
    if not ordered:
        left, right = left[left < right], right[left < right]
    size = len(persons)
    together, rater = np.unique(person[left] * size + person[right], return_inverse=True)
    return Paired(
        vocabulary,
        tuple(f"{persons[x // size]} & {persons[x % size]}" for x in together),
        names,
        item[left],
        rater,
        code[left],
        code[right],
        between_people=True,
        left_out=_missing(people),
    )


def _missing(people: HumanLabels) -> tuple[LeftOut, ...]:
    total, names = people.missing.total(), tuple(sorted(people.missing))
    return (LeftOut("labels", total, "the person's label is missing", names),) if total else ()


@dataclass(frozen=True)
class Averaged:
    """The plain mean over people, and the figure of each of them."""

    figure: Estimate
    by_human: Mapping[str, Estimate]


def averaged(
    pairs: Paired,
    values: FloatArray,
    resampled: FloatArray,
    resampling: Resampling,
    why_not: Sequence[str],
    *,
    intervals: Sequence[Bounds] | None = None,
    of_mean: Bounds | None = None,
) -> Averaged:
    """Put together the figure of each person and their mean.

    `values`, of shape (n_raters,), and `resampled`, of shape (n_raters, resamples), are NaN where
    there is no figure; `why_not` has the reason, and such a rater is left out of the mean. Each
    rater's interval and the mean's may be given where they are not those of the resamples.
    """
    sizes = pairs.n_by_rater.tolist()
    intervals = intervals or [
        interval_of(row, n, resampling) for row, n in zip(resampled, sizes, strict=True)
    ]
    of_mean = of_mean or interval_of(mean_over_raters(resampled), pairs.items, resampling)
    has_value, gaps = np.isfinite(values), pairs.left_out
    by_human = {
        name: Estimate(value, interval.low, interval.high, n, interval.method)
        if is_figure
        else no_figure(missing_reason, n)
        for name, value, is_figure, n, interval, missing_reason in zip(
            pairs.raters, values.tolist(), has_value, sizes, intervals, why_not, strict=True
        )
    }
    reasons = dict.fromkeys(estimate.why for estimate in by_human.values() if estimate.why)
    for reason in reasons:
        names = [name for name, estimate in by_human.items() if estimate.why == reason]
        gaps += left_out("humans", names, reason)
    if has_value.any():
        n, mean = int(pairs.n_by_rater[has_value].sum()), float(values[has_value].mean())
        low, high, method = of_mean
        return Averaged(Estimate(mean, low, high, n, method, left_out=gaps), by_human)
    several = "no person's labels allow it: see each of them"
    overall_reason = several if len(reasons) > 1 else next(iter(reasons), _nothing_in_common(pairs))
    return Averaged(no_figure(overall_reason, left_out=gaps), by_human)


def _nothing_in_common(pairs: Paired) -> str:
    return NOBODY_IN_COMMON if pairs.between_people else NOTHING_IN_COMMON


def mean_by_rater(
    pairs: Paired,
    values: FloatArray,
    resampling: Resampling,
    *,
    is_rate: bool = False,
    why_not: str = NOTHING_IN_COMMON,
) -> Averaged:
    """Average a value of each pair of labels: per person, then over people.

    With `is_rate` the values are 0 and 1. Then one person's interval is Wilson's, and so is the
    mean's where no item has several pairs; several people's labels on one item are not independent,
    so their mean is resampled by item.
    """
    raters, sizes, pick = len(pairs.raters), pairs.n_by_rater, pairs.patterns.pick
    rows = pairs.rater[pick], values[pick]
    means, resampled = resampled_rates(pairs.patterns, *rows, raters, resampling)
    intervals, of_mean = None, None
    if is_rate:
        intervals = wilson_intervals(means * sizes, sizes)
        of_mean = interval_of(mean_over_raters(resampled), pairs.items, resampling)
        if raters == 1 and len(pairs) == pairs.items:
            [of_mean] = intervals
        elif of_mean.low is None and raters:
            # Each person's mean is one of as many items; the harmonic mean weighs people as the
            # mean does, and there are no more independent items than were labelled.
            items = min(pairs.items, int(raters**2 / (1 / sizes).sum()))
            method = f"{WILSON} of {items:,} items, all alike"
            low, high = wilson(float(means.mean()) * items, items) or (None, None)
            of_mean = Bounds(low, high, method)
    reasons = [why_not] * raters
    return averaged(
        pairs, means, resampled, resampling, reasons, intervals=intervals, of_mean=of_mean
    )


def resampled_rates(
    patterns: Patterns, row: IntArray, values: FloatArray, rows: int, resampling: Resampling
) -> tuple[FloatArray, FloatArray]:
    """Return the mean of values that belong to rows (people), and for each resample of items.

    `row` and `values`, of shape (n_kept,), are of what was said of one item of each pattern; NaN is
    a resample that has nothing of a row.
    """
    cells = sparse(
        np.concatenate([row, row + rows]),
        np.tile(patterns.pattern, 2),
        np.concatenate([values, np.ones(len(row))]),
        (2 * rows, len(patterns.counts)),
    )
    return bootstrap(
        cells,
        patterns.counts,
        lambda sums: sums[:rows] / sums[rows:],
        resampling.rng,
        resampling.resamples,
    )


def wilson_intervals(successes: FloatArray | IntArray, trials: IntArray) -> list[Bounds]:
    both = zip(successes.tolist(), trials.tolist(), strict=True)
    ends = [wilson(round(good), n) or (None, None) for good, n in both]
    return [Bounds(low, high, WILSON) for low, high in ends]


def mean_over_raters(values: FloatArray) -> FloatArray:
    """Average over raters, of shape (n_raters, n), those left out that have no value.

    Examples
    --------
    >>> mean_over_raters(np.array([[1.0, np.nan], [0.0, np.nan]]))
    array([0.5, nan])
    """
    has_value = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: FloatArray = np.where(has_value, values, 0.0).sum(axis=0) / has_value.sum(axis=0)
    return mean


def agreement(pairs: Paired, *, resampling: Resampling = DEFAULT) -> Estimate:
    """Return the share of pairs of labels that are the same.

    Every pair counts once, whoever it is by; `classification` instead averages over people. The
    interval is Wilson's where no item has several pairs, which would not be independent.

    Examples
    --------
    >>> labels = {"q1": "A", "q2": "tie"}
    >>> agreement(paired(labels, {"ann": labels, "ben": {"q1": "B"}})).value
    0.6666666666666666
    """
    if not len(pairs):
        return no_figure(_nothing_in_common(pairs), left_out=pairs.left_out)
    pairs = pairs.merged.pooled("everybody")
    same = np.where(pairs.left == pairs.right, 1.0, 0.0)
    return mean_by_rater(pairs, same, resampling, is_rate=True).figure
