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

from judge_eval.config.parts import RUBRICS
from judge_eval.interchange import fields
from judge_eval.interchange.rows import (
    Item,
    JudgeOrder,
    Kind,
    LabelRow,
    LeftOut,
    Note,
    Row,
    RowError,
)
from judge_eval.models import Board, Run
from judge_eval.services import create_queue
from judge_eval.transfer.import_floor import Floor
from judge_eval.transfer.import_opening import SIMULATED, in_order, open_run
from judge_eval.transfer.import_pairs import Pairs
from judge_eval.transfer.import_report import ImportOptions, ImportRefused, ImportReport
from judge_eval.transfer.import_rows import chunks, shown
from judge_eval.transfer.import_verdicts import Verdicts
from judge_eval.transfer.import_votes import Votes
from voting.models import Project, Queue

LOOKED_AT: Final = 20
LEAST_BALLOT: Final = frozenset({"A", "B", "both_bad"})
_AS_GIVEN = ImportOptions()


class _NothingWritten(Exception):
    """Some rows are wrong: the transaction is rolled back, the report says which."""


def import_run(
    project: Project, name: str, items: Iterable[Item], *, options: ImportOptions = _AS_GIVEN
) -> ImportReport:
    """Make a run of what a source says.

    Where anything is wrong with it nothing is written and the report lists what; unless
    `skip_errors` is asked for, then the rest is, as far as it can be told from what is wrong.
    """

    items, kind = _kind_of(iter(items), options)
    options = replace(options, kind=kind)

    def new_run() -> Run:
        queue = create_queue(
            project,
            name,
            options.rubric or RUBRICS[kind],
            ballot=in_order(options.ballot or LEAST_BALLOT),
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
        # In the order that all keep: project, run. Imports into a project wait for each other, so
        # that none adds what another is adding.
        Project.objects.select_for_update(of=("self",), no_key=True).get(queues__run=run_id)
        runs = Run.objects.select_for_update(of=("self",), no_key=True)
        run = runs.select_related("queue__rubric", "queue__project").get(pk=run_id)
        if run.state in (Run.State.DRAFT, Run.State.GENERATING):
            raise ImportRefused(f"This run is {run.state}: its own pairs come first.")
        # Locked: a simulation that is being decided is waited for.
        if Queue.objects.select_for_update(no_key=True).get(pk=run.queue_id).is_simulated:
            raise ImportRefused(SIMULATED)
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
        self._floor = Floor(run, options.kind or "text", report)
        self._floor.is_wanted = is_new if options.baselines is None else options.baselines
        self._verdicts = Verdicts(run, options.source, report, self._floor)

    def take(self, items: Iterable[Item]) -> None:
        with closing(Votes(self._run, self._report)) as votes:
            for chunk in chunks(self._fitting(items)):
                if isinstance(chunk, JudgeOrder):
                    self._verdicts.order(chunk)
                    self._floor.is_wanted = bool(self._options.baselines)
                    continue
                taken = self._pairs.write(chunk)
                self._verdicts.write(taken)
                votes.take(taken)
            if not self._queue.comparisons.exists():
                self._refuse_nothing()
            # Of a new run only now: the ledger is the project's, and nobody seals behind this.
            Project.objects.select_for_update(no_key=True).get(pk=self._queue.project_id)
            self._verdicts.append_to_ledger()
            votes.append_to_ledger()
        is_skipping = self._options.skip_errors and not self._report.is_fatal
        if self._report.failures and not is_skipping:
            raise _NothingWritten
        self._queue.ballot = in_order(self._ballot) if self._is_new else self._queue.ballot
        if self._is_new or self._report.changed or self._options.open_for_voting is not None:
            open_run(self._run, self._options, self._report, is_new=self._is_new)

    def _refuse_nothing(self) -> None:
        if not self._report.failures:
            self._report.fail(RowError("", 0, None, "no row names a pair"))
        raise _NothingWritten

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
            elif isinstance(item, Note):
                self._report.about_files.append(f"{item.file}: {item.text}")
            elif isinstance(item, LabelRow):
                why = "a label of an item that is no pair; a run is made of pairs"
                self._report.fail(RowError(item.file, item.line, None, why))
            else:
                self._report.fail(item)

    def _not_on_ballot(self, row: Row) -> RowError | None:
        if not self._is_fixed:
            self._ballot.update(_choices(row))
        elif row.vote and row.vote.choice not in self._ballot:
            offered = ", ".join(in_order(self._ballot))
            why = f"{shown(row.vote.choice)} is not on the ballot: {offered}"
            return RowError(row.file, row.line, "vote", why)
        return None


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
