"""A stream of rows becomes a run, or joins one: first read and checked, then written.

Reading puts everything together in a file of its own and only looks at the database, so that a
source that is large, slow or wrong holds up nobody and leaves nothing behind. Writing is many short
transactions with room for votes between them. A new run shows only when all of it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from judge_eval.config.run_config import RUBRICS
from judge_eval.exchange import fields
from judge_eval.exchange.import_baselines import Floor
from judge_eval.exchange.import_opening import SIMULATED, lacking_text, open_run
from judge_eval.exchange.import_pairs import PairsRead, write_pairs
from judge_eval.exchange.import_report import (
    MOST_ERRORS,
    ImportOptions,
    ImportRefused,
    ImportReport,
    ImportTooLarge,
)
from judge_eval.exchange.import_rows import MOST_ROWS, MOST_TEXT, chunks, shown, text_of
from judge_eval.exchange.import_scratch import Scratch
from judge_eval.exchange.import_steps import step
from judge_eval.exchange.import_verdicts import (
    VerdictsRead,
    add_imported_judges,
    append_verdicts,
    write_verdicts,
)
from judge_eval.exchange.import_votes import VotesRead, append_votes
from judge_eval.exchange.rows import Item, JudgeOrder, Kind, LabelRow, LeftOut, Note, Row, RowError
from judge_eval.models import Board, Run
from judge_eval.services import create_queue
from voting.choices import DEFAULT_BALLOT, in_order
from voting.models import Project, Queue

LOOKED_AT: Final = 20
GONE: Final = "The run is gone, or it was not imported to its end."
_AS_GIVEN = ImportOptions()
WRITTEN: Final = ("pair", "verdict", "judged", "vote")


@dataclass(frozen=True)
class Target:
    """Where rows go: into a run, or where there is none yet, into a new one of this name."""

    project: UUID
    run: UUID | None = None
    name: str = ""


@dataclass(frozen=True)
class Most:
    """The most that one import may bring: rows, and characters of text."""

    rows: float = inf
    text: float = inf

    def refuse(self, rows: int, text: int) -> None:
        if rows > self.rows:
            raise ImportTooLarge(f"There are more than {self.rows:,} rows; bring them in parts.")
        if text > self.text:
            raise ImportTooLarge(
                f"There are more than {self.text:,} characters; bring less at once."
            )


NO_MOST: Final = Most()


def import_run(
    project: Project, name: str, items: Iterable[Item], *, options: ImportOptions = _AS_GIVEN
) -> ImportReport:
    """Make a run of what a source says.

    Where anything is wrong with it nothing is written and the report lists what; unless
    `skip_errors` is asked for, then the rest is, as far as it can be told from what is wrong.
    """
    return _at_once(Target(project.pk, name=name), items, options)


def import_into(
    run_id: UUID, items: Iterable[Item], *, options: ImportOptions = _AS_GIVEN
) -> ImportReport:
    """Add to a run what a source says and the run does not hold yet.

    The same source again changes nothing. What contradicts the run is an error. Of the options,
    those that make a queue (rubric, ballot, votes_per_pair, reveal) do not matter. Nobody else may
    import into the project meanwhile: `import_jobs` sees to that.

    Raises
    ------
    ImportRefused
    """
    project = Queue.objects.values_list("project", flat=True).get(run=run_id)
    return _at_once(Target(project, run=run_id), items, options)


def _at_once(target: Target, items: Iterable[Item], options: ImportOptions) -> ImportReport:
    with (
        TemporaryDirectory() as folder,
        closing(Scratch(Path(folder) / "rows", is_new=True)) as scratch,
    ):
        report = read(target, items, options, scratch)
        return report if report.is_refused else Writing(target, options, scratch).write()


# --- reading --------------------------------------------------------------------------------------


def read(
    target: Target,
    items: Iterable[Item],
    options: ImportOptions,
    scratch: Scratch,
    *,
    most: Most = NO_MOST,
    on_chunk: Callable[[int], None] = lambda rows: None,
) -> ImportReport:
    """Read and check everything; `on_chunk` is told now and then how many rows were read.

    Raises
    ------
    ImportRefused
    """
    run = open_to_imports(target.run) if target.run else None
    items = iter(items)
    if run is None:
        items, kind = _kind_of(items, options)
        options = options.model_copy(update={"kind": kind})
    return _Reading(target, run, options, scratch).take(items, most, on_chunk)


def _kind_of(items: Iterator[Item], options: ImportOptions) -> tuple[Iterator[Item], Kind]:
    """Find the kind of a run's outputs near the beginning of what is read; give all of it back."""
    first = list(islice(items, LOOKED_AT))
    stated = (item.pair.kind for item in first if isinstance(item, Row))
    kind = options.kind or next(filter(None, stated), None)
    return chain(first, items), kind or "text"


def open_to_imports(run_id: UUID) -> Run:
    """Return a run that may be added to; raises ImportRefused for any other."""
    run = Run.objects.select_related("queue__rubric", "queue__project").filter(pk=run_id).first()
    if run is None:
        raise ImportRefused(GONE)
    if run.state in (Run.State.DRAFT, Run.State.GENERATING):
        raise ImportRefused(f"This run is {run.state}: its own pairs come first.")
    if run.queue.is_simulated:
        raise ImportRefused(SIMULATED)
    return run


class _Reading:
    def __init__(
        self, target: Target, run: Run | None, options: ImportOptions, scratch: Scratch
    ) -> None:
        self._run, self._options, self._scratch = run, options, scratch
        self._report = report = ImportReport()
        queue = run.queue if run else None
        # Of a new run without a stated ballot, every choice that occurs is on it.
        self._is_fixed = bool(run) or options.ballot is not None
        self._ballot = set(run.queue.ballot if run else options.ballot or DEFAULT_BALLOT)
        first_judges = not (run and run.judges.exists())
        self._wants_floor = first_judges if options.baselines is None else options.baselines
        self._pairs = PairsRead(queue, options.kind, scratch, report)
        self._verdicts = VerdictsRead(run, options, scratch, report)
        self._votes = VotesRead(target.project, run, scratch, report)

    def take(
        self, items: Iterator[Item], most: Most, on_chunk: Callable[[int], None]
    ) -> ImportReport:
        self._rows = self._text = 0
        for chunk in chunks(self._fitting(items, most, on_chunk)):
            on_chunk(self._rows)
            if isinstance(chunk, JudgeOrder):
                self._verdicts.order(chunk)
                self._wants_floor = bool(self._options.baselines)
                continue
            taken = self._pairs.take(chunk)
            self._verdicts.take(taken)
            self._votes.take(taken)
        if not self._report.failures and not self._has_pairs():
            self._report.fail(RowError("", 0, None, "no row names a pair"))
        is_skipping = self._options.skip_errors and not self._report.is_fatal
        if self._report.failures and not (is_skipping and self._has_pairs()):
            self._report.nothing_written()
            return self._report
        if self._is_to_be_open() and (lacking := self._pairs.lacking()):
            raise ImportRefused(lacking_text(lacking))
        self._finish()
        return self._report

    def _is_to_be_open(self) -> bool:
        stated = self._options.open_for_voting
        return bool(self._run and self._run.queue.is_open) if stated is None else stated

    def _finish(self) -> None:
        outcome = {
            "kind": self._options.kind,
            "ballot": in_order(self._ballot),
            "wants_floor": self._wants_floor,
            "report": self._report.as_kept(),
        }
        self._scratch.finish(outcome)

    def _has_pairs(self) -> bool:
        has_some = self._run and self._run.queue.comparisons.exists()
        return bool(has_some or self._scratch.count("pair"))

    def _fitting(
        self, items: Iterator[Item], most: Most, on_chunk: Callable[[int], None]
    ) -> Iterator[Row | JudgeOrder]:
        for item in items:
            self._rows += 1
            if self._rows % MOST_ROWS == 0:
                on_chunk(self._rows)
            self._text += text_of(item) if isinstance(item, Row) else 0
            most.refuse(self._rows, self._text)
            if isinstance(item, JudgeOrder) or (isinstance(item, Row) and self._fits(item)):
                yield item
            elif not isinstance(item, Row):
                self._tell(item)
            if self._report.failures >= MOST_ERRORS and not self._options.skip_errors:
                self._report.is_cut = True
                return

    def _fits(self, row: Row) -> bool:
        error = _unfit_labels(row) or self._not_on_ballot(row)
        if error:
            self._report.fail(error)
        return error is None

    def _tell(self, item: LabelRow | LeftOut | Note | RowError) -> None:
        if isinstance(item, LeftOut):
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


# --- writing --------------------------------------------------------------------------------------


class Writing:
    """Writes what was read, in short transactions, from wherever it was left.

    Parameters
    ----------
    target : Target
        With the run, once there is one.
    done : int
        How many rows of the scratch file are written.
    on_chunk : callable
        Called at the end of each transaction with the run and how many rows are written by then.
    on_end : callable
        Called in the last transaction with the run and the report.
    """

    def __init__(
        self,
        target: Target,
        options: ImportOptions,
        scratch: Scratch,
        *,
        done: int = 0,
        on_chunk: Callable[[Run, int], None] = lambda run, done: None,
        on_end: Callable[[Run, ImportReport], None] = lambda run, report: None,
    ) -> None:
        self._project, self._run_id, self._name = target.project, target.run, target.name
        self._scratch, self._done, self._on_chunk, self._on_end = scratch, done, on_chunk, on_end
        outcome = scratch.outcome()
        self._ballot: list[str] = outcome["ballot"]
        self._wants_floor: bool = outcome["wants_floor"]
        self._report = ImportReport.of_kept(outcome["report"])
        self._options = options.model_copy(update={"kind": outcome["kind"]})
        self._now = timezone.now()

    @property
    def is_new(self) -> bool:
        return bool(self._name)

    def write(self) -> ImportReport:
        with self._step() as run:
            add_imported_judges(run, self._scratch.judges(), self._options.source)
            self._on_chunk(run, self._done)
        before = 0
        for table in WRITTEN:
            number = self._scratch.count(table)
            while self._done < before + number:
                with self._step() as run:
                    self._done += self._write(run, table, self._done - before)
                    self._on_chunk(run, self._done)
            before += number
        with self._step() as run:
            if self.is_new or self._report.changed or self._options.open_for_voting is not None:
                open_run(run, self._options, self._report, is_new=self.is_new)
            self._report.runs.append(run.pk)
            self._on_end(run, self._report)
        return self._report

    def _write(self, run: Run, table: str, row: int) -> int:
        """Write what follows a row of a table; return how many rows of it."""
        if table == "pair":
            drafts = self._scratch.pairs_behind(row, MOST_ROWS, MOST_TEXT)
            write_pairs(run.queue, drafts)
            return len(drafts)
        found: list[Any] = self._scratch.behind(table, row, MOST_ROWS, MOST_TEXT)
        if table == "verdict":
            write_verdicts(run, self._options, found)
        elif table == "judged":
            floor = Floor(run, self._options, self._report)
            floor.is_wanted = self._wants_floor
            append_verdicts(run, [UUID(hex=pair) for pair in found], floor)
        else:
            append_votes(run, found, self._now)
        return len(found)

    @contextmanager
    def _step(self) -> Iterator[Run]:
        """Hold the project and the run, in the order that all keep."""
        with step(self._project) as project:
            yield self._found(self._run_id) if self._run_id else self._made(project)

    def _made(self, project: Project) -> Run:
        kind = self._options.kind or "text"
        queue = create_queue(
            project,
            self._name,
            self._options.rubric or RUBRICS[kind],
            ballot=self._ballot,
            votes_per_item=self._options.votes_per_pair,
            reveal=self._options.reveal,
            is_open=False,
        )
        run = Run.every.create(queue=queue, name=self._name, state=Run.State.IMPORTING)
        Board.objects.create(run=run)
        self._run_id = run.pk
        return run

    def _found(self, run_id: UUID) -> Run:
        runs = Run.every.select_for_update(of=("self",), no_key=True)
        run = runs.select_related("queue__rubric", "queue__project").filter(pk=run_id).first()
        if run is None:
            raise ImportRefused(GONE)
        return run
