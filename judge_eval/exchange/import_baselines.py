"""The floor under an imported board: what judges that know nothing would have said."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from django.utils import timezone

from judge_eval.baselines import BLIND, names_for
from judge_eval.exchange.import_pairs import lacking_outputs
from judge_eval.exchange.import_report import ImportOptions, ImportReport
from judge_eval.models import Judge, Run, Verdict
from judge_eval.runs.judging import answer_of_baseline
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from judge_eval.services import add_judges, baseline
from voting.choices import WRONG
from voting.models import Comparison

UNSEEN: Final = "an output was not imported"


class Floor:
    """Lets a run's baselines answer for pairs that other judges answered for elsewhere."""

    def __init__(self, run: Run, options: ImportOptions, report: ImportReport) -> None:
        self._run, self._report = run, report
        self._kind, self._rule = options.kind or "text", options.inconsistent
        # Whether baselines join a run that has none.
        self.is_wanted = False

    @cached_property
    def _judges(self) -> list[Judge]:
        known = list(self._run.judges.filter(provider=Judge.BASELINE).order_by("position"))
        if known or not self.is_wanted:
            return known
        pairs = self._run.queue.comparisons.count()
        is_unseen = lacking_outputs(self._run.queue).count() == pairs
        names = [name for name in names_for(self._kind) if name in BLIND or not is_unseen]
        self._report.notes.append(f"Baselines are on the board, as its floor: {', '.join(names)}.")
        return add_judges(self._run, [baseline(self._run, name) for name in names])

    def answer(self, pairs: Sequence[Comparison]) -> None:
        """Write what the baselines say of pairs, where they have not been asked."""
        if not self._judges:
            return
        asked = Verdict.objects.filter(judge__in=self._judges, comparison__in=pairs)
        known = set(asked.values_list("judge", "comparison"))
        Verdict.objects.bulk_create(
            self._verdict(judge, pair, (self._run.config or {}).get("verdict_orders"))
            for pair in pairs
            for judge in self._judges
            if (judge.pk, pair.pk) not in known
        )

    def _verdict(self, judge: Judge, pair: Comparison, orders: str | None) -> Verdict:
        verdict = Verdict(judge=judge, comparison=pair, decided_at=timezone.now())
        is_unseen = any(output.metadata.get(OUTPUT_ABSENT) for output in (pair.a, pair.b))
        if is_unseen and judge.name not in BLIND:
            verdict.state, verdict.error = Verdict.State.FAILED, UNSEEN
            return verdict
        for name, value in answer_of_baseline(verdict, orders).items():
            setattr(verdict, name, value)
        by_rule(verdict, self._rule)
        return verdict


def by_rule(verdict: Verdict, rule: str) -> None:
    """Make a tie of two orders that disagree wrong, where that is the rule of an import."""
    if rule == "wrong" and verdict.consistent is False and verdict.winner == "tie":
        verdict.winner = WRONG
