"""A floor for judges that like few words."""

from judge_eval.extensions import Baseline, Opinion


class FewerWordsWin(Baseline):
    id = "fewer-words-win"
    title = "Fewer words win"
    version = "1.0"
    description = "Picks the text of fewer words."

    def __call__(self, output_a: str, output_b: str, seed: str) -> Opinion:
        words_a, words_b = len(output_a.split()), len(output_b.split())
        if words_a == words_b:
            return Opinion("tie", "Both have as many words.")
        return Opinion("A" if words_a < words_b else "B", "It has fewer words.")
