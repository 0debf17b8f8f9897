"""A stream of rows becomes a run, or joins one: first read and checked, then written.

Reading puts everything together in a file of its own and only looks at the database, so that a
source that is large, slow or wrong holds up nobody and leaves nothing behind. Writing is many short
transactions with room for votes between them. A new run shows only when all of it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from math import inf
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from humanjudge.enqueue import enqueue
from humanjudge.lib.text import number_of
from judge_eval.config.run_config import RUBRICS
from judge_eval.exchange import fields, import_scratch
from judge_eval.exchange.import_pairs import PairsRead, lacking_outputs, write_pairs
from judge_eval.exchange.import_report import (
    MOST_ERRORS,
    ImportOptions,
    ImportRefused,
    ImportReport,
    ImportTooLarge,
)
from judge_eval.exchange.import_scratch import WRITTEN, Outcome, Scratch, chunks, quote, text_of
from judge_eval.exchange.import_statements import (
    Baselines,
    VerdictsRead,
    VotesRead,
    add_imported_judges,
    append_verdicts,
    append_votes,
    write_verdicts,
)
from judge_eval.exchange.rows import Item, JudgeOrder, LabelRow, LeftOut, Note, Row, RowError
from judge_eval.exchange.writing import close_undrawn, step
from judge_eval.models import Board, Run, Verdict
from judge_eval.services import create_queue
from voting.choices import DEFAULT_BALLOT, in_order
from voting.models import Picture, Project, Queue

LOOKED_AT: Final = 20
GONE: Final = "The run is gone, or it was not imported to its end."
NOTHING_TO_SHOW: Final = "Its pairs came without their outputs, so nobody can vote on them here."
SIMULATED: Final = "This run holds simulated votes only; import into another one."


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


# --- reading ----------------------------------------------------------------------------------


def read(
    target: Target,
    items: Iterable[Item],
    options: ImportOptions,
    scratch: Scratch,
    *,
    most: Most = NO_MOST,
    on_chunk: Callable[[int], None] = lambda rows: None,
) -> ImportReport:
    """Read and check everything; `on_chunk` gets now and then how many rows were read.

    Where anything is wrong the report lists what, and nothing is to be written; unless
    `skip_errors` is asked for, then the rest is, as far as it can be told from what is wrong.
    Into a run, nobody else may import meanwhile: `import_jobs` sees to that.

    Raises
    ------
    ImportRefused
    """
    run = open_to_imports(target.run) if target.run else None
    items = iter(items)
    if run is None:
        # The kind of a new run's outputs is found near the beginning.
        first = list(islice(items, LOOKED_AT))
        kinds = (item.pair.kind for item in first if isinstance(item, Row))
        kind = options.kind or next(filter(None, kinds), "text")
        items, options = chain(first, items), options.model_copy(update={"kind": kind})
    return _Reading(target, run, options, scratch, most, on_chunk).take(items)


class _Reading:
    def __init__(
        self,
        target: Target,
        run: Run | None,
        options: ImportOptions,
        scratch: Scratch,
        most: Most,
        on_chunk: Callable[[int], None],
    ) -> None:
        self._run, self._options, self._scratch = run, options, scratch
        self._most, self._on_chunk = most, on_chunk
        self._report = report = ImportReport()
        self._rows = self._text = 0
        # Of a new run without a stated ballot, every choice that occurs is on it.
        self._is_fixed = bool(run) or options.ballot is not None
        self._ballot = set(run.queue.ballot if run else options.ballot or DEFAULT_BALLOT)
        first_judges = not (run and run.judges.exists())
        self._wants_baselines = first_judges if options.baselines is None else options.baselines
        self._pairs = PairsRead(run.queue if run else None, options.kind, scratch, report)
        self._verdicts = VerdictsRead(run, options, scratch, report)
        self._votes = VotesRead(target.project, run, scratch, report)

    def take(self, items: Iterator[Item]) -> ImportReport:
        for chunk in chunks(self._fitting(items)):
            self._on_chunk(self._rows)
            if isinstance(chunk, JudgeOrder):
                self._verdicts.order(chunk)
                self._wants_baselines = bool(self._options.baselines)
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
            raise ImportRefused(_lacking_text(lacking))
        ballot, report = in_order(self._ballot), self._report
        kind, wants_baselines = self._options.kind, self._wants_baselines
        self._scratch.finish(
            Outcome(kind=kind, ballot=ballot, wants_baselines=wants_baselines, report=report)
        )
        return self._report

    def _is_to_be_open(self) -> bool:
        stated = self._options.open_for_voting
        return bool(self._run and self._run.queue.is_open) if stated is None else stated

    def _has_pairs(self) -> bool:
        has_some = self._run and self._run.queue.items.exists()
        return bool(has_some or self._scratch.count("pair"))

    def _fitting(self, items: Iterator[Item]) -> Iterator[Row | JudgeOrder]:
        for item in items:
            self._rows += 1
            if self._rows % import_scratch.MOST_ROWS == 0:
                self._on_chunk(self._rows)
            self._text += text_of(item) if isinstance(item, Row) else 0
            self._most.refuse(self._rows, self._text)
            if isinstance(item, JudgeOrder) or (isinstance(item, Row) and self._fits(item)):
                yield item
            elif not isinstance(item, Row):
                self._report_item(item)
            if self._report.failures >= MOST_ERRORS and not self._options.skip_errors:
                self._report.is_cut = True
                return

    def _fits(self, row: Row) -> bool:
        error = _unfit_labels(row) or self._not_on_ballot(row)
        if error:
            self._report.fail(error)
        return error is None

    def _report_item(self, item: LabelRow | LeftOut | Note | RowError) -> None:
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
        vote, verdict = row.vote and row.vote.choice, row.verdict and row.verdict.winner
        if not self._is_fixed:
            self._ballot |= {choice for choice in (vote, verdict) if choice}
        elif vote and vote not in self._ballot:
            why = f"{quote(vote)} is not on the ballot: {', '.join(in_order(self._ballot))}"
            return RowError(row.file, row.line, "vote", why)
        return None


def _unfit_labels(row: Row) -> RowError | None:
    for task in row.labels:
        try:
            fields.output(task)
        except fields.Unfit as error:
            return RowError(row.file, row.line, "labels", f"the name of a task {error}")
    return None


# --- writing ----------------------------------------------------------------------------------


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
        self._target, self._run_id, self._is_new = target, target.run, bool(target.name)
        self._scratch, self._done, self._on_chunk, self._on_end = scratch, done, on_chunk, on_end
        self._outcome = scratch.outcome()
        self._report = self._outcome.report
        self._options = options.model_copy(update={"kind": self._outcome.kind})
        self._now = timezone.now()

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
            if self._is_new or self._report.changed or self._options.open_for_voting is not None:
                self._open(run)
            self._report.runs.append(run.pk)
            self._on_end(run, self._report)
        return self._report

    def _write(self, run: Run, table: str, row: int) -> int:
        """Write what follows a row of a table; return how many rows of it."""
        if table == "pair":
            drafts = self._scratch.pairs_after(row)
            write_pairs(run.queue, drafts)
            return len(drafts)
        texts = self._scratch.texts_after(table, row)
        if table == "verdict":
            write_verdicts(run, self._options, texts)
        elif table == "judged":
            is_wanted = self._outcome.wants_baselines
            baselines = Baselines(run, self._options, self._report, is_wanted=is_wanted)
            append_verdicts(run, [UUID(hex=pair) for pair in texts], baselines)
        else:
            append_votes(run, texts, self._now)
        return len(texts)

    @contextmanager
    def _step(self) -> Iterator[Run]:
        """Hold the project and the run, in the order that all keep."""
        with step(self._target.project) as project:
            yield self._locked(self._run_id) if self._run_id else self._create(project)

    def _create(self, project: Project) -> Run:
        name, kind = self._target.name, self._options.kind or "text"
        queue = create_queue(
            project,
            name,
            self._options.rubric or RUBRICS[kind],
            ballot=self._outcome.ballot,
            votes_per_item=self._options.votes_per_pair,
            reveal=self._options.reveal,
            is_open=False,
        )
        run = Run.every.create(queue=queue, name=name, state=Run.State.IMPORTING)
        Board.objects.create(run=run)
        self._run_id = run.pk
        return run

    def _locked(self, run_id: UUID) -> Run:
        runs = Run.every.select_for_update(of=("self",), no_key=True)
        run = runs.select_related("queue__rubric", "queue__project").filter(pk=run_id).first()
        if run is None:
            raise ImportRefused(GONE)
        return run

    def _open(self, run: Run) -> None:
        """Open pairs for voting, and the queue if it is to be, and set what the run does next."""
        queue = run.queue
        if not self._is_new and Queue.objects.filter(pk=queue.pk, is_simulated=True).exists():
            raise ImportRefused(SIMULATED)  # meanwhile; from now on no more: it has real votes
        is_waiting = _open_pairs(queue)
        lacking = lacking_outputs(queue).count()
        queue.is_open = self._is_to_be_open(queue, lacking)
        queue.save(update_fields=["ballot", "is_open"])
        run.state = self._next_state(run, is_waiting=is_waiting, lacking=lacking)
        if run.state != Run.State.STOPPED:
            run.note = NOTHING_TO_SHOW if run.state == Run.State.COMPLETE else ""
        run.save(update_fields=["state", "note"])
        if lacking:
            note = f"Voting is closed: {_lacking(lacking)} that could be shown."
            self._report.notes.append(note)
        new = (number_of(self._report.new[f"{it}s"], it) for it in ("pair", "verdict", "vote"))
        run.record("imported", f"Imported: {', '.join(new)}.")
        if run.state == Run.State.JUDGING:
            enqueue("judge_eval.tasks.advance", str(run.pk))

    def _is_to_be_open(self, queue: Queue, lacking: int) -> bool:
        wanted = self._options.open_for_voting
        if wanted is None:
            wanted = not lacking if self._is_new else queue.is_open
        if wanted and lacking:
            raise ImportRefused(_lacking_text(lacking))
        return wanted

    def _next_state(self, run: Run, *, is_waiting: bool, lacking: int) -> str:
        if run.state == Run.State.STOPPED:
            return Run.State.STOPPED
        if is_waiting or (run.state == Run.State.JUDGING and not self._is_new):
            return Run.State.JUDGING
        is_all = lacking == run.queue.items.count()
        return Run.State.COMPLETE if is_all else Run.State.VOTING


def _open_pairs(queue: Queue) -> bool:
    """Open the pairs that wait for nothing; say whether others wait."""
    close_undrawn(queue)
    closed = queue.items.filter(opened_at__isnull=True, unusable="")
    unjudged = Verdict.objects.filter(item=OuterRef("pk"), state=Verdict.State.WAITING)
    ready = closed.filter(
        ~Q(a__picture__state=Picture.State.WAITING),
        ~Q(b__picture__state=Picture.State.WAITING),
        ~Exists(unjudged),
    )
    ready.update(opened_at=timezone.now())
    return closed.exists()


def _lacking_text(pairs: int) -> str:
    """Say why voting cannot be opened."""
    return (
        f"{_lacking(pairs)}, so nobody can vote on them: "
        "give the outputs, or close the run for voting."
    )


def _lacking(pairs: int) -> str:
    return f"{number_of(pairs, 'pair')} {'has' if pairs == 1 else 'have'} no outputs"
