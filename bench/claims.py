"""How often the board would claim something false, looked at after every vote, by simulation.

"X beats Y" is false where X agrees no more often per vote, and "X is the best judge" where another
one agrees as often. Pairs are handed out as voting does it, prompts enter and evidence is weighed
by the product's own functions. Then how often intervals hold the truth, and forecasts what it
really took. Everything is seeded.
"""

from __future__ import annotations

import os
from bisect import insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product

import numpy as np

from bench.lib.report import figure, note
from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.claims import always_valid
from judge_eval.stats.estimate import LEADS, SIGNIFICANCE
from judge_eval.stats.evidence import (
    beats,
    best_threshold,
    evidence,
    forecast,
    log_wealth,
    thresholds,
)
from judge_eval.stats.evidence_order import NOBODY, EnteredVotes, Event, ItemOpened, VoteCast, enter
from judge_eval.stats.judge_figures import shares_by_prompt
from judge_eval.stats.mcnemar import mcnemar
from voting.items.order import SHUFFLED_PROMPTS, arrange

RUNS = int(os.environ.get("BENCH_RUNS", "1000"))
# Coverage is asked for to a percent or so, which takes more runs; these are faster.
RUNS_OF_COVERAGE = 10 * RUNS
SEED = 13
JUDGES = 4
VOTERS = 5
# People choose what is better in so many of the cases.
PEOPLE = 0.85
# How often judges are right on prompts of one comparison, and of five. The first two agree equally
# often per vote; the third agrees with 2.5 points more of the votes than they do.
ON_SMALL, ON_LARGE, BETTER = (0.9, 0.7), (0.4, 0.8), (0.4, 0.8 + 0.03 / 0.7)
RUNS_AT_ONCE = 1000
# By how much imports, or voters, lean to the first of two judges; each has so many votes.
WAVES = {
    "two imports": (0.2, -0.2),
    "four imports": (0.2, 0.1, -0.1, -0.2),
    "eight voters one after another": (0.2, 0.2, 0.1, 0.1, -0.1, -0.1, -0.2, -0.2),
}
PER_WAVE, AHEAD = 150, 0.1
# Agreement with people of the better judge and of the others; boards after so many votes.
APART = ((0.85, 0.75), (0.80, 0.75), (0.90, 0.60))
LOOKS = (50, 100, 200, 400)
# After so many votes nobody waits any longer.
MOST_VOTES = 10_000


def main() -> None:
    note(f"{RUNS:,} runs, {RUNS_OF_COVERAGE:,} for coverage, seed {SEED}")
    equal = [0.75] * JUDGES
    show_false_claims("600 prompts", map(one_each, seeded()), equal)
    show_false_claims("30 prompts x 5, shared errors", map(shared_errors, seeded()), equal)
    sized = [by_size(rng, handed_out) for rng in seeded()]
    show_false_claims("prompts of 1 and 5, equal per vote", sized, equal)
    better = (by_size(rng, handed_out, BETTER) for rng in seeded())
    truth = [per_vote(rates) for rates in (ON_SMALL, BETTER)] * (JUDGES // 2)
    show_false_claims("prompts of 1 and 5, Y better by 2.5 points", better, truth)
    anyhow = (by_size(rng, in_any_order) for rng in seeded())
    show_false_claims("those voted on in any order", anyhow, equal, aim="")
    waves()
    watched_mcnemar()
    thin_interval(sized)
    coverage()
    forecasts()


def seeded() -> Iterator[np.random.Generator]:
    return (np.random.default_rng((SEED, run)) for run in range(RUNS))


def show_false_claims(
    name: str, runs: Iterable[EnteredVotes], truth: Sequence[float], aim: str = "at most 5 %"
) -> None:
    largest = np.stack([log_largest(run) for run in runs])
    for judges in range(2, JUDGES + 1):
        for claim, false in (("beats", false_beats), ("best", false_best)):
            share = percent(false(largest[:, :judges, :judges], np.array(truth[:judges])))
            figure(f"{name}, {judges} judges, false “{claim}”", share, "% of runs", aim)


def log_largest(run: EnteredVotes) -> FloatArray:
    return evidence(run, thresholds(np.zeros(run.n_judges, dtype=bool))).log_largest


def false_beats(largest: FloatArray, truth: FloatArray) -> BoolArray:
    """Tell in which runs "X beats Y" was claimed of an X that agrees no more often than Y."""
    needed = np.log(thresholds(np.zeros(len(truth), dtype=bool)))
    is_false = truth[:, None] <= truth + 1e-9
    return np.asarray(((largest >= needed) & is_false).any(axis=(1, 2)))


def false_best(largest: FloatArray, truth: FloatArray) -> BoolArray:
    """Tell in which runs a judge was claimed to be the best although another agrees as often."""
    ahead = (largest >= np.log(best_threshold(len(truth)))).sum(axis=2) == len(truth) - 1
    is_false = (truth[:, None] <= truth + 1e-9).sum(axis=1) > 1
    return np.asarray((ahead & is_false).any(axis=1))


def percent(flags: BoolArray | Sequence[bool] | Sequence[list[bool]]) -> float:
    return 100 * float(np.mean(flags))


Order = Callable[[np.random.Generator, Sequence[int], int], Sequence[int]]


@dataclass
class Voter:
    """What a person has voted on, and the chances by which pairs are shuffled for this person."""

    chances: dict[Hashable, float]
    voted: set[int] = field(default_factory=set)
    last: str = ""

    def next_pair(self, prompts: Iterable[tuple[int, Iterable[int]]]) -> int | None:
        """Choose one pair of the first prompts that have something for this person."""
        mine = ((str(n), [p for p in pairs if p not in self.voted]) for n, pairs in prompts)
        some = islice(((key, pairs) for key, pairs in mine if pairs), SHUFFLED_PROMPTS)
        rows = [(key, pair) for key, pairs in some for pair in pairs]
        return next(iter(arrange(rows, self.chances.__getitem__, 1, self.last)), None)


def handed_out(rng: np.random.Generator, prompts: Sequence[int], wanted: int) -> list[int]:
    """Return the pairs in the order in which people vote: see `voting.ballot.assignment`."""
    left: dict[int, dict[int, int]] = {}
    for n, prompt in enumerate(prompts):
        left.setdefault(prompt, {})[n] = wanted
    things = [*map(str, left), *range(len(prompts))]
    chances = rng.random((VOTERS, len(things))).tolist()
    voters = [Voter(dict(zip(things, row, strict=True))) for row in chances]
    begun: list[int] = []
    fresh, given = [*left], []
    while left:
        voter = voters[rng.integers(VOTERS)]
        pair = voter.next_pair((prompt, left[prompt]) for prompt in chain(begun, fresh))
        if pair is None:
            continue  # only others may vote on what is left
        prompt = prompts[pair]
        if prompt not in begun:
            fresh.remove(prompt)
            insort(begun, prompt)
        given.append(pair)
        voter.voted.add(pair)
        voter.last = str(prompt)
        left[prompt][pair] -= 1
        if not left[prompt][pair]:
            del left[prompt][pair]
        if not left[prompt]:
            del left[prompt]
            begun.remove(prompt)
    return given


def in_any_order(rng: np.random.Generator, prompts: Sequence[int], wanted: int) -> list[int]:
    """Return what nobody is given by this product: pairs in an order that mixes prompts."""
    pairs: list[int] = rng.permutation(np.repeat(np.arange(len(prompts)), wanted)).tolist()
    return pairs


def entered(
    rng: np.random.Generator,
    sizes: IntArray,
    rates: FloatArray,
    wanted: int,
    order: Order = handed_out,
) -> EnteredVotes:
    """Return what entered of a run, of prompts that are numbered in their keyed order."""
    prompts = np.repeat(np.arange(len(sizes)), sizes)
    wrong = (rng.random((len(prompts), rates.shape[1])) > rates[prompts]).astype(int).tolist()
    events: list[Event] = [
        ItemOpened(n, n, prompt, wanted, wrong[n]) for n, prompt in enumerate(prompts.tolist())
    ]
    pairs = order(rng, prompts.tolist(), wanted)
    choices = (rng.random(len(pairs)) > PEOPLE).astype(int).tolist()
    events += map(VoteCast, range(len(events), len(events) + len(pairs)), pairs, choices)
    return enter(events, range(len(sizes)))


def one_each(rng: np.random.Generator) -> EnteredVotes:
    sizes, rates = np.ones(600, int), np.full((600, JUDGES), 0.75)
    return entered(rng, sizes, rates, wanted=1)


def shared_errors(rng: np.random.Generator) -> EnteredVotes:
    """Every judge is right on a share of its own of each prompt."""
    return entered(rng, np.full(30, 5), beta(rng, 0.75, (30, JUDGES)), wanted=4)


def by_size(
    rng: np.random.Generator, order: Order, on_large: tuple[float, float] = ON_LARGE
) -> EnteredVotes:
    """Every other judge is better on small prompts than on large ones; the others worse."""
    sizes = rng.choice([1, 5], 200)
    rates = np.where(sizes[:, None] == 1, *np.array([ON_SMALL, on_large]).T[:, None])
    return entered(rng, sizes, np.tile(rates, JUDGES // 2), wanted=1, order=order)


def per_vote(rates: tuple[float, float]) -> float:
    """Return the share of votes with which such a judge agrees, on as many small prompts as large.

    It may be right where the person is not.
    """
    right = (rates[0] + 5 * rates[1]) / 6
    return PEOPLE * right + (1 - PEOPLE) * (1 - right)


def beta(rng: np.random.Generator, mean: float, shape: tuple[int, ...]) -> FloatArray:
    """Draw rates with intraclass correlation 1/2: 1 / (a + b + 1) with a + b = 1."""
    return rng.beta(mean, 1 - mean, shape)


def waves() -> None:
    """Imports and voters one after another, each of whom leans to one of two judges.

    Over all votes the judges agree equally often, or the first by `AHEAD` more. What is claimed at
    the end is false then, or the power. Beside it what the largest evidence alone would claim.
    """
    for name, leanings in WAVES.items():
        for ahead in (0.0, AHEAD):
            ends = np.array([at_the_end(rng, leanings, ahead) for rng in seeded()])
            kind, aim = ("found", "") if ahead else ("false", "at most 2 %")
            for rule, flags in zip(("largest evidence alone", "evidence now"), ends.T, strict=True):
                goal = aim if rule == "evidence now" else ""
                figure(f"{name}, {kind} at the end, by {rule}", percent(flags), "% of runs", goal)


def at_the_end(
    rng: np.random.Generator, leanings: Sequence[float], ahead: float
) -> tuple[bool, bool]:
    """Tell whether some claim is false, or the first judge is found, after all waves."""
    gaps = ahead + np.repeat(rng.permutation(leanings), PER_WAVE)
    agreement = 0.7 + np.stack([gaps, -gaps], axis=1) / 2
    right = (rng.random(agreement.shape) < agreement).astype(np.int64)
    run, needed = one_vote_each(right), np.full((2, 2), best_threshold(2))
    found, shares = evidence(run, needed), right.mean(axis=0)
    once = found.reached & ~found.reached.T & (shares[:, None] > shares)
    both = (once, beats(found.reached, found.log_now, shares))
    old, now = (bool(said[0, 1] if ahead else said.any()) for said in both)
    return old, now


def watched_mcnemar() -> None:
    """One comparison per prompt, tested after every vote; Holm rejects if the smallest passes."""
    one, other = np.triu_indices(JUDGES, 1)
    claims = []
    for rng in seeded():
        right = rng.random((600, JUDGES)) < 0.75
        ahead = np.cumsum(right[:, one] > right[:, other], axis=0, dtype=np.int64)
        behind = np.cumsum(right[:, other] > right[:, one], axis=0, dtype=np.int64)
        claims.append(bool((mcnemar(ahead, behind) * len(one) <= SIGNIFICANCE).any()))
    figure(f"McNemar-Holm when watched, 600 prompts, {JUDGES} judges", percent(claims), "% claim")


def thin_interval(sized: Sequence[EnteredVotes]) -> None:
    for name, sizes, votes in (
        ("600 prompts of 1 vote", np.ones(600, int), 1),
        ("30 prompts of 20 votes", np.ones(30, int), 20),
        ("200 prompts of 1 or 5 votes", np.tile([1, 5], 100), 1),
    ):
        for rate in (0.6, 0.85):
            rng = np.random.default_rng(SEED)
            n = np.repeat(rng.permutation(sizes)[:, None] * votes, RUNS, axis=1)
            right = rng.binomial(n, beta(rng, rate, n.shape))
            found = always_valid(right, n, np.full(len(n), n.max()))
            show_left(f"{name}, {100 * rate:.0f} % right", found, rate)
    found = np.stack([always_valid(run.right, run.votes, run.most_votes) for run in sized])
    show_left("prompts of 1 and 5, equal per vote", found, per_vote(ON_SMALL))


def show_left(name: str, found: FloatArray, truth: FloatArray | float) -> None:
    """Tell how often the truth is outside what is left of the interval at the end."""
    left = ~((found[..., 0] <= truth) & (truth <= found[..., 1]))
    figure(f"thin interval, {name}", percent(left), "% left by the truth", "at most 5 %")


def coverage() -> None:
    """Of the 95 % interval of overall agreement; each prompt has a share of its own."""
    for prompts, (comparisons, votes), rate in product(
        (10, 20, 50, 200), ((1, 1), (1, 3), (5, 3)), (0.6, 0.85)
    ):
        rng = np.random.default_rng(SEED)
        size = max(1, min(RUNS_OF_COVERAGE, RUNS_AT_ONCE))
        held = [
            covered(rng, size, prompts, comparisons, votes, rate)
            for _ in range(RUNS_OF_COVERAGE // size)
        ]
        what = f"{prompts} prompts of {comparisons} x {votes}, {100 * rate:.0f} % right"
        aim = "" if prompts == 10 else "at least 92 %"
        figure(f"coverage, {what}", percent(held), "%", aim)


def covered(
    rng: np.random.Generator, runs: int, prompts: int, comparisons: int, votes: int, rate: float
) -> list[bool]:
    rates = np.repeat(beta(rng, rate, (prompts, runs)), comparisons, axis=0)
    right = rng.binomial(votes, rates)
    numbers = np.repeat(np.arange(prompts), comparisons)
    shares = shares_by_prompt(right, np.full_like(right, votes), numbers)
    return [one.low is not None and one.low <= rate <= (one.high or 0) for one in shares]


def forecasts() -> None:
    """Tell how often the range of a forecast holds the votes that it really took."""
    every: list[tuple[bool, bool]] = []
    for (better, worse), judges in product(APART, (2, 3)):
        agreement = np.array([better] + [worse] * (judges - 1))
        boards = [board for rng in seeded() for board in looked_at(rng, agreement)]
        show_held(f"{better:.2f} against {worse:.2f}, {judges} judges", boards)
        every += boards
    show_held("all", every, "at least 65 %", "at least 60 %")


def show_held(
    name: str, boards: Sequence[tuple[bool, bool]], aim: str = "", aim_of_leads: str = ""
) -> None:
    held, leads = np.array(boards).reshape(-1, 2).T
    figure(f"forecasts that held, {name}", percent(held), f"% of {len(held):,}", aim)
    if leads.any():
        some = f"% of {leads.sum():,}"
        figure(f"those of “leads”, {name}", percent(held[leads]), some, aim_of_leads)


def looked_at(rng: np.random.Generator, agreement: FloatArray) -> Iterator[tuple[bool, bool]]:
    """Look at a board with one vote a prompt now and then: did the forecast hold, is it a lead?

    Of the first judge against each other one that it is not yet ahead of.
    """
    judges = len(agreement)
    right = (rng.random((MOST_VOTES, judges)) < agreement).astype(np.int64)
    needed = np.log(best_threshold(judges))
    for votes in LOOKS:
        first = int(right[:votes].sum(axis=0).argmax())
        found = evidence(one_vote_each(right[:votes]), np.full((judges, judges), np.inf))
        for other in range(judges):
            missing = needed - found.log_largest[first, other]
            if other == first or missing <= 0:
                continue
            really = votes_until(right[:, first] - right[:, other], needed) - votes
            told = forecast(missing, *found.growth[:, first, other])
            high = np.inf if told is None or told.high is None else told.high
            low = np.inf if told is None else told.low
            yield low <= really <= high, bool(found.log_now[first, other] >= np.log(LEADS))


def one_vote_each(right: IntArray) -> EnteredVotes:
    """Return prompts with one vote each, on which judges are right or not."""
    votes, (one, other) = np.ones_like(right), np.triu_indices(right.shape[1], 1)
    apart = right[:, one] - right[:, other]
    ones, numbers = votes[:, 0], np.arange(len(right))
    shared, prompts = np.ones_like(apart), tuple(range(len(right)))
    return EnteredVotes(
        *(prompts, numbers, right, votes, ones, shared, apart.astype(float), len(right), ones),
        required=ones,
        rest=ones[:0],
        vote_numbers=1 + numbers,
        carriers=np.full((right.shape[1],) * 2, NOBODY),
    )


def votes_until(differences: IntArray, log_needed: float) -> float:
    """Return after how many votes the evidence was enough; infinity if it never was."""
    for end in (1000, len(differences)):
        is_enough = log_wealth(differences[:end, None].astype(float))[:, 0] >= log_needed
        if is_enough.any():
            return float(1 + is_enough.argmax())
    return np.inf


if __name__ == "__main__":
    main()
