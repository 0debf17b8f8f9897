"""What `make stats` counts as hard to read, and what `make check` refuses."""

from bench import readability
from bench.readability import DENSITY, HELD, IMPORTS, ONCE, UNCLEAR, Tally, hold

TEXT = '''"""A module."""
import os
from pathlib import Path


class Row:
    pass


class Row:
    pass


# Alone in its line.
def votes_of(given, item_count):
    each = _first(*(given, item_count))
    return each


def _first(row, why):
    return row
'''


def figures(text=TEXT):
    tally = Tally()
    tally.add_module(text)
    return tally.figures()


def test_names_of_particles_alone_are_unclear():
    # given, each and why of: votes_of, given, item_count, each, _first, row, why.
    assert figures()[UNCLEAR] == round(100 * 3 / 7, 2)
    assert readability.is_unclear("by_one")
    assert readability.is_unclear("AsOf")
    assert not readability.is_unclear("known_votes")
    assert not readability.is_unclear("_")


def test_small_functions_imports_and_repetitions_are_counted():
    counted = figures()
    assert counted[IMPORTS] == 2
    assert counted[ONCE] == 1
    # Two functions; neither blank lines nor the docstring, the comment and the imports are code.
    assert counted[DENSITY] == round(1000 * 2 / 9)
    assert counted["class names defined twice"] == 1
    assert counted["packed literals as arguments"] == 1
    assert counted["lines of the longest function"] == 3


def test_a_figure_that_rises_is_refused(capsys):
    allowed = figures()
    assert hold(allowed, allowed) == 0
    for name in HELD:
        assert hold(allowed | {name: allowed[name] + 1}, allowed) == 1
        assert name in capsys.readouterr().out
    assert hold(allowed | {"docstrings (% of lines)": 90}, allowed) == 0
