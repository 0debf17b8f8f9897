"""By what the judges of a run are ranked: agreement per vote, or of ratings their order."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from humanjudge.core.text import number_of
from judge_eval.board.load import RunOutcomes
from judge_eval.board.model import OfRatings, Unordered
from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray, Resampling
from judge_eval.stats.estimate import Share
from judge_eval.stats.evidence_order import EnteredVotes, PromptQueue
from judge_eval.stats.judge_figures import (
    overall_agreement,
    paired_differences,
    ratio,
    two_way_intervals,
)
from judge_eval.stats.kappa import cohen_kappa
from judge_eval.stats.order_agreement import (
    Ratings,
    enter_units,
    order_agreement,
    order_credits,
    people_credits,
)
from judge_eval.stats.outcomes_table import Codes, OutcomesTable
from judge_eval.stats.rank_correlations import COEFFICIENTS, rank_correlation
from judge_eval.stats.wording import Words
from voting.items.kinds import is_ordered
from voting.models import Queue

# Judges in the other order by Spearman's rank correlation are named if they differ by more.
_FAR_APART = 0.05
# By how much the other rule for inconsistent verdicts must change a figure to be told of it, and
# of how many judges.
LEAST_TOLD: Final = 0.01
MOST_TOLD: Final = 3
# Only the values are shown.
_NO_INTERVAL = Resampling(resamples=1)


class Agreement(NamedTuple):
    """The figures by which judges are ranked.

    `differences` are those of `paired_differences`, and `two_way` those of `two_way_intervals`.
    `people` is the same between people, where it is not how many pairs of votes are equal. Of
    ratings, `of_ratings` is what else is shown of each judge, and `unordered` what brings nothing.
    Where there are two answers, `by_answer` is what entered of the votes for each of them. What
    judges are `compared` by are the codes of their verdicts, or the scores, by item and judge.
    """

    overall: list[Share]
    entered: EnteredVotes
    differences: FloatArray
    two_way: FloatArray
    compared: Codes | FloatArray
    people: Share | None = None
    of_ratings: list[OfRatings] | None = None
    unordered: Unordered | None = None
    by_answer: Sequence[EnteredVotes] = ()


def agreement_of(outcomes: RunOutcomes) -> Agreement:
    if is_ordered(outcomes.run.queue):
        return _agreement_by_order(outcomes)
    table, prompts, history = outcomes.table, outcomes.prompts, outcomes.history
    rows, choices, people = np.array(history.votes, dtype=np.int64).reshape(-1, 3).T
    queue = PromptQueue(history.order, history.comparison_order).follow(history.events)
    are_two = "confusion" in outcomes.run.queue.figures and len(outcomes.choices) == 2
    return Agreement(
        overall_agreement(table, prompts),
        queue.entered(),
        paired_differences(table.right(), table.assigned(), prompts),
        two_way_intervals(table.verdicts[rows], choices, prompts[rows], people),
        table.verdicts,
        by_answer=[queue.entered(only=code) for code in range(2 * are_two)],
    )


def group_agreement(
    outcomes: RunOutcomes, group: str, table: OutcomesTable
) -> tuple[list[Share], Share | None]:
    """Return the judges' agreement with a group of voters, and that of these among themselves."""
    if not is_ordered(outcomes.run.queue):
        return overall_agreement(table, outcomes.prompts), None
    ratings, verdicts, assigned = _ratings(outcomes)
    group_ratings = ratings.select(np.array(outcomes.history.groups) == group)
    shares = ratio(*order_credits(group_ratings, verdicts, assigned))
    people = ratio(*people_credits(group_ratings))
    return order_agreement(shares), order_agreement(people)[0]


def _agreement_by_order(outcomes: RunOutcomes) -> Agreement:
    ratings, verdicts, assigned = _ratings(outcomes)
    history, shares = outcomes.history, ratio(*order_credits(ratings, verdicts, assigned))
    brings, units = (~np.isnan(shares)).astype(np.int64), np.arange(ratings.n_units)
    return Agreement(
        order_agreement(shares),
        enter_units(history.events, history.order, ratings, verdicts, assigned),
        paired_differences(np.nan_to_num(shares), brings, units),
        np.full((2, verdicts.shape[1]), np.nan),
        verdicts,
        order_agreement(ratio(*people_credits(ratings)))[0],
        _compare_ratings(outcomes, ratings, verdicts),
        _count_unordered(ratings, outcomes.prompts),
    )


def _ratings(outcomes: RunOutcomes) -> tuple[Ratings, FloatArray, BoolArray]:
    history = outcomes.history
    rows, _, people = np.array(history.votes, dtype=np.int64).reshape(-1, 3).T
    units, grades = outcomes.prompts[rows], np.array(history.grades)
    ratings = Ratings(units, rows, people, grades, int(outcomes.prompts.max(initial=-1)) + 1)
    verdicts = np.full(outcomes.table.verdicts.shape, np.nan)
    assigned = np.zeros(verdicts.shape, bool)
    for row, verdict_grades in history.verdict_grades.items():
        verdicts[row] = verdict_grades
        assigned[row] = [grade is not None for grade in verdict_grades]
    return ratings, verdicts, assigned


def _count_unordered(ratings: Ratings, prompts: IntArray) -> Unordered:
    size = np.bincount(prompts)
    ratings = ratings.select(size[ratings.units] > 1)
    first_ratings, _, sign = ratings.pairs()
    rated = np.unique(ratings.units)
    by_person = np.stack([ratings.units, ratings.people])
    (units, _), items = np.unique(by_person, axis=1, return_counts=True)
    return Unordered(
        units=int((size > 1).sum()),
        of_one_item=int((size == 1).sum()),
        alike=len(rated) - len(np.unique(ratings.units[first_ratings[sign != 0]])),
        not_whole=len(rated) - len(np.unique(units[items == size[units]])),
    )


def _compare_ratings(
    outcomes: RunOutcomes, ratings: Ratings, verdicts: FloatArray
) -> list[OfRatings]:
    exact = overall_agreement(outcomes.table, outcomes.prompts)
    # Of ratings a fraction only decides between equal ones.
    is_whole = outcomes.run.queue.kind == Queue.Kind.RATING
    by_person: dict[str, dict[Hashable, float]] = {}
    rows = (column.tolist() for column in (ratings.people, ratings.items, ratings.values))
    for person, item, value in zip(*rows, strict=True):
        by_person.setdefault(str(person), {})[item] = value
    compared = []
    for share, grades in zip(exact, verdicts.T, strict=True):
        plain = np.floor(grades) if is_whole else grades
        apart = plain[ratings.items] - ratings.values
        apart = apart[~np.isnan(apart)]
        kappa = cohen_kappa(
            _by_item(plain), by_person, weights="quadratic", resampling=_NO_INTERVAL
        )
        spearman, kendall = (
            rank_correlation(_by_item(grades), by_person, coefficient, resampling=_NO_INTERVAL)
            for coefficient in COEFFICIENTS
        )
        results = {"quadratic_kappa": kappa, "spearman": spearman, "kendall": kendall}
        values = {name: result.figure.value for name, result in results.items()}
        mean = float(apart.mean()) if len(apart) else None
        compared.append(OfRatings(exact=share, mean_difference=mean, **values))
    return compared


def _by_item(grades: FloatArray) -> dict[Hashable, float]:
    return {item: grades[item] for item in np.flatnonzero(~np.isnan(grades)).tolist()}


def inconsistency_notes(
    outcomes: RunOutcomes, overall: Sequence[Share], words: Words
) -> Iterator[str]:
    """Say what judges' figures were if two orders that disagree counted by the other rule."""
    table, choices = outcomes.table, outcomes.choices
    inconsistent = outcomes.habits[0] == 0
    if "tie" not in choices:
        return
    wrong, tie = len(choices), choices.index("tie")
    is_wrong = (table.verdicts[inconsistent] == wrong).any()
    rule, other_rule, code = ("wrong", "a tie", tie) if is_wrong else ("a tie", "wrong", wrong)
    counted = inconsistent & np.isin(table.verdicts, [tie, wrong])
    otherwise = OutcomesTable(table.votes, np.where(counted, code, table.verdicts))
    shares = overall_agreement(otherwise, outcomes.prompts)
    figures = [
        f"{words.names[judge]} agrees on {100 * share:.1f} %, "
        f"otherwise on {100 * other_share:.1f} %"
        for judge in words.judges
        if (share := overall[judge].value) is not None
        and (other_share := shares[judge].value) is not None
        and abs(share - other_share) >= LEAST_TOLD
    ]
    if figures:
        yield (
            f"Two orders that disagree count as {rule}. Were that {other_rule}, "
            f"figures would differ: {'; '.join(figures[:MOST_TOLD])}."
        )


def order_notes(agreement: Agreement, words: Words) -> Iterator[str]:
    """Say what a reader must know of the order of ratings, beside the words about any study."""
    of_ratings, unordered = agreement.of_ratings, agreement.unordered
    if of_ratings is None or unordered is None:
        return
    for first_judge, second_judge in combinations(words.judges, 2):
        first, second = (of_ratings[n].spearman for n in (first_judge, second_judge))
        if first is not None and second is not None and second - first > _FAR_APART:
            yield (
                f"By Spearman's rank correlation {words.names[second_judge]} ({second:.2f}) "
                f"stands above {words.names[first_judge]} ({first:.2f})."
            )
    counts = {
        "In {} nobody rated all outputs.": unordered.not_whole,
        "In {} nobody rated two outputs differently.": unordered.alike,
        "{} with one output cannot be compared yet.": unordered.of_one_item,
    }
    yield from (text.format(number_of(n, "prompt")) for text, n in counts.items() if n)
