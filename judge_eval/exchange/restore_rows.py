"""The rows of a bundle: rubrics, runs, judges, outputs, pairs, verdicts, voters, flags."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid5

from django.db.models import Model, QuerySet
from pydantic import BaseModel, ConfigDict

from humanjudge.enqueue import enqueue
from judge_eval.config import run_config
from judge_eval.exchange import bundle as records
from judge_eval.exchange.bundle import BundleError
from judge_eval.exchange.writing import close_undrawn, give_pictures
from judge_eval.models import Board, Judge, JudgeRating, Run, Verdict
from voting.models import (
    Flag,
    Inference,
    Item,
    Project,
    Queue,
    Voter,
    VoterPrompt,
)
from voting.order import fresh_turn

UNASKED: Final = "no verdict had come when the run was exported"
_OF_QUEUE: Final = set(
    "name ballot votes_per_item overlap_share overlap_votes reveal is_simulated".split()
)
_OF_RUN: Final = set("name note budget_nano spent_nano created_at started_at".split())

Lines: TypeAlias = Sequence[tuple[int, Any]]


class Start(BaseModel):
    """What is settled before a bundle is written, and holds for whoever goes on with it.

    Attributes
    ----------
    is_made : bool
        The project was made for it.
    space : UUID, optional
        Everything gets a new number, made with this one.
    at : datetime
        When the voters whom it brings joined: nobody else did just then.
    last_rubric : int
        Rubrics with a key above this one are new.
    """

    model_config = ConfigDict(frozen=True)

    project: UUID
    is_made: bool
    space: UUID | None
    at: datetime
    last_rubric: int

    def number(self, old: UUID) -> UUID:
        return uuid5(self.space, str(old)) if self.space else old

    def new_voters(self, pseudonyms: Collection[str]) -> QuerySet[Voter]:
        """Return which of these voters came with the bundle."""
        return Voter.objects.filter(
            project=self.project, pseudonym__in=pseudonyms, created_at=self.at
        )


class Scope:
    """What the records of one bundle refer to, by the numbers that the bundle calls it."""

    def __init__(self, header: records.Header, start: Start) -> None:
        self.project = Project.objects.get(pk=start.project)
        self.header, self.start, self.number = header, start, start.number
        self.rubrics: dict[tuple[str, int], VoterPrompt] = {}
        self.runs: dict[UUID, Run] = {}
        self.judges: dict[UUID, Judge] = {}
        # What becomes of each run when all of it is there: its state, and whether people may vote.
        self.ends: dict[UUID, tuple[str, bool]] = {}

    @property
    def is_verbatim(self) -> bool:
        """Whether the project's ledger is to be the exported one."""
        start = self.start
        return start.is_made and start.space is None and start.project == self.header.project.id

    def rubric(self, line: int, stated: records.RubricRef) -> VoterPrompt:
        rubric = self.rubrics.get((stated.name, stated.version))
        return rubric or lacks(line, "rubric", f"{stated.name} v{stated.version}")

    def run(self, line: int, old: UUID) -> Run:
        return self.runs.get(old) or lacks(line, "run", old)

    def judge(self, line: int, old: UUID) -> Judge:
        return self.judges.get(old) or lacks(line, "judge", old)

    def outputs(self, olds: Collection[UUID]) -> set[UUID]:
        """Return the new numbers of those outputs that are in the project."""
        stored = Inference.objects.filter(project=self.project, pk__in=map(self.number, olds))
        return set(stored.values_list("pk", flat=True))

    def queues(self, olds: Collection[UUID]) -> dict[UUID, UUID]:
        """Return the queue of each pair, by the pair's new number."""
        mine = [run.queue_id for run in self.runs.values()]
        stored = Item.objects.filter(queue__in=mine, pk__in=map(self.number, olds))
        return dict(stored.values_list("pk", "queue_id"))

    def voters(self, pseudonyms: Collection[str]) -> dict[str, Voter]:
        stored = Voter.objects.filter(project=self.project, pseudonym__in=pseudonyms)
        return {voter.pseudonym: voter for voter in stored}


def lacks(line: int, field: str, what: object) -> Any:
    raise BundleError(line, field, f"{what} does not stand before it in the file")


def by_type(lines: Lines) -> Iterator[tuple[str, Lines]]:
    """Yield the lines of each type that follow each other."""
    for kind, alike in groupby(lines, key=lambda line: str(line[1].type)):
        yield kind, list(alike)


class Rows:
    """Writes what stands before the ledger."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._writers: dict[str, Callable[[Lines], None]] = {
            "rubric": self._rubrics,
            "run": self._runs,
            "judge": self._judges,
            "inference": self._outputs,
            "comparison": self._pairs,
            "verdict": self._verdicts,
            "voter": self._voters,
            "flag": self._flags,
        }
        # Others refer to these: where they are written, they are looked up again.
        self._look_ups: dict[str, Callable[[Lines], object]] = {
            "rubric": self._rubrics,
            "run": self._written_runs,
            "judge": self._make_judges,
        }

    def write(self, lines: Lines) -> None:
        for kind, alike in by_type(lines):
            self._writers[kind](alike)

    def look_up(self, lines: Lines) -> None:
        """Take up again what is written and others refer to."""
        for kind, alike in by_type(lines):
            if kind in self._look_ups:
                self._look_ups[kind](alike)

    def _rubrics(self, lines: Lines) -> None:
        for _, stated in lines:
            versions = VoterPrompt.objects.filter(project=self._scope.project, name=stated.name)
            same, version = versions.filter(text=stated.text), stated.version
            known = same.filter(version=version).first()
            if known is None and versions.filter(version=version).exists():
                # A version that people were shown never changes: another text is another one.
                known, last = same.order_by("version").last(), versions.order_by("version").last()
                version = last.version + 1 if last else version
            self._scope.rubrics[stated.name, stated.version] = known or VoterPrompt.objects.create(
                project=self._scope.project,
                version=version,
                **stated.model_dump(include={"name", "text", "created_at"}),
            )

    def _runs(self, lines: Lines) -> None:
        for line, stated in lines:
            if stated.id not in self._scope.header.runs:
                raise BundleError(line, "id", f"the header names no run {stated.id}")
            queue = Queue.objects.create(
                pk=self._scope.number(stated.queue),
                project=self._scope.project,
                rubric=self._scope.rubric(line, stated.rubric),
                more_may_come=stated.state == Run.State.DRAFT,
                is_open=False,
                **stated.model_dump(include=_OF_QUEUE),
            )
            run = Run.every.create(
                pk=self._scope.number(stated.id),
                queue=queue,
                state=Run.State.IMPORTING,
                config=_config(line, stated),
                **stated.model_dump(include=_OF_RUN),
            )
            Board.objects.create(run=run)
        self._written_runs(lines)

    def _written_runs(self, lines: Lines) -> None:
        for _, stated in lines:
            run = Run.every.select_related("queue").get(pk=self._scope.number(stated.id))
            self._scope.runs[stated.id] = run
            self._scope.ends[run.pk] = (stated.state, stated.is_open)

    def _judges(self, lines: Lines) -> None:
        new = self._make_judges(lines)
        self._insist_on_free(lines, Judge, [judge.pk for judge in new])
        Judge.objects.bulk_create(new)
        JudgeRating.objects.bulk_create(JudgeRating(judge=judge) for judge in new)

    def _make_judges(self, lines: Lines) -> list[Judge]:
        for line, stated in lines:
            self._scope.judges[stated.id] = Judge(
                pk=self._scope.number(stated.id),
                run=self._scope.run(line, stated.run),
                **stated.model_dump(exclude={"type", "id", "run"}),
            )
        return [self._scope.judges[stated.id] for _, stated in lines]

    def _outputs(self, lines: Lines) -> None:
        new = {
            self._scope.number(stated.id): Inference(
                pk=self._scope.number(stated.id),
                project=self._scope.project,
                **stated.model_dump(exclude={"type", "id"}),
            )
            for _, stated in lines
        }
        for known in Inference.objects.filter(pk__in=new):
            # Runs of one project may share an output.
            stated = new.pop(known.pk)
            same = ("project_id", "prompt", "output", "kind", "generator")
            if any(getattr(stated, name) != getattr(known, name) for name in same):
                raise BundleError(lines[0][0], "id", f"another output is called {known.pk} here")
        give_pictures(new)
        Inference.objects.bulk_create(new.values())

    def _pairs(self, lines: Lines) -> None:
        known = self._scope.outputs({pk for _, stated in lines for pk in (stated.a, stated.b)})
        new = []
        for line, stated in lines:
            sides = {side: self._scope.number(getattr(stated, side)) for side in "ab"}
            for side, pk in sides.items():
                if pk not in known:
                    lacks(line, side, getattr(stated, side))
            queue = self._scope.run(line, stated.run).queue
            new.append(
                Item(
                    pk=self._scope.number(stated.id),
                    queue=queue,
                    turn=fresh_turn(queue.pk, stated.prompt_key),
                    a_id=sides["a"],
                    b_id=sides["b"],
                    **stated.model_dump(exclude={"type", "id", "run", "a", "b"}),
                )
            )
        self._insist_on_free(lines, Item, [pair.pk for pair in new])
        Item.objects.bulk_create(new)

    def _verdicts(self, lines: Lines) -> None:
        queues = self._scope.queues({stated.comparison for _, stated in lines})
        new = []
        for line, stated in lines:
            judge, pair = self._scope.judge(line, stated.judge), stated.comparison
            if queues.get(self._scope.number(pair)) != judge.run.queue_id:
                lacks(line, "comparison", pair)
            fields = stated.model_dump(exclude={"type", "judge", "comparison"})
            if stated.state == Verdict.State.WAITING:
                fields |= {"state": Verdict.State.FAILED, "error": UNASKED}
            new.append(Verdict(judge=judge, item_id=self._scope.number(pair), **fields))
        Verdict.objects.bulk_create(new)
        unasked = [verdict.item_id for verdict in new if verdict.error == UNASKED]
        # Nobody may vote on what its judges have not been asked about.
        closed = Item.objects.filter(pk__in=unasked, opened_at__isnull=True, unusable="")
        closed.update(unusable=UNASKED)

    def _voters(self, lines: Lines) -> None:
        known = self._scope.voters({stated.pseudonym for _, stated in lines})
        at, project = self._scope.start.at, self._scope.project
        Voter.objects.bulk_create(
            Voter(project=project, created_at=at, **stated.model_dump(exclude={"type"}))
            for _, stated in lines
            if stated.pseudonym not in known
        )

    def _flags(self, lines: Lines) -> None:
        voters = self._scope.voters({stated.voter for _, stated in lines})
        queues = self._scope.queues({stated.comparison for _, stated in lines})
        new = []
        for line, stated in lines:
            pair = self._scope.number(stated.comparison)
            new.append(
                Flag(
                    voter=voters.get(stated.voter) or lacks(line, "voter", stated.voter),
                    item_id=pair if pair in queues else lacks(line, "comparison", pair),
                    **stated.model_dump(include={"category", "comment", "created_at"}),
                )
            )
        Flag.objects.bulk_create(new)

    def check(self) -> None:
        """Refuse what can only be seen when all rows are there."""
        if len(self._scope.runs) != len(self._scope.header.runs):
            raise BundleError(1, "runs", "the header names runs that the file does not hold")
        for run in self._scope.runs.values():
            _insist_on_no_gaps(run)

    def finish(self) -> None:
        """Show the runs, and let people vote where they could."""
        for run in self._scope.runs.values():
            _go_on(run, *self._scope.ends[run.pk])
            run.record("imported", "Imported from a bundle.")

    def _insist_on_free(self, lines: Lines, model: type[Model], pks: list[UUID]) -> None:
        taken = model._default_manager.filter(pk__in=pks).values_list("pk", flat=True).first()
        if taken:
            raise BundleError(lines[0][0], "id", f"{taken} is here already, in another run")


def _config(line: int, stated: records.RunPart) -> dict[str, Any] | None:
    """Return the config that a run keeps: what was started elsewhere asks no model here."""
    if stated.state != "draft":
        return None
    try:
        return run_config.parse(stated.config).as_dict()
    except run_config.ConfigInvalid as invalid:
        raise BundleError(line, "config", "; ".join(map(str, invalid.errors))) from invalid


def _insist_on_no_gaps(run: Run) -> None:
    for rows in (run.judges.all(), run.queue.items.all()):
        last = rows.order_by("-position").values_list("position", flat=True).first()
        if last is not None and last + 1 != rows.count():
            what = rows.model._meta.verbose_name_plural
            raise BundleError(1, "runs", f"the places of the {what} of run {run.pk} have gaps")


def _go_on(run: Run, state: str, is_open: bool) -> None:
    """Close pairs until they are drawn here too; a run that was at work is at voting now."""
    close_undrawn(run.queue)
    resting = (Run.State.DRAFT, Run.State.STOPPED, Run.State.FAILED)
    waiting = run.queue.items.filter(opened_at__isnull=True, unusable="")
    if state not in resting and waiting.exists():
        state = Run.State.JUDGING
        enqueue("judge_eval.tasks.advance", str(run.pk))
    elif state in Run.AT_WORK:
        state = Run.State.VOTING
    run.state, run.queue.is_open = state, is_open
    run.save(update_fields=["state"])
    run.queue.save(update_fields=["is_open"])
