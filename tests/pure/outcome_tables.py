"""Tables of votes and verdicts for tests: made up by hypothesis, or around a hidden truth."""

import numpy as np
from hypothesis import strategies as st

from judge_eval.stats.outcomes_table import OutcomesTable
from voting.choices import CHOICES, WRONG

words = st.sampled_from(CHOICES)


@st.composite
def tables(draw, *, judges=None, comparisons=8, votes=3):
    width = draw(st.integers(1, 5)) if judges is None else judges
    row = st.tuples(
        st.lists(st.integers(0, votes), min_size=4, max_size=4),
        st.lists(st.integers(-2, 4), min_size=width, max_size=width),
    )
    rows = draw(st.lists(row, min_size=1, max_size=comparisons))
    counts, codes = zip(*rows, strict=True)
    return OutcomesTable(np.array(counts, dtype=np.int64), np.array(codes, dtype=np.int8))


def made_up(rng, *, comparisons, skills, votes=1, people=0.7):
    """Judges find a hidden truth as often as their skill says, else they answer at random."""
    truth = rng.integers(0, 4, comparisons)
    found = rng.random((comparisons, len(skills))) < np.array(skills)
    said = np.where(found, truth[:, None], rng.integers(-1, 4, (comparisons, len(skills))))
    chances = np.full((comparisons, 4), (1 - people) / 3)
    chances[np.arange(comparisons), truth] = people
    return OutcomesTable(rng.multinomial(votes, chances), said.astype(np.int8))


def votes_of(table):
    """Return every single vote as (choice, verdicts), in words: what the table was counted from."""
    names = {-2: None, -1: None, **dict(enumerate([*CHOICES, WRONG]))}
    return [
        (CHOICES[choice], [names[code] for code in said])
        for counts, said in zip(table.votes.tolist(), table.verdicts.tolist(), strict=True)
        for choice in range(4)
        for _ in range(counts[choice])
    ]
