"""The figures of judges on a board, and how well people agree with each other beside them.

Shares have Wilson's interval where every comparison has one trial and its own prompt; otherwise one
by prompts, since trials on one are not independent; where all prompts say the same, Wilson's again,
each prompt being one trial.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Final

import numpy as np

from judge_eval.stats.bootstrap import RESAMPLES, BoolArray, FloatArray, IntArray, bootstrap
from judge_eval.stats.bradley_terry import rate
from judge_eval.stats.estimate import (
    FEWEST_PROMPTS,
    AmongPeople,
    LabelRates,
    Rating,
    Share,
    require,
    wilson,
)
from judge_eval.stats.outcomes_table import UNASSIGNED, Codes, Games, OutcomesTable

NOTHING: Final = Share(None, why="there is nothing to count")
FEWEST_PEOPLE: Final = 5
TOO_FEW_PROMPTS: Final = f"fewer than {FEWEST_PROMPTS} prompts do not tell how sure it is"

# What floats leave of a sum of squares that is 0.
_SAME: Final = 1e-12


def ratio(successes: FloatArray, trials: FloatArray) -> FloatArray:
    nothing = np.full(np.shape(trials), np.nan)
    return np.asarray(np.divide(successes, trials, out=nothing, where=trials > 0))


def overall_agreement(table: OutcomesTable, prompts: IntArray) -> list[Share]:
    """Return the overall agreement of every judge with its 95 % interval; none below 10 prompts.

    It is Wilson's where every pair has one vote and its own prompt, otherwise by prompts. A failed
    verdict is wrong.

    Examples
    --------
    >>> votes = np.array([[1, 0, 0, 0]] * 8 + [[0, 1, 0, 0]] * 4)
    >>> table = OutcomesTable(votes, np.tile(np.int16([0, -1]), (12, 1)))
    >>> one, other = overall_agreement(table, np.arange(12))
    >>> round(one.value, 3), round(one.low, 3), round(one.high, 3), one.method, other.value
    (0.667, 0.391, 0.862, 'wilson', 0.0)
    """
    return shares_by_prompt(table.right(), table.assigned(), prompts)


def per_answer(votes: IntArray, answers: Codes, prompts: IntArray) -> list[Share]:
    """Return each judge's agreement per answer: every single answer in both orders counts.

    `answers`, of shape (n_comparisons, n_judges, 2), are codes of the answers in the stored and the
    swapped order, of the stored A and B; negative where the judge did not answer in both.

    Examples
    --------
    >>> first = np.tile(np.array([0, 1], dtype=np.int16), (12, 1, 1))
    >>> [share] = per_answer(np.tile([1, 0, 0, 0], (12, 1)), first, np.arange(12))
    >>> share.value, share.n
    (0.5, 24)
    """
    is_answered = (answers >= 0).all(axis=2)
    codes = np.maximum(answers, 0).astype(np.intp)
    first_votes, second_votes = (
        np.take_along_axis(votes, codes[:, :, order], axis=1) for order in range(2)
    )
    trials = 2 * is_answered * votes.sum(axis=1, keepdims=True)
    return shares_by_prompt(np.where(is_answered, first_votes + second_votes, 0), trials, prompts)


def shares_by_prompt(
    right: IntArray | FloatArray, votes: IntArray, prompts: IntArray
) -> list[Share]:
    """Make shares of votes, of counts of shape (n_comparisons, n_shares), with their intervals.

    The interval is that of `overall_agreement`. `prompts`, of shape (n_comparisons,), numbers what
    is taken as independent. A vote may be right in part; then `right` holds no whole numbers.

    Examples
    --------
    >>> right, votes = np.array([[3, 2, 1, 3, 0, 2, 3, 1, 2, 3]]).T, np.full((10, 1), 3)
    >>> [share] = shares_by_prompt(right, votes, np.arange(10))
    >>> round(share.value, 6), round(share.low, 6), round(share.high, 6), share.method
    (0.666667, 0.392234, 0.861072, 'prompts')
    """
    are_counts = (right >= 0) & (right <= votes)
    require(are_counts.all(), "there are more successes than trials, or fewer than none")
    number = np.unique(prompts, return_inverse=True)[1]
    sums = np.zeros((3, int(number.max(initial=-1)) + 1, right.shape[1]), right.dtype)
    for total, values in zip(sums, (right, votes, votes > 0), strict=True):
        np.add.at(total, number, values)
    return [share_of_prompts(*sums[:, sums[1, :, n] > 0, n]) for n in range(right.shape[1])]


def share_of_prompts(
    right: IntArray | FloatArray, votes: IntArray, pairs: IntArray, *, of_ratings: bool = False
) -> Share:
    """Make one share of counts by prompt, of shape (n_prompts,), with its interval.

    Where all prompts say the same, each is one trial of Wilson's; of ratings, of which a prompt may
    be right in part, it is Wilson's nowhere else.
    """
    good, total, comparisons = (counts.sum().item() for counts in (right, votes, pairs))
    if not total:
        return NOTHING
    prompts, successes = len(votes), good if of_ratings else round(good)
    share = Share(good / total, n=int(total), successes=successes, comparisons=int(comparisons))
    if prompts < FEWEST_PROMPTS:
        return replace(share, why=TOO_FEW_PROMPTS)
    is_plain = total == comparisons == prompts and not of_ratings
    if is_plain or np.allclose(right * total, votes * good, rtol=0, atol=_SAME * total**2):
        low, high = wilson(good / total * prompts, prompts) or (None, None)
        return replace(share, low=low, high=high, method="wilson")
    low, high = prompt_interval(right, votes)
    return replace(share, low=low, high=high, method="prompts")


def prompt_interval(
    right: Sequence[int] | IntArray | FloatArray, votes: Sequence[int] | IntArray
) -> tuple[float, float]:
    """Return the 95 % interval of a share whose trials come in prompts.

    With ``c_i`` right of ``n_i`` votes on prompt i of P > 1, and neither all right nor all wrong::

        theta = sum c / sum n,   e_i = c_i - theta n_i
        se = sqrt(P / (P - 1) sum e_i ** 2) / sum n
        logit(theta) -+ t(.975, P - 1) se / (theta (1 - theta))

    Examples
    --------
    >>> low, high = prompt_interval([3, 2, 1, 3, 0, 2, 3, 1, 2, 3], [3] * 10)
    >>> round(low, 6), round(high, 6)
    (0.392234, 0.861072)
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # slow to import

    theta = float(np.sum(right) / np.sum(votes))
    good, n, prompts = np.asarray(right, np.float64), np.asarray(votes, np.float64), len(votes)
    apart = good - good.sum() / n.sum() * n
    error = sqrt(prompts / (prompts - 1) * float((apart**2).sum())) / float(n.sum())
    return _around(theta, stdtrit(prompts - 1, 0.975) * error / (theta * (1 - theta)))


def _around(theta: float, reach: float) -> tuple[float, float]:
    """Return the ends of an interval that reaches so far on the logit scale."""
    middle = log(theta / (1 - theta))
    low, high = 1 / (1 + np.exp(-(middle + np.array([-reach, reach]))))
    return float(low), float(high)


def two_way_intervals(
    verdicts: Codes, votes: IntArray, prompts: IntArray, people: IntArray
) -> FloatArray:
    """Return 95 % intervals of overall agreement for other prompts and people, shape (2, n_judges).

    Votes of one person resemble each other too (A. C. Cameron, J. B. Gelbach and D. L. Miller,
    2011). `verdicts`, of shape (n_votes, n_judges), are codes of `OutcomesTable` on what each vote
    is on; `votes`, `prompts` and `people`, of shape (n_votes,), say what it chose, of which prompt
    and by whom. With ``e`` how much each vote is right above the judge's share
    ``theta``, and ``V`` the sum of squares of its sums by prompt, by person, and by both::

        se = sqrt(V_prompts + V_people - V_both) / n
        logit(theta) -+ t(.975, G - 1) se / (theta (1 - theta))

    each ``V`` times G / (G - 1) of its G groups, and G in the last line the smaller number. NaN
    with less than 5 people or 10 prompts, and where all votes are right or all are wrong.

    Examples
    --------
    >>> prompts, people = np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12)
    >>> verdicts = (prompts % 4 == 0)[:, None].astype(np.int16)
    >>> votes = np.zeros(60, dtype=np.int64)
    >>> two_way_intervals(verdicts, votes, prompts, people).round(3).ravel().tolist()
    [0.303, 0.954]
    """
    result = np.full((2, verdicts.shape[1]), np.nan)
    for judge, verdict in enumerate(verdicts.T):
        assigned = verdict != UNASSIGNED
        right = (verdict == votes)[assigned].astype(np.float64)
        if len(right) and 0 < right.sum() < len(right):
            result[:, judge] = _two_way_interval(right, prompts[assigned], people[assigned])
    return result


def _two_way_interval(
    right: FloatArray, prompts: IntArray, people: IntArray
) -> tuple[float, float]:
    from scipy.special import stdtrit  # slow to import

    theta = float(right.mean())
    groups = [np.unique(numbering, return_inverse=True)[1] for numbering in (prompts, people)]
    numbers = [int(numbering.max()) + 1 for numbering in groups]
    if numbers[0] < FEWEST_PROMPTS or numbers[1] < FEWEST_PEOPLE:
        return np.nan, np.nan
    both = np.unique(groups[0] * numbers[1] + groups[1], return_inverse=True)[1]
    sums = [np.bincount(numbering, weights=right - theta) for numbering in (*groups, both)]
    by_prompts, by_people, by_both = (
        float(len(apart) / (len(apart) - 1) * (apart**2).sum()) for apart in sums
    )
    # The difference may fall below either alone, and below nothing, by chance.
    variance = max(by_prompts + by_people - by_both, by_prompts, by_people)
    error = sqrt(variance) / len(right) / (theta * (1 - theta))
    return _around(theta, stdtrit(min(numbers) - 1, 0.975) * error)


def paired_differences(right: IntArray, votes: IntArray, prompts: IntArray) -> FloatArray:
    """Return by how much the judge of a row agrees more than that of a column, shape (3, J, J).

    The difference of their shares of the votes on comparisons that both were asked about, and the
    ends of its 95 % interval: that of `prompt_interval`, on the plain scale. `right` and `votes`,
    of shape (n_comparisons, J), and `prompts` are those of `shares_by_prompt`. NaN where nothing
    was asked of both; without an interval below 10 prompts, or where all prompts say the same.

    Examples
    --------
    >>> right = np.array([[3, 2, 1, 3, 0, 2, 3, 1, 2, 3], [1, 2, 1, 2, 1, 1, 2, 1, 2, 0]]).T
    >>> result = paired_differences(right, np.full((10, 2), 3), np.arange(10))
    >>> result[:, 0, 1].round(3).tolist(), result[:, 1, 0].round(3).tolist()
    ([0.233, -0.043, 0.51], [-0.233, -0.51, 0.043])
    """
    from scipy.special import stdtrit  # slow to import

    judges = right.shape[1]
    result = np.full((3, judges, judges), np.nan)
    order = np.argsort(prompts, kind="stable")
    right, votes = right[order], votes[order]
    first = np.unique(prompts[order], return_index=True)[1]
    for judge in range(judges - 1 if len(order) else 0):
        judge_column, later_columns = slice(judge, judge + 1), slice(judge + 1, None)
        both = (votes[:, judge_column] > 0) & (votes[:, later_columns] > 0)
        n = np.add.reduceat(np.where(both, votes[:, judge_column], 0), first).astype(np.float64)
        apart = np.add.reduceat(
            np.where(both, right[:, judge_column] - right[:, later_columns], 0), first
        )
        total, assigned = n.sum(axis=0), np.count_nonzero(n, axis=0)
        value = ratio(apart.sum(axis=0), total)
        # Sums of whole numbers are exact, and so the same with whatever else is on the board.
        sums = [(a * b).sum(axis=0) for a, b in ((apart, apart), (apart, n), (n, n))]
        squares = sums[0] - 2 * value * sums[1] + value**2 * sums[2]
        has_one = (assigned >= FEWEST_PROMPTS) & (squares > _SAME * sums[2])
        squared_error = ratio(assigned * squares, np.where(has_one, (assigned - 1) * total**2, 0))
        reach = stdtrit(assigned - 1.0, 0.975) * np.sqrt(squared_error)
        result[:, judge, later_columns] = value, value - reach, value + reach
        result[:, later_columns, judge] = -value, -value - reach, -value + reach
    result[1:] = np.clip(result[1:], -1, 1)
    return result


def among_people(votes: IntArray, prompts: IntArray) -> AmongPeople:
    """Measure how well people agree with each other, of votes of shape (n_comparisons, n_choices).

    The intervals are those of `shares_by_prompt`.

    Examples
    --------
    Two of three agree: one pair of three. The third cannot be compared with a majority of two.

    >>> result = among_people(np.array([[2, 1, 0, 0], [1, 0, 0, 0]]), np.arange(2))
    >>> result.pairs.successes, result.pairs.n, result.with_majority.n
    (1, 3, 1)
    >>> result.no_majority, result.alone
    (2, 1)
    """
    people = votes.sum(axis=1)
    agreeing = (votes * (votes - 1)).sum(axis=1)
    follows, compared = _compare_with_majority(votes)
    several = people > 1
    right = agreeing // 2, agreeing / np.maximum(people - 1, 1), (votes * follows).sum(axis=1)
    trials = people * (people - 1) // 2, people * several, (votes * compared).sum(axis=1)
    pairs, by_votes, with_majority = shares_by_prompt(
        np.stack(right, axis=1), np.stack(trials, axis=1), prompts
    )
    alone = int((~several & votes.any(axis=1)).sum())
    no_majority = int(votes.sum() - (votes * compared).sum()) - alone
    return AmongPeople(pairs, by_votes, with_majority, no_majority, alone)


def agreement_by_chance(votes: IntArray) -> float | None:
    """Return on how many of all pairs of their votes people would agree, whatever is voted on.

    Of the votes, of shape (n_comparisons, n_choices), on comparisons that have several.

    Examples
    --------
    >>> round(agreement_by_chance(np.array([[2, 1], [0, 3], [9, 0]])[:2]), 3)
    0.467
    """
    counts = votes[votes.sum(axis=1) > 1].sum(axis=0)
    total = int(counts.sum())
    return float((counts * (counts - 1)).sum() / (total * (total - 1))) if total else None


def _compare_with_majority(votes: IntArray) -> tuple[BoolArray, BoolArray]:
    """Tell where a vote equals the strict majority of the others, and where they have one."""
    others = votes.sum(axis=1, keepdims=True) - 1
    follows = (2 * (votes - 1) > others) & (votes > 0)
    leads = (2 * votes > others) & (votes > 0)
    opposes = leads.sum(axis=1, keepdims=True) > leads
    return follows, follows | (opposes & (votes > 0) & (others > 0))


def habits(
    consistent: Codes, first_picks: IntArray, side_picks: IntArray, prompts: IntArray
) -> tuple[list[Share], list[Share]]:
    """Return every judge's consistency, and how often it picks what is shown first.

    Of the comparisons answered in both orders, those with one answer after unswapping (`consistent`
    is 1; 0 if not, -1 where not both were answered); and of the answers that chose a side, those
    that chose the first. By comparison and judge.

    Examples
    --------
    >>> same = np.array([[1], [1], [0], [-1]], dtype=np.int16)
    >>> first, sided = np.array([[1], [1], [2], [1]]), np.array([[2], [2], [2], [1]])
    >>> [consistency], [first] = habits(same, first, sided, np.arange(4))
    >>> round(consistency.value, 3), consistency.n, round(first.value, 3)
    (0.667, 3, 0.714)
    """
    same = shares_by_prompt(1 * (consistent == 1), 1 * (consistent >= 0), prompts)
    return same, shares_by_prompt(first_picks, side_picks, prompts)


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """What the votes say of one judge, whatever order they came in.

    The rating is Bradley-Terry's, of games that a judge wins by being right where another is wrong;
    who plays is decided as for the ELO.
    `agreement` is of votes on comparisons with a verdict, `beside_people` of those with several
    votes, as is `AmongPeople.votes`, and `coverage` of the comparisons that the judge was asked
    about.
    """

    rating: Rating
    agreement: Share
    beside_people: Share
    coverage: Share


def judge_figures(
    table: OutcomesTable,
    prompts: IntArray,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    unrated: Mapping[int, str] | None = None,
) -> list[JudgeFigures]:
    """Make the figures of every judge; `unrated` are those that have no rating, and why.

    Examples
    --------
    >>> votes = np.array([[1, 0, 0, 0]] * 8 + [[0, 1, 0, 0]] * 2)
    >>> table = OutcomesTable(votes, np.tile(np.int16([0, 1]), (10, 1)))
    >>> one, other = judge_figures(table, np.arange(10), np.random.default_rng(1))
    >>> round(one.rating.value), one.rating.rank, one.agreement.value
    (1112, 1, 0.8)
    """
    unrated = unrated or {}
    players = np.array([n for n in range(table.n_judges) if n not in unrated], dtype=np.intp)
    voted = table.voted()
    games = OutcomesTable(voted.votes, voted.verdicts[:, players])
    groups, multiplicity = voted.grouped()
    cells = Games(OutcomesTable(groups.votes, groups.verdicts[:, players]))
    _, wins = bootstrap(cells, multiplicity, lambda sums: sums, rng, resamples)
    resampled = wins.T.reshape(wins.shape[1], len(players), len(players))
    rated = iter(rate(games.wins(), resampled, games.playing().sum(axis=0)))
    ratings = [
        Rating(None, why=unrated[n]) if n in unrated else next(rated) for n in range(table.n_judges)
    ]
    right, judged, several = table.right(), table.judged(), table.votes.sum(axis=1) > 1
    agreements = shares_by_prompt(right, judged, prompts)
    besides = shares_by_prompt(right * several[:, None], judged * several[:, None], prompts)
    answered, assigned = 1 * (table.verdicts >= 0), 1 * (table.verdicts != UNASSIGNED)
    coverages = shares_by_prompt(answered, assigned, prompts)
    columns = ratings, agreements, besides, coverages
    return [JudgeFigures(*row) for row in zip(*columns, strict=True)]


# --- what judges said beside what people said, label by label -------------------------------------


def confusion_matrices(table: OutcomesTable) -> IntArray:
    """Count the votes on what each judge was asked about by what people and the judge said.

    Of shape (n_judges, n_choices, n_choices + 1): rows are what people said, columns what the judge
    said; the last column counts votes on which it gave no verdict, or one that is right for none.

    Examples
    --------
    Three people: pass, pass, flag. The judge passes the first item and fails on the second.

    >>> table = OutcomesTable(np.array([[2, 0], [0, 1]]), np.array([[0], [-1]]))
    >>> confusion_matrices(table).tolist()
    [[[2, 0, 0], [0, 0, 1]]]
    """
    assigned, verdicts = table.verdicts != UNASSIGNED, table.verdicts
    columns = np.where(verdicts < 0, table.n_choices, verdicts)
    matrices = np.zeros((table.n_judges, table.n_choices, table.n_choices + 1), dtype=np.int64)
    for judge, matrix in enumerate(matrices):
        is_asked = assigned[:, judge]
        np.add.at(matrix.T, columns[is_asked, judge], table.votes[is_asked])
    return matrices


def label_rates(table: OutcomesTable, prompts: IntArray, choice: int) -> list[LabelRates]:
    """Return every judge's sensitivity and specificity for one choice, with 95 % intervals.

    Of votes on which the judge has a verdict; the intervals are those of `overall_agreement`.

    Examples
    --------
    Of 12 flags the judge finds 9, and of 20 passes it passes 18.

    >>> votes = np.array([[1, 0]] * 20 + [[0, 1]] * 12)
    >>> verdicts = np.array([[0]] * 18 + [[1]] * 2 + [[1]] * 9 + [[0]] * 3)
    >>> [rates] = label_rates(OutcomesTable(votes, verdicts), np.arange(32), choice=1)
    >>> rates.sensitivity.value, rates.sensitivity.n, rates.specificity.value
    (0.75, 12, 0.9)
    >>> round(rates.sensitivity.low, 3), round(rates.sensitivity.high, 3)
    (0.468, 0.911)
    """
    require(0 <= choice < table.n_choices, f"there is no choice {choice}")
    answered, is_label = table.verdicts >= 0, table.verdicts == choice
    label_votes = table.votes[:, [choice]]
    other_votes = table.votes.sum(axis=1, keepdims=True) - label_votes
    sensitive = shares_by_prompt(label_votes * is_label, label_votes * answered, prompts)
    specific = shares_by_prompt(
        other_votes * (answered & ~is_label), other_votes * answered, prompts
    )
    return [
        LabelRates(sensitivity=sensitivity, specificity=specificity)
        for sensitivity, specificity in zip(sensitive, specific, strict=True)
    ]
