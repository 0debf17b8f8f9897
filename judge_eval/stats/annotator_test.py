"""The Alternative Annotator Test: may this judge take a person's place?

Source: arXiv 2501.10970. One person after the other is left out. On each item, does the judge or
that person agree better with the other people? A person loses to the judge when it is significantly
no worse than them by more than epsilon, which stands for what a person costs. A judge that wins
against at least half of the people passes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from judge_eval.stats.alt_test_parts import (
    ENOUGH_FOR_T,
    AgainstHuman,
    AltTestResult,
    AltTestSettings,
    epsilon_key,
)
from judge_eval.stats.averages import mean_over_raters
from judge_eval.stats.figures import Figure, LeftOut, left_out, no_figure
from judge_eval.stats.labels import (
    HumanData,
    HumanLabels,
    JudgeData,
    JudgeLabels,
    human_labels,
    judge_labels,
)
from judge_eval.stats.leave_one_out import LeftOutScores, Scoring, leave_one_out
from judge_eval.stats.patterns import patterns_of
from judge_eval.stats.resampling import bootstrap, interval_of, sparse
from judge_eval.stats.significance import benjamini_yekutieli, t_test, wilcoxon
from judge_eval.stats.vocabulary import BoolArray, FloatArray, IntArray


def alt_test(
    judges: Mapping[str, JudgeData], humans: HumanData, settings: AltTestSettings | None = None
) -> dict[str, AltTestResult]:
    """Test judges against the same people.

    Parameters
    ----------
    judges : mapping of str to rows of (item, label) or ``{item: label}``
    humans : rows of (item, human, label), or ``{human: {item: label}}``
    settings : AltTestSettings, optional

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
    return {
        name: _Outcome(people, judge, number, scores, counts, p_values, rejected, settings).result(
            scoring
        )
        for number, (name, judge) in enumerate(judges.items())
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
class _Outcome:
    """What was computed of all judges, and the number of the one that it is put in words for."""

    people: HumanLabels
    judge: JudgeLabels
    number: int
    scores: LeftOutScores
    all_counts: IntArray
    all_p_values: FloatArray
    all_rejected: BoolArray
    settings: AltTestSettings

    @property
    def counts(self) -> IntArray:
        return np.asarray(self.all_counts[self.number])

    @property
    def n(self) -> IntArray:
        return np.asarray(self.counts.sum(axis=-1))

    @property
    def tested(self) -> IntArray:
        """The people who were tested, by number."""
        return np.flatnonzero(self.settings.is_enough(self.n))

    @property
    def are_too_few(self) -> bool:
        """Whether those who can be tested are too few for a figure."""
        return len(self.tested) < self.settings.min_humans

    @property
    def kept(self) -> BoolArray:
        """The labels that count: of people who were tested, on items that the judge labelled."""
        judged = ~np.isnan(self.scores.by_judge[self.number])
        return np.asarray(judged & np.isin(self.scores.human, self.tested))

    @property
    def items_of_two(self) -> int:
        items, people = np.unique(self.scores.item, return_counts=True)
        return int(np.isin(items[people == 2], self.scores.item[self.kept]).sum())

    @cached_property
    def keys(self) -> list[str]:
        return [epsilon_key(epsilon) for epsilon in self.settings.epsilons]

    def result(self, scoring: Scoring) -> AltTestResult:
        gaps = self.left_out()
        people = [int(human) for human in self.tested]
        return AltTestResult(
            winning_rate=self.winning_rates(gaps),
            advantage_probability=self.advantage_probability(gaps),
            by_human={self.people.humans[human]: self.against(human) for human in people},
            untested=self.untested(),
            epsilon=epsilon_key(self.settings.epsilon),
            scoring=scoring,
            items=len(np.unique(self.scores.item[self.kept])),
            items_of_two=self.items_of_two,
            left_out=gaps,
        )

    def winning_rates(self, gaps: tuple[LeftOut, ...]) -> dict[str, Figure]:
        if self.are_too_few:
            return {key: no_figure(self.why_none(), left_out=gaps) for key in self.keys}
        rates = self.all_rejected[self.number][self.tested].mean(axis=0)
        n = int(self.n[self.tested].sum())
        return {
            key: Figure(float(rate), n, left_out=gaps)
            for key, rate in zip(self.keys, rates, strict=True)
        }

    def advantage_probability(self, gaps: tuple[LeftOut, ...]) -> Figure:
        if self.are_too_few:
            return no_figure(self.why_none(), left_out=gaps)
        mean = np.mean([self.advantages(int(human))[0] for human in self.tested])
        values, items = self.resampled_advantage()
        found = interval_of(values, items, self.settings.resampling)
        n = int(self.n[self.tested].sum())
        return Figure(float(mean), n, None, found.interval, found.method, gaps)

    def resampled_advantage(self) -> tuple[FloatArray, int]:
        """Return the advantage probability of each resample, and how many items there are."""
        kept = self.kept
        human, holds = self.scores.human[kept], self.scores.judge_holds[self.number][kept]
        found = patterns_of(self.scores.item[kept], (human * 2 + holds).astype(np.uint64))
        row, people = human[found.pair], len(self.people.humans)
        cells = sparse(
            np.concatenate([row, row + people]),
            np.tile(found.pattern, 2),
            np.concatenate([holds[found.pair], np.ones(len(row))]),
            (2 * people, len(found.counts)),
        )

        def statistic(sums: FloatArray) -> FloatArray:
            return mean_over_raters(sums[:people] / sums[people:])

        values = bootstrap(cells, found.counts, statistic, self.settings.resampling)
        return values, int(found.counts.sum())

    def against(self, human: int) -> AgainstHuman:
        n = int(self.n[human])
        p_values, rejected = (
            every[self.number, human].tolist() for every in (self.all_p_values, self.all_rejected)
        )
        return AgainstHuman(
            n,
            "wilcoxon" if self.settings.wilcoxon and n < ENOUGH_FOR_T else "t-test",
            *self.advantages(human),
            dict(zip(self.keys, p_values, strict=True)),
            dict(zip(self.keys, rejected, strict=True)),
        )

    def advantages(self, human: int) -> tuple[float, float]:
        """Return the shares of items on which the judge, and the person, hold their own."""
        both, person_only, judge_only = map(int, self.counts[human])
        n = both + person_only + judge_only
        return (both + judge_only) / n, (both + person_only) / n

    def left_out(self) -> tuple[LeftOut, ...]:
        people = Counter(row.item for row in self.people)
        least, judged = self.settings.min_humans_per_item, self.judge.by_item
        lonely = [item for item, n in people.items() if n < least]
        unjudged = [item for item, n in people.items() if n >= least and item not in judged]
        unseen = [item for item in judged if item not in people]
        return (
            *left_out("items", lonely, f"labelled by fewer than {least} people"),
            *left_out("items", unjudged, "without a label of the judge"),
            *left_out("items", unseen, "labelled by nobody"),
            *left_out(
                "humans", list(self.untested()), f"they have {self.settings.too_few} to test on"
            ),
        )

    def untested(self) -> dict[str, int]:
        enough = self.settings.is_enough(self.n).tolist()
        people = zip(self.people.humans, self.n.tolist(), enough, strict=True)
        return {name: n for name, n, is_enough in people if not is_enough}

    def why_none(self) -> str:
        least = self.settings.min_humans_per_item
        labelled = f"that the judge and at least {least} people labelled"
        tested = len(self.tested)
        if not tested:
            return f"everybody has {self.settings.too_few} {labelled}"
        has = "person has" if tested == 1 else "people have"
        return (
            f"only {tested} {has} {self.settings.enough} {labelled}, and the test takes "
            f"{self.settings.min_humans}"
        )
