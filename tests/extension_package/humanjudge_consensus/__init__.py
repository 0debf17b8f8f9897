"""A judge made of several: what most of them say."""

from collections import Counter

from judge_eval.extensions import Answer, JudgeHelpers, JudgeSpec, JudgeType, NoVerdict


class Consensus(JudgeType):
    id = "consensus"
    title = "Consensus"
    version = "1.0"
    description = "Asks several models and says what more than half of them say."
    parts = (2, 25)

    def verdict(self, judge: JudgeSpec, helpers: JudgeHelpers) -> Answer:
        answers = helpers.judge(*judge.models)
        counts = Counter(answer.winner for answer in answers if not answer.error)
        winner, number = counts.most_common(1)[0] if counts else ("", 0)
        if 2 * number <= len(answers):
            said = ", ".join(f"{choice} {count}" for choice, count in sorted(counts.items()))
            raise NoVerdict(f"no majority of {len(answers)}: {said or 'nobody answered'}")
        reason = next(answer.reason for answer in answers if answer.winner == winner)
        return Answer(winner=winner, reason=f"{number} of {len(answers)}: {reason}")
