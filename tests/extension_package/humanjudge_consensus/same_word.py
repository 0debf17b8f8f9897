"""What computes: imported where scores are computed, and nowhere else."""

from judge_eval.stats import Estimate, HumanLabels, JudgeLabels, Scorer, ScoreResult, TaskStrategy


class SameWordScorer(Scorer):
    figure_names = ("same_word",)

    def can_score_task(self, sample_label: object) -> bool:
        return isinstance(sample_label, str)

    def compute_score(
        self,
        judge_data: JudgeLabels,
        human_data: HumanLabels,
        task_name: str,
        judge_id: str,
        aggregation_mode: TaskStrategy,
        /,
    ) -> ScoreResult:
        said = judge_data.by_item
        same = [said[item] == label for item, _, label in human_data if item in said]
        figure = Estimate(sum(same) / len(same), n=len(same))
        return self.result(judge_id, task_name, aggregation_mode, {"same_word": figure})
