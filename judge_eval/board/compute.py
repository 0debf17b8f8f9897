"""All figures of a run from its outcomes: pure, and the same every time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from humanjudge.core.text import listed
from judge_eval.board.agreement import (
    group_agreement,
    inconsistency_notes,
    order_notes,
)
from judge_eval.board.alt_test import alt_tests
from judge_eval.board.claims import claims_model
from judge_eval.board.compared_judges import ComparedJudges, random_draws
from judge_eval.board.corrected import generator_rates
from judge_eval.board.load import RunOutcomes
from judge_eval.board.model import (
    MOST_MODELS,
    PEOPLE,
    Confusion,
    ConfusionMatrix,
    DisputedPair,
    FormerClaims,
    GroupFigures,
    JudgeOfGroup,
    Models,
    PassRates,
    RunFindings,
    Unanswerable,
    VoteCourse,
)
from judge_eval.models import Judge
from judge_eval.stats.bootstrap import FloatArray
from judge_eval.stats.bradley_terry import as_votes, model_board
from judge_eval.stats.estimate import best_first
from judge_eval.stats.judge_figures import (
    among_people,
    confusion_matrices,
    label_rates,
    ratio,
    shares_by_prompt,
)
from judge_eval.stats.mcnemar import mcnemar_tests
from judge_eval.stats.outcomes_table import UNASSIGNED, Codes, OutcomesTable
from voting.items.kinds import is_ordered, kind_of
from voting.models import Queue

MOST_DISPUTED = 12
MOST_LABELS = 12
# Of fewer votes no figures of a group are shown, and none of what came before others.
LEAST_OF_GROUP = 10
MOST_LEADING = 5
MOST_PLACES = 50
FREE_TEXT = (
    "People answer in their own words here, so there is no agreement to count. The answers stand "
    "with each item, and score files compare them with judges' texts."
)


def findings(outcomes: RunOutcomes, before: FormerClaims | None = None) -> RunFindings:
    """Compute what a board shows beside the ELO; the run's number is the seed of all draws.

    `before` has the claims made before, to name those that hold no longer.
    """
    table, history = outcomes.table, outcomes.history
    compared = ComparedJudges(outcomes)
    ranked, claimed = compared.ranked, compared.claimed
    claims = claims_model(claimed, ranked, outcomes, before)
    words = compared.words(claims)
    [left] = shares_by_prompt(outcomes.left[:, None], outcomes.sided[:, None], outcomes.prompts)
    models, models_why = _models(outcomes)
    alt_test, alt_test_why, further_tests = alt_tests(
        outcomes.run, outcomes.judges, outcomes.tasks, outcomes.counted_votes.votes
    )
    alike: Any = same_verdict(table.verdicts)
    is_free = outcomes.run.queue.kind == Queue.Kind.TEXT and outcomes.counted_votes.votes > 0
    baselines = np.flatnonzero(compared.is_baseline).tolist()
    followed = [n for n in compared.order if compared.overall[n].n and n not in baselines]
    return RunFindings(
        as_of=outcomes.counted_votes,
        words=FREE_TEXT if is_free else " ".join(words.headline()),
        may_stop=words.may_stop and not is_free,
        carrier=words.carried and history.people[claimed.carriers[words.carried]],
        more=[] if is_free else [f"{lead}: {text}" for lead, text in words.points()],
        notes=[
            *words.notes(),
            *inconsistency_notes(outcomes, compared.overall, words),
            *order_notes(ranked, words),
            *_tuning_notes(outcomes),
        ],
        left_out=outcomes.left_out,
        judges=compared.judge_findings(),
        claims=claims,
        mcnemar=mcnemar_tests(_labelled(outcomes), baselines, outcomes.floor),
        same_verdict=alike,
        among_people=compared.among_people,
        people_first_position=left,
        disputed=_disputed(outcomes),
        unanswerable=_unanswerable(outcomes),
        unordered=ranked.unordered,
        models=models,
        models_why=models_why,
        alt_test=alt_test,
        alt_test_why=alt_test_why,
        further_alt_tests=further_tests,
        confusion=_confusion(outcomes),
        pass_rates=_pass_rates(outcomes),
        generators=generator_rates(outcomes),
        course=_course(outcomes, followed),
        groups=_groups(outcomes),
        **({"parts": outcomes.parts} if outcomes.parts else {}),
    )


def _tuning_notes(outcomes: RunOutcomes) -> Iterator[str]:
    if outcomes.run.queue.is_tuning:
        yield "Judges are being tuned: these figures are of the tuning half, without variants."
    if tuned := [judge.name for judge in outcomes.judges if judge.is_tuned]:
        yield (
            f"Tuned on votes of this run: {listed(tuned)}. Their figures are of the half that was "
            "held out, and so is what is claimed of them; they have no ELO."
        )


def _labelled(outcomes: RunOutcomes) -> OutcomesTable:
    """Return what exact tests are made of: nothing where votes are ratings."""
    table = outcomes.table
    return table.select(slice(0)) if is_ordered(outcomes.run.queue) else table


def _groups(outcomes: RunOutcomes) -> list[GroupFigures]:
    rows = []
    for group in outcomes.groups:
        table = OutcomesTable(group.votes, outcomes.table.verdicts)
        about = GroupFigures(name=group.name, people=group.people, votes=int(group.votes.sum()))
        rows.append(about)
        if about.votes < LEAST_OF_GROUP:
            about.why = f"fewer than {LEAST_OF_GROUP} votes"
            continue
        among = among_people(table.votes, outcomes.prompts)
        shares, people = group_agreement(outcomes, group.name, table)
        about.among_people = replace(among, pairs=people) if people else among
        about.judges = [
            JudgeOfGroup(judge=str(judge.pk), overall=share)
            for judge, share in zip(outcomes.judges, shares, strict=True)
        ]
    return rows


def _course(outcomes: RunOutcomes, ranked: Sequence[int]) -> VoteCourse | None:
    history, leading = outcomes.history, [*ranked[:MOST_LEADING]]
    number = len(history.votes)
    is_of_file = 2 * history.imported > number
    if number <= LEAST_OF_GROUP or is_of_file or is_ordered(outcomes.run.queue) or not leading:
        return None
    rows, choices, _ = np.array(history.votes, dtype=np.int64).T
    verdicts = outcomes.table.verdicts[rows][:, leading]
    places = np.unique(np.linspace(LEAST_OF_GROUP, number, MOST_PLACES, dtype=np.int64))
    right_counts, asked_counts = (
        is_counted.cumsum(axis=0)[places - 1].astype(np.float64)
        for is_counted in (verdicts == choices[:, None], verdicts != UNASSIGNED)
    )
    ids = [str(outcomes.judges[n].pk) for n in leading]
    shares = ratio(right_counts, asked_counts).T.tolist()
    return VoteCourse(votes=places.tolist(), judges=dict(zip(ids, shares, strict=True)))


def same_verdict(verdicts: Codes) -> FloatArray:
    """Return the share of comparisons, of those both answered, on which two judges agree.

    `verdicts` has shape (n_comparisons, n_judges); NaN where two never answered together.
    """
    indicators = [
        (verdicts == code).astype(np.float32) for code in range(verdicts.max(initial=-1) + 1)
    ]
    answered = (verdicts >= 0).astype(np.float32)
    same, both = sum(indicator.T @ indicator for indicator in indicators), answered.T @ answered
    with np.errstate(invalid="ignore"):
        return np.asarray(same / both, dtype=np.float64)


def _disputed(outcomes: RunOutcomes) -> list[DisputedPair]:
    judging = [n for n, judge in enumerate(outcomes.judges) if not judge.is_baseline]
    table = OutcomesTable(outcomes.table.votes, outcomes.table.verdicts[:, judging])
    games = table.judged().sum(axis=1)
    wrong = games - table.right().sum(axis=1)
    share = wrong / np.maximum(games, 1)
    worst = np.lexsort((outcomes.positions, -wrong, -share))[:MOST_DISPUTED]
    return [
        DisputedPair(position=outcomes.positions[n], wrong=wrong[n], of=games[n])
        for n in worst
        if wrong[n]
    ]


def _unanswerable(outcomes: RunOutcomes) -> Unanswerable | None:
    """Count the votes for choices that judges of an import were, by all signs, not offered."""
    judging = [n for n, judge in enumerate(outcomes.judges) if not judge.is_baseline]
    is_imported = all(outcomes.judges[n].provider == Judge.IMPORTED for n in judging)
    if not judging or not is_imported:
        return None
    votes, verdicts = outcomes.table.votes.sum(axis=0), outcomes.table.verdicts[:, judging]
    without_side = kind_of(outcomes.run.queue).without_side
    choices = [
        choice
        for code, choice in enumerate(outcomes.choices)
        if choice in without_side and votes[code] and not (verdicts == code).any()
    ]
    number = sum(int(votes[outcomes.choices.index(choice)]) for choice in choices)
    return Unanswerable(choices=choices, votes=number) if choices else None


# --- single items -------------------------------------------------------------------------------


def _confusion(outcomes: RunOutcomes) -> Confusion | None:
    table, choices = outcomes.table, outcomes.choices
    if "confusion" not in outcomes.run.queue.figures or len(choices) > MOST_LABELS:
        return None
    by_label = [label_rates(table, outcomes.prompts, code) for code in range(len(choices))]
    matrices = []
    of_judges = zip(
        outcomes.judges, confusion_matrices(table), zip(*by_label, strict=True), strict=True
    )
    for judge, counts, rates in of_judges:
        labels = [replace(rate, label=choice) for choice, rate in zip(choices, rates, strict=True)]
        matrices.append(ConfusionMatrix(judge=str(judge.pk), counts=counts, labels=labels))
    return Confusion(choices=list(choices), judges=matrices)


def _pass_rates(outcomes: RunOutcomes) -> list[PassRates] | None:
    queue, table, number = outcomes.run.queue, outcomes.table, outcomes.models[:, 0]
    if "flags" not in queue.figures or len(outcomes.generators) > MOST_MODELS:
        return None
    passed, votes = table.votes[:, :1], table.votes.sum(axis=1, keepdims=True)
    judged_pass, answered = 1 * (table.verdicts == 0), 1 * (table.verdicts >= 0)
    right, trials = np.hstack([passed, judged_pass]), np.hstack([votes, answered])
    rows = []
    for place, name in enumerate(outcomes.generators):
        generator_rows = number == place
        people, *judges = shares_by_prompt(
            right[generator_rows], trials[generator_rows], outcomes.prompts[generator_rows]
        )
        rows.append(
            PassRates(name=name, outputs=generator_rows.sum(), people=people, judges=judges)
        )
    return [rows[place] for place in best_first([row.people.value for row in rows])]


def _models(outcomes: RunOutcomes) -> tuple[Models | None, str | None]:
    names, judges = outcomes.generators, outcomes.judges
    if "models" not in outcomes.run.queue.figures:
        return None, "Outputs are voted on by themselves here, so no two models are compared."
    if len(names) < 2:
        return None, "The pairs name fewer than two generators."
    if len(names) > MOST_MODELS:
        return None, f"{len(names)} generators are too many to compare."
    raters = [(PEOPLE, "People", False), *((str(j.pk), j.name, j.is_baseline) for j in judges)]
    votes = [outcomes.table.votes, *map(as_votes, outcomes.table.verdicts.T)]
    boards = []
    for place, (rater, name, is_baseline) in enumerate(raters):
        board = model_board(
            outcomes.models, len(names), votes[place], random_draws(outcomes, 5 + place)
        )
        boards.append(replace(board, by=rater, name=name, is_baseline=is_baseline))
    return Models(names=names, boards=boards), None
