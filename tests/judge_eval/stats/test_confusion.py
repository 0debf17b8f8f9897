"""Confusion matrices, and how well judges find a label: against loops over the single votes."""

import numpy as np
import pytest
from hypothesis import given

from judge_eval.stats.estimate import wilson
from judge_eval.stats.judge_figures import confusion_matrices, label_rates, prompt_interval
from judge_eval.stats.outcomes_table import OutcomesTable
from tests.helpers.outcome_tables import CODES, tables, votes_of


@given(tables())
def test_every_vote_on_what_a_judge_was_asked_about_is_in_one_cell(table):
    found = confusion_matrices(table)
    asked = table.verdicts != -2
    for judge in range(table.n_judges):
        counts = np.zeros_like(found[judge])
        for row, people, said in zip(asked, table.votes, table.verdicts, strict=True):
            if row[judge]:
                counts[:, said[judge] if said[judge] >= 0 else table.n_choices] += people
        assert found[judge].tolist() == counts.tolist()
        assert np.trace(found[judge]) == table.right()[:, judge].sum()


@given(tables())
def test_rates_are_those_of_the_single_votes(table):
    prompts = np.arange(len(table.votes))
    for choice, word in enumerate(list(CODES)[1 : table.n_choices + 1]):
        for judge, rates in enumerate(label_rates(table, prompts, choice)):
            told = [(human, said[judge]) for human, said in votes_of(table) if said[judge]]
            own = [said == word for human, said in told if human == word]
            others = [said != word for human, said in told if human != word]
            assert (rates.sensitivity.successes, rates.sensitivity.n) == (sum(own), len(own))
            spared = rates.specificity.successes, rates.specificity.n
            assert spared == (sum(others), len(others))


def judged(right, wrong, repeats=1):
    votes = np.array([[0, repeats]] * (right + wrong))
    return OutcomesTable(votes, np.array([[1]] * right + [[0]] * wrong))


def test_one_vote_and_one_prompt_each_has_wilsons_interval():
    [rates] = label_rates(judged(9, 3), np.arange(12), 1)
    assert (rates.sensitivity.low, rates.sensitivity.high) == wilson(9, 12)
    assert rates.sensitivity.method == "wilson"
    assert (rates.specificity.value, rates.specificity.why) == (None, "there is nothing to count")


def test_items_that_share_a_prompt_are_no_independent_evidence():
    prompts = np.arange(24) // 2
    [rates] = label_rates(judged(18, 6), prompts, 1)
    by_prompt = prompt_interval([2] * 9 + [0] * 3, [2] * 12)
    assert (rates.sensitivity.low, rates.sensitivity.high) == by_prompt
    assert rates.sensitivity.method == "prompts"


def test_few_prompts_do_not_tell_how_sure_a_rate_is():
    [rates] = label_rates(judged(6, 3), np.arange(9), 1)
    assert rates.sensitivity.value == pytest.approx(2 / 3)
    assert rates.sensitivity.low is None
    assert "fewer than 10" in rates.sensitivity.why


def test_a_choice_that_is_not_in_the_table_is_refused():
    with pytest.raises(ValueError, match="no choice 2"):
        label_rates(judged(1, 1), np.arange(2), 2)
