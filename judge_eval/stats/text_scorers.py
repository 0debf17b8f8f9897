"""The scorers of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from judge_eval.stats.labels import HumanLabels, JudgeLabels, Label
from judge_eval.stats.pairs import Paired, paired, paired_people
from judge_eval.stats.resampling import Resampling
from judge_eval.stats.scorers import INDIVIDUAL, BuiltInScorer, Found
from judge_eval.stats.semantic import BATCH_SIZE, Embedder, semantics
from judge_eval.stats.similarity import Similarity, is_text, similarities


class TextScorer(BuiltInScorer):
    """Compares texts; the consensus is the person whose text is most alike."""

    supports_majority = True
    free_text = True

    def can_score_task(self, sample_label: Label) -> bool:
        return is_text(sample_label)

    def individual(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self._found(paired(judge, humans), best_match=False)

    def majority(self, judge: JudgeLabels, humans: HumanLabels) -> Found:
        return self._found(paired(judge, humans), best_match=True)

    def among(self, humans: HumanLabels) -> Found:
        return self._found(paired_people(humans), best_match=False)

    def metadata(self) -> Mapping[str, object]:
        return {}

    def compare(self, pairs: Paired, *, best_match: bool) -> Similarity:
        raise NotImplementedError

    def _found(self, pairs: Paired, *, best_match: bool) -> Found:
        found = self.compare(pairs, best_match=best_match)
        method = {"scoring_method": "best_match"} if best_match else {}
        metadata = {**INDIVIDUAL, **method, **self.metadata()}
        metadata["similarities"] = asdict(found.spread)
        return Found({self.figure_names[0]: found.figure}, found.by_human, metadata=metadata)


class TextSimilarityScorer(TextScorer):
    """How alike the letters of two texts are; see `text_similarity`."""

    figure_names = ("similarity",)

    def __init__(self, resampling: Resampling | None = None) -> None:
        super().__init__("text_similarity")
        self.resampling = resampling or Resampling()

    def compare(self, pairs: Paired, *, best_match: bool) -> Similarity:
        return similarities(pairs, best_match=best_match, resampling=self.resampling)


class SemanticSimilarityScorer(TextScorer):
    """How alike the meaning of two texts is; see `semantic_similarity`.

    Parameters
    ----------
    embed : Embedder
    """

    figure_names = ("semantic_similarity",)

    def __init__(
        self, embed: Embedder, batch_size: int = BATCH_SIZE, resampling: Resampling | None = None
    ) -> None:
        super().__init__("semantic_similarity")
        self.embed, self.batch_size = embed, batch_size
        self.resampling = resampling or Resampling()

    def metadata(self) -> Mapping[str, object]:
        return {"embedding_model": self.embed.model, "batch_size": self.batch_size}

    def compare(self, pairs: Paired, *, best_match: bool) -> Similarity:
        return semantics(
            pairs,
            self.embed,
            best_match=best_match,
            resampling=self.resampling,
            batch_size=self.batch_size,
        )
