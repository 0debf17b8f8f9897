"""The rows of a bundle: rubrics, runs, judges, outputs, pairs, verdicts, voters, flags."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid5

from django.db.models import QuerySet
from pydantic import BaseModel, ConfigDict

from humanjudge.celery import enqueue
from judge_eval.exports import bundle as records
from judge_eval.exports.bundle import BundleError
from judge_eval.imports.import_steps import close_undrawn, give_pictures
from judge_eval.imports.question import Columns
from judge_eval.judging.config import run_config
from judge_eval.ledger.objects import UNASKED
from judge_eval.models import Board, Judge, JudgeRating, Run, Verdict
from judge_eval.runs.lifecycle import mark_lacking
from voting.items.order import fresh_turn
from voting.ledger.decisions import EXCLUDED
from voting.ledger.groups import groups_at
from voting.models import Flag, Inference, Item, Project, Queue, Voter, VoterPrompt
from voting.pictures.images import NoPicture, store_data_url

_OF_RUN: Final = set(
    "name question note epsilon budget_nano spent_nano created_at started_at".split()
)
_SALTS: Final = {"salt", "private_salt"}

# What a record calls otherwise than its row.
_COLUMNS: Final = {"a": "a_id", "b": "b_id", "comparison": "item_id"}

Lines: TypeAlias = Sequence[tuple[int, Any]]


class Start(BaseModel):
    """What is settled before a bundle is written, and holds for each worker that goes on with it.

    The project `is_made` for it. With a `space`, everything gets a new number, made with this one.
    Voters whom it brings joined `at` this moment, and nobody else did just then. Rubrics with a key
    above `last_rubric` are new.
    """

    model_config = ConfigDict(frozen=True)

    project: UUID
    is_made: bool
    space: UUID | None
    started_at: datetime
    last_rubric: int

    def number(self, old: UUID) -> UUID:
        return uuid5(self.space, str(old)) if self.space else old

    def new_voters(self) -> QuerySet[Voter]:
        return Voter.objects.filter(project=self.project, created_at=self.started_at)


def lacks(line: int, field: str, reference: object) -> Any:
    raise BundleError(line, field, f"{reference} does not stand before it in the file")


class Rows:
    """Writes what stands before the ledger, and finds what later records refer to."""

    def __init__(self, header: records.Header, start: Start) -> None:
        self.project = Project.objects.get(pk=start.project)
        self.header, self.start, self.number = header, start, start.number
        self.runs: dict[UUID, Run] = {}
        self.judges: dict[UUID, Judge] = {}
        self._rubrics: dict[tuple[str, int], VoterPrompt] = {}
        # What becomes of each run when all of it is there: its state, and whether people may vote.
        self._ends: dict[UUID, tuple[str, bool]] = {}

    def look_up(self, lines: Lines) -> None:
        def named(*fields: str) -> dict[UUID, Any]:
            matches = {getattr(record, field, None) for _, record in lines for field in fields}
            return {self.number(old): old for old in matches if old}

        pairs, outputs = named("comparison"), named("a", "b")
        mine = Item.objects.filter(queue__in=[run.queue_id for run in self.runs.values()])
        self._queues = dict(mine.filter(pk__in=pairs).values_list("pk", "queue_id"))
        stored = Inference.objects.filter(project=self.project, pk__in=outputs)
        matches = {outputs[pk]: pk for pk in stored.values_list("pk", flat=True)}
        names = {
            getattr(record, name, None) for _, record in lines for name in ("voter", "pseudonym")
        }
        voters = Voter.objects.filter(project=self.project, pseudonym__in=names - {None})
        self.voters = {voter.pseudonym: voter for voter in voters}
        self._lookups: dict[str, Mapping[Any, Any]] = {
            "run": self.runs,
            "judge": self.judges,
            "a": matches,
            "b": matches,
            "comparison": {pairs[pk]: pk for pk in self._queues},
            "voter": self.voters,
        }

    def columns(self, line: int, record: BaseModel, without: Collection[str] = ()) -> Columns:
        """Return a record as columns of a row, with what it refers to as that is called here."""
        columns = record.model_dump(exclude={"type", *without})
        for name, existing in self._lookups.items():
            if name in columns and (old := columns.pop(name)) is not None:
                columns[_COLUMNS.get(name, name)] = existing.get(old) or lacks(line, name, old)
        if "id" in columns:
            columns["id"] = self.number(columns["id"])
        run = columns["judge"].run if "judge" in columns else columns.get("run")
        pair = columns.get("item_id")
        if run and pair and self._queues[pair] != run.queue_id:
            raise BundleError(line, "comparison", f"run {run.pk} has no such pair")
        return columns

    def rubric(self, line: int, record: records.RubricRef) -> VoterPrompt:
        rubric = self._rubrics.get((record.name, record.version))
        return rubric or lacks(line, "rubric", f"{record.name} v{record.version}")

    # --- writing ----------------------------------------------------------------------------------

    def write(self, lines: Lines, *, is_new: bool = True) -> None:
        """Write lines; of those that are written already, only take up what others refer to."""
        takers = {"rubric": self._take_rubric, "run": self._take_run, "judge": self._take_judge}
        writers = {
            "judge": self._write_judges,
            "inference": self._write_outputs,
            "comparison": self._write_pairs,
            "verdict": self._write_verdicts,
            "voter": self._write_voters,
            "flag": self._write_flags,
        }
        for kind, group in groupby(lines, key=lambda line: str(line[1].type)):
            same = list(group)
            self.look_up(same if is_new else [])
            if is_new and kind in writers:
                writers[kind](same)
            for line, record in same if kind in takers else ():
                if is_new and kind == "run":
                    self._write_run(line, record)
                takers[kind](line, record)

    def _take_rubric(self, line: int, record: Any) -> None:
        versions = VoterPrompt.objects.filter(project=self.project, name=record.name)
        same, version = versions.filter(text=record.text), record.version
        existing = same.filter(version=version).first()
        if existing is None and versions.filter(version=version).exists():
            # A version that people were shown never changes: another text is another one.
            existing, last = same.order_by("version").last(), versions.order_by("version").last()
            version = last.version + 1 if last else version
        self._rubrics[record.name, record.version] = existing or VoterPrompt.objects.create(
            project=self.project,
            version=version,
            **record.model_dump(include={"name", "text", "created_at"}),
        )

    def _take_run(self, line: int, record: Any) -> None:
        run = Run.every.select_related("queue").get(pk=self.number(record.id))
        self.runs[record.id] = run
        self._ends[run.pk] = (record.state, record.is_open)

    def _take_judge(self, line: int, record: Any) -> None:
        self.judges[record.id] = self._judge(line, record)

    def _write_run(self, line: int, record: Any) -> None:
        if record.id not in self.header.runs:
            raise BundleError(line, "id", f"the header names no run {record.id}")
        config = None
        # A public bundle has no private salt, and no config either.
        is_public = record.salt and not record.private_salt
        if record.state == "draft" and not is_public:
            # What was started elsewhere keeps none: it asks no model here.
            try:
                config = run_config.parse(record.config).as_dict()
            except run_config.ConfigInvalid as invalid:
                reason = "; ".join(map(str, invalid.errors))
                raise BundleError(line, "config", reason) from invalid
        queue = Queue.objects.create(
            pk=self.number(record.queue),
            project=self.project,
            rubric=self.rubric(line, record.rubric),
            more_may_come=record.state == Run.State.DRAFT,
            is_open=False,
            name=record.name,
            **record.model_dump(include=records.OF_QUEUE),
        )
        run = Run.every.create(
            pk=self.number(record.id),
            queue=queue,
            state=Run.State.IMPORTING,
            config=config,
            **record.model_dump(include=_OF_RUN | (_SALTS if record.salt else set())),
        )
        Board.objects.create(run=run)

    def _write_judges(self, lines: Lines) -> None:
        judges = Judge.objects.bulk_create(self._judge(*line) for line in lines)
        JudgeRating.objects.bulk_create(JudgeRating(judge=judge) for judge in judges)

    def _judge(self, line: int, record: Any) -> Judge:
        judge = Judge(**self.columns(line, record))
        if self._ends[judge.run_id][0] == Run.State.DRAFT and not judge.is_baseline:
            judge.recipe = None  # it is asked as its config says when it is started here
        return judge

    def _write_outputs(self, lines: Lines) -> None:
        rows = (self._output(*line) for line in lines)
        new = {row.pk: row for row in rows}
        for existing in Inference.objects.filter(pk__in=new):
            # Runs of one project may share an output.
            record = new.pop(existing.pk)
            same = ("project_id", "prompt", "output", "kind", "generator")
            if any(getattr(record, name) != getattr(existing, name) for name in same):
                raise BundleError(lines[0][0], "id", f"another output is called {existing.pk} here")
        give_pictures(new)
        Inference.objects.bulk_create(new.values())

    def _output(self, line: int, record: Any) -> Inference:
        output = Inference(project=self.project, **self.columns(line, record))
        if output.kind == Inference.Kind.IMAGE and output.output:
            try:
                output.output = store_data_url(output.output)
            except NoPicture as error:
                raise BundleError(line, "output", str(error)) from error
        return output

    def _write_pairs(self, lines: Lines) -> None:
        new = []
        for line in lines:
            columns = self.columns(*line)
            queue = columns.pop("run").queue
            turn = fresh_turn(queue.pk, columns["prompt_key"])
            if columns["unusable"] == EXCLUDED:
                columns["unusable"] = ""  # the ledger says so again
            new.append(Item(queue=queue, turn=turn, **columns))
        Item.objects.bulk_create(new)

    def _write_verdicts(self, lines: Lines) -> None:
        new = [Verdict(**self.columns(*line)) for line in lines]
        for verdict in new:
            if verdict.state == Verdict.State.WAITING:
                verdict.state, verdict.error = Verdict.State.FAILED, UNASKED
        Verdict.objects.bulk_create(new)
        unasked = [verdict.item_id for verdict in new if verdict.error == UNASKED]
        # Nobody may vote on what its judges have not been asked about.
        closed = Item.objects.filter(pk__in=unasked, opened_at__isnull=True, unusable="")
        closed.update(unusable=UNASKED)

    def _write_voters(self, lines: Lines) -> None:
        # Of a voter whose group came with another run of the project.
        groups, joined_at = groups_at(self.project.pk), self.start.started_at
        Voter.objects.bulk_create(
            Voter(
                project=self.project,
                created_at=joined_at,
                group=groups.get(record.pseudonym, ""),
                **self.columns(line, record),
            )
            for line, record in lines
            if record.pseudonym not in self.voters
        )

    def _write_flags(self, lines: Lines) -> None:
        Flag.objects.bulk_create(Flag(**self.columns(*line)) for line in lines)

    def check(self) -> None:
        if len(self.runs) != len(self.header.runs):
            raise BundleError(1, "runs", "the header names runs that the file does not hold")
        for run in self.runs.values():
            for rows in (run.judges.all(), run.queue.items.all()):
                last = rows.order_by("-position").values_list("position", flat=True).first()
                if last is not None and last + 1 != rows.count():
                    noun = rows.model._meta.verbose_name_plural
                    reason = f"the places of the {noun} of run {run.pk} have gaps"
                    raise BundleError(1, "runs", reason)

    def finish(self) -> None:
        """Show the runs, and let people vote where they could.

        Pairs are closed until they are drawn here too; a run that was at work is at voting now.
        """
        resting = (Run.State.DRAFT, Run.State.STOPPED, Run.State.FAILED)
        for run in self.runs.values():
            state, run.queue.is_open = self._ends[run.pk]
            close_undrawn(run.queue)
            mark_lacking(run.queue)
            waiting = run.queue.items.filter(opened_at__isnull=True, unusable="")
            if state not in resting and waiting.exists():
                state = Run.State.JUDGING
                enqueue("judge_eval.tasks.advance", str(run.pk))
            elif state in Run.AT_WORK:
                state = Run.State.VOTING
            run.state = state
            run.save(update_fields=["state"])
            run.queue.save(update_fields=["is_open"])
            run.record("imported", "Imported from a bundle.")
