"""The writers of the GrandJury protocol: models and their keys, enrolments, traces."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.text import slugify

from humanjudge.core.strict_json import JsonObject
from judge_eval.judging.verdicts import verdicts_entry
from judge_eval.ledger.objects import UNPLACED
from judge_eval.models import Run
from judge_eval.runs.services import create_study, new_item
from reports.models import Benchmark, Enrollment, Trace, TracedModel
from voting.access.changes import note_change
from voting.access.keys import create_key, revoke
from voting.access.roles import make_project, projects_where, require_making
from voting.items.choices import PASS_FLAG
from voting.ledger.bulk_sql import insert, key, pipelined, prepared
from voting.models import ApiKey, Inference, Project, Queue

RUBRIC: Final = "Is this output good enough to be used as it is? Pass it, or flag what is wrong."
MODEL_SCOPES: Final = (ApiKey.Scope.INGEST, ApiKey.Scope.READ)
PERSON_SCOPES: Final = (ApiKey.Scope.READ, ApiKey.Scope.MANAGE)
_LONGEST_SLUG: Final = 60


class EnrollmentRefused(Exception):
    """The benchmark does not take this model; the text says why."""


# --- models, their keys and where their traces go -----------------------------------------------


def create_model(
    owner: User,
    project: Project | None,
    name: str,
    *,
    kind: str = "sdk",
    description: str = "",
    metadata: JsonObject | None = None,
) -> tuple[TracedModel, str]:
    """Make a model that sends its traces to a project; return it and its key, told only now.

    Without a project it is one of its owner's own, where all such models of theirs are.
    """
    with transaction.atomic():
        model = TracedModel.objects.create(
            project=project or _project_of(owner),
            owner=owner,
            name=name,
            slug=_free_slug(TracedModel.objects.all(), name, otherwise="model"),
            type=kind,
            description=description,
            metadata=metadata or {},
            publishable_key=f"gj_pub_{secrets.token_hex(12)}",
        )
        Enrollment.objects.create(model=model, benchmark=benchmark_of(model.project, owner))
        return model, renew_key(model)


def _project_of(owner: User) -> Project:
    name = f"Models of {owner.get_username()}"[:200]
    mine = projects_where(owner, "run").filter(name=name, traced_models__owner=owner)
    if (named := mine.first()) is not None:
        return named
    require_making(owner)
    return make_project(name, owner)


def renew_key(model: TracedModel) -> str:
    """Give a model a new key, which is told only now; the one that it had is good no more."""
    with transaction.atomic():
        revoke_key(model)
        model.api_key, text = create_key(
            model.name[:100],
            MODEL_SCOPES,
            model.project,
            kind=ApiKey.Kind.MODEL,
            user=model.owner,
        )
        model.save(update_fields=["api_key"])
    return text


def revoke_key(model: TracedModel) -> None:
    if model.api_key is not None:
        revoke(model.api_key)


def create_person_key(
    user: User, name: str, scopes: Iterable[str], project: Project | None
) -> tuple[ApiKey, str]:
    with transaction.atomic():
        key, text = create_key(name, list(scopes), project, kind=ApiKey.Kind.PERSON, user=user)
        if project is not None:
            note_change(project, user, f"Key “{key}” made: {', '.join(key.scopes)}.")
    return key, text


def benchmark_of(project: Project, owner: User | None) -> Benchmark:
    """Return where the models of a project send their traces; the first makes it."""
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        benchmark = Benchmark.objects.filter(project=project).first()
        return benchmark or Benchmark.objects.create(
            project=project,
            queue=_queue_of_traces(project),
            slug=_free_slug(Benchmark.objects.all(), project.name, otherwise="benchmark"),
            owner=owner,
        )


def _queue_of_traces(project: Project) -> Queue:
    """Make the queue of a project's traces, as a run: with invites, progress and a board."""
    name = f"Traces: {project.name}"[:200]
    return create_study(
        project,
        name,
        RUBRIC,
        kind=Queue.Kind.PASS_FLAG,
        ballot=PASS_FLAG,
        more_may_come=True,
        # No judge is asked of traces as they come, so there is nothing to look at after a vote.
        reveal=Queue.Reveal.NEVER,
    ).queue


def _free_slug(rows: QuerySet[Any], name: str, *, otherwise: str) -> str:
    slug = slugify(name)[:_LONGEST_SLUG].strip("-_") or otherwise
    is_taken = rows.filter(slug=slug).exists()
    return f"{slug}-{secrets.token_hex(3)}" if is_taken else slug


def open_to_enrolment(benchmark: Benchmark, is_open: bool) -> None:
    benchmark.is_open = is_open
    benchmark.save(update_fields=["is_open"])


def enroll(model: TracedModel, benchmark: Benchmark) -> Enrollment:
    """Send a model's traces to a benchmark too; the second time changes nothing."""
    enrollment = model.enrollments.filter(benchmark=benchmark).first()
    if enrollment is not None:
        return enrollment
    if not benchmark.is_open:
        raise EnrollmentRefused(f"{benchmark.slug} is not open to enrolment")
    return Enrollment.objects.get_or_create(model=model, benchmark=benchmark)[0]


# --- traces -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TraceIn:
    trace_id: str
    prompt: str
    output: str
    # What else the client says of it.
    metadata: JsonObject = field(default_factory=dict)


# By hand: a model may log hundreds of traces in a second. In one order for all, since each queue
# is locked until the transaction ends.
_ENROLLED = """
    SELECT enrollment.id, model.name, run.id, run.salt, run.private_salt, queue.id,
           queue.project_id, queue.votes_per_item, queue.overlap_share, queue.overlap_votes
    FROM reports_tracedmodel AS model
    JOIN reports_enrollment AS enrollment ON enrollment.model_id = model.id
    JOIN reports_benchmark AS benchmark ON benchmark.id = enrollment.benchmark_id
    JOIN voting_queue AS queue ON queue.id = benchmark.queue_id
    JOIN judge_eval_run AS run ON run.queue_id = queue.id
    WHERE model.api_key_id = %s ORDER BY queue.id
"""
_LOCK = {
    "postgresql": "SELECT 1 FROM voting_queue WHERE id = %s FOR NO KEY UPDATE",
    "sqlite": "",  # the transaction is the lock
}
_NEXT = "(SELECT COALESCE(MAX(position) + 1, 0) FROM voting_item WHERE queue_id = %s)"


def ingest(api_key: ApiKey, sent: TraceIn) -> bool:
    """Put a trace before the voters of all that the key's model is enrolled in.

    Return whether it is new; one that is known already changes nothing.
    """
    with prepared() as cursor:
        cursor.execute(_ENROLLED, [api_key.pk])
        enrolled = [
            (UUID(str(pk)), model, _queue(*about)) for pk, model, *about in cursor.fetchall()
        ]
        try:
            with pipelined():
                for enrollment, model, queue in enrolled:
                    _insert_trace(cursor, sent, enrollment, model, queue)
        except IntegrityError:
            ids = [enrollment for enrollment, *_ in enrolled]
            if not Trace.objects.filter(enrollment__in=ids, trace_id=sent.trace_id).exists():
                raise
            return False
    return True


def _queue(
    run: object, salt: str, private_salt: str, pk: object, project: object, *rules: Any
) -> Queue:
    fields = dict(zip(("votes_per_item", "overlap_share", "overlap_votes"), rules, strict=True))
    queue = Queue(id=UUID(str(pk)), project_id=UUID(str(project)), **fields)
    salts = {"salt": salt, "private_salt": private_salt}
    return Run(id=UUID(str(run)), queue=queue, **salts).queue


def _insert_trace(
    cursor: CursorWrapper, sent: TraceIn, enrollment: UUID, model: str, queue: Queue
) -> None:
    output = Inference(
        project_id=queue.project_id,
        prompt=sent.prompt,
        output=sent.output,
        kind=Inference.Kind.TEXT,
        generator=model,
        metadata=sent.metadata,
    )
    item = new_item(queue, UNPLACED, output)
    item.opened_at = timezone.now()
    trace = Trace(enrollment_id=enrollment, trace_id=sent.trace_id, item=item)
    # No judge was asked. A sweep or the first vote on it has it sealed.
    opening = verdicts_entry(item, [])
    # Places in a queue have no gaps.
    if lock := _LOCK[connection.vendor]:
        cursor.execute(lock, [key(queue.pk)])
    insert(cursor, trace, output, opening, item, position=(_NEXT, key(queue.pk)))
