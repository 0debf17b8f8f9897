"""What may be claimed of judges: who beats whom, and how far from it the others are.

Made of `evidence` and overall agreement, and of nothing else; words, ranks and letters follow it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.bradley_terry import tie_groups
from judge_eval.stats.estimate import LEADS, MARGIN, SIGNIFICANCE, best_first
from judge_eval.stats.evidence import (
    FEWEST_FOR_FORECAST,
    NEVER,
    NODES,
    WEIGHTS,
    Forecast,
    beats,
    best_judge,
    best_threshold,
    evidence,
    forecast,
    log_wealth,
    parts,
    rank_range,
    sum_of_rows,
    thresholds,
    too_few_prompts,
    two_figures,
    whole_floor,
)
from judge_eval.stats.evidence_order import NOBODY, EnteredVotes, ItemOpened, enter
from judge_eval.stats.outcomes_table import UNASSIGNED

# Evidence beyond this is not told apart, and could be more than a float holds.
MOST_EVIDENCE: Final = 1e15
_LOG_BOUND: Final = log(1 / SIGNIFICANCE)
_TOLERANCE: Final = 1e-6
_HALVINGS: Final = 20
Votes: TypeAlias = list[list[int | None]]
Forecasts: TypeAlias = list[list[Forecast | None]]
# How the judge of a row compares to that of a column, where it agrees at least as often.
PairState: TypeAlias = Literal["beats", "was ahead", "both ways", "leads", ""]


class FirstClaim(NamedTuple):
    """The fewest votes, to two figures, and prompts after which some claim could stand."""

    votes: int
    prompts: int


@dataclass(frozen=True, eq=False, slots=True)
class JudgeClaims:
    """What may be claimed of J judges; matrices of shape (J, J) are of row against column.

    `floor` tells which baselines a judge is held against: those that were asked as it was.
    ``beats`` is claimed: of judges among themselves, and between judges and these baselines either
    way. `reached` tells where the `evidence`, the largest so far, is enough for it; `evidence_now`
    is that of this moment, and `needed` is what would settle how two compare, which prompts that
    are still to enter `can_reach`. `ahead` is ``beats`` by the lower threshold of the best judge,
    among judges alone. ``forecast`` is how many more votes it takes, None where more votes will not
    settle it, where it is too early to tell, or nothing is claimed; `since` is the entry of the
    ledger since which a claim holds, and `until` the vote up to which the evidence for it was at
    least 3 : 1. `by_one` tells where the lead depends on one voter, and `carriers` who that is.
    ``same`` are practically the same: they differ by less than the `margin`. `always`, of shape
    (J, 2), are intervals of overall agreement that hold however often one looks. Those `silent`
    have no verdict on what was voted on, and nothing is claimed of them.

    `threshold` is for judges among themselves, `best_threshold` for the best judge against every
    other, `floor_threshold` for the most baselines of any judge; None where there are none. `best`
    is the place of the best judge. The run has so many open `prompts`, of which so many are `cut`;
    `first_claim` is the least on which anything could be claimed.
    """

    is_baseline: BoolArray
    silent: BoolArray
    floor: BoolArray
    beats: BoolArray
    ahead: BoolArray
    reached: BoolArray
    evidence: FloatArray
    evidence_now: FloatArray
    needed: FloatArray
    can_reach: BoolArray
    forecast: Forecasts
    since: Votes
    until: Votes
    by_one: BoolArray
    carriers: IntArray
    same: BoolArray
    margin: float
    always: FloatArray
    threshold: float | None
    best_threshold: float | None
    floor_threshold: float | None
    prompts: int
    cut: int
    entered: int
    votes: int
    votes_left: int
    best: int | None
    too_few_prompts: str | None
    first_claim: FirstClaim | None

    @property
    def has_all_prompts(self) -> bool:
        """Whether no prompt is still to enter, so that more votes change no evidence."""
        return self.entered >= self.prompts

    def ranks(self) -> list[tuple[int, int] | None]:
        """Return the best and the worst rank of every judge, None of baselines and silent ones."""
        judges = np.flatnonzero(~self.is_baseline & ~self.silent).tolist()
        best = None if self.best is None else judges.index(self.best)
        ranges = rank_range(self.beats[np.ix_(judges, judges)], best)
        ranks = dict(zip(judges, ranges, strict=True))
        return [ranks.get(n) for n in range(len(self.is_baseline))]

    def letters(self, order: Sequence[int]) -> list[str]:
        """Return letters that judges share where neither beats the other; the best shares none.

        Of those in `order`, which is that of the table; the others, and baselines, have none.
        """
        judges = [n for n in order if not self.is_baseline[n] and not self.silent[n]]
        distinct = self.beats | self.beats.T
        if self.best is not None:
            others = np.arange(len(distinct)) != self.best
            distinct[self.best], distinct[:, self.best] = others, others
        return tie_groups(distinct, judges)

    def beats_floor(self) -> list[bool | None]:
        """Tell which judges beat every baseline of their floor; None where there is none."""
        rows = zip(self.beats, self.floor, strict=True)
        return [bool(beats[floor].all()) if floor.any() else None for beats, floor in rows]

    def pair_state(self, leader: int, rival: int) -> PairState:
        """Say how a judge compares to one that agrees no more often than it.

        Examples
        --------
        >>> from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
        >>> opened = [ItemOpened(n, n, n, 1, [0, n % 3 // 2]) for n in range(12)]
        >>> entered = enter([*opened, *(VoteCast(12 + n, n, 0) for n in range(12))], range(12))
        >>> proof = claims(entered, np.array([False, False]), np.array([1.0, 0.67]), 12)
        >>> proof.pair_state(0, 1), proof.forecast[0][1], proof.evidence[0, 1].round(1)
        ('leads', None, np.float64(6.2))
        """
        if self.beats[leader, rival]:
            return "beats"
        if self.reached[leader, rival] and self.evidence_now[leader, rival] < LEADS:
            return "was ahead"
        against = self.reached[rival, leader] or self.evidence_now[rival, leader] >= LEADS
        if against or self.reached[leader, rival]:
            return "both ways"
        return "leads" if self.evidence_now[leader, rival] >= LEADS else ""


def claims(
    entered: EnteredVotes,
    is_baseline: BoolArray,
    agreement: FloatArray,
    votes_left: int = 0,
    most_over_floor: float = 1.0,
    floor: BoolArray | None = None,
    *,
    is_silent: BoolArray | None = None,
    margin: float = MARGIN,
    by_answer: Sequence[EnteredVotes] = (),
    is_partly_asked: BoolArray | None = None,
) -> JudgeClaims:
    """Put together what may be claimed of judges.

    `is_baseline` and `agreement`, the overall one with NaN where there is none, have shape (J,), as
    has `is_silent`; `floor`, of shape (J, J), is that of `JudgeClaims`: without it judges are held
    against all baselines. The comparisons of the run still want so many votes; `most_over_floor` is
    the largest D that a prompt can bring against a baseline. Judges are practically the same where
    they are within the `margin` in all votes, and `by_answer`, in the votes for each answer. Those
    that were asked about part of what others were asked about (`is_partly_asked`) are never best.

    Examples
    --------
    Two judges over 20 prompts: one is right on all of them, the other on none.

    >>> from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
    >>> opened = [ItemOpened(n, n, n, 1, [0, 1]) for n in range(20)]
    >>> entered = enter([*opened, *(VoteCast(20 + n, n, 0) for n in range(20))], range(20))
    >>> proof = claims(entered, np.array([False, False]), np.array([1.0, 0.0]))
    >>> proof.beats.tolist(), proof.best, proof.threshold, proof.since
    ([[False, True], [False, False]], 0, 40.0, [[None, 27], [None, None]])
    >>> proof.ranks(), proof.letters([0, 1])
    ([(1, 1), (2, 2)], ['a', 'b'])
    """
    silent = np.zeros_like(is_baseline) if is_silent is None else is_silent
    speaking = whole_floor(is_baseline, silent)
    floor = speaking if floor is None else floor & speaking
    judges, baselines = int((~is_baseline & ~silent).sum()), int(floor.sum(axis=1).max(initial=0))
    planned, required = entered.planned, entered.required
    if not entered.n_judges:  # nothing has been opened
        entered = enter([ItemOpened(0, 0, 0, 1, [UNASSIGNED] * len(is_baseline))], [0])
    needed = thresholds(is_baseline, floor, silent)
    proof = evidence(entered, needed)
    beaten = beats(proof.reached, proof.log_now, agreement)
    are_judges = ~((is_baseline | silent)[:, None] | (is_baseline | silent))
    is_enough = proof.log_largest >= np.log(max(1, best_threshold(judges)))
    ahead = beats(are_judges & is_enough, proof.log_now, agreement)
    values = np.where(is_baseline | silent | np.isnan(agreement), -np.inf, agreement)
    agrees_most = np.isin(np.arange(len(values)), best_first(values.tolist())[:1])
    rivals = (agrees_most & np.isfinite(values))[:, None] & are_judges & ~ahead & ~np.isinf(needed)
    needed = np.where(rivals, best_threshold(judges), needed)
    best = best_judge(ahead, beaten, is_baseline, floor, silent)
    # What it was asked about may be easier than the rest.
    is_easier = best is not None and is_partly_asked is not None and is_partly_asked[best]
    few = too_few(planned, judges, baselines, most_over_floor)
    is_told = few is None and len(entered.prompts) >= FEWEST_FOR_FORECAST
    cells = np.stack([np.log(needed) - proof.log_largest, *proof.growth], axis=-1).tolist()
    entries = [entered, *(entry for entry in by_answer if entry.n_judges)]
    alike = [practically_same(entry, is_baseline | silent, margin) for entry in entries]
    return JudgeClaims(
        is_baseline=is_baseline,
        silent=silent,
        floor=floor,
        beats=beaten,
        ahead=ahead,
        reached=proof.reached,
        evidence=np.exp(np.minimum(proof.log_largest, np.log(MOST_EVIDENCE))),
        evidence_now=np.exp(np.minimum(proof.log_now, np.log(MOST_EVIDENCE))),
        needed=needed,
        can_reach=proof.log_possible >= np.log(needed) - _TOLERANCE,
        forecast=[
            [forecast(*cell) if np.isfinite(cell[0]) and is_told else None for cell in row]
            for row in cells
        ],
        since=np.where(beaten, proof.since, np.array(None)).tolist(),
        until=np.where(proof.until == NEVER, np.array(None), proof.until).tolist(),
        by_one=entered.carriers != NOBODY,
        carriers=entered.carriers,
        same=np.all(alike, axis=0) & ~(proof.reached & proof.reached.T),
        margin=margin,
        always=always_valid(entered.right, entered.votes, entered.most_votes),
        threshold=judges * (judges - 1) / SIGNIFICANCE or None,
        best_threshold=best_threshold(judges) if judges > 1 else None,
        floor_threshold=judges * baselines / SIGNIFICANCE or None,
        prompts=len(planned),
        cut=entered.cut,
        entered=len(entered.prompts),
        votes=entered.all_votes,
        votes_left=votes_left,
        best=None if is_easier else best,
        too_few_prompts=few,
        first_claim=first_claim(planned, required, judges, baselines, most_over_floor),
    )


def too_few(
    votes: IntArray, judges: int, baselines: int, most_over_floor: float = 1.0
) -> str | None:
    """Say that a run with so many votes on its prompts cannot tell its judges apart.

    Examples
    --------
    >>> print(too_few(np.ones(7, int), judges=2, baselines=1))
    7 prompts are too few to tell judges apart: add prompts rather than pairs.
    >>> too_few(np.ones(8, int), judges=2, baselines=1)
    """
    goal, tests, most = "judges apart", judges * (judges - 1), 1.0
    if judges == 1:
        goal, tests, most = "the judge from the floor", baselines, most_over_floor
    prompts = np.count_nonzero(votes)
    if not prompts or not tests or not too_few_prompts(votes, tests / SIGNIFICANCE, most):
        return None
    number = "1 prompt is" if prompts == 1 else f"{prompts:,} prompts are"
    return f"{number} too few to tell {goal}: add prompts rather than pairs."


def first_claim(
    planned: IntArray, required: IntArray, judges: int, baselines: int, most_over_floor: float = 1.0
) -> FirstClaim | None:
    """Say after which votes a judge could beat another one, or a baseline, or be the best.

    If one were right and the other wrong on all votes, and prompts with few votes came first; None
    if no claim could stand. Prompts weigh by their `planned` votes, of so many `required` ones.

    Examples
    --------
    >>> twice = np.full(40, 2)
    >>> first_claim(twice, twice, judges=3, baselines=2)
    FirstClaim(votes=20, prompts=10)
    >>> first_claim(twice[:7], twice[:7], judges=2, baselines=0)
    """
    open_prompts = np.flatnonzero(planned)
    order = open_prompts[np.lexsort((required[open_prompts], planned[open_prompts]))]
    if not len(order):
        return None
    bets = planned[order, None] / planned.max(initial=1) * [1.0, most_over_floor]
    over_judge, over_floor = judges * max(1, judges - 1 if baselines else 1), judges * baselines
    tests = [over_judge if judges > 1 else 0, over_floor]
    is_enough = log_wealth(bets) >= np.log(np.maximum(tests, 1) / SIGNIFICANCE) - _TOLERANCE
    ends = is_enough.argmax(axis=0)[is_enough.any(axis=0) & np.greater(tests, 0)]
    if not len(ends):
        return None
    prompts = 1 + int(ends.min())
    return FirstClaim(two_figures(required[order[:prompts]].sum()), prompts)


# --- intervals that hold however often one looks --------------------------------------------------


def always_valid(right: IntArray | FloatArray, votes: IntArray, most_votes: IntArray) -> FloatArray:
    """Return the intervals of overall agreement that hold however often one looks, shape (n, 2).

    `right` of `votes`, of shape (n_prompts, n), are those of the prompts in the order in which they
    entered, and `most_votes`, of shape (n_prompts,), what a prompt might have entered with at most;
    see `EnteredVotes`. A vote may be right in part. NaN where no agreement fits all prompts, since
    it has changed on the way.

    Notes
    -----
    All m for which the largest value so far of ::

        1/2 integral prod (1 + l (c - m n) / (m n_max)) dl
        + 1/2 integral prod (1 - l (c - m n) / ((1 - m) n_max)) dl

    over l in (0, 1) stays below 20. It is convex in m after every prompt, so they are an interval.

    Examples
    --------
    >>> right, votes = np.tile([[3, 1], [2, 0]], (20, 1)), np.full((40, 2), 3)
    >>> always_valid(right, votes, np.full(40, 3)).round(3).tolist()
    [[0.718, 0.912], [0.091, 0.283]]
    """
    ends = np.zeros((right.shape[1], 2))
    # Where no votes are wanted, or none of this part, a prompt enters without any.
    most = np.maximum(most_votes, 1)[:, None]
    for part in parts(right.shape[1]):
        share, gain = votes[:, part] / most, right[:, part] / most
        ends[part] = np.stack([_lowest(gain, share), 1 - _lowest(share - gain, share)], axis=1)
    return np.where(ends[:, :1] <= ends[:, 1:], ends, np.nan)


def differences_always_valid(entered: EnteredVotes) -> FloatArray:
    """Return the ends of paired differences that hold however often one looks, shape (2, J, J).

    By how much more of the votes on comparisons that both were asked about the judge of the row
    agrees with than that of the column. With c and n the votes of a prompt that entered, the low
    end is the largest d at which the bet ``((c_X - c_Y) - d n) / ((1 + |d|) n_max)`` has won 20 : 1
    by now, to 1e-5, and the high end its mirror. NaN where nothing was asked of both.

    Examples
    --------
    >>> from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
    >>> opened = [ItemOpened(n, n, n, 1, [0, n % 4 // 3]) for n in range(80)]
    >>> entered = enter([*opened, *(VoteCast(80 + n, n, 0) for n in range(80))], range(80))
    >>> differences_always_valid(entered).round(3)[:, 0, 1].tolist()
    [0.133, 0.393]
    """
    ends = np.full((2, entered.n_judges, entered.n_judges), np.nan)
    cells = np.stack(np.triu_indices(entered.n_judges, 1))
    most = np.maximum(entered.most_votes, 1)[:, None]
    for part in parts(cells.shape[1]):
        rows, columns = cells[:, part]
        differences, shared = entered.differences[:, part], entered.shared[:, part] / most
        kinds, counts = _counted(np.nan_to_num(differences), shared)
        is_known = shared.any(axis=0)
        for above, below, sign in ((rows, columns, 1), (columns, rows, -1)):
            apart = np.where(
                is_known, _largest_shown(sign * kinds.real, kinds.imag, counts), np.nan
            )
            ends[0, above, below], ends[1, below, above] = apart, -apart
    return ends


def _largest_shown(apart: FloatArray, share: FloatArray, counts: IntArray) -> FloatArray:
    """Return the largest differences that bets have shown by now, -1 where none, shape (n,)."""
    low, high = -np.ones(counts.shape[1]), np.ones(counts.shape[1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        bets = (apart[:, None] - middle * share[:, None]) / (1 + np.abs(middle))
        logs = (counts[..., None] * np.log1p(bets[..., None] * NODES)).sum(axis=0)
        is_shown = np.logaddexp.reduce(logs + np.log(WEIGHTS), axis=1) >= _LOG_BOUND
        low, high = np.where(is_shown, middle, low), np.where(is_shown, high, middle)
    return low


def _lowest(gain: FloatArray, share: FloatArray) -> FloatArray:
    """Return the low ends: the highest of those after every prompt, shape (n,).

    Begin with the one after the last prompt; while another prompt excludes what is found, take the
    one after the prompt that does so most.
    """
    low, prompts_taken = np.zeros(gain.shape[1]), np.full(gain.shape[1], len(gain))
    todo = np.flatnonzero(gain.any(axis=0))
    while len(todo):
        gains, shares = gain[:, todo], share[:, todo]
        low[todo] = m = _low_after(gains, shares, prompts_taken[todo])
        over = log_wealth(gains / m - shares), log_wealth((m * shares - gains) / (1 - m))
        is_left = np.cumsum(gains, axis=0) >= m * np.cumsum(shares, axis=0)
        value = np.where(is_left, np.logaddexp(*over) - log(2), -np.inf)
        prompts_taken[todo] = 1 + value.argmax(axis=0)
        todo = todo[value.max(axis=0) > _LOG_BOUND + _TOLERANCE]
    return low


def _low_after(gain: FloatArray, share: FloatArray, prompts_taken: IntArray) -> FloatArray:
    """Return the low ends after so many prompts have been taken, shape (n,)."""
    from scipy.optimize.elementwise import find_root  # type: ignore[import-untyped]  # slow

    columns = np.arange(gain.shape[1])
    is_taken = np.arange(len(gain))[:, None] < prompts_taken
    kinds, counts = _counted(gain, share, is_taken)
    gains, shares = kinds.real[:, None], kinds.imag[:, None]

    def above_bound(log_m: FloatArray, column: FloatArray) -> FloatArray:
        m = np.exp(log_m)
        bets = np.stack([gains / m - shares, (m * shares - gains) / (1 - m)])
        times = counts[:, column.astype(np.intp), None]
        logs = (times * np.log1p(bets[..., None] * NODES)).sum(axis=1)
        mixtures = np.logaddexp.reduce(logs + np.log(WEIGHTS / 2), axis=2)
        return np.asarray(np.logaddexp(*mixtures) - _LOG_BOUND)

    gained, shared = (sum_of_rows(values * is_taken) for values in (gain, share))
    bracket = np.full(len(columns), log(1e-300)), np.log(np.minimum(gained / shared, 1 - 1e-9))
    return np.asarray(np.exp(find_root(above_bound, bracket, args=(columns * 1.0,)).x))


def margin_above(baselines: Sequence[float], team_margin: float = MARGIN) -> float:
    """Return the margin of a run whose `baselines` agree with people so often.

    It is the one that a team has stated, and never more than half of what lies between the best of
    them and 1.

    Examples
    --------
    >>> margin_above([]), margin_above([0.25, 0.5]), round(margin_above([0.5, 0.94]), 6)
    (0.1, 0.1, 0.03)
    >>> margin_above([0.5], team_margin=0.05), margin_above([0.5], team_margin=0.25)
    (0.05, 0.25)
    """
    return min(team_margin, (1 - max(baselines, default=0.0)) / 2)


def _counted(
    gain: FloatArray, share: FloatArray, is_taken: BoolArray | None = None
) -> tuple[NDArray[np.complex128], IntArray]:
    """Return what prompts bring, as ``gain + 1j * share``, and how often in every column."""
    columns = gain.shape[1]
    kinds, codes = np.unique(gain + 1j * share, return_inverse=True)
    cells = codes.reshape(gain.shape) * columns + np.arange(columns)
    cells = cells.ravel() if is_taken is None else cells[is_taken]
    counts = np.bincount(cells, minlength=len(kinds) * columns)
    return kinds, counts.reshape(len(kinds), columns)


def practically_same(
    entered: EnteredVotes, is_baseline: BoolArray, margin: float = MARGIN
) -> BoolArray:
    """Tell which judges differ by less than a margin in agreement per vote, shape (J, J).

    Two bets have each reached (pairs of judges) / 0.05, so that all that is claimed holds at once:
    with c and n the votes of a prompt that entered, against "X is better by the margin or more"
    ``(margin n - (c_X - c_Y)) / ((1 + margin) n_max)``, and its mirror. Of no baselines.

    Examples
    --------
    >>> from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
    >>> opened = [ItemOpened(n, n, n, 1, [n % 40 > 0, n % 40 > 1, n % 40 > 1]) for n in range(800)]
    >>> entered = enter([*opened, *(VoteCast(800 + n, n, 1) for n in range(800))], range(800))
    >>> practically_same(entered, np.array([False, False, True])).tolist()
    [[False, True, False], [True, False, False], [False, False, False]]
    """
    same = np.zeros((entered.n_judges, entered.n_judges), dtype=bool)
    rows, columns = np.triu_indices(entered.n_judges, 1)
    tested = np.flatnonzero(~is_baseline[rows] & ~is_baseline[columns])
    log_needed = log(max(1, len(tested)) / SIGNIFICANCE)
    most = np.maximum(entered.most_votes, 1)[:, None]
    for part in parts(len(tested)):
        pair_places = tested[part]
        apart = np.nan_to_num(entered.differences[:, pair_places])
        allowed = margin * entered.shared[:, pair_places] / most
        bets = np.stack([allowed - apart, allowed + apart]) / (1 + margin)
        # The logarithm of what a bet has won is at most the sum of the bets.
        may_be = (np.cumsum(bets, axis=1).max(axis=1, initial=0) >= log_needed).all(axis=0)
        won = [log_wealth(side_bets[:, may_be]).max(axis=0, initial=0) for side_bets in bets]
        is_same = np.minimum(*won) >= log_needed
        same[rows[pair_places[may_be]], columns[pair_places[may_be]]] = is_same
    return same | same.T
