"""A floor for judges that like short answers."""

from judge_eval.extensions import Baseline, Opinion


class ShorterWins(Baseline):
    id = "shorter-wins"
    title = "Shorter wins"
    version = "1.0"
    description = "Picks the shorter text."

    def __call__(self, output_a: str, output_b: str, seed: str) -> Opinion:
        if len(output_a) == len(output_b):
            return Opinion("tie", "Both are as long.")
        return Opinion("A" if len(output_a) < len(output_b) else "B", "It is shorter.")
