"""How good each generator's outputs are by people, by each judge, and by both (`stats.corrected`).

Unlike the board of judges, this is per output or pair: people's majority on it is one grade.
"""

import numpy as np

from judge_eval.board.families import share_family
from judge_eval.board.load import RunOutcomes
from judge_eval.board.model import MOST_MODELS, GeneratorRates, JudgeRates
from judge_eval.stats.bootstrap import FloatArray, IntArray
from judge_eval.stats.corrected import corrected, share_of_grades
from judge_eval.stats.outcomes_table import UNASSIGNED
from voting.items.choices import row_of


def generator_rates(outcomes: RunOutcomes) -> list[GeneratorRates]:
    """Return the rates of each generator by name; none where items are neither pairs nor passed."""
    queue, models = outcomes.run.queue, outcomes.models
    figures, families = queue.figures, queue.project.model_families
    is_paired = "models" in figures
    if not (is_paired or "flags" in figures) or len(outcomes.generators) > MOST_MODELS:
        return []
    # A pair of one generator, or of an unknown one, says nothing of how good it is.
    compared = (models >= 0).all(axis=1) & (models[:, 0] != models[:, 1])
    counted = compared if is_paired else np.ones(len(models), dtype=bool)
    judging = [place for place, judge in enumerate(outcomes.judges) if not judge.is_baseline]
    sides = range(1 + is_paired)
    # Both bad does not say which is better, and is a vote all the same.
    values = [
        np.array([np.nan if c == "both_bad" else row_of(c).grades[side] for c in outcomes.choices])
        for side in sides
    ]
    people = [_majority(outcomes.table.votes, side_grades) for side_grades in values]
    verdicts = outcomes.table.verdicts[:, judging]
    # A verdict that failed, or is right for nobody, has no grade.
    codes = np.where(verdicts < 0, len(outcomes.choices), verdicts)
    judges = [np.append(side_grades, np.nan)[codes] for side_grades in values]
    votes = outcomes.table.votes.sum(axis=1)
    rates = []
    for number, name in enumerate(outcomes.generators):
        rows = [np.flatnonzero(counted & (models[:, side] == number)) for side in sides]
        generator_rows = np.concatenate(rows)
        by_people = np.concatenate([people[side][rows[side]] for side in sides])
        by_judges = np.concatenate([judges[side][rows[side]] for side in sides])
        prompts = outcomes.prompts[generator_rows]
        both_bad = np.isnan(by_people) & (votes[generator_rows] > 0)
        by_judge = [
            JudgeRates(
                judge=str(judge.pk),
                is_own_family=share_family(name, judge.model_names, families),
                rates=corrected(
                    by_people,
                    by_judges[:, column],
                    prompts,
                    both_bad=both_bad,
                    is_asked=verdicts[generator_rows, column] != UNASSIGNED,
                    are_passes=not is_paired,
                ),
            )
            for column, judge in enumerate(outcomes.judges[place] for place in judging)
        ]
        rates.append(
            GeneratorRates(
                name=name,
                votes=int(votes[generator_rows].sum()),
                both_bad=int(both_bad.sum()),
                people=share_of_grades(by_people, prompts),
                judges=by_judge,
            )
        )
    return rates


def _majority(votes: IntArray, values: FloatArray) -> FloatArray:
    """Return the grade by most people; 1/2 where as many say otherwise, NaN without votes."""
    most = votes.max(axis=1, initial=0)
    is_most = votes == most[:, None]
    grades = np.where(is_most.sum(axis=1) == 1, values[is_most.argmax(axis=1)], 0.5)
    return np.where(most > 0, grades, np.nan)
