"""How often the interval of a corrected figure holds the truth, and whether its saving is real.

People pass outputs at a known rate, a judge errs at known rates, and votes are there for some of
the prompts. Both estimators, prompts of one item and of three that resemble each other; pairs of
which some are both bad, on which the judge leans to a side; a judge that fails on bad outputs. The
saving shown is compared with the variances that the figures have over all simulated studies.
Seeded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from bench.claims import beta
from bench.lib.report import figure, note
from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.corrected import corrected
from judge_eval.stats.estimate import Estimate

RUNS = int(os.environ.get("BENCH_RUNS", "4000"))
SEED = 17
# Prompts with votes, prompts without, and the coverage that is to be reached.
SIZES = ((50, 200, 90), (100, 400, 93), (400, 1600, 93))
OF_400 = ((100, 300, 93), (200, 200, 93))


@dataclass(frozen=True)
class Studies:
    """How often people pass outputs, and how often the judge is right on these and on the others.

    Items of a prompt resemble each other. Of pairs so many are `both_bad`, on which the judge gives
    the win as often as it `leans`; it `fails` on so many of what people do not pass.
    """

    name: str
    items: int = 1
    passed: float = 0.65
    right: tuple[float, float] = (0.9, 0.75)
    both_bad: float = 0.0
    leans: float = 0.85
    fails: float = 0.0
    sizes: tuple[tuple[int, int, int], ...] = SIZES

    @property
    def are_passes(self) -> bool:
        return not self.both_bad


KINDS = (
    Studies("1 item a prompt"),
    Studies("3 items a prompt", items=3),
    Studies("90 % pass", passed=0.9),
    Studies("a judge that tosses a coin", right=(0.5, 0.5)),
    Studies("fails on 30 % of the bad outputs", passed=0.5, fails=0.3),
    Studies("30 % both bad, on which the judge leans", passed=0.53, both_bad=0.3, sizes=OF_400),
    Studies("30 % both bad", passed=0.533, both_bad=0.3, sizes=((450, 0, 93),)),
)


def main() -> None:
    note(f"{RUNS:,} studies of each size, seed {SEED}")
    for kind in KINDS:
        for prompts, others, aim in kind.sizes:
            show(kind, prompts, others, f"at least {aim} %")


def show(kind: Studies, prompts: int, others: int, aim: str) -> None:
    rng = np.random.default_rng((SEED, prompts, kind.items))
    name = f"{prompts} of {prompts + others} prompts voted, {kind.name}"
    held, by_rates, savings, means = [], [], [], []
    for _ in range(RUNS):
        people, judge, numbers, both_bad = study(rng, kind, prompts, others)
        result = corrected(people, judge, numbers, both_bad=both_bad, are_passes=kind.are_passes)
        # Withheld figures claim nothing.
        if result.corrected.value is not None:
            held.append(holds(result.corrected, kind.passed))
            means.append((result.corrected.value, np.nanmean(people)))
        if result.saving is not None:
            savings.append(result.saving)
        if result.by_rates and result.by_rates.interval:
            by_rates.append(holds(result.by_rates, kind.passed))
    figure(f"coverage of PPI++, {name}", 100 * np.mean(held), f"% of {len(held):,}", aim)
    bias = 100 * (np.mean(means, axis=0)[0] - kind.passed)
    figure(f"bias of PPI++, {name}", bias, "points", "0" if kind.fails or kind.both_bad else "")
    if by_rates:
        rates = 100 * np.mean(by_rates)
        figure(f"coverage of Rogan-Gladen, {name}", rates, f"% of {len(by_rates):,}", aim)
    if not savings:
        return  # all are voted on
    ours, votes = np.var(means, axis=0)
    shown = 1 - float(np.mean(savings))
    # Where many are withheld, those that are shown differ less than all would.
    aim = "0.9 to 1.1" if len(held) > 0.8 * RUNS else ""
    figure(f"variance shown to real, {name}", shown / (ours / votes), "times", aim)
    figure(f"saving shown, {name}", 100 * (1 - shown), "% of votes")


def study(
    rng: np.random.Generator, kind: Studies, prompts: int, others: int
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    """Return grades by people and by the judge, the items' prompts, and who voted both bad.

    The grades are NaN without a vote, where both are bad, and where the judge fails.
    """
    every = prompts + others
    numbers = np.repeat(np.arange(every), kind.items)
    of_prompts = (
        np.full(every, rate) if kind.items == 1 else beta(rng, rate, (every,))
        for rate in (kind.passed, *kind.right)
    )
    rates, *right = (of[numbers] for of in of_prompts)
    people = (rng.random(len(numbers)) < rates).astype(float)
    is_right = rng.random(len(numbers)) < np.where(people == 1, *right)
    judge = np.where(is_right, people, 1 - people)
    both_bad = rng.random(len(numbers)) < kind.both_bad
    judge = np.where(both_bad, rng.random(len(numbers)) < kind.leans, judge)
    judge[(people == 0) & (rng.random(len(numbers)) < kind.fails)] = np.nan
    voted = numbers < prompts
    return np.where(voted & ~both_bad, people, np.nan), judge, numbers, voted & both_bad


def holds(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.interval or (1.0, 0.0)
    return low <= truth <= high


if __name__ == "__main__":
    main()
