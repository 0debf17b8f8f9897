"""A scorer; what computes is in a module of its own, imported where scores are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judge_eval.extensions import Scorer

if TYPE_CHECKING:
    from judge_eval import stats


class SameWord(Scorer):
    id = "same_word"
    title = "Same word"
    version = "1.0"
    description = "The share of a person's answers that a judge gives word for word."

    def __call__(self, **options: Any) -> stats.Scorer:
        from humanjudge_consensus.same_word import SameWordScorer

        return SameWordScorer("same_word", **options)
