"""How often the interval of a corrected figure holds the truth, and whether its saving is real.

People pass outputs at a known rate, a judge errs at known rates, and votes are there for some of
the prompts. Both estimators, prompts of one item and of three that resemble each other. The saving
shown is compared with the variances that the figures have over all simulated studies. Seeded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from bench.claims import beta
from bench.lib.report import figure, note
from judge_eval.stats.bootstrap import FloatArray, IntArray
from judge_eval.stats.corrected import corrected
from judge_eval.stats.estimate import Estimate

RUNS = int(os.environ.get("BENCH_RUNS", "4000"))
SEED = 17
# For each prompt with votes there are so many without.
OTHERS = 4
AIMS = {50: 90, 100: 93, 400: 93}


@dataclass(frozen=True)
class Studies:
    """How often people pass outputs, and how often the judge is right on these and on the others.

    Items of a prompt resemble each other.
    """

    name: str
    items: int = 1
    passed: float = 0.65
    right: tuple[float, float] = (0.9, 0.75)


KINDS = (
    Studies("1 item a prompt"),
    Studies("3 items a prompt", items=3),
    Studies("90 % pass", passed=0.9),
    Studies("a judge that tosses a coin", right=(0.5, 0.5)),
)


def main() -> None:
    note(
        f"{RUNS:,} studies of each size, {OTHERS} prompts without votes for each with, seed {SEED}"
    )
    for kind in KINDS:
        for prompts, aim in AIMS.items():
            show(kind, prompts, f"at least {aim} %")


def show(kind: Studies, prompts: int, aim: str) -> None:
    rng = np.random.default_rng((SEED, prompts, kind.items))
    name = f"{prompts} voted prompts, {kind.name}"
    held, by_rates, savings, means = [], [], [], []
    for _ in range(RUNS):
        people, judge, numbers = study(rng, kind, prompts)
        result = corrected(people, judge, numbers, are_passes=True)
        # Withheld figures claim nothing.
        if result.saving is not None:
            held.append(holds(result.corrected, kind.passed))
            savings.append(result.saving)
            means.append((result.corrected.value, np.nanmean(people)))
        if result.by_rates and result.by_rates.interval:
            by_rates.append(holds(result.by_rates, kind.passed))
    figure(f"coverage of PPI++, {name}", 100 * np.mean(held), f"% of {len(held):,}", aim)
    if by_rates:
        rates = 100 * np.mean(by_rates)
        figure(f"coverage of Rogan-Gladen, {name}", rates, f"% of {len(by_rates):,}", aim)
    ours, votes = np.var(means, axis=0)
    shown = 1 - float(np.mean(savings))
    # Where many are withheld, those that are shown differ less than all would.
    aim = "0.9 to 1.1" if len(held) > 0.8 * RUNS else ""
    figure(f"variance shown to real, {name}", shown / (ours / votes), "times", aim)
    figure(f"saving shown, {name}", 100 * (1 - shown), "% of votes")


def study(
    rng: np.random.Generator, kind: Studies, prompts: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return grades by people, NaN without a vote, and by the judge, and the items' prompts."""
    every = prompts * (1 + OTHERS)
    numbers = np.repeat(np.arange(every), kind.items)
    of_prompts = (
        np.full(every, rate) if kind.items == 1 else beta(rng, rate, (every,))
        for rate in (kind.passed, *kind.right)
    )
    rates, *right = (of[numbers] for of in of_prompts)
    people = (rng.random(len(numbers)) < rates).astype(float)
    is_right = rng.random(len(numbers)) < np.where(people == 1, *right)
    judge = np.where(is_right, people, 1 - people)
    return np.where(numbers < prompts, people, np.nan), judge, numbers


def holds(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.interval or (1.0, 0.0)
    return low <= truth <= high


if __name__ == "__main__":
    main()
