"""The rows of a bundle: rubrics, runs, judges, outputs, pairs, verdicts, voters, flags."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid5

from django.db.models import Model

from humanjudge.enqueue import enqueue
from judge_eval import events
from judge_eval.config import run_config
from judge_eval.models import Board, Judge, JudgeRating, Run, Verdict
from judge_eval.transfer import bundle_records as records
from judge_eval.transfer.bundle import BundleError
from judge_eval.transfer.import_pairs import close_undrawn, give_pictures
from judge_eval.transfer.import_report import ImportReport
from voting.models import (
    Comparison,
    Flag,
    Inference,
    Project,
    Queue,
    Voter,
    VoterPrompt,
)
from voting.order import fresh_turn

UNASKED: Final = "no verdict had come when the run was exported"
_OF_QUEUE: Final = set(
    "name ballot votes_per_item overlap_share overlap_votes reveal is_open is_simulated".split()
)
_OF_RUN: Final = set("name state note budget_nano spent_nano created_at started_at".split())

Lines: TypeAlias = Sequence[tuple[int, Any]]


class Scope:
    """What the records of one bundle refer to, by the numbers that the bundle calls it."""

    def __init__(self, project: Project, header: records.Header, *, is_copy: bool) -> None:
        self.project, self.header, self._is_copy = project, header, is_copy
        self.rubrics: dict[tuple[str, int], VoterPrompt] = {}
        self.runs: dict[UUID, Run] = {}
        self.states: dict[UUID, str] = {}
        self.judges: dict[UUID, Judge] = {}

    def number(self, old: UUID) -> UUID:
        return uuid5(self.project.pk, str(old)) if self._is_copy else old

    def rubric(self, line: int, stated: records.RubricRef) -> VoterPrompt:
        rubric = self.rubrics.get((stated.name, stated.version))
        return rubric or _lacks(line, "rubric", f"{stated.name} v{stated.version}")

    def run(self, line: int, old: UUID) -> Run:
        return self.runs.get(old) or _lacks(line, "run", old)

    def judge(self, line: int, old: UUID) -> Judge:
        return self.judges.get(old) or _lacks(line, "judge", old)

    def outputs(self, olds: Collection[UUID]) -> set[UUID]:
        """Return the new numbers of those outputs that are in the project."""
        found = Inference.objects.filter(project=self.project, pk__in=map(self.number, olds))
        return set(found.values_list("pk", flat=True))

    def queues(self, olds: Collection[UUID]) -> dict[UUID, UUID]:
        """Return the queue of each pair, by the pair's new number."""
        mine = [run.queue_id for run in self.runs.values()]
        found = Comparison.objects.filter(queue__in=mine, pk__in=map(self.number, olds))
        return dict(found.values_list("pk", "queue_id"))

    def voters(self, pseudonyms: Collection[str]) -> dict[str, Voter]:
        found = Voter.objects.filter(project=self.project, pseudonym__in=pseudonyms)
        return {voter.pseudonym: voter for voter in found}


def _lacks(line: int, field: str, what: object) -> Any:
    raise BundleError(line, field, f"{what} does not stand before it in the file")


class Rows:
    def __init__(self, scope: Scope, report: ImportReport) -> None:
        self._scope, self._report = scope, report

    def rubrics(self, lines: Lines) -> None:
        for _, stated in lines:
            versions = VoterPrompt.objects.filter(project=self._scope.project, name=stated.name)
            known = versions.filter(version=stated.version).first()
            if known is None or known.text != stated.text:
                last = versions.order_by("-version").first()
                # A version that people were shown never changes: another text is another one.
                version = last.version + 1 if known and last else stated.version
                known = VoterPrompt.objects.create(
                    project=self._scope.project,
                    version=version,
                    **stated.model_dump(include={"name", "text", "created_at"}),
                )
            self._scope.rubrics[stated.name, stated.version] = known

    def runs(self, lines: Lines) -> None:
        for line, stated in lines:
            if stated.id not in self._scope.header.runs:
                raise BundleError(line, "id", f"the header names no run {stated.id}")
            queue = Queue.objects.create(
                pk=self._scope.number(stated.queue),
                project=self._scope.project,
                rubric=self._scope.rubric(line, stated.rubric),
                more_may_come=stated.state == Run.State.DRAFT,
                **stated.model_dump(include=_OF_QUEUE),
            )
            run = Run.objects.create(
                pk=self._scope.number(stated.id),
                queue=queue,
                config=_config(line, stated),
                **stated.model_dump(include=_OF_RUN),
            )
            Board.objects.create(run=run)
            self._scope.runs[stated.id] = run

    def judges(self, lines: Lines) -> None:
        for line, stated in lines:
            run = self._scope.run(line, stated.run)
            self._scope.judges[stated.id] = Judge(
                pk=self._scope.number(stated.id),
                run=run,
                **stated.model_dump(exclude={"type", "id", "run"}),
            )
        new = [self._scope.judges[stated.id] for _, stated in lines]
        self._insist_on_free(lines, Judge, [judge.pk for judge in new])
        Judge.objects.bulk_create(new)
        JudgeRating.objects.bulk_create(JudgeRating(judge=judge) for judge in new)
        self._report.new["judges"] += len(new)

    def outputs(self, lines: Lines) -> None:
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

    def pairs(self, lines: Lines) -> None:
        known = self._scope.outputs({pk for _, stated in lines for pk in (stated.a, stated.b)})
        new = []
        for line, stated in lines:
            sides = {side: self._scope.number(getattr(stated, side)) for side in "ab"}
            for side, pk in sides.items():
                if pk not in known:
                    _lacks(line, side, getattr(stated, side))
            queue = self._scope.run(line, stated.run).queue
            new.append(
                Comparison(
                    pk=self._scope.number(stated.id),
                    queue=queue,
                    turn=fresh_turn(queue.pk, stated.prompt_key),
                    a_id=sides["a"],
                    b_id=sides["b"],
                    **stated.model_dump(exclude={"type", "id", "run", "a", "b"}),
                )
            )
        self._insist_on_free(lines, Comparison, [pair.pk for pair in new])
        Comparison.objects.bulk_create(new)
        self._report.new["pairs"] += len(new)

    def verdicts(self, lines: Lines) -> None:
        queues = self._scope.queues({stated.comparison for _, stated in lines})
        new = []
        for line, stated in lines:
            judge, pair = self._scope.judge(line, stated.judge), stated.comparison
            if queues.get(self._scope.number(pair)) != judge.run.queue_id:
                _lacks(line, "comparison", pair)
            fields = stated.model_dump(exclude={"type", "judge", "comparison"})
            if stated.state == Verdict.State.WAITING:
                fields |= {"state": Verdict.State.FAILED, "error": UNASKED}
            new.append(Verdict(judge=judge, comparison_id=self._scope.number(pair), **fields))
        Verdict.objects.bulk_create(new)
        unasked = [verdict.comparison_id for verdict in new if verdict.error == UNASKED]
        # Nobody may vote on what its judges have not been asked about.
        closed = Comparison.objects.filter(pk__in=unasked, opened_at__isnull=True, unusable="")
        closed.update(unusable=UNASKED)
        self._report.new["verdicts"] += len(new)

    def voters(self, lines: Lines) -> None:
        known = self._scope.voters({stated.pseudonym for _, stated in lines})
        new = [
            Voter(project=self._scope.project, **stated.model_dump(exclude={"type"}))
            for _, stated in lines
            if stated.pseudonym not in known
        ]
        Voter.objects.bulk_create(new)
        self._report.new["voters"] += len(new)

    def flags(self, lines: Lines) -> None:
        voters = self._scope.voters({stated.voter for _, stated in lines})
        queues = self._scope.queues({stated.comparison for _, stated in lines})
        new = []
        for line, stated in lines:
            pair = self._scope.number(stated.comparison)
            new.append(
                Flag(
                    voter=voters.get(stated.voter) or _lacks(line, "voter", stated.voter),
                    comparison_id=pair if pair in queues else _lacks(line, "comparison", pair),
                    **stated.model_dump(include={"category", "comment", "created_at"}),
                )
            )
        Flag.objects.bulk_create(new)

    def finish(self) -> None:
        if len(self._scope.runs) != len(self._scope.header.runs):
            raise BundleError(1, "runs", "the header names runs that the file does not hold")
        for run in self._scope.runs.values():
            _go_on(run)
            events.record(run, "imported", "Imported from a bundle.")

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


def _go_on(run: Run) -> None:
    """Close pairs until they are drawn here too; a run that was at work is at voting now."""
    for rows in (run.judges.all(), run.queue.comparisons.all()):
        last = rows.order_by("-position").values_list("position", flat=True).first()
        if last is not None and last + 1 != rows.count():
            what = rows.model._meta.verbose_name_plural
            raise BundleError(1, "runs", f"the places of the {what} of run {run.pk} have gaps")
    close_undrawn(run.queue)
    resting = (Run.State.DRAFT, Run.State.STOPPED, Run.State.FAILED)
    waiting = run.queue.comparisons.filter(opened_at__isnull=True, unusable="")
    if run.state not in resting and waiting.exists():
        run.state = Run.State.JUDGING
        enqueue("judge_eval.tasks.advance", str(run.pk))
    elif run.state in Run.AT_WORK:
        run.state = Run.State.VOTING
    run.save(update_fields=["state"])
