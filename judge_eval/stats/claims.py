"""Which judge beats which, in words."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

import numpy as np

from humanjudge.lib.text import number_of
from judge_eval.stats.bootstrap import BoolArray
from judge_eval.stats.bradley_terry import tie_group_members
from judge_eval.stats.estimate import Share

# More names than these are no longer plain words; the matrix names every pair.
MOST_NAMES: Final = 6

_NOBODY_TESTED: Final = (
    "no judge has a verdict on {} with a strict majority of votes, so none can be compared"
)
_BOTH: Final = {1: "", 2: "both", 3: "all three", 4: "all four", 5: "all five", 6: "all six"}


def summary(
    names: Sequence[str],
    beats: BoolArray,
    *,
    votes: int,
    people: int,
    baselines: Collection[int] = (),
    order: Sequence[int] | None = None,
    silent: Collection[int] = (),
    untested: Collection[int] = (),
    beside_people: tuple[Share, Share] | None = None,
    contradicting: Mapping[int, float] | None = None,
    noun: str = "pair",
) -> str:
    """Say in one sentence what the votes show of these judges and baselines.

    `order` has the positions of all, best first. The `silent` have given no verdict at all, and the
    `untested` none on a pair with a strict majority. `beside_people` are a single judge's
    `JudgeFigures.beside_people` and `AmongPeople.votes`; `contradicting` are points of agreement
    that a judge loses by contradicting itself, of which less than one is not said. What is voted on
    is called `noun`.

    Examples
    --------
    >>> beats = np.zeros((4, 4), dtype=bool)
    >>> beats[[0, 1], 2] = True
    >>> print(summary(["A", "B", "C", "random"], beats, votes=120, people=3, baselines=[3]))
    After 120 votes by 3 people: A and B cannot be told apart; both beat C; none beats random.
    """
    if not votes:
        return "There are no votes yet, so nothing can be said about the judges."
    ranked = list(range(len(names)) if order is None else order)
    tested = [n for n in ranked if n not in silent and n not in untested]
    judges = [n for n in tested if n not in baselines]
    words = _Words(names, beats, judges, [n for n in tested if n in baselines])
    others = [n for n in ranked if n in untested and n not in silent] if tested else []
    absent = [
        f"{words.some(those)} {'has' if len(those) == 1 else 'have'} given {what}"
        for those, what in (
            ([n for n in ranked if n in silent], "no verdict"),
            (others, f"none on {_a(noun)} that counts here"),
        )
        if those
    ]
    if ranked and not tested:
        clauses = [_NOBODY_TESTED.format(_a(noun))]
    elif len(judges) > 1:
        clauses = words.in_short() if len(judges) > MOST_NAMES else [*words.in_full()]
    elif judges:
        only = f"{names[judges[0]]} is the only judge"
        clauses = [f"{only} that can be compared" if absent else only]
        clauses += _beside_people(*beside_people, noun) if beside_people else []
    else:
        nobody = "there are only baselines" if words.floor else "there are no judges"
        clauses = [] if absent else [nobody]
    clauses += [*words.against_floor(), *absent, *words.contradicting(contradicting or {})]
    by = f"{people:,} {'person' if people == 1 else 'people'}"
    return f"After {number_of(votes, 'vote')} by {by}: {'; '.join(clauses)}."


@dataclass(frozen=True, eq=False)
class _Words:
    """Clauses about those judges, and baselines, that can be compared; the best ones first."""

    names: Sequence[str]
    beats: BoolArray
    judges: Sequence[int]
    floor: Sequence[int]

    def these(self, which: Sequence[int], word: str = "and") -> str:
        return _joined([self.names[n] for n in which], word)

    def some(self, judges: Sequence[int]) -> str:
        return self.these(judges) if len(judges) <= MOST_NAMES else f"{len(judges)} judges"

    def in_full(self) -> Iterator[str]:
        """Say of every two judges either which one is better or that they cannot be told apart."""
        judges, beats = self.judges, self.beats
        beaten = {j: tuple(other for other in judges if beats[j, other]) for j in judges}
        left = [judge for judge in judges if beaten[judge]]
        for places in tie_group_members(beats[np.ix_(judges, judges)]):
            group = [judges[place] for place in places]
            if len(group) > 1:
                yield f"{self.these(group)} cannot be told apart"
            victims = beaten[group[0]]
            if {beaten[judge] for judge in group} == {victims} and {*group} <= {*left}:
                subject = _BOTH[len(group)] or self.names[group[0]]
                yield _beat(subject, len(group), self.these(victims))
                left = [judge for judge in left if judge not in group]
        for victims in dict.fromkeys(beaten[judge] for judge in left):
            group = [judge for judge in left if beaten[judge] == victims]
            yield _beat(self.these(group), len(group), self.these(victims))

    def in_short(self) -> list[str]:
        among = self.beats[np.ix_(self.judges, self.judges)]
        n, distinct = len(self.judges), int(among.sum())
        unbeaten = [j for at, j in enumerate(self.judges) if not among[:, at].any()]
        if not distinct:
            return [f"no two of the {n} judges can be told apart"]
        if len(unbeaten) > MOST_NAMES:
            first = f"{len(unbeaten)} of the {n} judges are beaten by none"
        elif len(unbeaten) != 1:
            first = f"of {n} judges none beats {self.these(unbeaten, 'or')}"
        else:
            leader, beaten = self.names[unbeaten[0]], self.beats[unbeaten[0], self.judges].sum()
            first = f"{leader} beats {beaten} of the {n - 1} other judges and none beats it"
            if beaten == n - 1:
                first = f"{leader} beats each of the {beaten} other judges"
        return [first, f"{distinct:,} of {comb(n, 2):,} pairs of judges can be told apart"]

    def against_floor(self) -> Iterator[str]:
        """Say who beats the baselines, and whom they beat."""
        judges, n = self.judges, len(self.judges)
        if n == 1 and not self.floor:
            yield "no baseline is on the board, so the floor is not known"
        floor = self.floor if judges else []
        above = {low: tuple(j for j in judges if self.beats[j, low]) for low in floor}
        below = {low: tuple(j for j in judges if self.beats[low, j]) for low in floor}
        end = ", the floor" if n == 1 else ""
        for winners in sorted(set(above.values()), key=len, reverse=True):
            same = [low for low in floor if above[low] == winners]
            if not winners:
                nobody = {1: "it does not beat", 2: "neither beats"}.get(n, "none beats")
                yield f"{nobody} {self.these(same, 'or')}{end}"
            elif len(winners) == n:
                yield _beat({1: "it", 2: "both"}.get(n, "all"), n, self.these(same)) + end
            else:
                many = f"{len(winners)} of the {n} judges"
                some = many if len(winners) > MOST_NAMES else f"only {self.these(winners)}"
                yield _beat(some, len(winners), self.these(same))
        for losers in dict.fromkeys(filter(None, below.values())):
            same = [low for low in floor if below[low] == losers]
            yield _beat(self.these(same), len(same), self.some(losers))

    def contradicting(self, losses: Mapping[int, float]) -> Iterator[str]:
        losers = sorted((n for n in self.judges if losses.get(n, 0) >= 1), key=lambda n: -losses[n])
        texts = [f"{self.names[n]} loses {losses[n]:.0f}" for n in losers[:MOST_NAMES]]
        if texts:
            texts[0] += " point" if round(losses[losers[0]]) == 1 else " points"
            yield f"by contradicting itself {_joined(texts)}"


def _beside_people(judge: Share, people: Share, noun: str) -> list[str]:
    if judge.value is None or people.value is None:
        return [
            f"no two people have voted on the same {noun}, so how far people agree is not known"
        ]
    percents = []
    for share in (judge, people):
        text = f"{100 * (share.value or 0):.1f} %"
        if share.low is not None and share.high is not None:
            text += f" (95 %: {100 * share.low:.0f} to {100 * share.high:.0f})"
        percents.append(text)
    what = f"of the votes on {noun}s that several people voted on it agrees with"
    return [f"{what} {percents[0]}, and people among themselves on {percents[1]}"]


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _beat(subject: str, number: int, victims: str) -> str:
    return f"{subject} {'beats' if number == 1 else 'beat'} {victims}"


def _joined(texts: Sequence[str], word: str = "and") -> str:
    *most, last = texts
    return f"{', '.join(most)} {word} {last}" if most else last
