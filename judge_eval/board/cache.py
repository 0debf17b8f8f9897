"""Findings are computed in the background, not too often, and kept for whoever looks."""

import logging
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from uuid import UUID

from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.core.child_process import manage
from humanjudge.core.domain_events import announce
from humanjudge.core.text import listed
from judge_eval.board.claim_events import claims_that_changed
from judge_eval.board.families import Families
from judge_eval.board.filters import WHOLE_RUN, Parts, Slice, SliceInvalid
from judge_eval.board.model import Claims, FormerClaims, RunFindings
from judge_eval.board.voter_stats import MOST_READ, count_votes
from judge_eval.models import Board, Findings, Judge, JudgeRating, Run
from voting.access.changes import note_change
from voting.items.kinds import is_ordered, kind_of
from voting.ledger import ledger
from voting.ledger.decisions import MARGIN
from voting.models import NO_VOTE, Entry, Project

# A worker that was killed in the middle leaves its findings to others after this time, or after
# SHARE times what they took last, where that is longer.
LEASE = timedelta(minutes=2)
# Between two computations, while somebody looks.
PAUSE = timedelta(seconds=3)
# What nobody looks at rests longer, and so many times as long as the last computation took: the
# processor is for votes and calls then.
UNSEEN_PAUSE = timedelta(seconds=30)
SHARE = 6
WATCHED = timedelta(hours=1)
# An open board asks every few seconds; that somebody looks is written down less often.
NOTED = timedelta(seconds=30)
VIEWER_TIMEOUT = 3 * NOTED
MOST_PARTS = 200
OTHER_VERSION = (
    "Another version made this run, and this one cannot read its ledger: go on with that version, "
    "or begin with an empty database."
)
BUSY = "many parts of this run are being looked at: look at the whole run, or come back later"
MOST_AT_ONCE = 100
# So many other workers are asked to help where several findings are behind.
MOST_HELPERS = 4
# Votes of a run. The figures of more take seconds of a processor, and memory that grows with them.
MOST_VOTES_IN_A_WORKER = 50_000
# An entry of the ledger fixes the margin of a run once it has so many votes.
VOTES_FOR_MARGIN = 50
# A worker that stops waits for the figures that it is at, and for no others.
LONGEST_SECONDS = 10.0

_computing = threading.Lock()
logger = logging.getLogger(__name__)


def note_behind(boards: Collection[Board]) -> None:
    """Note which findings lack the last entries of their runs, and that some are wanted at all."""
    runs = Run.objects.filter(board__in=boards, board__seq__gt=0)
    # While judges are asked and nobody votes, findings are for those who ask for them.
    of_interest = runs.filter(Q(board__votes__gt=0) | ~Q(state__in=Run.AT_WORK))
    existing = Findings.objects.filter(run=OuterRef("pk"), part=str(WHOLE_RUN))
    unasked = timezone.now() - WATCHED
    Findings.objects.bulk_create(
        [
            Findings(run=run, part=str(WHOLE_RUN), requested_at=unasked)
            for run in of_interest.filter(~Exists(existing))
        ],
        ignore_conflicts=True,
    )
    behind = Findings.objects.filter(run__board__in=boards, seq__lt=F("run__board__seq"))
    behind.update(is_behind=True)


def refresh() -> None:
    """Compute findings that are behind, one after another, together with other workers.

    One at a time in each: the threads of a worker are for calls, drawings and seals first.
    """
    if not _computing.acquire(blocking=False):
        return
    try:
        until = time.monotonic() + LONGEST_SECONDS
        due_parts, started_parts = _due_parts(timezone.now()), set[tuple[UUID, str]]()
        for _ in due_parts[1 : 1 + MOST_HELPERS]:
            enqueue("judge_eval.tasks.refresh_findings")
        while due_parts:
            started_parts.add(due_parts[0])
            try:
                compute_apart_if_large(*due_parts[0])
            except OperationalError:
                raise
            except Exception:
                # One run that cannot be computed must not hold up the others; it is tried again.
                logger.exception("findings of run %s, part %r", *due_parts[0])
            if time.monotonic() > until:
                return
            # Others may have computed some of them meanwhile.
            due_parts = [
                run_part for run_part in _due_parts(timezone.now()) if run_part not in started_parts
            ]
    finally:
        _computing.release()


def _due_parts(now: datetime) -> list[tuple[UUID, str]]:
    """Return what is to be computed now, what somebody looks at first."""
    watched = Q(part=str(WHOLE_RUN)) | Q(requested_at__gt=now - WATCHED)
    behind = Findings.objects.filter(watched, is_behind=True, not_before__lte=now)
    rows = behind.order_by("-requested_at").defer("data", "people")[:MOST_AT_ONCE]
    due_parts = []
    for row in rows:
        pause = timedelta()
        if row.computed_at is not None and row.requested_at <= now - VIEWER_TIMEOUT:
            pause = max(UNSEEN_PAUSE, SHARE * timedelta(seconds=row.seconds))
        if row.not_before <= now - pause:
            due_parts.append((row.run_id, row.part))
    return due_parts


def compute_apart_if_large(run_id: UUID, part: str) -> None:
    """Compute findings here, or in a process of its own (`compute_findings`) if votes are many."""
    if not Board.objects.filter(run=run_id, votes__gt=MOST_VOTES_IN_A_WORKER).exists():
        compute(run_id, part)
    elif (ended := manage("compute_findings", str(run_id), part)).code:
        message = "findings of run %s, part %r: their process ended with %s: %s"
        logger.error(message, run_id, part, *ended)


def compute(run_id: UUID, part: str) -> bool:
    """Compute findings, unless somebody is at it or it was done just now."""
    # Web processes import this module and never compute: SciPy and its like would cost each of
    # them a second of its start and 60 MB.
    from judge_eval.board.compute import findings
    from judge_eval.board.load import outcomes_of

    now = timezone.now()
    row = Findings.objects.filter(run=run_id, part=part)
    last_seconds = row.values_list("seconds", flat=True).first() or 0
    lease = max(LEASE, SHARE * timedelta(seconds=last_seconds))
    attempt = {"not_before": now + lease, "attempts": F("attempts") + 1}
    if not row.filter(not_before__lte=now).update(**attempt):
        return False
    start_time = time.perf_counter()
    run = Run.objects.select_related("queue__project").get(pk=run_id)
    part_slice = Slice.stored(part, kind_of(run.queue).noun)
    try:
        fix_margin(run)
        computed = findings(outcomes_of(run, part_slice), _stored_claims(row))
    except OperationalError:
        raise  # The database is locked or away, which passes.
    except Exception as error:
        if isinstance(error, KeyError) and not is_readable(run):
            logger.error("findings of run %s: %s", run_id, OTHER_VERSION)  # noqa: TRY400
            return False
        _note_failure(row, error)
        raise
    many = not part and computed.as_of.votes > MOST_READ
    people = count_votes(run.queue) if many else None
    seconds = time.perf_counter() - start_time
    finished_at = timezone.now()
    with transaction.atomic():
        # Another worker may have stored newer findings: then these announce nothing.
        replaced = _stored_claims(row.select_for_update(no_key=True))
        if replaced and replaced.seq > computed.as_of.seq:
            return False
        if not part:
            announce(*claims_that_changed(run, computed, replaced))
        row.update(
            data=computed.stored(),
            people=people and people._asdict(),
            carrier=computed.carrier,
            seq=computed.as_of.seq,
            seconds=seconds,
            is_behind=Board.objects.filter(run=run, seq__gt=computed.as_of.seq).exists(),
            computed_at=finished_at,
            attempts=0,
            error="",
            not_before=finished_at + PAUSE,
        )
    return True


def fix_margin(run: Run) -> None:
    """Fix the margin within which judges are practically the same, once and for all of the run.

    Not while judges are tuned: it would tell of votes that are held out.
    """
    from judge_eval.stats.claims import margin_above

    many = Board.objects.filter(run=run, votes__gte=VOTES_FOR_MARGIN)
    fixed = Entry.objects.filter(
        NO_VOTE, queue=run.queue_id, kind=Entry.Kind.PARAMETERS, payload__has_key=MARGIN
    )
    if run.queue.is_tuning or not many.exists() or fixed.exists():
        return
    floor = JudgeRating.objects.filter(judge__run=run, judge__provider=Judge.BASELINE)
    shares = [row.agree / row.total for row in floor if row.total and not is_ordered(run.queue)]
    about = {"queue": run.queue, "kind": Entry.Kind.PARAMETERS, "at": timezone.now()}
    with transaction.atomic():
        project = ledger.locked(run.queue.project_id)
        if not fixed.exists():
            payload = {MARGIN: repr(round(margin_above(shares, run.margin), 4))}
            ledger.append(project.pk, [Entry(project=project, payload=payload, **about)])


def _note_failure(row: QuerySet[Findings], error: Exception) -> None:
    """Keep the reason for the pages, and try again soon; after several attempts less often."""
    reason = (
        f"an unexpected error occurred ({type(error).__name__}); the worker's log has the details"
    )
    row.update(error="they take too much memory" if isinstance(error, MemoryError) else reason)
    early = row.filter(attempts__lt=Findings.MOST_ATTEMPTS)
    early.update(not_before=timezone.now() + PAUSE)


def is_readable(run: Run) -> bool:
    """Tell from the first verdicts in a run's ledger whether this version wrote them."""
    opened = Entry.objects.filter(
        NO_VOTE, project=run.queue.project_id, queue=run.queue_id, kind=Entry.Kind.VERDICTS
    )
    first = opened.filter(seq__isnull=False).order_by("seq").values_list("payload", flat=True)
    payload = first.first() or {"prompt": "", "votes_wanted": 0, "verdicts": []}
    return {"prompt", "votes_wanted", "verdicts"} <= payload.keys() and all(
        {"position", "winner"} <= verdict.keys() for verdict in payload["verdicts"]
    )


def _stored_claims(row: QuerySet[Findings]) -> FormerClaims | None:
    stored = row.values("data__claims", "data__judges", "data__as_of").first()
    if stored is None or (claims := Claims.read(stored["data__claims"])) is None:
        return None
    judges = [judge["id"] for judge in stored["data__judges"]]
    return FormerClaims(judges, claims, stored["data__as_of"]["seq"])


def is_sealing(run: Run) -> bool:
    """Whether verdicts are still to be sealed, which no findings know."""
    coming = Entry.objects.filter(
        NO_VOTE, project=run.queue.project_id, queue=run.queue_id, kind=Entry.Kind.VERDICTS
    )
    return coming.filter(seq__isnull=True).exists()


def newer_votes(run: Run, votes: int, counted: int) -> int:
    """Return how many votes figures lack; while judges are tuned they lack those held out, too."""
    return 0 if run.queue.is_tuning else max(votes - counted, 0)


class PartUnknown(SliceInvalid):
    code = 404


class TooManyParts(SliceInvalid):
    """A run has more parts than anybody looks at; whoever asks is told to wait."""

    code = 429


@dataclass(frozen=True)
class FindingsRequest:
    """A part of a run that somebody wants figures of, and the rows that hold them.

    While nothing is known of the run, it is not known either whether there is such a part: then
    `row` is that of the run, which holds nothing.
    """

    part: Slice
    row: Findings
    whole_run: Findings
    # Whether its reader may see what moves with every vote.
    is_live: bool = True

    @cached_property
    def findings(self) -> RunFindings | None:
        return RunFindings.read(self.row.data)

    @cached_property
    def refused(self) -> str:
        """Why there will be no findings, where that is so."""
        if self.findings is not None:
            return ""
        # What an earlier version stored is computed anew, and has no time until then.
        is_hopeless = self.row.computed_at or not is_readable(self.row.run)
        return OTHER_VERSION if is_hopeless else self.row.failure

    @cached_property
    def is_left(self) -> bool:
        """Whether no worker has begun with it for a while."""
        return not self.row.attempts and self.row.not_before < timezone.now() - UNSEEN_PAUSE

    @cached_property
    def parts(self) -> Parts | None:
        """The parts there are of the whole run; None while nothing is known of it."""
        data = self.whole_run.data
        return None if data is None else Parts.model_validate(data.get("parts", {}))


def request_findings(run: Run, part: str) -> FindingsRequest:
    """Return the findings of a part of a run, and see to it that they are computed.

    Raises SliceInvalid, as PartUnknown or TooManyParts where it is not the address that is wrong.
    """
    part_slice = Slice.parse(part, kind_of(run.queue).noun)
    whole_run = findings_of(run, WHOLE_RUN)
    request = FindingsRequest(part_slice, whole_run, whole_run)
    if part_slice.kind and request.parts is not None:
        if part_slice not in request.parts:
            raise PartUnknown(f"this run has no {part_slice.kind} {part_slice.value!r}")
        request = FindingsRequest(part_slice, findings_of(run, part_slice), whole_run)
    return request


def parts_of(run: Run) -> Parts | None:
    """Return a run's tags and generators without its figures; None while nothing is known of it."""
    rows = Findings.objects.filter(run=run, part=str(WHOLE_RUN))
    parts = rows.values_list("data__parts", flat=True).first()
    return None if parts is None else Parts.model_validate(parts)


def findings_of(run: Run, part: Slice) -> Findings:
    """Return what is known, and see to it that what is looked at is kept up to date."""
    now = timezone.now()
    row = Findings.objects.filter(run=run, part=str(part)).defer("people").first()
    if row is None:
        if run.findings.count() >= MOST_PARTS:
            raise TooManyParts(BUSY)
        row, _ = Findings.objects.get_or_create(run=run, part=str(part))
        enqueue("judge_eval.tasks.compute_findings", str(run.pk), str(part))
    elif now - row.requested_at > NOTED:
        Findings.objects.filter(pk=row.pk).update(requested_at=now)
    return row


def set_families(project: Project, families: Families, user: User) -> None:
    """Let models be of these families in a project; figures that say so are computed anew."""
    if project.model_families == families:
        return
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(model_families=families)
        Findings.objects.filter(run__queue__project=project).update(is_behind=True)
        names = listed(f"{start} = {family}" for start, family in families.items())
        note_change(project, user, f"Families of models: {names or 'none'}.")
    project.model_families = families
