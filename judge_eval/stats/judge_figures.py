"""The figures of judges on a board, and how well people agree with each other beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judge_eval.stats.bootstrap import RESAMPLES, BoolArray, IntArray, resampled_sums
from judge_eval.stats.bradley_terry import Rating, rate, tie_groups
from judge_eval.stats.claims import Claims
from judge_eval.stats.estimate import Share, best_first
from judge_eval.stats.outcomes_table import NOT_ASKED, Codes, OutcomesTable
from judge_eval.stats.shares import ratio, shares, shares_of


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


def among_people(
    votes: IntArray, rng: np.random.Generator, resamples: int = RESAMPLES
) -> AmongPeople:
    """Measure how well people agree with each other.

    Parameters
    ----------
    votes : int array, shape (n_comparisons, n_choices)
        Each person at most once per comparison. Without the column of a choice, the votes for it
        are left out.

    Examples
    --------
    Two of three agree: one pair of three. The third cannot be compared with a majority of two.

    >>> found = among_people(np.array([[2, 1, 0, 0], [1, 0, 0, 0]]), np.random.default_rng(1))
    >>> found.pairs.successes, found.pairs.trials, found.with_majority.trials
    (1, 3, 1)
    >>> found.no_majority, found.alone
    (2, 1)
    """
    people = votes.sum(axis=1)
    agreeing = (votes * (votes - 1)).sum(axis=1)
    follows, compared = _beside_others(votes)
    pairs, with_majority = shares(
        np.stack([agreeing // 2, (votes * follows).sum(axis=1)], axis=1),
        np.stack([people * (people - 1) // 2, (votes * compared).sum(axis=1)], axis=1),
        rng,
        resamples,
    )
    several = people > 1
    agreeing, people = agreeing[several], people[several]
    [by_votes] = shares((agreeing / (people - 1))[:, None], people[:, None], rng, resamples)
    alone = int((~several & votes.any(axis=1)).sum())
    no_majority = int(votes.sum() - (votes * compared).sum()) - alone
    return AmongPeople(pairs, by_votes, with_majority, no_majority, alone)


def _beside_others(votes: IntArray) -> tuple[BoolArray, BoolArray]:
    """Tell where a vote equals the strict majority of the others, and where they have one."""
    others = votes.sum(axis=1, keepdims=True) - 1
    follows = (2 * (votes - 1) > others) & (votes > 0)
    leads = (2 * votes > others) & (votes > 0)
    opposes = leads.sum(axis=1, keepdims=True) > leads
    return follows, follows | (opposes & (votes > 0) & (others > 0))


def habits(
    consistent: Codes, first_picks: IntArray, side_picks: IntArray, rng: np.random.Generator
) -> tuple[list[Share], list[Share]]:
    """Return how every judge answers to the two orders of a pair: consistency and first position.

    Of the comparisons answered in both orders, those with one answer after unswapping; and of the
    answers that chose a side, those that chose what was shown first, of which half is fair.

    Parameters
    ----------
    consistent : int8 array, shape (n_comparisons, n_judges)
        1 where both orders agreed, 0 where they did not, -1 where not both answered.
    first_picks, side_picks : int array, shape (n_comparisons, n_judges)
        How many answers chose what was shown first, and how many chose a side at all. Two answers
        about one comparison are drawn together.

    Examples
    --------
    >>> same = np.array([[1], [1], [0], [-1]], dtype=np.int8)
    >>> first, sided = np.array([[1], [1], [2], [1]]), np.array([[2], [2], [2], [1]])
    >>> [consistency], [first] = habits(same, first, sided, np.random.default_rng(1))
    >>> round(consistency.value, 3), consistency.trials, round(first.value, 3)
    (0.667, 3, 0.714)
    """
    same = shares(1 * (consistent == 1), 1 * (consistent >= 0), rng)
    return same, shares(first_picks, side_picks, rng)


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """What the votes say of one judge, whatever order they came in.

    Attributes
    ----------
    rating : Rating
        Bradley-Terry, of games that a judge wins by being right where another one is wrong.
    ties : str
        Tie group as letters: judges that share one cannot be told apart by `claims`. Empty
        for a judge without a verdict on a labelled comparison: it was not tested.
    agreement : Share
        Of the votes on comparisons that the judge has a verdict on, those it was right about.
    beside_people : Share
        The same on comparisons with several votes only, those of which `AmongPeople.votes` is.
    coverage : Share
        Of the comparisons that the judge was asked about, those it has a verdict on.
    """

    rating: Rating
    ties: str
    agreement: Share
    beside_people: Share
    coverage: Share


def judge_figures(
    table: OutcomesTable, claims: Claims, rng: np.random.Generator, resamples: int = RESAMPLES
) -> list[JudgeFigures]:
    """Make the figures of every judge; the order of the comparisons changes nothing.

    Parameters
    ----------
    table : OutcomesTable
        Also with the comparisons that nobody has voted on: they count for coverage.
    claims : Claims
        Of the same table.

    Examples
    --------
    >>> from judge_eval.stats.claims import claims
    >>> votes = np.array([[1, 0, 0, 0]] * 8 + [[0, 1, 0, 0]] * 2)
    >>> table = OutcomesTable(votes, np.tile(np.int8([0, 1]), (10, 1)))
    >>> one, other = judge_figures(table, claims(table), np.random.default_rng(1))
    >>> round(one.rating.value), one.rating.rank, one.ties, one.agreement.value
    (1112, 1, 'a', 0.8)
    """
    voted, judges = table.voted(), table.n_judges
    wins, agreement = np.zeros((resamples, judges, judges)), np.full((resamples, judges), np.nan)
    if len(voted.votes):
        groups, multiplicity = voted.grouped()
        others = ~np.eye(judges, dtype=bool)

        def rows(part: slice) -> IntArray:
            some = groups.where(part)
            return np.hstack([some.games()[:, others], some.right(), some.judged()])

        sums = resampled_sums(rows, multiplicity, rng, resamples)
        wins[:, others], right, judged = np.split(sums, [-2 * judges, -judges], axis=1)
        agreement = ratio(right, judged)
    ratings = rate(voted.wins(), wins, voted.playing().sum(axis=0))
    agreements = shares_of(voted.right(), voted.judged(), agreement)
    coverages = shares(1 * (table.verdicts >= 0), 1 * (table.verdicts != NOT_ASKED), rng)
    several = voted.votes.sum(axis=1) > 1
    besides = agreements
    if not several.all():
        some = voted.where(several)
        besides = shares(some.right(), some.judged(), rng, resamples)
    tested = [n for n in best_first([r.value for r in ratings]) if claims.judged[n]]
    columns = ratings, tie_groups(claims.distinct, tested), agreements, besides, coverages
    return [JudgeFigures(*row) for row in zip(*columns, strict=True)]
