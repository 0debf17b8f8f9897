"""Verdicts of judges that were asked elsewhere: rows first, then the ledger's word on each pair."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from judge_eval.exchange import fields
from judge_eval.exchange.import_baselines import Floor, by_rule
from judge_eval.exchange.import_report import ImportOptions, ImportReport
from judge_eval.exchange.import_rows import (
    first_difference,
    json_labels,
    read_statement,
    shown,
    write_statement,
)
from judge_eval.exchange.import_scratch import Scratch
from judge_eval.exchange.rows import JudgeOrder, Row, RowError, VerdictPart
from judge_eval.models import Judge, Run, Verdict
from judge_eval.prompts.orders import combine, swap
from judge_eval.prompts.parse import ParsedVerdict
from judge_eval.runs.judging import verdicts_entry
from judge_eval.services import add_judges
from voting.choices import WRONG
from voting.ledger import ledger
from voting.ledger.chain import canonical
from voting.models import Comparison

# What stands for a provider where verdicts were given elsewhere.
IMPORTED: Final = "imported"
# Many more are a wrong column: every vote keeps the standing of every judge.
MOST_JUDGES: Final = 200


def imported_fingerprint(name: str, source: str) -> str:
    competitor = {"provider": IMPORTED, "model": name, "source": source}
    return sha256(canonical(competitor)).hexdigest()


class VerdictsRead:
    """Takes what judges say as it is read, each verdict once, and writes nothing.

    Parameters
    ----------
    run : Run, optional
        Which may have judges, and verdicts of theirs.
    """

    def __init__(
        self, run: Run | None, options: ImportOptions, scratch: Scratch, report: ImportReport
    ) -> None:
        self._scratch, self._report = scratch, report
        self._source, self._rule = options.source, options.inconsistent
        self._stored_judges = (
            {judge.fingerprint: judge for judge in run.judges.all()} if run else {}
        )
        # With those that the run is to get, in their places.
        self._judges = dict(self._stored_judges)

    def order(self, stated: JudgeOrder) -> None:
        """Give the judges their places as a source states them, where they have none yet."""
        names = [name for name in stated.judges[:MOST_JUDGES] if self._is_name(stated.file, name)]
        places = [judge.position for judge in map(self._judge, names) if judge]
        if places != sorted(places):
            self._report.notes.append(
                f"{stated.file}: the judges stand in another order here, and keep it."
            )

    def take(self, rows: Sequence[tuple[Row, UUID]]) -> None:
        """Take the verdicts among the rows; each row comes with its pair."""
        said = []
        for row, pair in rows:
            if row.verdict:
                judge = self._judge(row.verdict.judge)
                if not judge:
                    why = f"more than {MOST_JUDGES} judges in one run: is it the right column?"
                    self._report.fail(RowError(row.file, row.line, "judge", why))
                    continue
                verdict = _verdict(row, row.verdict, judge, pair, self._rule)
                if unruly := _unruly(row.verdict, verdict, self._rule):
                    self._report.fail(RowError(row.file, row.line, "verdict", unruly))
                else:
                    said.append((row, verdict))
        known = self._stored([verdict for _, verdict in said])
        for row, verdict in said:
            stored = known.get((verdict.judge_id, verdict.comparison_id)) or self._keep(
                row, verdict
            )
            if stored is None:
                self._report.new["verdicts"] += 1
            elif error := _contradiction(row, verdict, stored):
                self._report.fail(error)
            else:
                self._report.already["verdicts"] += 1

    def _keep(self, row: Row, verdict: Verdict) -> Verdict | None:
        """Keep a verdict to be written, or return what the source said in its place before."""
        pair = verdict.comparison_id
        statement = write_statement(row, pair)
        before = self._scratch.state("verdict", verdict.judge.name, pair.hex, statement)
        if before is None:
            self._scratch.note("judged", pair.hex)
            return None
        earlier, _ = read_statement(before)
        assert earlier.verdict is not None  # only verdicts are kept
        return _verdict(earlier, earlier.verdict, verdict.judge, pair, self._rule)

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
            place = len(self._judges)
            self._judges[fingerprint] = imported_judge(name, self._source, position=place)
            self._scratch.note("judge", name)
            self._report.new["judges"] += 1
        return self._judges.get(fingerprint)

    def _stored(self, verdicts: Sequence[Verdict]) -> dict[tuple[UUID, UUID], Verdict]:
        if not self._stored_judges:
            return {}
        found = Verdict.objects.filter(
            comparison__in={verdict.comparison_id for verdict in verdicts},
            judge__in=self._stored_judges.values(),
        )
        return {(verdict.judge_id, verdict.comparison_id): verdict for verdict in found}


def imported_judge(name: str, source: str, **fields: Any) -> Judge:
    fingerprint = imported_fingerprint(name, source)
    return Judge(name=name, provider=IMPORTED, model=name, fingerprint=fingerprint, **fields)


def add_imported_judges(run: Run, names: Sequence[str], source: str) -> None:
    """Give a run the judges of these names that it has not got."""
    known = set(run.judges.values_list("fingerprint", flat=True))
    judges = [imported_judge(name, source, run=run) for name in names]
    add_judges(run, [judge for judge in judges if judge.fingerprint not in known])


def write_verdicts(run: Run, options: ImportOptions, statements: Sequence[str]) -> None:
    judges = {judge.fingerprint: judge for judge in run.judges.all()}
    verdicts = []
    for row, pair in map(read_statement, statements):
        assert row.verdict is not None  # only verdicts are kept
        judge = judges[imported_fingerprint(row.verdict.judge, options.source)]
        verdicts.append(_verdict(row, row.verdict, judge, pair, options.inconsistent))
    Verdict.objects.bulk_create(verdicts)


def append_verdicts(run: Run, pairs: Sequence[UUID], floor: Floor) -> None:
    """Put all final verdicts on pairs that got one into the ledger."""
    judged = Comparison.objects.filter(pk__in=pairs).select_related("a", "b")
    comparisons = list(judged.order_by("position"))
    for comparison in comparisons:
        comparison.queue = run.queue
    floor.answer(comparisons)
    verdicts = Verdict.objects.filter(comparison__in=pairs).select_related("judge")
    by_pair: dict[UUID, list[Verdict]] = {pair: [] for pair in pairs}
    for verdict in verdicts.order_by("judge__position"):
        by_pair[verdict.comparison_id].append(verdict)
    final = [
        verdicts_entry(comparison, by_pair[comparison.pk])
        for comparison in comparisons
        # Where a judge of the run is still being asked, the pair's opening writes them.
        if all(verdict.state != Verdict.State.WAITING for verdict in by_pair[comparison.pk])
    ]
    ledger.append(run.queue.project_id, final)


def _verdict(row: Row, said: VerdictPart, judge: Judge, pair: UUID, rule: str) -> Verdict:
    picks: dict[str, Any] = {"consistent": said.consistent}
    winner = said.winner
    if said.picks:
        as_stored, unswapped = map(ParsedVerdict, said.picks)
        both = combine(as_stored, swap(unswapped), is_decided_by_one=rule == "decided")
        winner = both.winner
        picks = {
            "consistent": both.consistent,
            "picks": list(both.picks),
            "first_picks": both.first_picks,
        }
    verdict = Verdict(
        judge=judge,
        comparison_id=pair,
        state=Verdict.State.DONE if winner else Verdict.State.FAILED,
        # Only who was asked in both orders can be consistent or not.
        order=Verdict.Order.STORED if picks["consistent"] is None else Verdict.Order.BOTH,
        winner=winner or "",
        **picks,
        score_a=said.score_a,
        score_b=said.score_b,
        feedback=said.feedback or "",
        error=said.error or "",
        # A row may hold a vote beside the verdict; then its labels are refused by the reader.
        labels=json_labels(row.labels),
    )
    by_rule(verdict, rule)
    return verdict


def _unruly(said: VerdictPart, made: Verdict, rule: str) -> str | None:
    """Return why a stated verdict is not what the rule makes of two orders that disagree."""
    # Whatever they count as, a source calls two orders that disagree a tie.
    winner = "tie" if made.winner == WRONG else made.winner
    if said.picks and said.winner not in (None, winner):
        return f"{said.winner}, but its picks in both orders make it {winner}"
    if made.consistent is False and winner != "tie" and rule != "decided":
        return f"two orders that disagree are a tie, not {winner}"
    return None


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
        "picks": verdict.picks or None,
        "feedback": verdict.feedback or None,
        "labels": verdict.labels,
    }
