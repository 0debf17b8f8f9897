"""How often the interval of a corrected figure holds the truth, and whether its saving is real.

People pass outputs at a known rate, a judge errs at known rates, and votes are there for some of
the prompts. Both estimators, prompts of one item and of three that resemble each other. The saving
shown is compared with the variances that the figures have over all simulated studies. Seeded.
"""

from __future__ import annotations

import os

import numpy as np

from bench.claims import beta
from bench.lib.report import figure, note
from judge_eval.stats.bootstrap import FloatArray, IntArray
from judge_eval.stats.corrected import corrected
from judge_eval.stats.estimate import Estimate

RUNS = int(os.environ.get("BENCH_RUNS", "4000"))
SEED = 17
PASSED = 0.65
# The judge is right on so many of the passed outputs, and of the flagged ones.
RIGHT = (0.9, 0.75)
# For each prompt with votes there are so many without.
OTHERS = 4
AIMS = {50: 90, 100: 93, 400: 93}


def main() -> None:
    note(
        f"{RUNS:,} studies of each size, {OTHERS} prompts without votes for each with, seed {SEED}"
    )
    for items in (1, 3):
        for prompts, aim in AIMS.items():
            show(f"{prompts} voted prompts of {items}", prompts, items, f"at least {aim} %")


def show(name: str, prompts: int, items: int, aim: str) -> None:
    rng = np.random.default_rng((SEED, prompts, items))
    held, by_rates, savings, means = [], [], [], []
    for _ in range(RUNS):
        people, judge, numbers = study(rng, prompts, items)
        result = corrected(people, judge, numbers, are_passes=True)
        # Withheld figures claim nothing.
        if result.saving is not None:
            held.append(holds(result.corrected))
            savings.append(result.saving)
            means.append((result.corrected.value, np.nanmean(people)))
        if result.by_rates and result.by_rates.interval:
            by_rates.append(holds(result.by_rates))
    figure(f"coverage of PPI++, {name}", 100 * np.mean(held), f"% of {len(held):,}", aim)
    rates = 100 * np.mean(by_rates)
    figure(f"coverage of Rogan-Gladen, {name}", rates, f"% of {len(by_rates):,}", aim)
    ours, votes = np.var(means, axis=0)
    shown = 1 - float(np.mean(savings))
    figure(f"variance shown to real, {name}", shown / (ours / votes), "times", "0.9 to 1.1")
    figure(f"saving shown, {name}", 100 * (1 - shown), "% of votes")


def study(
    rng: np.random.Generator, prompts: int, items: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return grades by people, NaN without a vote, and by the judge, and the items' prompts."""
    numbers = np.repeat(np.arange(prompts * (1 + OTHERS)), items)
    alone = items == 1
    rates, *right = (
        np.full(len(numbers), rate)
        if alone
        else beta(rng, rate, (prompts * (1 + OTHERS),))[numbers]
        for rate in (PASSED, *RIGHT)
    )
    people = (rng.random(len(numbers)) < rates).astype(float)
    is_right = rng.random(len(numbers)) < np.where(people == 1, *right)
    judge = np.where(is_right, people, 1 - people)
    return np.where(numbers < prompts, people, np.nan), judge, numbers


def holds(estimate: Estimate) -> bool:
    low, high = estimate.interval or (1.0, 0.0)
    return low <= PASSED <= high


if __name__ == "__main__":
    main()
