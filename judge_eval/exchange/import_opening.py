"""What follows from an import: which pairs are open, whether people may vote, what the run does."""

from __future__ import annotations

from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from humanjudge.enqueue import enqueue
from humanjudge.lib.text import number_of
from judge_eval.exchange.import_pairs import close_undrawn, lacking_outputs
from judge_eval.exchange.import_report import ImportOptions, ImportRefused, ImportReport
from judge_eval.models import Run, Verdict
from judge_eval.runs import events
from voting.models import Comparison, Picture, Queue

NOTHING_TO_SHOW: Final = "Its pairs came without their outputs, so nobody can vote on them here."
SIMULATED: Final = "This run holds simulated votes only; import into another one."


def open_run(run: Run, options: ImportOptions, report: ImportReport, *, is_new: bool) -> None:
    """Open pairs for voting, and the queue if it is to be, and say what the run does next."""
    queue = run.queue
    if not is_new and Queue.objects.filter(pk=queue.pk, is_simulated=True).exists():
        raise ImportRefused(SIMULATED)  # meanwhile; from now on no more: it has real votes
    close_undrawn(queue)
    closed = queue.comparisons.filter(opened_at__isnull=True, unusable="")
    _waiting_for_nothing(closed).update(opened_at=timezone.now())
    lacking = lacking_outputs(queue).count()
    queue.is_open = _is_to_be_open(queue, options, lacking, is_new=is_new)
    queue.save(update_fields=["ballot", "is_open"])
    run.state = _next_state(run, is_waiting=closed.exists(), lacking=lacking, is_new=is_new)
    if run.state != Run.State.STOPPED:
        run.note = NOTHING_TO_SHOW if run.state == Run.State.COMPLETE else ""
    run.save(update_fields=["state", "note"])
    if lacking:
        report.notes.append(f"Voting is closed: {_lacking(lacking)} that could be shown.")
    new = (number_of(report.new[f"{thing}s"], thing) for thing in ("pair", "verdict", "vote"))
    text = f"Imported: {', '.join(new)}."
    events.record(run, "imported", text)
    if run.state == Run.State.JUDGING:
        enqueue("judge_eval.tasks.advance", str(run.pk))


def _is_to_be_open(queue: Queue, options: ImportOptions, lacking: int, *, is_new: bool) -> bool:
    wanted = options.open_for_voting
    if wanted is None:
        wanted = not lacking if is_new else queue.is_open
    if wanted and lacking:
        raise ImportRefused(lacking_text(lacking))
    return wanted


def lacking_text(pairs: int) -> str:
    """Say why voting cannot be opened."""
    return (
        f"{_lacking(pairs)}, so nobody can vote on them: "
        "give the outputs, or close the run for voting."
    )


def _lacking(pairs: int) -> str:
    return f"{number_of(pairs, 'pair')} {'has' if pairs == 1 else 'have'} no outputs"


def _next_state(run: Run, *, is_waiting: bool, lacking: int, is_new: bool) -> str:
    was_at_work = not is_new and run.state == Run.State.JUDGING
    if run.state == Run.State.STOPPED:
        return Run.State.STOPPED
    if is_waiting or was_at_work:
        return Run.State.JUDGING
    is_all = lacking == run.queue.comparisons.count()
    return Run.State.COMPLETE if is_all else Run.State.VOTING


def _waiting_for_nothing(pairs: QuerySet[Comparison]) -> QuerySet[Comparison]:
    unjudged = Verdict.objects.filter(comparison=OuterRef("pk"), state=Verdict.State.WAITING)
    return pairs.filter(
        ~Q(a__picture__state=Picture.State.WAITING),
        ~Q(b__picture__state=Picture.State.WAITING),
        ~Exists(unjudged),
    )
