"""All figures of a run from its outcomes, as JSON can hold them: pure, and the same every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from judge_eval.findings.load import RunOutcomes, Spent
from judge_eval.stats.bradley_terry import as_votes, model_board
from judge_eval.stats.claims import Claims, claims, summary
from judge_eval.stats.estimate import best_first
from judge_eval.stats.judge_figures import (
    AmongPeople,
    Habits,
    JudgeFigures,
    among_people,
    habits,
    judge_figures,
    left_share,
)
from judge_eval.stats.order_luck import order_luck
from judge_eval.stats.outcomes_table import WRONG, Codes, OutcomesTable
from judge_eval.stats.shares import Share, overall_agreement, per_answer

MOST_DISPUTED = 12
MOST_MODELS = 100
Data = dict[str, Any]
# Calls are paid for the whole run: set against a part's agreement they would be no price of it.
PART_PRICE: Final[Data] = {
    "cost_usd": None,
    "seconds_per_verdict": None,
    "cost_per_verdict_usd": None,
    "cost_per_correct_usd": None,
    "cost_why": "Prices and times are those of the whole run; a part has none of its own.",
}


def findings(outcomes: RunOutcomes) -> Data:
    """Compute what a board shows beside the ELO; the run's number is the seed of all draws."""
    table = outcomes.table
    found = claims(table)
    figures = judge_figures(table, found, _rng(outcomes, 0))
    overall = overall_agreement(table, outcomes.prompts)
    single = per_answer(table.votes, outcomes.answers, outcomes.prompts)
    people = among_people(table.votes, _rng(outcomes, 1))
    return {
        "as_of": _as_of(outcomes),
        "words": _words(outcomes, found, figures, overall, single, people),
        "judges": _judges(outcomes, figures, overall, single),
        "claims": _claims(found),
        "same_verdict": same_verdict(table.verdicts),
        "among_people": asdict(people),
        "people_first_position": asdict(
            left_share(outcomes.left, outcomes.sided, _rng(outcomes, 2))
        ),
        "disputed": disputed(outcomes),
        **_models(outcomes),
    }


def _rng(outcomes: RunOutcomes, part: int) -> np.random.Generator:
    return np.random.default_rng([outcomes.run.pk.int, part])


def _as_of(outcomes: RunOutcomes) -> Data:
    table = outcomes.table
    return {
        "seq": outcomes.seq,
        "votes": table.n_votes,
        "people": outcomes.people,
        "comparisons": outcomes.comparisons,
        "open": len(table.votes),
        "voted": int(table.votes.any(axis=1).sum()),
        "simulated": outcomes.run.queue.is_simulated,
        "part": outcomes.part.in_words,
    }


def _words(
    outcomes: RunOutcomes,
    found: Claims,
    figures: Sequence[JudgeFigures],
    overall: Sequence[Share],
    single: Sequence[Share],
    people: AmongPeople,
) -> str:
    judges, verdicts = outcomes.judges, outcomes.table.verdicts
    if not judges:
        return "No judge has given a verdict yet."
    only = [n for n, judge in enumerate(judges) if not judge.is_baseline and found.judged[n]]
    return summary(
        [judge.name for judge in outcomes.judges],
        found.beats,
        votes=outcomes.table.n_votes,
        people=outcomes.people,
        baselines=[n for n, judge in enumerate(outcomes.judges) if judge.is_baseline],
        order=best_first([share.value for share in overall]),
        silent=np.flatnonzero((verdicts < 0).all(axis=0)).tolist(),
        untested=np.flatnonzero(found.judged == 0).tolist(),
        contradicting={
            n: 100 * (each.value - figure.agreement.value)
            for n, (each, figure) in enumerate(zip(single, figures, strict=True))
            if each.value is not None and figure.agreement.value is not None
        },
        beside_people=(figures[only[0]].beside_people, people.votes) if len(only) == 1 else None,
    )


def _judges(
    outcomes: RunOutcomes,
    figures: Sequence[JudgeFigures],
    overall: Sequence[Share],
    single: Sequence[Share],
) -> list[Data]:
    ways = habits(outcomes.consistent, outcomes.first_picks, outcomes.side_picks, _rng(outcomes, 3))
    luck = order_luck(outcomes.table, _rng(outcomes, 4))
    return [
        {
            "id": str(judge.pk),
            "name": judge.name,
            "is_baseline": judge.is_baseline,
            "overall": asdict(overall[place]),
            **asdict(figure),
            "per_answer": asdict(single[place]),
            **_habits(way),
            "order_luck": None if luck is None else float(luck[place]),
            **(PART_PRICE if outcomes.part.kind else _cost(spent, figure.agreement.value)),
        }
        for place, (judge, figure, way, spent) in enumerate(
            zip(outcomes.judges, figures, ways, outcomes.spent, strict=True)
        )
    ]


def _habits(way: Habits) -> Data:
    return {
        "consistency": asdict(way.consistency),
        "first_position": asdict(way.first_position),
    }


def _cost(spent: Spent, agreement: float | None) -> Data:
    """Return what a verdict cost, and what one cost that a person would have given too."""
    known: Data = {
        "cost_usd": None,
        "seconds_per_verdict": spent.seconds,
        "cost_per_verdict_usd": None,
        "cost_per_correct_usd": None,
        "cost_why": None,
    }
    if spent.nano is None:
        return known | {"cost_why": "Its calls were not made here, or their price is not known."}
    if spent.unpriced:
        return known | {"cost_why": f"The price of {spent.unpriced} of its calls is not known."}
    known["cost_usd"] = spent.nano / 1e9
    if not spent.verdicts:
        return known | {"cost_why": "It has given no verdict."}
    known["cost_per_verdict_usd"] = spent.nano / 1e9 / spent.verdicts
    if not agreement:
        return known | {"cost_why": "None of its verdicts was right."}
    return known | {"cost_per_correct_usd": known["cost_per_verdict_usd"] / agreement}


def _claims(found: Claims) -> Data:
    return {
        "beats": found.beats.tolist(),
        "p": _numbers(found.p),
        "p_single": _numbers(found.p_single),
        "ahead": found.ahead.tolist(),
        "together": found.together.tolist(),
        "labelled": found.labelled,
        "unlabelled": found.unlabelled,
    }


def _numbers(values: NDArray[np.floating[Any]]) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]


def same_verdict(verdicts: Codes) -> list[list[float | None]]:
    """Return on which share of the comparisons that both answered two judges said the same.

    Parameters
    ----------
    verdicts : int8 array, shape (n_comparisons, n_judges)

    Returns
    -------
    list of lists, shape (n_judges, n_judges)
        None where two never answered together.

    Examples
    --------
    >>> import numpy as np
    >>> same_verdict(np.array([[0, 0], [1, 2], [0, -1]], dtype=np.int8))
    [[1.0, 0.5], [0.5, 1.0]]
    """
    said = [(verdicts == code).astype(np.float32) for code in range(WRONG + 1)]
    answered = (verdicts >= 0).astype(np.float32)
    same, both = sum(one.T @ one for one in said), answered.T @ answered
    with np.errstate(invalid="ignore"):
        return _numbers(np.asarray(same / both, dtype=np.float64))


def disputed(outcomes: RunOutcomes) -> list[Data]:
    """Return the comparisons on which judges and people disagree most, baselines left aside."""
    judging = [n for n, judge in enumerate(outcomes.judges) if not judge.is_baseline]
    table = OutcomesTable(outcomes.table.votes, outcomes.table.verdicts[:, judging])
    right, games = table.right().sum(axis=1), table.judged().sum(axis=1)
    wrong = games - right
    with np.errstate(invalid="ignore"):
        share = np.where(games > 0, wrong / games, 0.0)
    worst = np.lexsort((outcomes.positions, -wrong, -share))[:MOST_DISPUTED]
    return [
        {"position": int(outcomes.positions[n]), "wrong": int(wrong[n]), "of": int(games[n])}
        for n in worst
        if wrong[n]
    ]


def _models(outcomes: RunOutcomes) -> Data:
    """Rank who wrote the outputs: by people's votes, and by each judge's verdicts."""
    names = outcomes.generators
    if len(names) < 2:
        return {"models": None, "models_why": "The pairs name fewer than two generators."}
    if len(names) > MOST_MODELS:
        return {"models": None, "models_why": f"{len(names)} generators are too many to compare."}
    boards: list[Data] = [
        {"by": "people", "name": "People"} | _model_board(outcomes, outcomes.table.votes, 5)
    ]
    for place, judge in enumerate(outcomes.judges):
        votes = as_votes(outcomes.table.verdicts[:, place])
        boards.append(
            {"by": str(judge.pk), "name": judge.name, "is_baseline": judge.is_baseline}
            | _model_board(outcomes, votes, 6 + place)
        )
    return {"models": {"names": names, "boards": boards}, "models_why": None}


def _model_board(outcomes: RunOutcomes, votes: NDArray[np.int64], part: int) -> Data:
    board = model_board(outcomes.models, len(outcomes.generators), votes, _rng(outcomes, part))
    return {
        "ratings": [asdict(rating) for rating in board.ratings],
        "ties": board.ties,
        "wins": board.wins.tolist(),
        "win_rates": board.win_rates,
        "both_bad": board.both_bad,
        "unpaired": board.unpaired,
    }
