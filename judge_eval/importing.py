"""Writing what was read: a stream of rows becomes a run, or joins one.

All in one transaction and in memory that does not grow with the rows: pairs and verdicts are
written chunk by chunk, votes wait in a file until every verdict is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain, islice
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from humanjudge.enqueue import enqueue
from judge_eval import events
from judge_eval.config_parts import RUBRICS
from judge_eval.import_pairs import ABSENT, Pairs, close_undrawn
from judge_eval.import_report import ImportOptions, ImportRefused, ImportReport
from judge_eval.import_rows import chunks, shown
from judge_eval.import_verdicts import Verdicts
from judge_eval.import_votes import Votes
from judge_eval.interchange import fields
from judge_eval.interchange.rows import (
    Item,
    JudgeOrder,
    Kind,
    LabelRow,
    LeftOut,
    Row,
    RowError,
)
from judge_eval.models import Board, Run, Verdict
from judge_eval.services import create_queue
from voting.models import Choice, Comparison, Picture, Project, Queue

LOOKED_AT: Final = 20
LEAST_BALLOT: Final = frozenset({"A", "B", "both_bad"})
_AS_GIVEN = ImportOptions()
_SIMULATED: Final = "This run holds simulated votes only; import into another one."


class _NothingWritten(Exception):
    """Some rows are wrong: the transaction is rolled back, the report says which."""


def import_run(
    project: Project, name: str, items: Iterable[Item], *, options: ImportOptions = _AS_GIVEN
) -> ImportReport:
    """Make a run of what a source says.

    Where anything is wrong with it nothing is written and the report lists what; unless
    `skip_errors` is asked for, then the rest is.
    """

    items, kind = _kind_of(iter(items), options)
    options = replace(options, kind=kind)

    def new_run() -> Run:
        queue = create_queue(
            project,
            name,
            options.rubric or RUBRICS[kind],
            ballot=_in_order(options.ballot or LEAST_BALLOT),
            votes_per_item=options.votes_per_pair,
            reveal=options.reveal,
            is_open=False,
        )
        run = Run.objects.create(queue=queue, name=name, state=Run.State.JUDGING)
        Board.objects.create(run=run)
        return run

    return _import(new_run, items, options, is_new=True)


def _kind_of(items: Iterator[Item], options: ImportOptions) -> tuple[Iterator[Item], Kind]:
    """Find the kind of a run's outputs near the beginning of what is read; give all of it back."""
    first = list(islice(items, LOOKED_AT))
    stated = (item.pair.kind for item in first if isinstance(item, Row))
    kind = options.kind or next(filter(None, stated), None)
    return chain(first, items), kind or "text"


def import_into(
    run_id: UUID, items: Iterable[Item], *, options: ImportOptions = _AS_GIVEN
) -> ImportReport:
    """Add to a run what a source says and the run does not hold yet.

    The same source again changes nothing. What contradicts the run is an error. Of the options,
    those that make a queue (rubric, ballot, votes_per_pair, reveal) do not matter.

    Raises
    ------
    ImportRefused
    """

    def known_run() -> Run:
        run = Run.objects.select_related("queue__rubric", "queue__project").get(pk=run_id)
        # Imports into a project wait for each other, so that none adds what another is adding.
        Project.objects.select_for_update(no_key=True).get(pk=run.queue.project_id)
        if run.state in (Run.State.DRAFT, Run.State.GENERATING):
            raise ImportRefused(f"This run is {run.state}: its own pairs come first.")
        if run.queue.is_simulated:
            raise ImportRefused(_SIMULATED)
        return run

    return _import(known_run, items, options, is_new=False)


def _import(
    find_run: Callable[[], Run], items: Iterable[Item], options: ImportOptions, *, is_new: bool
) -> ImportReport:
    report = ImportReport()
    try:
        with transaction.atomic():
            run = find_run()
            _Import(run, options, report, is_new=is_new).take(items)
    except _NothingWritten:
        report.nothing_written()
    else:
        report.runs.append(run.pk)
    return report


class _Import:
    def __init__(
        self, run: Run, options: ImportOptions, report: ImportReport, *, is_new: bool
    ) -> None:
        self._run, self._queue = run, run.queue
        self._options, self._report, self._is_new = options, report, is_new
        # Of a new run without a stated ballot, every choice that occurs is on it.
        self._is_fixed = not is_new or options.ballot is not None
        self._ballot = set(run.queue.ballot)
        self._pairs = Pairs(run, options, report)
        self._verdicts = Verdicts(run, options.source, report)

    def take(self, items: Iterable[Item]) -> None:
        with closing(Votes(self._run, self._report)) as votes:
            for chunk in chunks(self._fitting(items)):
                if isinstance(chunk, JudgeOrder):
                    self._verdicts.order(chunk)
                    continue
                taken = self._pairs.write(chunk)
                self._verdicts.write(taken)
                votes.take(taken)
            if not self._report.failures and not self._queue.comparisons.exists():
                self._report.fail(RowError("", 0, None, "no row names a pair"))
            self._lock()
            self._verdicts.append_to_ledger()
            votes.append_to_ledger()
        if self._report.failures and not self._options.skip_errors:
            raise _NothingWritten
        if self._is_new or self._report.changed or self._options.open_for_voting is not None:
            self._open()

    def _lock(self) -> None:
        """Take the locks in the order that all keep: project, run, and what sealing writes."""
        Project.objects.select_for_update(no_key=True).get(pk=self._queue.project_id)
        runs = Run.objects.select_for_update(of=("self",), no_key=True)
        self._run.state = runs.get(pk=self._run.pk).state

    def _fitting(self, items: Iterable[Item]) -> Iterator[Row | JudgeOrder]:
        for item in items:
            if isinstance(item, Row):
                error = _unfit_labels(item) or self._not_on_ballot(item)
                if error is None:
                    yield item
                else:
                    self._report.fail(error)
            elif isinstance(item, JudgeOrder):
                yield item
            elif isinstance(item, LeftOut):
                self._report.leave_out(item)
            elif isinstance(item, LabelRow):
                why = "a label of an item that is no pair; a run is made of pairs"
                self._report.fail(RowError(item.file, item.line, None, why))
            else:
                self._report.fail(item)

    def _not_on_ballot(self, row: Row) -> RowError | None:
        if not self._is_fixed:
            self._ballot.update(_choices(row))
        elif row.vote and row.vote.choice not in self._ballot:
            offered = ", ".join(_in_order(self._ballot))
            why = f"{shown(row.vote.choice)} is not on the ballot: {offered}"
            return RowError(row.file, row.line, "vote", why)
        return None

    def _open(self) -> None:
        """Open pairs for voting, and the queue if it is to be, and say what the run does next."""
        if self._is_new:
            self._queue.ballot = _in_order(self._ballot)
        elif Queue.objects.filter(pk=self._queue.pk, is_simulated=True).exists():
            raise ImportRefused(_SIMULATED)  # meanwhile; from now on no more: it has real votes
        close_undrawn(self._queue)
        closed = Comparison.objects.filter(queue=self._queue, opened_at__isnull=True, unusable="")
        _waiting_for_nothing(closed).update(opened_at=timezone.now())
        lacking = _lacking_outputs(self._queue).count()
        self._queue.is_open = self._is_to_be_open(lacking)
        self._queue.save(update_fields=["ballot", "is_open"])
        self._run.state = self._next_state(is_waiting=closed.exists(), lacking=lacking)
        self._run.save(update_fields=["state"])
        if lacking:
            self._report.notes.append(
                f"Voting is closed: {lacking} pairs have no outputs that could be shown."
            )
        new = self._report.new
        text = f"Imported: {new['pairs']} pairs, {new['verdicts']} verdicts, {new['votes']} votes."
        events.record(self._run, "imported", text)
        if self._run.state == Run.State.JUDGING:
            enqueue("judge_eval.tasks.advance", str(self._run.pk))

    def _is_to_be_open(self, lacking: int) -> bool:
        wanted = self._options.open_for_voting
        if wanted is None:
            wanted = not lacking if self._is_new else self._queue.is_open
        if wanted and lacking:
            raise ImportRefused(
                f"{lacking} pairs have no outputs, so nobody can vote on them: "
                "give the outputs, or close the run for voting."
            )
        return wanted

    def _next_state(self, *, is_waiting: bool, lacking: int) -> str:
        was_at_work = not self._is_new and self._run.state == Run.State.JUDGING
        if self._run.state == Run.State.STOPPED:
            return Run.State.STOPPED
        if is_waiting or was_at_work:
            return Run.State.JUDGING
        is_all = lacking == self._queue.comparisons.count()
        return Run.State.COMPLETE if is_all else Run.State.VOTING


def _unfit_labels(row: Row) -> RowError | None:
    for task in row.labels:
        try:
            fields.output(task)
        except fields.Unfit as error:
            return RowError(row.file, row.line, "labels", f"the name of a task {error}")
    return None


def _choices(row: Row) -> Iterator[str]:
    if row.vote:
        yield row.vote.choice
    if row.verdict and row.verdict.winner:
        yield row.verdict.winner


def _in_order(choices: Iterable[str]) -> list[str]:
    return [choice for choice in Choice.values if choice in set(choices)]


def _waiting_for_nothing(pairs: QuerySet[Comparison]) -> QuerySet[Comparison]:
    unjudged = Verdict.objects.filter(comparison=OuterRef("pk"), state=Verdict.State.WAITING)
    return pairs.filter(
        ~Q(a__picture__state=Picture.State.WAITING),
        ~Q(b__picture__state=Picture.State.WAITING),
        ~Exists(unjudged),
    )


def _lacking_outputs(queue: Queue) -> QuerySet[Comparison]:
    a, b = (f"{side}__metadata__{ABSENT}" for side in "ab")
    return Comparison.objects.filter(Q(**{a: True}) | Q(**{b: True}), queue=queue)
