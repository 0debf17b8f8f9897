"""The Alt-Test as a scorer."""

from __future__ import annotations

from judge_eval.stats.alt_test_parts import (
    AgainstHuman,
    AltTestResult,
    AltTestSettings,
    epsilon_key,
)
from judge_eval.stats.alt_test_words import advice, in_words
from judge_eval.stats.annotator_test import alt_test
from judge_eval.stats.averages import WILSON
from judge_eval.stats.figures import Figure, ScoreResult, TaskStrategy, no_figure
from judge_eval.stats.intervals import wilson
from judge_eval.stats.labels import HumanLabels, JudgeLabels, Label
from judge_eval.stats.scorers import BuiltInScorer, Found

_JUDGE = "judge"


class AltTestScorer(BuiltInScorer):
    """May the judge take a person's place? See `alt_test`.

    Parameters
    ----------
    settings : AltTestSettings, optional
    """

    figure_names = ("winning_rate", "advantage_probability")

    def __init__(self, settings: AltTestSettings | None = None) -> None:
        super().__init__("alt_test")
        self.settings = settings or AltTestSettings()
        self.min_humans = self.settings.min_humans

    def can_score_task(self, sample_label: Label) -> bool:
        return True

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        found = alt_test({_JUDGE: judge}, humans, self.settings)[_JUDGE]
        return Found(
            {
                "winning_rate": found.winning_rate[found.epsilon],
                "advantage_probability": found.advantage_probability,
            },
            by_human={name: _advantage(against) for name, against in found.by_human.items()},
            series={"winning_rate": found.winning_rate},
            metadata=self._metadata(found),
            warnings=advice(found, self.settings),
        )

    def no_result(
        self, judge_id: str, task_name: str, aggregation_mode: TaskStrategy, reason: str
    ) -> ScoreResult:
        figure = no_figure(reason)
        rates: dict[str, Figure] = {epsilon_key(e): figure for e in self.settings.epsilons}
        found = Found(dict.fromkeys(self.figure_names, figure), series={"winning_rate": rates})
        return self._result(found, judge_id, task_name, aggregation_mode)

    def _metadata(self, found: AltTestResult) -> dict[str, object]:
        settings, people = self.settings, found.by_human.items()
        return {
            "human_advantage_probabilities": {
                name: [against.judge_advantage, against.human_advantage] for name, against in people
            },
            "p_values": {name: dict(against.p_values) for name, against in people},
            "won_against": {name: dict(against.rejected) for name, against in people},
            "items": {name: against.n for name, against in people},
            "tests": {name: against.test for name, against in people},
            "passes": found.passes,
            "in_words": in_words(found),
            "scoring_function": found.scoring,
            "epsilon": settings.epsilon,
            "multiplicative_epsilon": settings.multiplicative,
            "q_fdr": settings.q,
            "min_human_annotators": settings.min_humans,
            "min_humans_per_item": settings.min_humans_per_item,
            "min_instances_per_human": settings.min_instances_per_human,
            "ground_truth_method": "alt_test_procedure",
            "scoring_method": "leave_one_out_cross_validation",
        }


def _advantage(against: AgainstHuman) -> Figure:
    holds = round(against.judge_advantage * against.n)
    interval = wilson(holds, against.n)
    return Figure(against.judge_advantage, against.n, interval=interval, method=WILSON)
