"""How often a judge that stays as it is is said to have changed, and how soon a loss is found.

A judge is right on an item or not, and turns its answer with some chance each time that it is
asked. Anchors are frozen, and a few a day asked again for a year; when all were used they are
frozen anew. Looked at after every anchor. Everything is seeded.
"""

from __future__ import annotations

import os
from itertools import product

import numpy as np

from bench.lib.report import figure, note
from judge_eval.stats.bootstrap import BoolArray, FloatArray
from judge_eval.stats.drift import THRESHOLD, largest_evidence

RUNS = int(os.environ.get("BENCH_RUNS", "1000"))
SEED = 17
DAYS, A_DAY = 365, 3
RIGHT = 0.8
JUDGES = 20
FLIPS, SIZES = (0.05, 0.10, 0.20), (100, 400)


def main() -> None:
    note(f"{RUNS:,} runs a cell, {A_DAY} anchors a day for {DAYS} days, seed {SEED}")
    rng = np.random.default_rng(SEED)
    for flip, size in product(FLIPS, SIZES):
        cell = f"answers flip on {100 * flip:.0f} %, {size} anchors"
        for name, aim, each in (
            ("unchanged", "at most 5 %", unchanged(rng, flip, size)),
            ("unchanged, best of 20", "at most 5 %", best_of_twenty(rng, flip, size, anew=True)),
            ("its study's answers frozen", "", best_of_twenty(rng, flip, size, anew=False)),
        ):
            share = 100 * float(np.mean(alarms(each) < len(each)))
            figure(f"{cell}: {name}, false alarms", share, "% of runs", aim)
        for loss in (10, 20):
            found = alarms(falling(rng, flip, size, loss / 100))
            share = 100 * float(np.mean(found < size))
            figure(f"{cell}: {loss} points lost, found in one freezing", share, "% of runs")
            if share >= 50:
                median = float(np.median(found)) + 1
                figure(f"{cell}: {loss} points lost, median", median, "anchors")


def asked(rng: np.random.Generator, base: BoolArray, flip: float) -> BoolArray:
    """Ask about every anchor once; `base` is whether the judge is right as a rule."""
    return np.asarray(base ^ (rng.random(base.shape) < flip))


def unchanged(rng: np.random.Generator, flip: float, size: int) -> FloatArray:
    return year(rng, rng.random((size, RUNS)) < RIGHT, flip)


def year(
    rng: np.random.Generator, base: BoolArray, flip: float, frozen: BoolArray | None = None
) -> FloatArray:
    """Return the differences of a year, shape (anchors asked again, runs)."""
    total, rounds = DAYS * A_DAY, []
    for place in range(-(-total // len(base))):
        is_given = frozen is not None and not place
        before = frozen if is_given else asked(rng, base, flip)
        assert before is not None  # it is given
        apart = asked(rng, base, flip).astype(float) - before
        rounds.append(rng.permuted(apart, axis=0))
    return np.concatenate(rounds)[:total]


def best_of_twenty(rng: np.random.Generator, flip: float, size: int, *, anew: bool) -> FloatArray:
    """Choose of equal judges the one that was right most often on the anchors themselves."""
    base = rng.random((JUDGES, size, RUNS)) < RIGHT
    study = asked(rng, base, flip)
    best = study.sum(axis=1).argmax(axis=0)
    chosen, answers = (
        np.stack([each[judge, :, run] for run, judge in enumerate(best)], axis=1)
        for each in (base, study)
    )
    return year(rng, chosen, flip, None if anew else answers)


def falling(rng: np.random.Generator, flip: float, size: int, loss: float) -> FloatArray:
    """Freeze the anchors, then let the judge be right on so many fewer; one freezing."""
    base = rng.random((size, RUNS)) < RIGHT
    # What it says as a rule is right 1 - flip of the times.
    kept = rng.random(base.shape) >= loss / (1 - 2 * flip) / RIGHT
    apart = asked(rng, base & kept, flip).astype(float) - asked(rng, base, flip)
    return np.asarray(rng.permuted(apart, axis=0))


def alarms(differences: FloatArray) -> FloatArray:
    """Return after which anchor a judge is said to have changed, infinite where it never is."""
    evidence = np.maximum(largest_evidence(differences), largest_evidence(-differences))
    reached = evidence >= THRESHOLD
    return np.where(reached.any(axis=0), reached.argmax(axis=0), np.inf)


if __name__ == "__main__":
    main()
