"""The examples in the docstrings are true."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    "judge_eval.baselines",
    "judge_eval.demo.content",
    "judge_eval.elo",
    "judge_eval.graph",
    "judge_eval.intervals",
    "judge_eval.pairing",
    "voting.chain",
    "voting.sides",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    outcome = doctest.testmod(import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0
