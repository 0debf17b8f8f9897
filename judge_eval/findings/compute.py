"""All figures of a run from its outcomes: pure, and the same every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from judge_eval.findings.alt_test import Voters, alt_test_of
from judge_eval.findings.columns import JudgeFindings, Rating, Share
from judge_eval.findings.load import RunOutcomes, Spent
from judge_eval.findings.model import (
    PEOPLE,
    AmongPeople,
    AsOf,
    Claims,
    DisputedPair,
    Matrix,
    ModelBoard,
    Models,
    Parts,
    RunFindings,
)
from judge_eval.stats.bradley_terry import as_votes, model_board
from judge_eval.stats.claims import Claims as ClaimsOfJudges
from judge_eval.stats.claims import claims as claims_of
from judge_eval.stats.claims import summary
from judge_eval.stats.estimate import best_first
from judge_eval.stats.judge_figures import AmongPeople as AgreementOfPeople
from judge_eval.stats.judge_figures import (
    JudgeFigures,
    among_people,
    habits,
    judge_figures,
    left_share,
)
from judge_eval.stats.order_luck import order_luck
from judge_eval.stats.outcomes_table import WRONG, Codes, OutcomesTable
from judge_eval.stats.shares import Share as ShareOfCounts
from judge_eval.stats.shares import overall_agreement, per_answer

MOST_DISPUTED = 12
MOST_MODELS = 100


def findings(outcomes: RunOutcomes, voters: Voters) -> RunFindings:
    """Compute what a board shows beside the ELO; the run's number is the seed of all draws."""
    table = outcomes.table
    claims = claims_of(table)
    figures = judge_figures(table, claims, _rng(outcomes, 0))
    overall = overall_agreement(table, outcomes.prompts)
    single = per_answer(table.votes, outcomes.answers, outcomes.prompts)
    people = among_people(table.votes, _rng(outcomes, 1))
    left = left_share(outcomes.left, outcomes.sided, _rng(outcomes, 2))
    models, models_why = _models(outcomes)
    alt_test, alt_test_why = alt_test_of(outcomes, voters)
    computed = RunFindings(
        as_of=_as_of(outcomes),
        words=_words(outcomes, claims, figures, overall, single, people),
        judges=_judges(outcomes, figures, overall, single),
        claims=_claims(claims),
        same_verdict=same_verdict(table.verdicts),
        among_people=AmongPeople.model_validate(people),
        people_first_position=Share.model_validate(left),
        disputed=disputed(outcomes),
        models=models,
        models_why=models_why,
        alt_test=alt_test,
        alt_test_why=alt_test_why,
    )
    if not outcomes.part.kind:
        computed.parts = Parts(tags=outcomes.tags.most_common(), generators=outcomes.generators)
    return computed


def _rng(outcomes: RunOutcomes, part: int) -> np.random.Generator:
    return np.random.default_rng([outcomes.run.pk.int, part])


def _as_of(outcomes: RunOutcomes) -> AsOf:
    table = outcomes.table
    return AsOf(
        seq=outcomes.seq,
        votes=table.n_votes,
        people=outcomes.people,
        comparisons=outcomes.comparisons,
        open=len(table.votes),
        voted=int(table.votes.any(axis=1).sum()),
        simulated=outcomes.run.queue.is_simulated,
        part=outcomes.part.in_words,
    )


def _words(
    outcomes: RunOutcomes,
    claims: ClaimsOfJudges,
    figures: Sequence[JudgeFigures],
    overall: Sequence[ShareOfCounts],
    single: Sequence[ShareOfCounts],
    people: AgreementOfPeople,
) -> str:
    judges, verdicts = outcomes.judges, outcomes.table.verdicts
    if not judges:
        return "No judge has given a verdict yet."
    only = [n for n, judge in enumerate(judges) if not judge.is_baseline and claims.judged[n]]
    return summary(
        [judge.name for judge in outcomes.judges],
        claims.beats,
        votes=outcomes.table.n_votes,
        people=outcomes.people,
        baselines=[n for n, judge in enumerate(outcomes.judges) if judge.is_baseline],
        order=best_first([share.value for share in overall]),
        silent=np.flatnonzero((verdicts < 0).all(axis=0)).tolist(),
        untested=np.flatnonzero(claims.judged == 0).tolist(),
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
    overall: Sequence[ShareOfCounts],
    single: Sequence[ShareOfCounts],
) -> list[JudgeFindings]:
    ways = habits(outcomes.consistent, outcomes.first_picks, outcomes.side_picks, _rng(outcomes, 3))
    luck = order_luck(outcomes.table, _rng(outcomes, 4))
    return [
        JudgeFindings.model_validate(
            {
                "id": str(judge.pk),
                "name": judge.name,
                "is_baseline": judge.is_baseline,
                "overall": overall[place],
                **{field.name: getattr(figure, field.name) for field in fields(figure)},
                "per_answer": single[place],
                "consistency": way.consistency,
                "first_position": way.first_position,
                "order_luck": None if luck is None else float(luck[place]),
                **_prices(outcomes, spent, figure.agreement.value),
            }
        )
        for place, (judge, figure, way, spent) in enumerate(
            zip(outcomes.judges, figures, ways, outcomes.spent, strict=True)
        )
    ]


def _prices(
    outcomes: RunOutcomes, spent: Spent, agreement: float | None
) -> dict[str, float | str | None]:
    """Return what a verdict cost, and what one cost that a person would have given too."""
    total = each = correct = why = None
    if outcomes.part.kind:
        # Calls are paid for the whole run: set against a part's agreement that is no price of it.
        why = "Prices and times are those of the whole run; a part has none of its own."
    elif spent.nano is None:
        why = "Its calls were not made here, or their price is not known."
    elif spent.unpriced:
        why = f"The price of {spent.unpriced} of its calls is not known."
    else:
        total = spent.nano / 1e9
        each = total / spent.verdicts if spent.verdicts else None
        correct = each / agreement if each is not None and agreement else None
        if each is None:
            why = "It has given no verdict."
        elif correct is None:
            why = "None of its verdicts was right."
    return {
        "cost_usd": total,
        "seconds_per_verdict": None if outcomes.part.kind else spent.seconds,
        "cost_per_verdict_usd": each,
        "cost_per_correct_usd": correct,
        "cost_why": why,
    }


def _claims(claims: ClaimsOfJudges) -> Claims:
    return Claims(
        beats=claims.beats.tolist(),
        p=_numbers(claims.p),
        p_single=_numbers(claims.p_single),
        ahead=claims.ahead.tolist(),
        together=claims.together.tolist(),
        labelled=claims.labelled,
        unlabelled=claims.unlabelled,
    )


def _numbers(values: NDArray[np.float64]) -> Matrix:
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]


def same_verdict(verdicts: Codes) -> Matrix:
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


def disputed(outcomes: RunOutcomes) -> list[DisputedPair]:
    """Return the comparisons on which judges and people disagree most, baselines left aside."""
    judging = [n for n, judge in enumerate(outcomes.judges) if not judge.is_baseline]
    table = OutcomesTable(outcomes.table.votes, outcomes.table.verdicts[:, judging])
    right, games = table.right().sum(axis=1), table.judged().sum(axis=1)
    wrong = games - right
    with np.errstate(invalid="ignore"):
        share = np.where(games > 0, wrong / games, 0.0)
    worst = np.lexsort((outcomes.positions, -wrong, -share))[:MOST_DISPUTED]
    return [
        DisputedPair(position=outcomes.positions[n], wrong=wrong[n], of=games[n])
        for n in worst
        if wrong[n]
    ]


def _models(outcomes: RunOutcomes) -> tuple[Models | None, str | None]:
    """Rank who wrote the outputs, by people's votes and by each judge's, or say why not."""
    names = outcomes.generators
    if len(names) < 2:
        return None, "The pairs name fewer than two generators."
    if len(names) > MOST_MODELS:
        return None, f"{len(names)} generators are too many to compare."
    boards = [_model_board(outcomes, outcomes.table.votes, 5, by=PEOPLE, name="People")]
    for place, judge in enumerate(outcomes.judges):
        votes = as_votes(outcomes.table.verdicts[:, place])
        board = _model_board(outcomes, votes, 6 + place, by=str(judge.pk), name=judge.name)
        board.is_baseline = judge.is_baseline
        boards.append(board)
    return Models(names=names, boards=boards), None


def _model_board(
    outcomes: RunOutcomes, votes: NDArray[np.int64], part: int, *, by: str, name: str
) -> ModelBoard:
    board = model_board(outcomes.models, len(outcomes.generators), votes, _rng(outcomes, part))
    return ModelBoard(
        by=by,
        name=name,
        ratings=[Rating.model_validate(rating) for rating in board.ratings],
        ties=board.ties,
        wins=board.wins.tolist(),
        win_rates=board.win_rates,
        both_bad=board.both_bad,
        unpaired=board.unpaired,
    )
