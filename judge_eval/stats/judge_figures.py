"""What votes say of judges, in whatever order they came: rating, ties, agreement, coverage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judge_eval.stats.bootstrap import RESAMPLES, resampled_sums
from judge_eval.stats.claims import Claims
from judge_eval.stats.order import best_first
from judge_eval.stats.order_free import Rating, rate
from judge_eval.stats.outcomes_table import NOT_ASKED, Counts, Floats, OutcomesTable
from judge_eval.stats.ranks import tie_groups
from judge_eval.stats.shares import Share, ratio, shares, shares_of


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """What the votes say of one judge, whatever order they came in.

    Attributes
    ----------
    rating : Rating
        Bradley-Terry, of games that a judge wins by being right where another one is wrong.
    ties : str
        Tie group as letters: judges that share one cannot be told apart (`significance`). Empty
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
    """Make the figures of every judge.

    Parameters
    ----------
    table : OutcomesTable
        Also with the comparisons that nobody has voted on: they count for coverage.
    claims : Claims
        Of the same table.
    rng : numpy.random.Generator
        Seeded. The same seed and comparisons, in any order, give the same figures.
    resamples : int

    Returns
    -------
    list of JudgeFigures, in the table's order of judges

    Examples
    --------
    >>> import numpy as np
    >>> from judge_eval.stats.claims import claims
    >>> table = OutcomesTable.of([{"A": 1}] * 8 + [{"B": 1}] * 2, [["A", "B"]] * 10)
    >>> one, other = judge_figures(table, claims(table), np.random.default_rng(1))
    >>> round(one.rating.value), one.rating.rank, one.ties, one.agreement.value
    (1112, 1, 'a', 0.8)
    """
    voted = table.voted()
    wins, agreement = _resampled(voted, rng, resamples)
    ratings = rate(voted.wins(), wins, voted.playing().sum(axis=0))
    agreements = shares_of(voted.right(), voted.judged(), agreement)
    coverages = shares(1 * (table.verdicts >= 0), 1 * (table.verdicts != NOT_ASKED), rng)
    several = voted.votes.sum(axis=1) > 1
    besides = agreements if several.all() else _agreements(voted.where(several), rng, resamples)
    columns = ratings, _letters(claims, ratings), agreements, besides, coverages
    return [JudgeFigures(*row) for row in zip(*columns, strict=True)]


def _agreements(table: OutcomesTable, rng: np.random.Generator, resamples: int) -> list[Share]:
    return shares(table.right(), table.judged(), rng, resamples)


def _letters(claims: Claims, ratings: list[Rating]) -> list[str]:
    """Return the tie groups of the judges that were tested; nothing for the others."""
    tested = [n for n in best_first([r.value for r in ratings]) if claims.judged[n]]
    letters = [""] * len(ratings)
    groups = tie_groups(claims.distinct[np.ix_(tested, tested)], np.arange(len(tested)))
    for judge, group in zip(tested, groups, strict=True):
        letters[judge] = group
    return letters


def _resampled(
    voted: OutcomesTable, rng: np.random.Generator, resamples: int
) -> tuple[Floats, Floats]:
    """Return wins, shape (resamples, n, n), and agreement, (resamples, n), of drawn comparisons."""
    judges = voted.n_judges
    wins = np.zeros((resamples, judges, judges))
    if not len(voted.votes):
        return wins, np.full((resamples, judges), np.nan)
    groups, multiplicity = voted.grouped()
    others = ~np.eye(judges, dtype=bool)

    def rows(part: slice) -> Counts:
        some = groups.where(part)
        return np.hstack([some.games()[:, others], some.right(), some.judged()])

    sums = resampled_sums(rows, multiplicity, rng, resamples)
    games, right, judged = np.split(sums, [-2 * judges, -judges], axis=1)
    wins[:, others] = games
    return wins, ratio(right, judged)
