"""Which prompts count as evidence, in which order, and what each brings for every two judges.

A comparison is complete when its wanted votes are in, and a prompt when all its open comparisons
are. Prompts enter in an order that was fixed beforehand and has nothing to do with who is right:
entering as they are completed would let prompts with few comparisons come first. What has entered
is not changed by later votes.
"""

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.estimate import require
from judge_eval.stats.outcomes_table import NOT_ASKED, Codes

# So many complete prompts may wait behind one that is not, before it is passed over.
MOST_WAITING: Final = 10
_NO_LABEL: Final = -3


class Opened(NamedTuple):
    """A comparison is open for voting, or its verdicts have changed.

    A verdict is the code of a choice, `FAILED` or `NOT_ASKED`; every comparison has one of every
    judge. The last verdicts of a comparison count, also for a prompt that had entered before.
    """

    seq: int
    comparison: int
    prompt: int
    votes_wanted: int
    verdicts: Sequence[int]


class Wanted(NamedTuple):
    """From here on so many votes are wanted on a comparison, unless its prompt is complete."""

    seq: int
    comparison: int
    votes_wanted: int


class Voted(NamedTuple):
    """A vote that counts: it was not taken back, nor left out."""

    seq: int
    comparison: int
    choice: int


class OutOfOrder(NamedTuple):
    """From here on votes come in an order of the voters' own, so that no prompt is passed over.

    Who chooses what to vote on would otherwise choose which prompts enter.
    """

    seq: int


class Closed(NamedTuple):
    """Voting is over: all prompts that are complete enter."""

    seq: int


Event: TypeAlias = Opened | Wanted | Voted | OutOfOrder | Closed


@dataclass(frozen=True, eq=False, slots=True)
class Entered:
    """The n prompts that have entered, in that order, and what each brings for J judges.

    `seqs`, of shape (n,), are the entries with which they entered. `right` and `votes`, of shape
    (n, J), count the first wanted votes on the comparisons that a judge was asked about, and
    `most_votes`, of shape (n,), the most that any prompt might have entered with by then;
    `all_votes` are those of all comparisons. `differences`, of shape (n, J (J - 1) / 2) in the
    order of `numpy.triu_indices(J, 1)`, are D for judge i against j: the mean over the labelled
    comparisons that both were asked about of (i is right) - (j is right); NaN where there is none.
    """

    prompts: tuple[int, ...]
    seqs: IntArray
    right: IntArray
    votes: IntArray
    most_votes: IntArray
    all_votes: int
    differences: FloatArray

    @property
    def n_judges(self) -> int:
        return int(self.right.shape[1])


def enter(events: Iterable[Event], prompt_order: Mapping[int, int] | Sequence[int]) -> Entered:
    """Let prompts enter as the ledger goes on, whose `events` are in its order.

    ``prompt_order[p]`` is the place of prompt p. Of the open prompts the first that has not entered
    enters when it is complete; it is passed over as soon as ten that wait behind it are complete,
    of which the first enters. After `OutOfOrder` none is passed over until `Closed`.

    Examples
    --------
    Both are right about the first of two comparisons, and only the first judge about the other.

    >>> opened = [Opened(1, 0, 0, 1, [0, 0]), Opened(2, 1, 0, 2, [1, 0])]
    >>> votes = [Voted(3, 0, 0), Voted(4, 1, 1), Voted(5, 1, 1), Voted(6, 1, 0)]
    >>> entered = enter([*opened, *votes], [0])
    >>> entered.prompts, entered.seqs.tolist(), entered.differences.tolist()
    ((0,), [5], [[0.5]])
    >>> entered.right.tolist(), entered.votes.tolist(), entered.most_votes.tolist()
    ([[3, 1]], [[3, 3]], [3])
    """
    line = _Line(prompt_order)
    for event in events:
        if isinstance(event, OutOfOrder):
            line.most_waiting = math.inf
        else:
            line.take(event)
    return line.entered()


@dataclass(slots=True)
class _Comparison:
    prompt: int
    votes_wanted: int
    verdicts: Sequence[int]
    choices: list[int] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return len(self.choices) >= self.votes_wanted


class _Entry(NamedTuple):
    """A prompt as it entered: its comparisons, and the first wanted votes on each."""

    prompt: int
    seq: int
    most_votes: int
    votes: list[tuple[int, list[int]]]


class _Line:
    """The prompts that are open and have not entered, in their order."""

    def __init__(self, order: Mapping[int, int] | Sequence[int]) -> None:
        self.order = order
        self.comparisons: dict[int, _Comparison] = {}
        self.of_prompt: dict[int, list[int]] = {}
        self.incomplete: list[tuple[int, int]] = []  # places and prompts
        self.waiting: list[tuple[int, int]] = []
        self.most_votes = 0
        self.most_waiting = float(MOST_WAITING)
        self.entries: dict[int, _Entry] = {}

    def take(self, event: Opened | Wanted | Voted | Closed) -> None:
        if isinstance(event, Closed):
            while self.waiting:
                self._enter_first(event.seq)
            return
        if isinstance(event, Opened):
            self._open(event)
        comparison = self.comparisons[event.comparison]
        if isinstance(event, Voted):
            comparison.choices.append(event.choice)
            if len(comparison.choices) != comparison.votes_wanted:
                return
        elif self._place_of(comparison.prompt) not in self.waiting:
            comparison.votes_wanted = event.votes_wanted
        if comparison.prompt not in self.entries:
            self._place(comparison.prompt)
            self._advance(event.seq)

    def _open(self, event: Opened) -> None:
        known = self.comparisons.get(event.comparison)
        if known:
            known.verdicts = event.verdicts
            return
        opened = _Comparison(event.prompt, event.votes_wanted, event.verdicts)
        self.comparisons[event.comparison] = opened
        self.of_prompt.setdefault(event.prompt, []).append(event.comparison)

    def _place_of(self, prompt: int) -> tuple[int, int]:
        return self.order[prompt], prompt

    def _place(self, prompt: int) -> None:
        """Put a prompt among those that wait to enter, or that votes are missing on."""
        own = [self.comparisons[number] for number in self.of_prompt[prompt]]
        self.most_votes = max(self.most_votes, sum(one.votes_wanted for one in own))
        place = self._place_of(prompt)
        for prompts in (self.incomplete, self.waiting):
            at = bisect_left(prompts, place)
            if at < len(prompts) and prompts[at] == place:
                del prompts[at]
        is_complete = all(one.is_complete for one in own)
        insort(self.waiting if is_complete else self.incomplete, place)

    def _advance(self, seq: int) -> None:
        while self.waiting and (
            len(self.waiting) >= self.most_waiting
            or not self.incomplete
            or self.waiting[0] < self.incomplete[0]
        ):
            self._enter_first(seq)

    def _enter_first(self, seq: int) -> None:
        _, prompt = self.waiting.pop(0)
        numbers = self.of_prompt[prompt]
        known = [(number, self.comparisons[number]) for number in numbers]
        votes = [(number, one.choices[: one.votes_wanted]) for number, one in known]
        self.entries[prompt] = _Entry(prompt, seq, self.most_votes, votes)

    def entered(self) -> Entered:
        entries = list(self.entries.values())
        parts = [part for entry in entries for part in entry.votes]
        verdicts = self._verdicts([number for number, _ in parts])
        choices = np.array([choice for _, of in parts for choice in of], np.int64)
        sizes = np.array([len(of) for _, of in parts], np.int64)
        ends = np.cumsum([len(entry.votes) for entry in entries], dtype=np.int64)
        hits = np.repeat(verdicts, sizes, axis=0) == choices[:, None]
        asked = verdicts != NOT_ASKED
        labels = np.array([_majority(of) for _, of in parts], np.int64)
        return Entered(
            prompts=tuple(self.entries),
            seqs=np.array([entry.seq for entry in entries], np.int64),
            right=_sums(hits, np.append(0, np.cumsum(sizes))[ends]),
            votes=_sums(asked * sizes[:, None], ends),
            most_votes=np.array([entry.most_votes for entry in entries], np.int64),
            all_votes=len(choices),
            differences=_differences(
                verdicts == labels[:, None], asked & (labels != _NO_LABEL)[:, None], ends
            ),
        )

    def _verdicts(self, numbers: Sequence[int]) -> Codes:
        widths = {len(one.verdicts) for one in self.comparisons.values()}
        require(len(widths) < 2, "every comparison needs a code of every judge")
        rows = [self.comparisons[number].verdicts for number in numbers]
        return np.array(rows, np.int16).reshape(len(rows), max(widths, default=0))


def _majority(choices: Sequence[int]) -> int:
    """Return the choice that more than half made."""
    [(choice, number)] = Counter(choices).most_common(1) or [(_NO_LABEL, 0)]
    return choice if 2 * number > len(choices) else _NO_LABEL


def _sums(rows: IntArray | BoolArray, ends: IntArray) -> IntArray:
    """Sum the rows of each prompt, which end before `ends`; whole numbers, so always exact."""
    totals = np.zeros((len(rows) + 1, rows.shape[1]), np.int64)
    np.cumsum(rows, axis=0, out=totals[1:])
    return np.asarray(np.diff(totals[np.append(0, ends)], axis=0))


def _differences(right: BoolArray, counted: BoolArray, ends: IntArray) -> FloatArray:
    """Return D of every prompt for judge i against every later one."""
    judges = right.shape[1]
    columns = [np.zeros((len(ends), 0))]
    for i in range(judges - 1):
        both = counted[:, i, None] & counted[:, i + 1 :]
        gains = np.where(both, right[:, i, None] * 1 - right[:, i + 1 :], 0)
        number = _sums(both, ends).astype(np.float64)
        with np.errstate(invalid="ignore"):
            columns.append(_sums(gains, ends) / number)
    return np.hstack(columns)
