"""Reports while judges are tuned: what they said last before that, as half of it is held out now.

It is kept when the tuning opens (`judge_eval.workshop.services.tuning_opens`), so that links,
badges and cards go on showing one state, which moves with no vote.
"""

from typing import Any
from uuid import UUID

from django.utils import timezone

from judge_eval.models import Run
from reports.models import ReportBeforeTuning
from reports.report.make import NotComputed, report_of
from reports.report.model import LedgerHead, Report
from voting.ballot.tuning import KEPT_BACK, is_tuned
from voting.models import Item, Project


def is_waiting(project: UUID, run: Run | None) -> bool:
    """Say whether a report stays as it was until judges are no longer tuned."""
    return run.queue.is_tuning if run is not None else is_tuned(project)


def keep_reports(run: Run, **_signal: Any) -> None:
    """Keep what the reports of a run and of its project say, before half of it is held out."""
    project = run.queue.project
    _store_report(project, run)
    if not is_tuned(project.pk):
        _store_report(project, None)


def _store_report(project: Project, run: Run | None) -> None:
    try:
        report = report_of(project, run)
    except NotComputed:
        return
    values = {"report": report.model_dump(mode="json")}
    ReportBeforeTuning.objects.update_or_create(values, project=project, run=run)


def report_before_tuning(project: Project, run: Run | None) -> Report:
    """Return what a report said last; where no figure was known by then, one without figures."""
    row = ReportBeforeTuning.objects.filter(project=project, run=run).first()
    if row is not None:
        return Report.model_validate(row.report)
    head = LedgerHead(seq=project.head_seq, hash=project.ledger_head, told_since=None)
    title = run.name if run is not None else project.name
    return Report(title=title, made_at=timezone.now(), head=head, versions={})


def leave_out_held_out(report: Report) -> None:
    """Take single items that are held out off a report; its sums are of before the tuning."""
    held_out = Item.objects.filter(KEPT_BACK, queue__run__in=[run.id for run in report.runs])
    places = {(str(run), place) for run, place in held_out.values_list("queue__run", "position")}
    for run in report.runs if places else []:
        run.disputed = [pair for pair in run.disputed if (run.id, pair.position) not in places]
        findings = run.findings
        findings.disputed = [
            pair for pair in findings.disputed if (run.id, pair.position) not in places
        ]
        for judge in findings.judges:
            judge.flips = [place for place in judge.flips if (run.id, place) not in places]
