"""A scorer; what computes is in a module of its own, imported where scores are computed."""

from typing import Any

from judge_eval.extensions import Scorer


class SameWord(Scorer):
    id = "same_word"
    title = "Same word"
    version = "1.0"
    description = "The share of a person's answers that a judge gives word for word."

    def __call__(self, **options: Any) -> object:
        from humanjudge_consensus.same_word import SameWordScorer

        return SameWordScorer("same_word", **options)
