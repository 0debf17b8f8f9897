"""All figures of a run from its outcomes: pure, and the same every time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from humanjudge.core.text import listed
from judge_eval.board.agreement import (
    agreement_of,
    group_agreement,
    inconsistency_notes,
    order_notes,
)
from judge_eval.board.alt_test import alt_tests
from judge_eval.board.claims import claims_model
from judge_eval.board.corrected import generator_rates
from judge_eval.board.load import JudgeSpending, RunOutcomes
from judge_eval.board.model import (
    MOST_MODELS,
    PEOPLE,
    Confusion,
    ConfusionMatrix,
    DisputedPair,
    FormerClaims,
    GroupFigures,
    JudgeFindings,
    JudgeOfGroup,
    Models,
    OfRatings,
    PassRates,
    RunFindings,
    Unanswerable,
    VoteCourse,
)
from judge_eval.judging.baselines import most_over_floor
from judge_eval.models import Judge
from judge_eval.stats import elo
from judge_eval.stats.bootstrap import BoolArray, FloatArray
from judge_eval.stats.bradley_terry import as_votes, model_board
from judge_eval.stats.claims import claims as claims_of
from judge_eval.stats.elo_orders import SEED, elo_range
from judge_eval.stats.estimate import LabelRates, Share, best_first
from judge_eval.stats.judge_figures import (
    JudgeFigures,
    agreement_by_chance,
    among_people,
    confusion_matrices,
    habits,
    judge_figures,
    label_rates,
    per_answer,
    ratio,
    shares_by_prompt,
)
from judge_eval.stats.mcnemar import mcnemar_tests
from judge_eval.stats.order_agreement import BY_CONSTRUCTION
from judge_eval.stats.outcomes_table import UNASSIGNED, Codes, OutcomesTable
from judge_eval.stats.wording import Words
from voting.items.choices import LABELS
from voting.items.kinds import is_ordered, kind_of
from voting.models import Queue

MOST_DISPUTED = 12
MOST_LABELS = 12
# Of fewer items, as a share of what others were asked about, no judge is the best.
LEAST_ASKED = 0.95
# Of fewer votes no figures of a group are shown, and none of what came before others.
LEAST_OF_GROUP = 10
MOST_LEADING = 5
MOST_PLACES = 50
NO_RATINGS = OfRatings()
FREE_TEXT = (
    "People answer in their own words here, so there is no agreement to count. The answers stand "
    "with each item, and score files compare them with judges' texts."
)
NO_FLAGS = Share(None, why="items are not passed or flagged here")
NO_VERDICT = Share(None, why=elo.SILENT)


def findings(outcomes: RunOutcomes, before: FormerClaims | None = None) -> RunFindings:
    """Compute what a board shows beside the ELO; the run's number is the seed of all draws.

    `before` has the claims made before, to name those that hold no longer.
    """
    table, judges = outcomes.table, outcomes.judges
    is_baseline = np.array([judge.is_baseline for judge in judges], dtype=bool)
    ranked, history = agreement_of(outcomes), outcomes.history
    is_order = ranked.of_ratings is not None
    silent, asked_about = silent_judges(outcomes), partly_asked(outcomes)
    overall = [NO_VERDICT if n in silent else share for n, share in enumerate(ranked.overall)]
    agreement = np.array([np.nan if s.value is None else s.value for s in overall])
    floor = [judge.name for judge in judges if judge.is_baseline]
    most = most_over_floor(floor, by_order=is_order)
    claimed = claims_of(
        ranked.entered,
        is_baseline,
        agreement,
        history.votes_left,
        most,
        outcomes.floor,
        is_silent=np.isin(np.arange(len(judges)), [*silent]),
        margin=outcomes.run.margin if history.margin is None else history.margin,
        by_answer=ranked.by_answer,
        is_partly_asked=np.isin(np.arange(len(judges)), [*asked_about]),
    )
    by_construction = np.array([share.why == BY_CONSTRUCTION for share in overall], dtype=bool)
    lopsided = np.array(ranked.entered.lopsided or [""] * len(judges), dtype=object)
    withheld = np.where(by_construction, BY_CONSTRUCTION, lopsided)
    always = np.where(withheld[:, None] != "", np.nan, claimed.always)
    claims = claims_model(claimed, ranked, outcomes, before)
    order = best_first([share.value for share in overall])
    ranks, floors = claimed.ranks(), claimed.beats_floor()
    letters = claimed.letters([n for n in order if overall[n].n])
    baselines = dict(enumerate(is_baseline.tolist()))
    tuned = dict.fromkeys((n for n, judge in enumerate(judges) if judge.is_tuned), elo.TUNED_JUDGE)
    unrated = elo.unrated(
        baselines, tuned | dict.fromkeys(silent, elo.SILENT), are_ratings=is_order
    )
    figures = judge_figures(table, outcomes.prompts, _rng(outcomes, 0), unrated=unrated)
    among = among_people(table.votes, outcomes.prompts)
    if ranked.people:
        among = replace(among, pairs=ranked.people)
    [left] = shares_by_prompt(outcomes.left[:, None], outcomes.sided[:, None], outcomes.prompts)
    consistency, first_position = habits(*outcomes.habits, outcomes.prompts)
    elo_ranges = _elo_ranges(outcomes, figures)
    single = per_answer(table.votes, outcomes.answers, outcomes.prompts)
    flags = [LabelRates(sensitivity=NO_FLAGS, specificity=NO_FLAGS)] * len(judges)
    if "flags" in outcomes.run.queue.figures:
        flags = label_rates(table, outcomes.prompts, outcomes.choices.index("flag"))
    judge_findings = [
        JudgeFindings(
            id=str(judge.pk),
            name=judge.name,
            description=judge.description,
            is_baseline=judge.is_baseline,
            overall=overall[place],
            always_low=always[place, 0],
            always_high=always[place, 1],
            always_why=withheld[place],
            two_way_low=ranked.two_way[0, place],
            two_way_high=ranked.two_way[1, place],
            rank_low=rank and rank[0],
            rank_high=rank and rank[1],
            ties=letters[place],
            beats_floor=floors[place],
            rating=figure.rating,
            agreement=figure.agreement,
            beside_people=figure.beside_people,
            per_answer=single[place],
            coverage=figure.coverage,
            sensitivity=flags[place].sensitivity,
            specificity=flags[place].specificity,
            consistency=consistency[place],
            self_agreement=outcomes.repeats[place].share,
            flips=outcomes.repeats[place].flips,
            is_tuned=judge.is_tuned,
            is_silent=place in silent,
            silent_why=silent.get(place, ""),
            first_position=first_position[place],
            elo_other_orders_low=elo_ranges[0, place],
            elo_other_orders_high=elo_ranges[1, place],
            is_of_file=2 * history.imported > len(history.votes),
            of_ratings=ranked.of_ratings[place] if ranked.of_ratings else NO_RATINGS,
            **_prices(outcomes.spent[place], figure.agreement.value),
        )
        for place, (judge, figure, rank) in enumerate(zip(judges, figures, ranks, strict=True))
    ]
    voters = {history.people[person] for *_, person in history.votes}
    words = Words(
        [judge.name for judge in judges],
        claimed,
        order,
        [share.value for share in overall],
        [figure.coverage.value for figure in figures],
        votes=outcomes.counted_votes.votes,
        voters=len(voters - {None}),
        labels=None in voters,
        prompts=len(np.unique(outcomes.prompts[table.votes.any(axis=1)])),
        differences=ranked.differences,
        people=among.pairs.value,
        people_low=among.pairs.low,
        chance=0.5 if is_order else agreement_by_chance(table.votes),
        contradicting={
            n: 100 * (share.value - figure.agreement.value)
            for n, (share, figure) in enumerate(zip(single, figures, strict=True))
            if share.value is not None and figure.agreement.value is not None
        },
        itself={
            n: repeats.share.value
            for n, repeats in enumerate(outcomes.repeats)
            if repeats.share.value is not None
        },
        identical=identical_judges(ranked.compared, is_baseline),
        impossible=_impossible_verdicts(outcomes),
        withdrawn=[
            (withdrawal.judge, withdrawal.other, withdrawal.why) for withdrawal in claims.withdrawn
        ],
        noun=kind_of(outcomes.run.queue).noun,
        descriptions={n: judge.description for n, judge in enumerate(judges) if judge.description},
        part="" if outcomes.parts else outcomes.counted_votes.part,
        asked_about=asked_about,
        is_tuning=outcomes.run.queue.is_tuning,
        by_order=is_order,
    )
    models, models_why = _models(outcomes)
    alt_test, alt_test_why, further_tests = alt_tests(
        outcomes.run, judges, outcomes.tasks, outcomes.counted_votes.votes
    )
    alike: Any = same_verdict(table.verdicts)
    is_free = outcomes.run.queue.kind == Queue.Kind.TEXT and outcomes.counted_votes.votes > 0
    return RunFindings(
        as_of=outcomes.counted_votes,
        words=FREE_TEXT if is_free else " ".join(words.headline()),
        may_stop=words.may_stop and not is_free,
        carrier=words.carried and history.people[claimed.carriers[words.carried]],
        more=[] if is_free else [f"{lead}: {text}" for lead, text in words.points()],
        notes=[
            *words.notes(),
            *inconsistency_notes(outcomes, overall, words),
            *order_notes(ranked, words),
            *_tuning_notes(outcomes),
        ],
        left_out=outcomes.left_out,
        judges=judge_findings,
        claims=claims,
        mcnemar=mcnemar_tests(
            _labelled(outcomes), np.flatnonzero(is_baseline).tolist(), outcomes.floor
        ),
        same_verdict=alike,
        among_people=among,
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
        course=_course(outcomes, [n for n in order if overall[n].n and not is_baseline[n]]),
        groups=_groups(outcomes),
        **({"parts": outcomes.parts} if outcomes.parts else {}),
    )


def silent_judges(outcomes: RunOutcomes) -> dict[int, str]:
    """Return the places of judges without a verdict on what was voted on, and why, if it is known.

    Before anybody has voted nobody is silent.
    """
    speaks = outcomes.table.judged().any(axis=0)
    if not outcomes.table.votes.any():
        return {}
    places = np.flatnonzero(~speaks).tolist()
    return {n: outcomes.failures.get(outcomes.judges[n].pk, "") for n in places}


def partly_asked(outcomes: RunOutcomes) -> dict[int, tuple[int, int]]:
    """Return the places of judges asked on fewer than 95 % of the voted items of another judge.

    Each with how many items it was asked about, and the most of another. Who was tuned here has
    figures of the half that was held out.
    """
    table = outcomes.table
    asked_counts = (table.verdicts[table.votes.any(axis=1)] != UNASSIGNED).sum(axis=0).tolist()
    judges = [
        n
        for n, judge in enumerate(outcomes.judges)
        if asked_counts[n] and not judge.is_baseline and not judge.is_tuned
    ]
    most = max((asked_counts[n] for n in judges), default=0)
    return {n: (asked_counts[n], most) for n in judges if asked_counts[n] < LEAST_ASKED * most}


def _tuning_notes(outcomes: RunOutcomes) -> Iterator[str]:
    if outcomes.run.queue.is_tuning:
        yield "Judges are being tuned: these figures are of the tuning half, without variants."
    if tuned := [judge.name for judge in outcomes.judges if judge.is_tuned]:
        yield (
            f"Tuned on votes of this run: {listed(tuned)}. Their figures are of the half that was "
            "held out, and so is what is claimed of them; they have no ELO."
        )


def _elo_ranges(outcomes: RunOutcomes, figures: Sequence[JudgeFigures]) -> FloatArray:
    """Return each judge's range of ELO in other orders, shape (2, n_judges); NaN without one."""
    ranges = np.full((2, len(figures)), np.nan)
    players = [place for place, figure in enumerate(figures) if figure.rating.n]
    # A part of a run has no ELO of its own.
    if players and outcomes.parts:
        rows, choices, _ = np.array(outcomes.history.votes, dtype=np.int64).reshape(-1, 3).T
        verdicts = outcomes.table.verdicts[:, players]
        rng = np.random.default_rng(SEED)
        ranges[:, players] = elo_range(rows, choices, verdicts, rng)
    return ranges


def _labelled(outcomes: RunOutcomes) -> OutcomesTable:
    """Return what exact tests are made of: nothing where votes are ratings."""
    table = outcomes.table
    return table.select(slice(0)) if is_ordered(outcomes.run.queue) else table


def _rng(outcomes: RunOutcomes, part: int) -> np.random.Generator:
    return np.random.default_rng([outcomes.run.pk.int, part])


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


class Prices(TypedDict):
    cost_usd: float | None
    seconds_per_verdict: float | None
    cost_per_verdict_usd: float | None
    cost_per_correct_usd: float | None
    cost_why: str | None


def _prices(spent: JudgeSpending, agreement: float | None) -> Prices:
    verdict_cost = spent.usd / spent.verdicts if spent.usd is not None and spent.verdicts else None
    correct_cost = verdict_cost / agreement if verdict_cost is not None and agreement else None
    nothing = "None of its verdicts was right." if spent.verdicts else "It has given no verdict."
    return {
        "cost_usd": spent.usd,
        "seconds_per_verdict": spent.seconds,
        "cost_per_verdict_usd": verdict_cost,
        "cost_per_correct_usd": correct_cost,
        "cost_why": spent.reason or (nothing if correct_cost is None else None),
    }


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


def identical_judges(compared: Codes | FloatArray, is_baseline: BoolArray) -> list[list[int]]:
    """Return groups of those that answered the same on every comparison, not all baselines.

    `compared` has shape (n_comparisons, n_judges): codes, or scores with NaN for none.
    """
    groups: dict[bytes, list[int]] = {}
    for place in np.flatnonzero((compared >= 0).any(axis=0)).tolist():
        groups.setdefault(compared[:, place].tobytes(), []).append(place)
    return [group for group in groups.values() if len(group) > 1 and not is_baseline[group].all()]


def _impossible_verdicts(outcomes: RunOutcomes) -> dict[str, dict[int, int]]:
    """Count verdicts, by choice and judge, that no vote equals and none can."""
    queue, table = outcomes.run.queue, outcomes.table
    without_side = kind_of(queue).without_side
    offered = queue.ballot if queue.is_open else []
    return {
        LABELS[choice]: dict(enumerate((table.verdicts == code).sum(axis=0).tolist()))
        for code, choice in enumerate(outcomes.choices)
        if choice in without_side and not table.votes[:, code].any() and choice not in offered
    }


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
        board = model_board(outcomes.models, len(names), votes[place], _rng(outcomes, 5 + place))
        boards.append(replace(board, by=rater, name=name, is_baseline=is_baseline))
    return Models(names=names, boards=boards), None
