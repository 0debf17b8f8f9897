"""What the metrics cost, and the Alt-Test beside a plain loop on the same data, on one core."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import process_time
from typing import TypeVar

# One core: numpy's linear algebra must not take the others. It is read when numpy is imported.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import numpy as np
from scipy.stats import ttest_1samp

from bench.lib.report import figure, note
from judge_eval.stats import (
    AltTestSettings,
    alt_test,
    classification,
    cohen_kappa,
    epsilon_key,
    items_needed,
    krippendorff_alpha,
    text_similarity,
)

T = TypeVar("T")
Said = dict[str, str]

WORDS = np.array(["A", "B", "tie", "both_bad"])
JUDGES, HUMANS, ITEMS, LABELS = 6, 3, 6_400, 100_000
EPSILONS = AltTestSettings(more_epsilons=[0.12]).epsilons
REPEATS = 5


def main() -> None:
    measure_alt_test()
    measure_intervals()
    measure_sample_size()


def measure_alt_test() -> None:
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 4, ITEMS)
    people = {f"human {n}": annotator(generator, truth, 0.8) for n in range(HUMANS)}
    judges = {f"judge {n}": annotator(generator, truth, 0.5 + 0.08 * n) for n in range(JUDGES)}
    settings = AltTestSettings(more_epsilons=[0.12])
    alt_test({"one": judges["judge 0"]}, people, settings)  # imports scipy
    found, ours = best(lambda: alt_test(judges, people, settings))
    name = (
        f"Alt-Test of {JUDGES} judges, {HUMANS} people, {ITEMS:,} items, {len(EPSILONS)} epsilons"
    )
    figure(f"{name}", ours, "s", "under 0.3")
    plainly, theirs = best(lambda: {name: plain(said, people) for name, said in judges.items()}, 1)
    note(f"a plain loop, item by item, epsilon by epsilon, takes {theirs:.2f} s")
    figure("a plain loop against it, on the same data", theirs / ours, "times as long")
    for judge, rates in plainly.items():
        for epsilon, rate in rates.items():
            if found[judge].winning_rate[epsilon].value != rate:
                raise RuntimeError(f"the plain loop differs for {judge} at {epsilon}")


def measure_intervals() -> None:
    generator = np.random.default_rng(1)
    truth = generator.integers(0, 4, LABELS)
    judge = annotator(generator, truth, 0.7)
    one = {"human": annotator(generator, truth, 0.8)}
    third = truth[: LABELS // 3]
    three = {f"human {n}": annotator(generator, third, 0.8) for n in range(3)}
    classification({"a": "x"}, {"h": {"a": "x"}}, "f1", average="macro")  # imports scipy
    together = 0.0
    for name, call in (
        ("kappa", lambda: cohen_kappa(judge, one).figure),
        ("Krippendorff's alpha", lambda: krippendorff_alpha(three)),
        ("macro F1", lambda: classification(judge, three, "f1", average="macro").figure),
    ):
        _, seconds = best(call)
        figure(f"{name} of {LABELS:,} labels with 1,000 resamples", seconds, "s")
        together += seconds if name != "macro F1" else 0.0
    figure(f"kappa and alpha of {LABELS:,} labels, resampled", together, "s", "under 2")
    texts = {item: f"{label} because of {item}" for item, label in judge.items()}
    others = {item: f"{label}, for {item}" for item, label in one["human"].items()}
    few = dict(list(texts.items())[: LABELS // 10])
    _, seconds = best(lambda: text_similarity(few, {"human": others}).figure, 1)
    figure(f"text similarity of {len(few):,} texts with 1,000 resamples", seconds, "s")


def measure_sample_size() -> None:
    _, seconds = best(lambda: items_needed(0.85, 0.2))
    figure("how many items: 1,000 simulated Alt-Tests of up to 300 items", seconds, "s")


def annotator(generator: np.random.Generator, truth: np.ndarray, sure: float) -> Said:
    """Somebody who knows the truth of a share of the items and draws the other labels."""
    guess = generator.integers(0, 4, len(truth))
    labels = WORDS[np.where(generator.random(len(truth)) < sure, truth, guess)]
    return {f"item {number}": label for number, label in enumerate(labels.tolist())}


def best(call: Callable[[], T], repeats: int = REPEATS) -> tuple[T, float]:
    """The result and the least processor time: what else the machine does only adds to it."""
    result, least = call(), float("inf")
    for _ in range(repeats):
        started = process_time()
        result = call()
        least = min(least, process_time() - started)
    return result, least


def plain(judge: Said, people: dict[str, Said]) -> dict[str, float]:
    """The test as its authors' code goes about it: everything again for each epsilon."""
    return {epsilon_key(epsilon): plain_rate(judge, people, epsilon) for epsilon in EPSILONS}


def plain_rate(judge: Said, people: dict[str, Said], epsilon: float) -> float:
    p_values = []
    for left_out, said in people.items():
        differences = []
        for item, label in said.items():
            others = [other[item] for name, other in people.items() if name != left_out]
            human = float(np.mean([label == other for other in others]))
            llm = float(np.mean([judge[item] == other for other in others]))
            differences.append(int(human >= llm) - int(llm >= human))
        p_values.append(ttest_1samp(differences, epsilon, alternative="less").pvalue)
    m = len(p_values)
    harmonic = sum(1 / rank for rank in range(1, m + 1))
    passing = [k for k, p in enumerate(sorted(p_values), 1) if p <= k / m * 0.05 / harmonic]
    return max(passing, default=0) / m


if __name__ == "__main__":
    main()
