"""Which labels of a task a scorer can take, and what is said of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from judge_eval.stats.figures import Figure, LeftOut, ScoreResult, left_out
from judge_eval.stats.labels import HumanLabel, HumanLabels, JudgeLabel, JudgeLabels
from judge_eval.stats.scorer import Scorer


@dataclass(frozen=True)
class FittingPeople:
    """People's labels that a scorer can take, and the first one of those that it cannot take."""

    labels: HumanLabels
    unfit: HumanLabel | None
    gaps: tuple[LeftOut, ...]

    @classmethod
    def of(cls, scorer: Scorer, people: HumanLabels) -> FittingPeople:
        """Drop what the scorer cannot take: one odd label must not cost all others their figure.

        Examples
        --------
        >>> from judge_eval.stats import TextSimilarityScorer
        >>> people = HumanLabels([("q1", "ann", "well"), ("q2", "ann", 5)])
        >>> found = FittingPeople.of(TextSimilarityScorer(), people)
        >>> len(found.labels), found.gaps[0].why
        (1, 'text_similarity cannot take labels such as 5')
        """
        labels, unfit = people.only(scorer.can_score_task)
        names = [row.human for row in unfit]
        return cls(labels, next(iter(unfit), None), _gaps(scorer, names, unfit))

    def why_not(self, scorer: Scorer) -> str | None:
        """Say why these labels allow no figure, if they do not."""
        if not self.labels:
            return _cannot(scorer, self.unfit) if self.unfit else "no person labelled this task"
        if len(self.labels.humans) < scorer.min_humans:
            return (
                f"{scorer.scorer_name} takes labels of at least {scorer.min_humans} people, and of "
                f"this task there are those of {len(self.labels.humans)}"
            )
        return None


@dataclass(frozen=True)
class FittingJudge:
    """The same of a judge."""

    labels: JudgeLabels
    unfit: JudgeLabel | None
    gaps: tuple[LeftOut, ...]

    @classmethod
    def of(cls, scorer: Scorer, judge: JudgeLabels) -> FittingJudge:
        labels, unfit = judge.only(scorer.can_score_task)
        return cls(
            labels, next(iter(unfit), None), _gaps(scorer, [row.item for row in unfit], unfit)
        )

    def why_not(self, scorer: Scorer) -> str | None:
        if self.labels:
            return None
        return _cannot(scorer, self.unfit) if self.unfit else "the judge gave no label on this task"


def with_gaps(result: ScoreResult, gaps: tuple[LeftOut, ...]) -> ScoreResult:
    """Say at every figure of a result that these were left out too."""
    if not gaps:
        return result

    def told(figure: Figure) -> Figure:
        return replace(figure, left_out=(*figure.left_out, *gaps))

    return replace(
        result,
        figures={name: told(figure) for name, figure in result.figures.items()},
        series={
            name: {key: told(figure) for key, figure in curve.items()}
            for name, curve in result.series.items()
        },
    )


def _gaps(
    scorer: Scorer, names: Sequence[object], unfit: Sequence[HumanLabel | JudgeLabel]
) -> tuple[LeftOut, ...]:
    return left_out("labels", names, _cannot(scorer, unfit[0])) if unfit else ()


def _cannot(scorer: Scorer, row: HumanLabel | JudgeLabel) -> str:
    said = repr(row.label)
    return f"{scorer.scorer_name} cannot take labels such as {said[:60]}"
