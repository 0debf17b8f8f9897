"""Tables of votes and verdicts for tests: made up by hypothesis, or around a hidden truth."""

import numpy as np
from hypothesis import strategies as st

from judge_eval.stats.outcomes_table import UNASSIGNED, OutcomesTable
from voting.items.choices import CHOICES, WRONG

words = st.sampled_from(CHOICES)
CODES = {None: -1, **{word: code for code, word in enumerate([*CHOICES, WRONG])}}


def outcomes_of(votes, verdicts, judges=None):
    """Make a table of words; a judge missing at the end of the verdicts was not asked."""
    codes = [[CODES[verdict] for verdict in row] for row in verdicts]
    width = max((len(row) for row in codes), default=0) if judges is None else judges
    codes = [row + [UNASSIGNED] * (width - len(row)) for row in codes]
    counts = [[row.get(choice, 0) for choice in CHOICES] for row in votes]
    return OutcomesTable(
        np.array(counts, dtype=np.int64).reshape(len(counts), len(CHOICES)),
        np.array(codes, dtype=np.int8).reshape(len(codes), width),
    )


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


def one_by_one(table, seed=0):
    """Write the votes of a table out, those on one item anywhere; items, choices and verdicts."""
    items, choices = np.nonzero(table.votes)
    times = table.votes[items, choices]
    items, choices = np.repeat(items, times), np.repeat(choices, times)
    order = np.random.default_rng(seed).permutation(len(items))
    return items[order], choices[order], table.verdicts
