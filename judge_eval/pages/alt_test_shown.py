"""The Alt-Test as a page shows it: at an epsilon of the reader's choice, from stored rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from humanjudge.lib.text import listed
from judge_eval.stats import (
    EPSILON_GUIDE,
    GRID,
    PASSES,
    AltTestSettings,
    epsilon_advice,
    epsilon_key,
)

EPSILONS = tuple(epsilon_key(epsilon) for epsilon in GRID)
WHO = {epsilon_key(epsilon): who for epsilon, who in EPSILON_GUIDE.items()}
IN_SHORT = {key: who.partition(":")[0].removesuffix(" workers") for key, who in WHO.items()}
MOST_NAMES = 6
Data = Mapping[str, Any]


@dataclass(frozen=True)
class ShownEpsilon:
    key: str
    who: str
    is_chosen: bool


@dataclass(frozen=True)
class ShownRate:
    """A judge's winning rate at one epsilon."""

    rate: float
    is_chosen: bool

    @property
    def passes(self) -> bool:
        return self.rate >= PASSES


@dataclass(frozen=True)
class ShownPerson:
    """One person whom the judge was compared with."""

    name: str
    items: int
    judge: float
    human: float
    p: str
    won: bool


@dataclass(frozen=True)
class ShownJudge:
    """One judge's line; `passes` is None where it could not be tested.

    `people` and `untested` are by name, of very many only some; their numbers are of all.
    """

    id: str
    name: str
    is_baseline: bool
    passes: bool | None
    words: str
    rates: list[ShownRate]
    advantage: float | None
    interval: list[float] | None
    people: list[ShownPerson]
    untested: list[tuple[str, int]]
    n_people: int
    n_untested: int
    items: int
    left_out: list[str]


@dataclass(frozen=True)
class AltTestShown:
    epsilon: str
    epsilons: list[ShownEpsilon]
    summary: str
    judges: list[ShownJudge]
    chosen: ShownJudge | None
    advice: list[str]
    left_out: list[str]
    humans: int
    items: int
    takes: str

    @property
    def is_tested(self) -> bool:
        return any(judge.passes is not None for judge in self.judges)


def guide() -> tuple[list[tuple[str, str]], str]:
    """Return which epsilon goes with which people, and what else there is to know."""
    return list(WHO.items()), epsilon_advice().splitlines()[-1]


def alt_test_shown(data: Data, epsilon: str, judge_id: str = "") -> AltTestShown:
    """Lay out a stored test; the judge asked for, or the best, is shown person by person.

    Parameters
    ----------
    data : mapping
        ``alt_test`` of a run's findings.
    epsilon : str
        One of `EPSILONS`.
    judge_id : str
    """
    judges = [_judge(judge, epsilon) for judge in data["judges"]]
    judges.sort(key=_merit, reverse=True)
    asked = [judge for judge in judges if judge.id == judge_id]
    asked = asked or [judge for judge in judges if not judge.is_baseline]
    return AltTestShown(
        epsilon=epsilon,
        epsilons=[ShownEpsilon(key, IN_SHORT.get(key, ""), key == epsilon) for key in EPSILONS],
        summary=_summary(judges, epsilon),
        judges=judges,
        chosen=next(iter(asked or judges), None),
        advice=data["advice"],
        left_out=data["left_out"],
        humans=data["humans"],
        items=data["items"],
        takes=AltTestSettings().takes,
    )


def _merit(judge: ShownJudge) -> tuple[float, float]:
    rate = next((rate.rate for rate in judge.rates if rate.is_chosen), -1.0)
    return rate, -1.0 if judge.advantage is None else judge.advantage


def _judge(judge: Data, epsilon: str) -> ShownJudge:
    stored = judge["winning_rates"] or {}
    rates = [ShownRate(stored[key], key == epsilon) for key in EPSILONS if key in stored]
    tested = [human for human in judge["humans"] if human["why"] is None]
    people = [_person(human, epsilon) for human in tested]
    untested = [(human["name"], human["items"]) for human in judge["humans"] if human["why"]]
    n_people = judge.get("tested", len(people))
    passes = next((rate.passes for rate in rates if rate.is_chosen), None)
    return ShownJudge(
        id=judge["id"],
        name=judge["name"],
        is_baseline=judge["is_baseline"],
        passes=passes,
        words=judge["words"] if passes is None else _words(stored[epsilon], n_people, epsilon),
        rates=rates,
        advantage=judge["advantage"],
        interval=judge["advantage_interval"],
        people=[] if passes is None else people,
        untested=untested,
        n_people=n_people,
        n_untested=judge.get("untested", len(untested)),
        items=judge.get("items", 0),
        left_out=judge["left_out"],
    )


def _person(human: Data, epsilon: str) -> ShownPerson:
    return ShownPerson(
        name=human["name"],
        items=human["items"],
        judge=human["judge"],
        human=human["human"],
        p=_p(human["p"][epsilon]),
        won=human["rejected"][epsilon],
    )


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _words(rate: float, people: int, epsilon: str) -> str:
    verdict = "Passes" if rate >= PASSES else "Fails"
    won = round(rate * people)
    return f"{verdict} at epsilon {epsilon}: it wins against {won} of {people} people."


def _summary(judges: Sequence[ShownJudge], epsilon: str) -> str:
    tested = [judge for judge in judges if judge.passes is not None]
    parts = [
        part
        for is_baseline, kind in ((False, "judge"), (True, "baseline"))
        for part in _who_passes([j for j in tested if j.is_baseline is is_baseline], kind)
    ]
    return f"At epsilon {epsilon}: {'; '.join(parts)}." if parts else ""


def _who_passes(judges: Sequence[ShownJudge], kind: str) -> list[str]:
    """Say who passes and who fails, by name where they are few."""
    passing = [judge.name for judge in judges if judge.passes]
    failing = [judge.name for judge in judges if not judge.passes]
    if len(judges) > MOST_NAMES:
        return [f"{len(passing)} of {len(judges)} {kind}s pass"]
    if kind == "baseline" and judges and not passing:
        return ["no baseline passes"]
    told = ((passing, "passes", "pass"), (failing, "fails", "fail"))
    return [_did(names, kind, one, many) for names, one, many in told if names]


def _did(names: Sequence[str], kind: str, one: str, many: str) -> str:
    is_one = len(names) == 1
    of_kind = f"the baseline{'' if is_one else 's'} " if kind == "baseline" else ""
    return f"{of_kind}{listed(names)} {one if is_one else many}"
