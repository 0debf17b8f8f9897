from judge_eval.stats import Figure, Scorer


class SameWordScorer(Scorer):
    figure_names = ("same_word",)

    def can_score_task(self, sample_label):
        return isinstance(sample_label, str)

    def compute_score(self, judge_data, human_data, task_name, judge_id, aggregation_mode):
        said = judge_data.by_item
        same = [said[item] == label for item, _, label in human_data if item in said]
        figure = Figure(sum(same) / len(same), n=len(same))
        return self.result(judge_id, task_name, aggregation_mode, {"same_word": figure})
