"""The judges of a run against each other: what a board says of each, and in words."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from judge_eval.board.agreement import (
    agreement_of,
)
from judge_eval.board.load import JudgeSpending, RunOutcomes
from judge_eval.board.model import (
    Claims,
    JudgeFindings,
    OfRatings,
)
from judge_eval.judging.baselines import most_over_floor
from judge_eval.stats import elo
from judge_eval.stats.bootstrap import BoolArray, FloatArray
from judge_eval.stats.claims import JudgeClaims
from judge_eval.stats.claims import claims as claims_of
from judge_eval.stats.elo_orders import SEED, elo_range
from judge_eval.stats.estimate import AmongPeople, LabelRates, Share, best_first
from judge_eval.stats.judge_figures import (
    JudgeFigures,
    agreement_by_chance,
    among_people,
    habits,
    judge_figures,
    label_rates,
    per_answer,
)
from judge_eval.stats.order_agreement import BY_CONSTRUCTION
from judge_eval.stats.outcomes_table import UNASSIGNED, Codes
from judge_eval.stats.wording import Words
from voting.items.choices import LABELS
from voting.items.kinds import kind_of

# Of fewer items, as a share of what others were asked about, no judge is the best.
LEAST_ASKED = 0.95
NO_RATINGS = OfRatings()
NO_FLAGS = Share(None, why="items are not passed or flagged here")
NO_VERDICT = Share(None, why=elo.SILENT)


class ComparedJudges:
    """The judges of a run against each other; each figure is a list in their order."""

    def __init__(self, outcomes: RunOutcomes) -> None:
        self.outcomes, self.judges = outcomes, outcomes.judges
        self.is_baseline = np.array([judge.is_baseline for judge in self.judges], dtype=bool)
        self.ranked = agreement_of(outcomes)
        self.is_order = self.ranked.of_ratings is not None
        self.silent, self.asked_about = silent_judges(outcomes), partly_asked(outcomes)
        self.overall = [
            NO_VERDICT if n in self.silent else share for n, share in enumerate(self.ranked.overall)
        ]
        self.order = best_first([share.value for share in self.overall])

    @cached_property
    def claimed(self) -> JudgeClaims:
        """What the votes speak for, in the order in which they came."""
        ranked, outcomes = self.ranked, self.outcomes
        history, places = outcomes.history, np.arange(len(self.judges))
        floor = [judge.name for judge in self.judges if judge.is_baseline]
        return claims_of(
            ranked.entered,
            self.is_baseline,
            np.array([np.nan if share.value is None else share.value for share in self.overall]),
            history.votes_left,
            most_over_floor(floor, by_order=self.is_order),
            outcomes.floor,
            is_silent=np.isin(places, [*self.silent]),
            margin=outcomes.run.margin if history.margin is None else history.margin,
            by_answer=ranked.by_answer,
            is_partly_asked=np.isin(places, [*self.asked_about]),
        )

    @cached_property
    def withheld(self) -> np.ndarray[Any, Any]:
        """Why a judge has no interval that always holds; empty where it has one."""
        by_construction = [share.why == BY_CONSTRUCTION for share in self.overall]
        lopsided = np.array(self.ranked.entered.lopsided or [""] * len(self.judges), dtype=object)
        return np.where(np.array(by_construction, dtype=bool), BY_CONSTRUCTION, lopsided)

    @cached_property
    def figures(self) -> list[JudgeFigures]:
        unrated = elo.unrated(
            dict(enumerate(self.is_baseline.tolist())),
            dict.fromkeys(
                (n for n, judge in enumerate(self.judges) if judge.is_tuned), elo.TUNED_JUDGE
            )
            | dict.fromkeys(self.silent, elo.SILENT),
            are_ratings=self.is_order,
        )
        outcomes = self.outcomes
        return judge_figures(
            outcomes.table, outcomes.prompts, random_draws(outcomes, 0), unrated=unrated
        )

    @cached_property
    def single_answers(self) -> list[Share]:
        outcomes = self.outcomes
        return per_answer(outcomes.table.votes, outcomes.answers, outcomes.prompts)

    @cached_property
    def among_people(self) -> AmongPeople:
        among = among_people(self.outcomes.table.votes, self.outcomes.prompts)
        return replace(among, pairs=self.ranked.people) if self.ranked.people else among

    def judge_findings(self) -> list[JudgeFindings]:
        """Return a row of the board for each judge."""
        outcomes, ranked, claimed = self.outcomes, self.ranked, self.claimed
        always = np.where(self.withheld[:, None] != "", np.nan, claimed.always)
        ranks, floors = claimed.ranks(), claimed.beats_floor()
        letters = claimed.letters([n for n in self.order if self.overall[n].n])
        consistency, first_position = habits(*outcomes.habits, outcomes.prompts)
        elo_ranges = _elo_ranges(outcomes, self.figures)
        flags = [LabelRates(sensitivity=NO_FLAGS, specificity=NO_FLAGS)] * len(self.judges)
        if "flags" in outcomes.run.queue.figures:
            flag = outcomes.choices.index("flag")
            flags = label_rates(outcomes.table, outcomes.prompts, flag)
        is_of_file = 2 * outcomes.history.imported > len(outcomes.history.votes)
        return [
            JudgeFindings(
                id=str(judge.pk),
                name=judge.name,
                description=judge.description,
                is_baseline=judge.is_baseline,
                overall=self.overall[place],
                always_low=always[place, 0],
                always_high=always[place, 1],
                always_why=self.withheld[place],
                two_way_low=ranked.two_way[0, place],
                two_way_high=ranked.two_way[1, place],
                rank_low=rank and rank[0],
                rank_high=rank and rank[1],
                ties=letters[place],
                beats_floor=floors[place],
                rating=figure.rating,
                agreement=figure.agreement,
                beside_people=figure.beside_people,
                per_answer=self.single_answers[place],
                coverage=figure.coverage,
                sensitivity=flags[place].sensitivity,
                specificity=flags[place].specificity,
                consistency=consistency[place],
                self_agreement=outcomes.repeats[place].share,
                flips=outcomes.repeats[place].flips,
                is_tuned=judge.is_tuned,
                is_silent=place in self.silent,
                silent_why=self.silent.get(place, ""),
                first_position=first_position[place],
                elo_other_orders_low=elo_ranges[0, place],
                elo_other_orders_high=elo_ranges[1, place],
                is_of_file=is_of_file,
                of_ratings=ranked.of_ratings[place] if ranked.of_ratings else NO_RATINGS,
                **_prices(outcomes.spent[place], figure.agreement.value),
            )
            for place, (judge, figure, rank) in enumerate(
                zip(self.judges, self.figures, ranks, strict=True)
            )
        ]

    def words(self, claims: Claims) -> Words:
        """Return what is said of the judges; `claims` name those that hold no longer."""
        outcomes, history, table = self.outcomes, self.outcomes.history, self.outcomes.table
        voters = {history.people[person] for *_, person in history.votes}
        people = self.among_people.pairs
        return Words(
            [judge.name for judge in self.judges],
            self.claimed,
            self.order,
            [share.value for share in self.overall],
            [figure.coverage.value for figure in self.figures],
            votes=outcomes.counted_votes.votes,
            voters=len(voters - {None}),
            labels=None in voters,
            prompts=len(np.unique(outcomes.prompts[table.votes.any(axis=1)])),
            differences=self.ranked.differences,
            people=people.value,
            people_low=people.low,
            chance=0.5 if self.is_order else agreement_by_chance(table.votes),
            contradicting={
                n: 100 * (share.value - figure.agreement.value)
                for n, (share, figure) in enumerate(
                    zip(self.single_answers, self.figures, strict=True)
                )
                if share.value is not None and figure.agreement.value is not None
            },
            itself={
                n: repeats.share.value
                for n, repeats in enumerate(outcomes.repeats)
                if repeats.share.value is not None
            },
            identical=identical_judges(self.ranked.compared, self.is_baseline),
            impossible=_impossible_verdicts(outcomes),
            withdrawn=[
                (withdrawal.judge, withdrawal.other, withdrawal.why)
                for withdrawal in claims.withdrawn
            ],
            noun=kind_of(outcomes.run.queue).noun,
            descriptions={
                n: judge.description for n, judge in enumerate(self.judges) if judge.description
            },
            part="" if outcomes.parts else outcomes.counted_votes.part,
            asked_about=self.asked_about,
            is_tuning=outcomes.run.queue.is_tuning,
            by_order=self.is_order,
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


def random_draws(outcomes: RunOutcomes, part: int) -> np.random.Generator:
    return np.random.default_rng([outcomes.run.pk.int, part])


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
