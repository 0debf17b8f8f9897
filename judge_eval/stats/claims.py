"""Which judge beats which: exact McNemar tests on the same comparisons, corrected for their number.

A comparison counts once, with the strict majority of its votes as its label, since votes on it are
not independent. Nothing on the board says that one judge is better than another without this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from judge_eval.stats.estimate import SIGNIFICANCE
from judge_eval.stats.labels import BoolArray, FloatArray, IntArray
from judge_eval.stats.outcomes_table import Codes, OutcomesTable
from judge_eval.stats.ranks import tie_group_members
from judge_eval.stats.shares import Share
from judge_eval.stats.significance import holm, mcnemar

NO_MAJORITY: Final = -1


@dataclass(frozen=True, eq=False, slots=True)
class Claims:
    """What may be claimed of n judges, in the table's order of judges.

    Attributes
    ----------
    beats : bool array, shape (n, n)
        ``beats[i, j]``: judge i is better than judge j.
    p : float array, shape (n, n)
        Two-sided, after Holm's correction; symmetric, 1 on the diagonal.
    p_single : float array, shape (n, n)
        The same before the correction.
    ahead : int array, shape (n, n)
        ``ahead[i, j]``: comparisons that i was right about and j was wrong about.
    together : int array, shape (n, n)
        Labelled comparisons on which both have a verdict.
    right, judged : int array, shape (n,)
        Labelled comparisons that the judge was right about, and on which it has a verdict.
    labelled, unlabelled : int
        Comparisons with votes that have a strict majority, and those that have none.
    """

    beats: BoolArray
    p: FloatArray
    p_single: FloatArray
    ahead: IntArray
    together: IntArray
    right: IntArray
    judged: IntArray
    labelled: int
    unlabelled: int

    @property
    def distinct(self) -> BoolArray:
        """Which two judges are told apart, whichever is better."""
        return self.beats | self.beats.T


def strict_majority(votes: IntArray) -> Codes:
    """Return the choice that more than half of the votes on a comparison made.

    Parameters
    ----------
    votes : int array, shape (n_comparisons, n_choices)

    Returns
    -------
    int8 array, shape (n_comparisons,)
        Position of the choice; `NO_MAJORITY` where there is none.

    Examples
    --------
    Two of three; two of four; no vote at all.

    >>> strict_majority(np.array([[2, 1, 0, 0], [2, 1, 1, 0], [0, 0, 0, 0]])).tolist()
    [0, -1, -1]
    """
    has_one = 2 * votes.max(axis=1) > votes.sum(axis=1)
    return np.where(has_one, votes.argmax(axis=1), NO_MAJORITY).astype(np.int8)


def claims(table: OutcomesTable, significance: float = SIGNIFICANCE) -> Claims:
    """Test every pair of judges.

    Parameters
    ----------
    significance : float
        The chance of any false claim at all among all pairs.

    Examples
    --------
    >>> table = OutcomesTable.of([{"A": 1}] * 6, [["A", "B"]] * 6)
    >>> found = claims(table)
    >>> found.beats.tolist(), found.p[0, 1].item()
    ([[False, True], [False, False]], 0.03125)
    """
    labels = strict_majority(table.votes)
    has_label = labels != NO_MAJORITY
    verdicts = table.verdicts[has_label]
    answered = (verdicts >= 0).astype(np.float64)
    right = (verdicts == labels[has_label, None]).astype(np.float64)
    ahead = _whole(right.T @ (answered - right))
    p_single = mcnemar(ahead, ahead.T)
    np.fill_diagonal(p_single, 1.0)
    p = np.ones_like(p_single)
    upper = np.triu_indices(table.n_judges, k=1)
    p[upper] = holm(p_single[upper])
    p.T[upper] = p[upper]
    return Claims(
        beats=(p <= significance) & (ahead > ahead.T),
        p=p,
        p_single=p_single,
        ahead=ahead,
        together=_whole(answered.T @ answered),
        right=_whole(right.sum(axis=0)),
        judged=_whole(answered.sum(axis=0)),
        labelled=int(has_label.sum()),
        unlabelled=int((table.votes.any(axis=1) & ~has_label).sum()),
    )


def _whole(values: FloatArray) -> IntArray:
    return np.rint(values).astype(np.int64)


# More names than these are no longer plain words; the matrix names every pair.
MOST_NAMES: Final = 6

_NOBODY_TESTED: Final = (
    "no judge has a verdict on a pair with a strict majority of votes, so none can be compared"
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
) -> str:
    """Say what the votes show.

    Parameters
    ----------
    names : sequence of str, length n
        Judges and baselines. They are put into the text as they are.
    beats : bool array, shape (n, n)
        ``Claims.beats``: which is better than which, by Holm-corrected tests.
    votes, people : int
        How many votes count, and by how many people.
    baselines : collection of int
        Which of the judges are baselines.
    order : sequence of int, optional
        Positions of all, best first; the order of names if it is not given.
    silent : collection of int
        Who has given no verdict at all.
    untested : collection of int
        Who has given none on a comparison that counts here, with a strict majority of its votes.
    beside_people : (Share, Share), optional
        A single judge's agreement on comparisons with several votes, and people's with each other:
        `JudgeFigures.beside_people` and `AmongPeople.votes`.
    contradicting : mapping of int to float, optional
        How many points of agreement a judge loses by contradicting itself: its agreement per answer
        less its agreement, in points. Less than one point is not said.

    Returns
    -------
    str
        One sentence.

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
    floor = [n for n in tested if n in baselines]
    absent = _of_absent(names, ranked, silent, untested if tested else ())
    if tested or not ranked:
        clauses = _of_judges(names, beats, judges, floor, is_all=not absent)
    else:
        clauses = [_NOBODY_TESTED]
    if len(judges) == 1:
        clauses += _beside_people(beside_people)
    clauses += _of_floor(names, beats, judges, floor) + absent
    clauses += _of_contradicting(names, judges, contradicting or {})
    by = f"{people:,} {'person' if people == 1 else 'people'}"
    return f"After {votes:,} {'vote' if votes == 1 else 'votes'} by {by}: {'; '.join(clauses)}."


def _of_judges(
    names: Sequence[str], beats: BoolArray, judges: list[int], floor: list[int], *, is_all: bool
) -> list[str]:
    """Compare the judges; `is_all`: none of them is absent from the comparison."""
    if not judges and not is_all:
        return []
    if not judges:
        return ["there are only baselines" if floor else "there are no judges"]
    if len(judges) == 1:
        only = f"{names[judges[0]]} is the only judge"
        return [only if is_all else f"{only} that can be compared"]
    if len(judges) > MOST_NAMES:
        return _in_short(names, beats, judges)
    return _in_full(names, beats, judges)


def _in_full(names: Sequence[str], beats: BoolArray, judges: list[int]) -> list[str]:
    """Say of every two judges either which one is better or that they cannot be told apart."""
    distinct = (beats | beats.T)[np.ix_(judges, judges)]
    beaten = {judge: tuple(other for other in judges if beats[judge, other]) for judge in judges}
    winners_left = [judge for judge in judges if beaten[judge]]
    clauses = []
    for places in tie_group_members(distinct):
        group = [judges[place] for place in places]
        if len(group) > 1:
            clauses.append(f"{_list(names, group)} cannot be told apart")
        same = {beaten[judge] for judge in group}
        if len(same) == 1 and all(judge in winners_left for judge in group):
            subject = _BOTH[len(group)] or names[group[0]]
            clauses.append(_beat(subject, len(group), _list(names, beaten[group[0]])))
            winners_left = [judge for judge in winners_left if judge not in group]
    for victims in dict.fromkeys(beaten[judge] for judge in winners_left):
        group = [judge for judge in winners_left if beaten[judge] == victims]
        clauses.append(_beat(_list(names, group), len(group), _list(names, victims)))
    return clauses


def _in_short(names: Sequence[str], beats: BoolArray, judges: list[int]) -> list[str]:
    """Say of many judges who is not beaten, and how many pairs can be told apart at all."""
    unbeaten = [judge for judge in judges if not beats[judges, judge].any()]
    pairs = list(combinations(judges, 2))
    distinct = sum(bool(beats[a, b] or beats[b, a]) for a, b in pairs)
    if not distinct:
        return [f"no two of the {len(judges)} judges can be told apart"]
    if len(unbeaten) == 1:
        first = _of_leader(names[unbeaten[0]], int(beats[unbeaten[0], judges].sum()), len(judges))
    elif len(unbeaten) > MOST_NAMES:
        first = f"{len(unbeaten)} of the {len(judges)} judges are beaten by none"
    else:
        first = f"of {len(judges)} judges none beats {_list(names, unbeaten, 'or')}"
    return [first, f"{distinct:,} of {len(pairs):,} pairs of judges can be told apart"]


def _of_leader(leader: str, beaten: int, judges: int) -> str:
    if beaten == judges - 1:
        return f"{leader} beats each of the {beaten} other judges"
    return f"{leader} beats {beaten} of the {judges - 1} other judges and none beats it"


def _of_floor(
    names: Sequence[str], beats: BoolArray, judges: list[int], floor: list[int]
) -> list[str]:
    """Say who beats the baselines, and whom they beat."""
    if not judges:
        return []
    if len(judges) == 1 and not floor:
        return ["no baseline is on the board, so the floor is not known"]
    above = {low: tuple(j for j in judges if beats[j, low]) for low in floor}
    below = {low: tuple(j for j in judges if beats[low, j]) for low in floor}
    clauses = []
    for winners in sorted(set(above.values()), key=len, reverse=True):
        same = [low for low in floor if above[low] == winners]
        clauses.append(_against_floor(names, judges, winners, same))
    for losers in dict.fromkeys(below[low] for low in floor if below[low]):
        same = [low for low in floor if below[low] == losers]
        clauses.append(_beat(_list(names, same), len(same), _some(names, losers)))
    return clauses


def _against_floor(
    names: Sequence[str], judges: list[int], winners: tuple[int, ...], floor: list[int]
) -> str:
    end = ", the floor" if len(judges) == 1 else ""
    if not winners:
        nobody = {1: "it does not beat", 2: "neither beats"}
        return f"{nobody.get(len(judges), 'none beats')} {_list(names, floor, 'or')}{end}"
    if len(winners) == len(judges):
        everybody = {1: "it", 2: "both"}.get(len(judges), "all")
        return _beat(everybody, len(judges), _list(names, floor)) + end
    if len(winners) > MOST_NAMES:
        return f"{len(winners)} of the {len(judges)} judges beat {_list(names, floor)}"
    return _beat(f"only {_list(names, winners)}", len(winners), _list(names, floor))


def _beside_people(beside_people: tuple[Share, Share] | None) -> list[str]:
    """Set the only judge beside people: both on the same votes, and without a claim."""
    if beside_people is None:
        return []
    judge, people = beside_people
    if judge.value is None or people.value is None:
        return ["no two people have voted on the same pair, so how far people agree is not known"]
    what = "of the votes on pairs that several people voted on it agrees with"
    return [f"{what} {_percent(judge)}, and people among themselves on {_percent(people)}"]


def _of_contradicting(
    names: Sequence[str], judges: list[int], losses: Mapping[int, float]
) -> list[str]:
    """Say who loses most by answering otherwise when the pair stands the other way round."""
    losers = sorted((n for n in judges if losses.get(n, 0) >= 1), key=lambda n: -losses[n])
    if not losers:
        return []
    first, *others = (f"{names[n]} loses {losses[n]:.0f}" for n in losers[:MOST_NAMES])
    points = "point" if round(losses[losers[0]]) == 1 else "points"
    return [f"by contradicting itself {_joined([f'{first} {points}', *others])}"]


def _percent(share: Share) -> str:
    said = f"{100 * (share.value or 0):.1f} %"
    if share.low is None or share.high is None:
        return said
    return f"{said} (95 %: {100 * share.low:.0f} to {100 * share.high:.0f})"


def _of_absent(
    names: Sequence[str], ranked: Sequence[int], silent: Collection[int], untested: Collection[int]
) -> list[str]:
    """Say who is not compared at all."""
    clauses = []
    mute = [n for n in ranked if n in silent]
    if mute:
        has = "has" if len(mute) == 1 else "have"
        clauses.append(f"{_some(names, mute)} {has} given no verdict")
    others = [n for n in ranked if n in untested and n not in silent]
    if others:
        has = "has" if len(others) == 1 else "have"
        clauses.append(f"{_some(names, others)} {has} given none on a pair that counts here")
    return clauses


def _some(names: Sequence[str], judges: Sequence[int]) -> str:
    return _list(names, judges) if len(judges) <= MOST_NAMES else f"{len(judges)} judges"


def _beat(subject: str, number: int, victims: str) -> str:
    return f"{subject} {'beats' if number == 1 else 'beat'} {victims}"


def _list(names: Sequence[str], which: Sequence[int], word: str = "and") -> str:
    return _joined([names[n] for n in which], word)


def _joined(texts: Sequence[str], word: str = "and") -> str:
    *most, last = texts
    return f"{', '.join(most)} {word} {last}" if most else last
