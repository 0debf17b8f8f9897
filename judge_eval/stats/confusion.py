"""What judges said beside what people said, label by label.

Of one label there are the two rates of any test: of the votes for the label, those that the judge
gave it too (sensitivity, or recall), and of the others, those that it did not (specificity).
"""

from dataclasses import dataclass

import numpy as np

from judge_eval.stats.bootstrap import IntArray
from judge_eval.stats.estimate import Share, require
from judge_eval.stats.judge_figures import shares_by_prompt
from judge_eval.stats.outcomes_table import NOT_ASKED, OutcomesTable


@dataclass(frozen=True, slots=True)
class LabelRates:
    """How well a judge finds one label: its sensitivity and its specificity."""

    sensitivity: Share
    specificity: Share


def confusion_matrices(table: OutcomesTable) -> IntArray:
    """Count the votes on what each judge was asked about by what people and the judge said.

    Of shape (n_judges, n_choices, n_choices + 1): rows are what people said, columns what the judge
    said; the last column counts votes on which it gave no verdict, or one that is right for none.

    Examples
    --------
    Three people: pass, pass, flag. The judge passes the first item and fails on the second.

    >>> table = OutcomesTable(np.array([[2, 0], [0, 1]]), np.array([[0], [-1]]))
    >>> confusion_matrices(table).tolist()
    [[[2, 0, 0], [0, 0, 1]]]
    """
    asked, said = table.verdicts != NOT_ASKED, table.verdicts
    columns = np.where(said < 0, table.n_choices, said)
    found = np.zeros((table.n_judges, table.n_choices, table.n_choices + 1), dtype=np.int64)
    for judge, matrix in enumerate(found):
        own = asked[:, judge]
        np.add.at(matrix.T, columns[own, judge], table.votes[own])
    return found


def label_rates(table: OutcomesTable, prompts: IntArray, choice: int) -> list[LabelRates]:
    """Return every judge's sensitivity and specificity for one choice, with 95 % intervals.

    Of votes on which the judge has a verdict; the intervals are those of `overall_agreement`.

    Examples
    --------
    Of 12 flags the judge finds 9, and of 20 passes it passes 18.

    >>> votes = np.array([[1, 0]] * 20 + [[0, 1]] * 12)
    >>> verdicts = np.array([[0]] * 18 + [[1]] * 2 + [[1]] * 9 + [[0]] * 3)
    >>> [rates] = label_rates(OutcomesTable(votes, verdicts), np.arange(32), choice=1)
    >>> rates.sensitivity.value, rates.sensitivity.n, rates.specificity.value
    (0.75, 12, 0.9)
    >>> round(rates.sensitivity.low, 3), round(rates.sensitivity.high, 3)
    (0.468, 0.911)
    """
    require(0 <= choice < table.n_choices, f"there is no choice {choice}")
    answered, said = table.verdicts >= 0, table.verdicts == choice
    own = table.votes[:, [choice]]
    others = table.votes.sum(axis=1, keepdims=True) - own
    found = shares_by_prompt(own * said, own * answered, prompts)
    spared = shares_by_prompt(others * (answered & ~said), others * answered, prompts)
    return [LabelRates(*rates) for rates in zip(found, spared, strict=True)]
