"""How often a judge that stays as it is is said to have changed, and how soon a loss is found.

A judge is right on an item or not, and turns its answer with some chance each time that it is
asked. It answers about each anchor as often as a year takes, and then about a few a day, each
answer being set against one of the first that was not used yet. Losses come on a day drawn from the
year, at once, or grow from the first day to the last. Looked at after every answer, by judges
watched alone and by five of a run. Everything is seeded.

A loss of the last weeks leaves too few answers to be found, so the share of those with 90 days left
stands beside that of all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import product

import numpy as np

from bench.lib.report import figure, note
from judge_eval.stats.bootstrap import FloatArray, IntArray
from judge_eval.stats.drift import DAYS, START_DAYS, THRESHOLD, evidence, yardstick

RUNS = int(os.environ.get("BENCH_RUNS", "1000"))
SEED = 17
RIGHT = 0.8
JUDGES = (1, 5)
SIZES, A_DAY, FLIPS = (100, 400), (3, 10), (0.05, 0.10, 0.20)
# Points lost, whether from one day to the next, and how often that is to be found.
LOSSES = ((20, True, 95), (10, True, 75), (20, False, 90))
LEFT = 90
HEAD = (
    "anchors  a day  flips  judges  false alarms  20 at once  days  in time  10 at once  days  "
    "in time  20 slowly  days"
)


@dataclass(frozen=True)
class Watch:
    anchors: int
    a_day: int
    flip: float

    @property
    def days(self) -> IntArray:
        """The day of each later answer."""
        return np.repeat(np.arange(DAYS), self.a_day)


def main() -> None:
    note(f"{RUNS:,} runs a cell, {DAYS} days, seed {SEED}")
    lines = []
    for cell in (Watch(*each) for each in product(SIZES, A_DAY, FLIPS)):
        lines += show(cell)
    note(HEAD)
    for line in lines:
        note(line)


def show(cell: Watch) -> list[str]:
    """Print the figures of a cell; return them as lines of the table."""
    rng = np.random.default_rng((SEED, cell.anchors, cell.a_day, round(100 * cell.flip)))
    none = np.zeros(RUNS)
    unchanged = np.array(
        [
            np.maximum(weigh(cell, now), weigh(cell, -now)).max(axis=0)
            for now in (differences(rng, cell, none, is_sudden=True) for _ in range(max(JUDGES)))
        ]
    )
    lost = []
    for points, is_sudden, aim in LOSSES:
        first = rng.integers(0, DAYS, RUNS) if is_sudden else np.zeros(RUNS, dtype=np.int64)
        worse = -differences(rng, cell, np.full(RUNS, points / 100), first, is_sudden=is_sudden)
        lost.append((points, is_sudden, aim, first, weigh(cell, worse)))
    lines = []
    for judges in JUDGES:
        name = f"{cell.anchors} anchors, {cell.a_day} a day, flips of {100 * cell.flip:.0f} %"
        name += f", {judges} watched"
        alarms = 100 * float((unchanged[:judges].max(axis=0) >= THRESHOLD * judges).mean())
        figure(f"{name}: false alarms", alarms, "% of runs", "at most 5 %")
        line = f"{cell.anchors:7}{cell.a_day:7}{100 * cell.flip:5.0f} %{judges:8}{alarms:12.1f} %"
        for points, is_sudden, aim, first, reached in lost:
            how = f"{points} points lost {'at once' if is_sudden else 'over the year'}"
            found = reached >= THRESHOLD * judges
            is_found = np.asarray(found.any(axis=0))
            share = 100 * float(is_found.mean())
            took = np.asarray(cell.days[found.argmax(axis=0)] - first)
            days = float(np.median(took[is_found]))
            figure(f"{name}: {how}, found within the year", share, "%", f"at least {aim} %")
            figure(f"{name}: {how}, median of those found", days, "days")
            line += f"{share:10.1f} %{days:6.0f}"
            if is_sudden:
                in_time = 100 * float(is_found[first < DAYS - LEFT].mean())
                figure(f"{name}: {how}, found with {LEFT} days left", in_time, "%")
                line += f"{in_time:7.1f} %"
        lines.append(line)
    return lines


def differences(
    rng: np.random.Generator,
    cell: Watch,
    lost: FloatArray,
    first: IntArray | None = None,
    *,
    is_sudden: bool,
) -> FloatArray:
    """Return how much more the later answers are right, shape (answers of a year, runs)."""
    rounds = yardstick(cell.a_day, cell.anchors)
    shape = (cell.anchors, len(lost))
    order = np.concatenate([rng.permuted(_rows(shape), axis=0) for _ in range(rounds)])
    order = order[: DAYS * cell.a_day]
    # What it says as a rule; an anchor that is lost stays lost.
    base = np.take_along_axis(rng.random(shape) < RIGHT, order, axis=0)
    chance = np.take_along_axis(rng.random(shape), order, axis=0)
    day = cell.days[:, None]
    lost_by_now = lost * (day >= (0 if first is None else first))
    if not is_sudden:
        lost_by_now = lost * (day + 1) / DAYS
    kept = chance >= lost_by_now / (1 - 2 * cell.flip) / RIGHT
    then = base ^ (rng.random(base.shape) < cell.flip)
    now = (base & kept) ^ (rng.random(base.shape) < cell.flip)
    return now.astype(float) - then


def _rows(shape: tuple[int, int]) -> IntArray:
    return np.tile(np.arange(shape[0])[:, None], shape[1])


def weigh(cell: Watch, bets: FloatArray) -> FloatArray:
    return evidence(bets, np.searchsorted(cell.days, START_DAYS))


if __name__ == "__main__":
    main()
