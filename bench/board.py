"""The figures of a board: a million votes on 50,000 comparisons, 20 judges, 1,000 resamples.

On one core, and beside a plain numpy loop and the public packages choix and arena-rank, where
those can be imported. The slow ones do a share of the resamples and are scaled up.
"""

from __future__ import annotations

import os
import resource
import time
from typing import Any

# Before numpy is loaded: its linear algebra must not use a second core.
os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")

import numpy as np
import scipy.special  # noqa: F401 (imported when first needed: no part of what is measured)

from bench.lib.report import figure, note
from judge_eval.stats import bradley_terry
from judge_eval.stats.bootstrap import RESAMPLES, bootstrap
from judge_eval.stats.bradley_terry import as_votes, model_board
from judge_eval.stats.elo_orders import elo_range
from judge_eval.stats.judge_figures import among_people, judge_figures
from judge_eval.stats.mcnemar import mcnemar_tests
from judge_eval.stats.outcomes_table import Games, OutcomesTable

VOTES = int(os.environ.get("BENCH_BOARD_VOTES", "1000000"))
COMPARISONS = int(os.environ.get("BENCH_BOARD_COMPARISONS", "50000"))
JUDGES = 20
MODELS = 8
LOOP_SHARE = 20  # the loop does one resample in so many


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rng = np.random.default_rng(2026)
    table, models = made_up(rng)
    note(f"{len(table.grouped()[1]):,} different rows of votes and verdicts")
    before = peak_mb()
    seconds = board(table, rng)
    figure("peak memory", peak_mb(), "MB", "under 1,000")
    note(f"of it {before:,.0f} MB stood there before: Python, numpy, scipy and the votes")
    boards_of_models(table, models, rng)
    fits(table, rng)
    loop = plain_loop(table, rng)
    figure("rating with interval, plain numpy loop to ours", loop / seconds, "times")


def made_up(rng: np.random.Generator) -> tuple[OutcomesTable, np.ndarray[Any, Any]]:
    """Make votes and verdicts around a hidden truth; judges find it more or less often."""
    truth = rng.integers(0, 4, COMPARISONS)
    found = rng.random((COMPARISONS, JUDGES)) < np.linspace(0.3, 0.75, JUDGES)
    verdicts = np.where(found, truth[:, None], rng.integers(-1, 4, (COMPARISONS, JUDGES)))
    chances = np.full((COMPARISONS, 4), 0.1)
    chances[np.arange(COMPARISONS), truth] = 0.7
    votes = rng.multinomial(VOTES // COMPARISONS, chances)
    models = np.array([rng.choice(MODELS, 2, replace=False) for _ in range(COMPARISONS)])
    return OutcomesTable(votes.astype(np.int64), verdicts.astype(np.int8)), models


def board(table: OutcomesTable, rng: np.random.Generator) -> float:
    """Time all that a board shows; return the seconds of the ratings alone."""
    started, processor = time.perf_counter(), time.process_time()
    found = mcnemar_tests(table)
    figure("McNemar with Holm, all pairs", lap(started) * 1000, "ms")
    middle = time.perf_counter()
    figures = judge_figures(table, np.arange(len(table.votes)), rng)
    ratings = lap(middle)
    figure("ratings, ranks, agreement, 1,000 resamples", ratings, "s")
    middle = time.perf_counter()
    items, choices = np.nonzero(table.votes)
    times = table.votes[items, choices]
    elo_range(np.repeat(items, times), np.repeat(choices, times), table.verdicts, rng)
    figure("ELO in other orders, 100 samples of 5,000 votes", lap(middle), "s")
    middle = time.perf_counter()
    among_people(table.votes, np.arange(len(table.votes)))
    figure("people among themselves, 1,000 resamples", lap(middle), "s")
    note(f"{np.sum(found.beats)} of {JUDGES * (JUDGES - 1) // 2} pairs of judges are told apart")
    widths = [f.rating.high - f.rating.low for f in figures if f.rating.high and f.rating.low]
    note(f"intervals are {min(widths):.1f} to {max(widths):.1f} points wide")
    name = f"board of {VOTES:,} votes, {COMPARISONS:,} comparisons, {JUDGES} judges, all of it"
    figure(name, lap(started), "s on one core", "under 10")
    note(f"of it {time.process_time() - processor:.1f} s of processor time, the rest was others'")
    return ratings


def boards_of_models(
    table: OutcomesTable, models: np.ndarray[Any, Any], rng: np.random.Generator
) -> None:
    started = time.perf_counter()
    model_board(models, MODELS, table.votes, rng)
    figure(f"board of {MODELS} models by people, 1,000 resamples", lap(started), "s")
    started = time.perf_counter()
    for judge in range(JUDGES):
        model_board(models, MODELS, as_votes(table.verdicts[:, judge]), rng)
    figure(f"the same by each of {JUDGES} judges", lap(started), "s")


def fits(table: OutcomesTable, rng: np.random.Generator) -> None:
    """Bradley-Terry alone, on the same 1,000 resampled tables of wins, beside others."""
    groups, multiplicity = table.grouped()
    _, sums = bootstrap(Games(groups), multiplicity, lambda sums: sums, rng)
    wins = sums.T.reshape(-1, JUDGES, JUDGES)
    started = time.perf_counter()
    ours = bradley_terry.fit(wins)
    seconds = lap(started)
    figure(f"{RESAMPLES:,} fits of {JUDGES} judges at once", seconds * 1000, "ms")
    for name, peer in (("choix", choix_fit), ("arena-rank", arena_rank_fit), ("MM", plain_fit)):
        try:
            peer(wins[0])  # imports and compiles
        except ImportError as missing:
            note(f"{name} is not compared: {missing}")
            continue
        some = len(wins) // LOOP_SHARE
        started = time.perf_counter()
        theirs = [peer(table) for table in wins[:some]]
        ratio = lap(started) * len(wins) / some / seconds
        figure(f"fits one by one by {name}, to ours", ratio, "times")
        gap = max(float(np.abs(a - b).max()) for a, b in zip(theirs, ours, strict=False))
        note(f"{name} differs from ours by at most {gap:.2g} points")


def choix_fit(wins: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Without our prior, which choix does not know; a million games outweigh it."""
    import choix

    return on_elo_scale(choix.ilsr_pairwise_dense(wins))


def arena_rank_fit(wins: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As its own bootstrap does; its default is one fit and a sandwich estimate of the error."""
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset
    from jax import numpy as jnp

    pairs = jnp.array(np.argwhere(wins))
    counts = jnp.array(wins[wins > 0])
    ones = jnp.ones(len(counts))
    names = [str(n) for n in range(len(wins))]
    model = BradleyTerry(n_competitors=len(wins))
    model.fit(PairDataset(names, pairs, ones, counts, ones, counts))
    return on_elo_scale(np.asarray(model.params["ratings"]))


def plain_fit(wins: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Hunter's minorise-maximise, with the prior as games against one more player."""
    n = len(wins)
    table = np.zeros((n + 1, n + 1))
    table[:n, :n] = wins
    table[:n, n] = table[n, :n] = 0.5
    np.fill_diagonal(table, 0)
    games, won = table + table.T, table.sum(axis=1)
    strengths, moved = np.ones(n + 1), np.inf
    while moved > 1e-9:
        new = won / (games / (strengths[:, None] + strengths)).sum(axis=1)
        new /= np.exp(np.log(new).mean())
        moved, strengths = np.abs(np.log(new / strengths)).max(), new
    return on_elo_scale(np.log(strengths[:n]))


def on_elo_scale(logs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return 1000 + bradley_terry.POINTS * (logs - logs.mean())


def plain_loop(table: OutcomesTable, rng: np.random.Generator) -> float:
    """Resample, count wins with matrix products choice by choice, fit: once per resample."""
    votes = table.votes.astype(np.float64)
    says = [(table.verdicts == code).astype(np.float64) for code in range(4)]
    answered = (table.verdicts >= 0).astype(np.float64)
    some = RESAMPLES // LOOP_SHARE
    started = time.perf_counter()
    for _ in range(some):
        drawn = rng.integers(len(votes), size=len(votes))
        wins = np.zeros((JUDGES, JUDGES))
        for code in range(4):
            right = says[code][drawn]
            wins += (right * votes[drawn, code, None]).T @ (answered[drawn] - right)
        plain_fit(wins)
    seconds = lap(started) * RESAMPLES / some
    figure("rating with interval, plain numpy loop", seconds, "s")
    return seconds


def lap(started: float) -> float:
    return time.perf_counter() - started


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
