"""The examples in the docstrings are true."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    "judge_eval.baselines",
    "judge_eval.call_keys",
    "judge_eval.config_fields",
    "judge_eval.config_parts",
    "judge_eval.demo.content",
    "judge_eval.elo",
    "judge_eval.estimates",
    "judge_eval.extraction",
    "judge_eval.graph",
    "judge_eval.intervals",
    "judge_eval.judge_prompt",
    "judge_eval.orders",
    "judge_eval.pairing",
    "judge_eval.reply_text",
    "judge_eval.run_config",
    "judge_eval.verdict_text",
    "voting.chain",
    "voting.sides",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    outcome = doctest.testmod(import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0
