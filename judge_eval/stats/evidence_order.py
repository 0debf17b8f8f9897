"""Which prompts count as evidence, in which order, and what each brings for every two judges.

A comparison is complete when its wanted votes are in, and a prompt when all its open comparisons
are. Prompts enter in an order that was fixed beforehand and has nothing to do with who is right:
entering as they are completed would let prompts with few comparisons come first. What has entered
is not changed by later votes. A prompt counts by its votes, and a very large one is cut, since it
would otherwise outweigh all others.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np

from humanjudge.core.text import fixed
from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.estimate import require
from judge_eval.stats.judge_figures import ratio
from judge_eval.stats.outcomes_table import UNASSIGNED, Codes

# So many complete prompts may wait behind one that is not, before it is passed over.
MOST_WAITING: Final = 10
# A prompt enters with at most so many times the median of the votes on a prompt.
MOST_MEDIANS: Final = 4
# The voter of labels that are no single person's.
NOBODY: Final = -1


class ItemOpened(NamedTuple):
    """A comparison is open for voting, or its verdicts have changed.

    A verdict is the code of a choice, `FAILED` or `UNASSIGNED`; every comparison has one of every
    judge. The last verdicts of a comparison count, also for a prompt that had entered before.
    """

    seq: int
    comparison: int
    prompt: int
    votes_wanted: int
    verdicts: Sequence[int]


class VotesRequired(NamedTuple):
    """From here on so many votes are wanted on a comparison, unless its prompt is complete."""

    seq: int
    comparison: int
    votes_wanted: int


class VoteCast(NamedTuple):
    """A vote that counts: it was not taken back, nor left out. Labels of a file are `NOBODY`'s."""

    seq: int
    comparison: int
    choice: int
    voter: int = NOBODY


class OutOfOrder(NamedTuple):
    """From here on votes come in an order of the voters' own, so that no prompt is passed over.

    Who chooses what to vote on would otherwise choose which prompts enter.
    """

    seq: int


class ItemClosed(NamedTuple):
    """Voting is over: all prompts that are complete enter."""

    seq: int


Event: TypeAlias = ItemOpened | VotesRequired | VoteCast | OutOfOrder | ItemClosed


@dataclass(frozen=True, eq=False, slots=True)
class EnteredVotes:
    """The n prompts that have entered, in that order, and what each brings for J judges.

    `seqs`, of shape (n,), are the entries with which they entered. `right` and `votes`, of shape
    (n, J), are the votes with which they entered on the comparisons that a judge was asked about,
    and those of them on which it is right, which may be fractions. `most_votes`, of shape (n,), are
    n_max: the most that any prompt might have entered with by then.

    `shared` and `differences`, of shape (n, J (J - 1) / 2) in the order of
    `numpy.triu_indices(J, 1)`, are of judge i against j: the votes on comparisons that both were
    asked about, and D, by how many more of these i is right than j, divided by n_max; NaN where
    there are none.

    `all_votes` are all first wanted votes on the prompts that entered. `planned` are the votes with
    which each open prompt may enter, and `cut` is how many prompts that leaves out votes of; each
    has so many `required` votes. `rest` are those of `planned` of prompts that have not entered.
    `lopsided` says of each judge which part of its votes is on prompts that are cut, so that what
    entered says something else than all of them; empty where none is.

    `vote_numbers`, of shape (n,), are how many votes there were when a prompt entered. `carriers`,
    of shape (J, J), are the voters without whose votes the row is no longer ahead of the column, or
    `NOBODY`.
    """

    prompts: tuple[int, ...]
    seqs: IntArray
    right: IntArray | FloatArray
    votes: IntArray
    most_votes: IntArray
    shared: IntArray
    differences: FloatArray
    all_votes: int
    planned: IntArray
    required: IntArray
    rest: IntArray
    vote_numbers: IntArray
    carriers: IntArray
    cut: int = 0
    lopsided: tuple[str, ...] = ()

    @property
    def n_judges(self) -> int:
        return int(self.right.shape[1])


Order: TypeAlias = Mapping[int, int] | Sequence[int]


def enter(
    events: Iterable[Event], prompt_order: Order, comparison_order: Order | None = None
) -> EnteredVotes:
    """Let prompts enter as the ledger goes on, whose `events` are in its order.

    ``prompt_order[p]`` is the place of prompt p, and ``comparison_order[c]`` that of comparison c
    among those of its prompt; without it they are in the order of their numbers. Of the open
    prompts the first that has not entered enters when it is complete; it is passed over as soon as
    ten that wait behind it are complete, of which the first enters. After `OutOfOrder` none is
    passed over until `ItemClosed`.

    A prompt enters with at most `MOST_MEDIANS` times the median of the votes wanted on a prompt,
    those on its first comparisons.

    Examples
    --------
    Both are right about the first of two comparisons, and only the first judge about the other.

    >>> opened = [ItemOpened(1, 0, 0, 1, [0, 0]), ItemOpened(2, 1, 0, 2, [1, 0])]
    >>> votes = [VoteCast(3, 0, 0), VoteCast(4, 1, 1), VoteCast(5, 1, 1), VoteCast(6, 1, 0)]
    >>> entered = enter([*opened, *votes], [0])
    >>> entered.prompts, entered.seqs.tolist(), entered.differences.tolist()
    ((0,), [5], [[0.6666666666666666]])
    >>> entered.right.tolist(), entered.votes.tolist(), entered.most_votes.tolist()
    ([[3, 1]], [[3, 3]], [3])
    """
    return PromptQueue(prompt_order, comparison_order).follow(events).entered()


@dataclass(slots=True)
class _Comparison:
    prompt: int
    votes_wanted: int
    verdicts: Sequence[int]
    choices: list[int] = field(default_factory=list)
    voters: list[int] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return len(self.choices) >= self.votes_wanted


class EnteredPrompt(NamedTuple):
    """A prompt as it entered: its comparisons, and the votes on each with which it did.

    `voters` are those of the votes one after another; there were so many votes in all by then.
    """

    seq: int
    most_votes: int
    votes: list[tuple[int, list[int]]]
    voters: list[int]
    vote_number: int
    is_cut: bool


class PromptQueue:
    """The prompts that are open and have not entered, in their order."""

    def __init__(
        self, order: Order, comparison_order: Order | None = None, *, are_units: bool = False
    ) -> None:
        self.order = order
        # Units count once, so none is cut; alone in its unit nothing can be compared.
        self.are_units = are_units
        self.comparison_order = comparison_order
        self.comparisons: dict[int, _Comparison] = {}
        self.of_prompt: dict[int, list[int]] = {}
        self.incomplete: list[tuple[int, int]] = []  # places and prompts
        self.waiting: list[tuple[int, int]] = []
        # Votes wanted by prompt, also of those that entered, and these numbers in order, without 0.
        self.sizes: dict[int, int] = {}
        self.sorted_sizes: list[int] = []
        self.most_votes = 0
        self.most_waiting = float(MOST_WAITING)
        self.votes = 0
        self.entries: dict[int, EnteredPrompt] = {}

    def follow(self, events: Iterable[Event]) -> Self:
        """Take the events of a ledger."""
        for event in events:
            if isinstance(event, OutOfOrder):
                self.most_waiting = math.inf
            else:
                self._take(event)
        return self

    def _take(self, event: ItemOpened | VotesRequired | VoteCast | ItemClosed) -> None:
        if isinstance(event, ItemClosed):
            while self.waiting:
                self._enter_first(event.seq)
            return
        if isinstance(event, ItemOpened):
            self._open(event)
        comparison = self.comparisons[event.comparison]
        if isinstance(event, VoteCast):
            self.votes += 1
            comparison.choices.append(event.choice)
            comparison.voters.append(event.voter)
            if len(comparison.choices) != comparison.votes_wanted:
                return
        elif self._place_of(comparison.prompt) not in self.waiting:
            comparison.votes_wanted = event.votes_wanted
        if comparison.prompt not in self.entries:
            self._place(comparison.prompt)
            self._advance(event.seq)

    def _open(self, event: ItemOpened) -> None:
        existing = self.comparisons.get(event.comparison)
        if existing:
            existing.verdicts = event.verdicts
            return
        opened = _Comparison(event.prompt, event.votes_wanted, event.verdicts)
        self.comparisons[event.comparison] = opened
        self.of_prompt.setdefault(event.prompt, []).append(event.comparison)

    def _place_of(self, prompt: int) -> tuple[int, int]:
        return self.order[prompt], prompt

    def _place(self, prompt: int) -> None:
        """Put a prompt among those that wait to enter, or that votes are missing on."""
        prompt_comparisons = [self.comparisons[number] for number in self.of_prompt[prompt]]
        if self.are_units and len(prompt_comparisons) < 2:
            return
        if before := self.sizes.get(prompt):
            del self.sorted_sizes[bisect_left(self.sorted_sizes, before)]
        self.sizes[prompt] = sum(comparison.votes_wanted for comparison in prompt_comparisons)
        if self.sizes[prompt]:
            insort(self.sorted_sizes, self.sizes[prompt])
        place = self._place_of(prompt)
        for prompts in (self.incomplete, self.waiting):
            index = bisect_left(prompts, place)
            if index < len(prompts) and prompts[index] == place:
                del prompts[index]
        is_complete = all(comparison.is_complete for comparison in prompt_comparisons)
        insort(self.waiting if is_complete else self.incomplete, place)

    def _advance(self, seq: int) -> None:
        while self.waiting and (
            len(self.waiting) >= self.most_waiting
            or not self.incomplete
            or self.waiting[0] < self.incomplete[0]
        ):
            self._enter_first(seq)

    def _most(self) -> tuple[int, int]:
        """Return where prompts are cut, and the most votes that one may enter with.

        Prompts on which no votes are wanted make no median.
        """
        sizes = self.sorted_sizes
        if not sizes:
            return 0, 0
        cut = MOST_MEDIANS * (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) // 2
        return cut, min(cut, sizes[-1])

    def _enter_first(self, seq: int) -> None:
        _, prompt = self.waiting.pop(0)
        left, most = self._most()
        left = self.sizes[prompt] if self.are_units else left
        is_cut = self.sizes[prompt] > left
        self.most_votes = max(self.most_votes, most)
        votes: list[tuple[int, list[int]]] = []
        voters: list[int] = []
        for number in self._in_order(self.of_prompt[prompt]):
            comparison = self.comparisons[number]
            most_taken = min(comparison.votes_wanted, left)
            votes.append((number, comparison.choices[:most_taken]))
            voters += comparison.voters[:most_taken]
            left -= len(votes[-1][1])
        self.entries[prompt] = EnteredPrompt(
            seq, self.most_votes, votes, voters, self.votes, is_cut
        )

    def _in_order(self, comparisons: Iterable[int]) -> list[int]:
        order = self.comparison_order
        return sorted(comparisons, key=None if order is None else order.__getitem__)

    def entered(self, only: int | None = None) -> EnteredVotes:
        """Return what has entered; with `only`, of its votes those for this choice."""
        entries = list(self.entries.values())
        parts = [part for entry in entries for part in entry.votes]
        verdicts = self._verdicts([number for number, _ in parts])
        choices = np.array(
            [choice for _, part_choices in parts for choice in part_choices], np.int64
        )
        voters = np.array([voter for entry in entries for voter in entry.voters], np.int64)
        of_part = np.repeat(np.arange(len(parts)), [len(part_choices) for _, part_choices in parts])
        if only is not None:
            is_wanted = choices == only
            choices, voters, of_part = choices[is_wanted], voters[is_wanted], of_part[is_wanted]
        sizes = np.bincount(of_part, minlength=len(parts)).astype(np.int64)
        ends = np.cumsum([len(entry.votes) for entry in entries], dtype=np.int64)
        verdicts_of_votes = verdicts[of_part]
        is_right = verdicts_of_votes == choices[:, None]
        right = _sums(is_right, np.cumsum(sizes, dtype=np.int64))
        assigned = (verdicts != UNASSIGNED) * sizes[:, None]
        most_votes = np.array([entry.most_votes for entry in entries], np.int64)
        shared, apart = _apart(right, assigned, ends)
        required = np.array([*self.sizes.values()], np.int64)
        most, _ = self._most()
        return EnteredVotes(
            prompts=tuple(self.entries),
            seqs=np.array([entry.seq for entry in entries], np.int64),
            right=_sums(right, ends),
            votes=_sums(assigned, ends),
            most_votes=most_votes,
            shared=shared,
            differences=ratio(apart.astype(np.float64), np.where(shared, most_votes[:, None], 0.0)),
            all_votes=sum(self.sizes[prompt] for prompt in self.entries),
            planned=np.minimum(required, most),
            required=required,
            rest=np.minimum(required[[p not in self.entries for p in self.sizes]], most),
            vote_numbers=np.array([entry.vote_number for entry in entries], np.int64),
            carriers=carriers(*_without_voters(voters, is_right, verdicts_of_votes != UNASSIGNED)),
            cut=int((required > most).sum()),
            lopsided=self._lopsided(most),
        )

    def _lopsided(self, most: int) -> tuple[str, ...]:
        cut = {prompt for prompt, entry in self.entries.items() if entry.is_cut}
        cut |= {prompt for prompt in self.sizes.keys() - self.entries if self.sizes[prompt] > most}
        voted = {
            number: comparison
            for number, comparison in self.comparisons.items()
            if comparison.choices
        }
        if not cut & {comparison.prompt for comparison in voted.values()}:
            return ()
        prompts = np.array([comparison.prompt for comparison in voted.values()])
        sizes = np.array([len(comparison.choices) for comparison in voted.values()])
        is_cut, words = np.isin(prompts, [*cut]), []
        for was_asked in (self._verdicts([*voted]) != UNASSIGNED).T:
            large = was_asked & is_cut
            if not large.any():
                words.append("")
                continue
            number, share = len(set(prompts[large])), sizes[large].sum() / sizes[was_asked].sum()
            holders = "one prompt holds" if number == 1 else f"{number} prompts hold"
            words.append(f"{holders} {fixed(100 * share, 0)} % of the votes")
        return tuple(words)

    def _verdicts(self, numbers: Sequence[int]) -> Codes:
        widths = {len(comparison.verdicts) for comparison in self.comparisons.values()}
        require(len(widths) < 2, "every comparison needs a code of every judge")
        rows = [self.comparisons[number].verdicts for number in numbers]
        return np.array(rows, np.int16).reshape(len(rows), max(widths, default=0))


def carriers(total: FloatArray, without: Iterable[tuple[int, FloatArray]]) -> IntArray:
    """Return the voter without whose votes the judge of a row is no longer ahead, shape (J, J).

    `total` is by how much it is ahead of that of a column, and `without` the same without the votes
    of each voter. `NOBODY` where nobody alone carries it, or it is not ahead at all.

    Examples
    --------
    >>> ahead = np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> carriers(ahead, [(NOBODY, 0 * ahead), (7, -ahead), (8, 2 * ahead)]).tolist()
    [[-1, 7], [-1, -1]]
    """
    carrier = np.full(total.shape, NOBODY)
    for voter, left in without:
        carrier[(total > 0) & (carrier == NOBODY) & (left <= 0)] = voter
    return carrier


def _without_voters(
    voters: IntArray, is_right: BoolArray, is_asked: BoolArray
) -> tuple[FloatArray, Iterator[tuple[int, FloatArray]]]:
    """Return on how many more votes each judge is right than each other, and without each voter."""
    order = np.argsort(voters, kind="stable")
    names, starts = np.unique(voters[order], return_index=True)
    right_votes, asked_votes = (flags[order].astype(np.float64) for flags in (is_right, is_asked))
    ends = [*starts[1:].tolist(), len(order)]
    wins = [
        # Whole numbers, so a product of matrices is exact.
        right_votes[start:end].T @ asked_votes[start:end]
        for start, end in zip(starts.tolist(), ends, strict=False)
    ]
    leads = [win - win.T for win in wins]
    total = np.sum(leads, axis=0) if leads else np.zeros((right_votes.shape[1],) * 2)
    return total, zip(names.tolist(), (total - win for win in leads), strict=True)


def _sums(rows: IntArray | BoolArray, ends: IntArray) -> IntArray:
    """Sum the rows of each part, which end before `ends`; whole numbers, so always exact."""
    totals = np.zeros((len(rows) + 1, rows.shape[1]), np.int64)
    np.cumsum(rows, axis=0, out=totals[1:])
    return np.asarray(np.diff(totals[np.append(0, ends)], axis=0))


def _apart(right: IntArray, assigned: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Count for judge i and every later one the votes on what both were asked about.

    And how many more of these i is right on, both by prompt. `right` and `assigned` are by
    comparison.
    """
    judges = right.shape[1]
    shared, apart = [np.zeros((len(ends), 0), np.int64)], [np.zeros((len(ends), 0), np.int64)]
    for i in range(judges - 1):
        both = (assigned[:, i, None] > 0) & (assigned[:, i + 1 :] > 0)
        shared.append(_sums(both * assigned[:, i, None], ends))
        apart.append(_sums(np.where(both, right[:, i, None] - right[:, i + 1 :], 0), ends))
    return np.hstack(shared), np.hstack(apart)
