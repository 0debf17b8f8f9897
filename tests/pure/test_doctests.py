"""The examples in the docstrings are true."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    "humanjudge.charts",
    "humanjudge.charts.look",
    "humanjudge.charts.parts",
    "humanjudge.charts.restyling",
    "humanjudge.cli.lines",
    "judge_eval.baselines",
    "judge_eval.statistics.bootstrap",
    "judge_eval.statistics.bradley_terry",
    "judge_eval.dialogue.call_keys",
    "judge_eval.config.fields",
    "judge_eval.config.parts",
    "judge_eval.demo.content",
    "judge_eval.elo",
    "judge_eval.config.estimates",
    "judge_eval.dialogue.extraction",
    "judge_eval.dialogue.generation_prompt",
    "judge_eval.pages.graph",
    "judge_eval.statistics.human_agreement",
    "judge_eval.statistics.intervals",
    "judge_eval.statistics.judge_figures",
    "judge_eval.dialogue.judge_prompt",
    "judge_eval.statistics.model_ratings",
    "judge_eval.statistics.order_free",
    "judge_eval.statistics.order_luck",
    "judge_eval.dialogue.orders",
    "judge_eval.statistics.outcomes_table",
    "judge_eval.pairing",
    "judge_eval.statistics.positions",
    "judge_eval.statistics.ranks",
    "judge_eval.config.prompt_files",
    "judge_eval.dialogue.reply_text",
    "judge_eval.config.run_config",
    "judge_eval.statistics.shares",
    "judge_eval.statistics.significance",
    "judge_eval.dialogue.verdict_text",
    "judge_eval.words",
    "judge_eval.statistics.wording",
    "voting.chain",
    "voting.sides",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    outcome = doctest.testmod(import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0
