"""Twenty equally good variants of a judge: what choosing the best of them does to its figure.

    python -m bench.variants

Each is right on 80 % of the votes, whatever its wording; on 200 prompts people vote once. The one
that is best on the tuning half is taken. Its figure there is too high, since it was chosen by it;
that on the half held out is not. And that half flatters as much once it is what one chooses by.
"""

from typing import Final

import numpy as np

from judge_eval.stats.judge_figures import overall_agreement
from judge_eval.stats.outcomes_table import OutcomesTable
from voting.items.order import held_out_half

STUDIES: Final = 2_000
VARIANTS: Final = 20
PROMPTS: Final = 200
TRUTH: Final = 0.8
# Judges resemble each other: on this share of the prompts all of them are right or wrong together.
ALIKE: Final = 0.5


def study(rng: np.random.Generator, queue: int) -> tuple[float, float, float]:
    """Return the gaps to the truth, in points, of the three figures that `main` names."""
    together = rng.random(PROMPTS) < ALIKE
    alone = rng.random((PROMPTS, VARIANTS)) < TRUTH
    right = np.where(together[:, None], (rng.random(PROMPTS) < TRUTH)[:, None], alone)
    votes = np.tile(np.array([1, 0]), (PROMPTS, 1))
    half = held_out_half(queue, {str(n): 1 for n in range(PROMPTS)})
    held_out = np.array([str(n) in half for n in range(PROMPTS)])
    here, there = (agreement(votes[half], right[half]) for half in (~held_out, held_out))
    best, other = int(here.argmax()), int(there.argmax())
    return tuple(100 * (figure - TRUTH) for figure in (here[best], there[best], there[other]))  # type: ignore[return-value]


def agreement(votes: np.ndarray, right: np.ndarray) -> np.ndarray:
    table = OutcomesTable(votes, np.where(right, 0, 1).astype(np.int16))
    shares = overall_agreement(table, np.arange(len(votes)))
    return np.array([share.value for share in shares])


def main() -> int:
    rng = np.random.default_rng(11)
    gaps = np.array([study(rng, number) for number in range(STUDIES)])
    names = (
        "best by tuning, its tuning figure",
        "best by tuning, its held-out figure",
        "best by held-out, its held-out figure",
    )
    errors = gaps.std(axis=0) / np.sqrt(STUDIES)
    for name, gap, error in zip(names, gaps.mean(axis=0), errors, strict=True):
        print(f"{name}: {gap:+.2f} points from the truth (standard error {error:.2f})")
    is_unbiased = abs(gaps[:, 1].mean()) <= 0.5
    print("held-out is unbiased" if is_unbiased else "HELD-OUT IS BIASED")
    return 0 if is_unbiased else 1


if __name__ == "__main__":
    raise SystemExit(main())
