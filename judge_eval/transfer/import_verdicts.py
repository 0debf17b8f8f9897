"""Verdicts of judges that were asked elsewhere: rows first, then the ledger's word on each pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, Max, OuterRef

from judge_eval.engine.judging import verdicts_entry
from judge_eval.interchange import fields
from judge_eval.interchange.rows import JudgeOrder, Row, RowError, VerdictPart
from judge_eval.models import Judge, Run, Verdict
from judge_eval.services import add_judges
from judge_eval.transfer.import_floor import Floor
from judge_eval.transfer.import_report import ImportReport
from judge_eval.transfer.import_rows import first_difference, json_labels, shown
from voting import ledger
from voting.chain import canonical
from voting.models import Comparison

# What stands for a provider where verdicts were given elsewhere.
IMPORTED: Final = "imported"
# Many more are a wrong column: every vote keeps the standing of every judge.
MOST_JUDGES: Final = 200
PAIRS_AT_ONCE: Final = 500


def imported_fingerprint(name: str, source: str) -> str:
    competitor = {"provider": IMPORTED, "model": name, "source": source}
    return sha256(canonical(competitor)).hexdigest()


class Verdicts:
    """Writes the verdicts of one run, a chunk of rows at a time."""

    def __init__(self, run: Run, source: str, report: ImportReport, floor: Floor) -> None:
        self._run, self._source, self._report, self._floor = run, source, report, floor
        self._judges = {judge.fingerprint: judge for judge in run.judges.all()}
        self._mark = Verdict.objects.aggregate(last=Max("pk"))["last"] or 0

    def order(self, stated: JudgeOrder) -> None:
        """Give the judges their places as a source states them, where they have none yet."""
        names = [name for name in stated.judges[:MOST_JUDGES] if self._is_name(stated.file, name)]
        places = [judge.position for judge in map(self._judge, names) if judge]
        if places != sorted(places):
            self._report.notes.append(
                f"{stated.file}: the judges stand in another order here, and keep it."
            )

    def write(self, rows: Sequence[tuple[Row, UUID]]) -> None:
        """Write the verdicts among the rows; each row comes with its pair."""
        said = []
        for row, pair in rows:
            if row.verdict:
                judge = self._judge(row.verdict.judge)
                if judge:
                    said.append((row, _verdict(row, row.verdict, judge, pair)))
                else:
                    why = f"more than {MOST_JUDGES} judges in one run: is it the right column?"
                    self._report.fail(RowError(row.file, row.line, "judge", why))
        known = self._stored([verdict for _, verdict in said])
        fresh = []
        for row, verdict in said:
            stored = known.setdefault((verdict.judge_id, verdict.comparison_id), verdict)
            if stored is verdict:
                fresh.append(verdict)
            elif error := _contradiction(row, verdict, stored):
                self._report.fail(error)
            else:
                self._report.already["verdicts"] += 1
        Verdict.objects.bulk_create(fresh)
        self._report.new["verdicts"] += len(fresh)

    def append_to_ledger(self) -> None:
        """Put all final verdicts on every pair that got one here into the ledger."""
        for pairs in self._judged_pairs():
            self._floor.answer(pairs)
            verdicts = Verdict.objects.filter(comparison__in=pairs).select_related("judge")
            by_pair: dict[UUID, list[Verdict]] = {pair.pk: [] for pair in pairs}
            for verdict in verdicts.order_by("judge__position"):
                by_pair[verdict.comparison_id].append(verdict)
            final = [
                verdicts_entry(pair, by_pair[pair.pk])
                for pair in pairs
                # Where a judge of the run is still being asked, the pair's opening writes them.
                if all(verdict.state != Verdict.State.WAITING for verdict in by_pair[pair.pk])
            ]
            ledger.append(self._run.queue.project_id, final)

    def _judged_pairs(self) -> Iterator[list[Comparison]]:
        # Imports into a run wait for each other, so what is behind the mark is of this one.
        new = Verdict.objects.filter(
            comparison=OuterRef("pk"), pk__gt=self._mark, judge__provider=IMPORTED
        )
        judged = Comparison.objects.filter(Exists(new), queue=self._run.queue)
        pairs = judged.select_related("a", "b").order_by("position")
        position = -1
        while chunk := list(pairs.filter(position__gt=position)[:PAIRS_AT_ONCE]):
            for pair in chunk:
                pair.queue = self._run.queue
            yield chunk
            position = chunk[-1].position

    def _is_name(self, file: str, name: str) -> bool:
        try:
            if fields.name(name):
                return True
            why = "a judge has no name"
        except fields.Unfit as error:
            why = f"the name of a judge {error}"
        self._report.fail(RowError(file, 0, "judges", why))
        return False

    def _judge(self, name: str) -> Judge | None:
        fingerprint = imported_fingerprint(name, self._source)
        if fingerprint not in self._judges and len(self._judges) < MOST_JUDGES:
            judge = Judge(
                run=self._run,
                name=name,
                provider=IMPORTED,
                model=name,
                fingerprint=fingerprint,
            )
            add_judges(self._run, [judge])
            self._judges[fingerprint] = judge
            self._report.new["judges"] += 1
        return self._judges.get(fingerprint)

    def _stored(self, verdicts: Sequence[Verdict]) -> dict[tuple[UUID, UUID], Verdict]:
        found = Verdict.objects.filter(
            comparison__in={verdict.comparison_id for verdict in verdicts},
            judge__in={verdict.judge_id for verdict in verdicts},
        )
        return {(verdict.judge_id, verdict.comparison_id): verdict for verdict in found}


def _verdict(row: Row, said: VerdictPart, judge: Judge, pair: UUID) -> Verdict:
    return Verdict(
        judge=judge,
        comparison_id=pair,
        state=Verdict.State.DONE if said.winner else Verdict.State.FAILED,
        # Only who was asked in both orders can be consistent or not.
        order=Verdict.Order.STORED if said.consistent is None else Verdict.Order.BOTH,
        winner=said.winner or "",
        consistent=said.consistent,
        score_a=said.score_a,
        score_b=said.score_b,
        feedback=said.feedback or "",
        error=said.error or "",
        # A row may hold a vote beside the verdict; then its labels are refused by the reader.
        labels=json_labels(row.labels),
    )


def _contradiction(row: Row, said: Verdict, stored: Verdict) -> RowError | None:
    different = first_difference(_facts(said), _facts(stored))
    if different is None:
        return None
    field, value, before = different
    why = (
        f"{shown(value)}, but {said.judge.name} said {shown(before)} on pair {row.pair.id!r} before"
    )
    return RowError(row.file, row.line, field, why)


def _facts(verdict: Verdict) -> dict[str, Any]:
    """Return what a verdict says by the names of a row's fields; None for what it does not."""
    return {
        "verdict": verdict.winner or "failed",
        "error": verdict.error or None,
        "score_a": verdict.score_a,
        "score_b": verdict.score_b,
        "consistent": verdict.consistent,
        "feedback": verdict.feedback or None,
        "labels": verdict.labels,
    }
