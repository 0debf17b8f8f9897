"""The examples in the docstrings are true."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    "humanjudge.cli.lines",
    "judge_eval.baselines",
    "judge_eval.bootstrap",
    "judge_eval.bradley_terry",
    "judge_eval.call_keys",
    "judge_eval.config_fields",
    "judge_eval.config_parts",
    "judge_eval.demo.content",
    "judge_eval.elo",
    "judge_eval.estimates",
    "judge_eval.extraction",
    "judge_eval.generation_prompt",
    "judge_eval.graph",
    "judge_eval.human_agreement",
    "judge_eval.intervals",
    "judge_eval.judge_figures",
    "judge_eval.judge_prompt",
    "judge_eval.model_ratings",
    "judge_eval.order_free",
    "judge_eval.order_luck",
    "judge_eval.orders",
    "judge_eval.outcomes_table",
    "judge_eval.pairing",
    "judge_eval.positions",
    "judge_eval.ranks",
    "judge_eval.prompt_files",
    "judge_eval.reply_text",
    "judge_eval.run_config",
    "judge_eval.shares",
    "judge_eval.significance",
    "judge_eval.verdict_text",
    "judge_eval.words",
    "judge_eval.wording",
    "voting.chain",
    "voting.sides",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    outcome = doctest.testmod(import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0
