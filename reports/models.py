import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property

from judge_eval.models import Run
from voting.models import ApiKey, Identified, Item, Project, Queue


class CompositeDefinition(models.Model):
    """One version of how a run's outputs get one number; the newest counts, all are kept."""

    id: int
    run = models.ForeignKey(Run, models.CASCADE, related_name="composites", db_index=False)
    # JSON as text: a column of JSON forgets the order in which components were named.
    config = models.TextField()
    version = models.CharField(max_length=12)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["run", "id"], name="composite_of_run")]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.version}"


class ScoreReport(models.Model):
    """Score files that were requested: waiting, done and kept as a zip, or failed with a reason."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="score_reports", db_index=False)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    # What was requested; None means the default.
    config = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    requested_at = models.DateTimeField(default=timezone.now, editable=False)
    done_at = models.DateTimeField(null=True)
    # Whoever makes it holds the lease; one that ran out is anybody's, but not for ever.
    leased_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    # The summary that is in the files, for pages and scripts: see report.model.ScoreTable.
    table = models.JSONField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run"], condition=Q(state="waiting"), name="score_report_one_at_a_time"
            ),
            models.CheckConstraint(
                name="score_report_failure_has_a_reason",
                condition=Q(state="failed") & ~Q(error="") | ~Q(state="failed") & Q(error=""),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["run", "requested_at"], name="score_report_of_run")
        ]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.state}"


# How many votes a score is made of.
FOLDED_VOTES = Cast(KeyTextTransform("votes", "standing"), models.IntegerField())


class Quality(models.Model):
    """What votes on one kind of items come to in a project; kept by reports.quality.projection."""

    class Series(models.TextChoices):
        ITEMS = "items"
        PAIRS = "pairs"

    id: int
    project = models.ForeignKey(Project, models.CASCADE, related_name="qualities", db_index=False)
    series = models.CharField(max_length=5, choices=Series)
    score = models.FloatField()
    freshness = models.FloatField(default=0.0)
    votes = models.PositiveIntegerField(default=0)
    passes = models.PositiveIntegerField(default=0)
    last_vote_at = models.DateTimeField(null=True)
    # Where the fold goes on: see reports.quality.score.FoldState.
    standing = models.JSONField()

    class Meta:
        verbose_name_plural = "qualities"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "series"], name="quality_of_project")
        ]
        indexes: ClassVar = [
            # An import that failed leaves votes behind that are not in the score yet.
            models.Index(
                fields=["project"], condition=~Q(votes=FOLDED_VOTES), name="quality_behind"
            )
        ]

    def __str__(self) -> str:
        return f"{self.series} of {self.project_id}: {self.score:.3f}"


class QualityPoint(models.Model):
    """Where the fold stood behind some vote: a point of the chart, and a place to go on from."""

    quality = models.ForeignKey(Quality, models.CASCADE, related_name="points", db_index=False)
    at = models.DateTimeField()
    seq = models.BigIntegerField()
    votes = models.PositiveIntegerField()
    standing = models.JSONField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["quality", "at", "seq"], name="quality_point")
        ]


class Review(models.Model):
    """An item that waits for a curator, or did once: made of votes, flags and decisions alone."""

    item = models.OneToOneField(Item, models.CASCADE, related_name="review")
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    # Of votes in [0, 1]; choices between words have none.
    variance = models.FloatField(null=True)
    is_divided = models.BooleanField(default=False)
    flags = models.PositiveIntegerField(default=0)
    # Of the newest flag.
    category = models.CharField(max_length=60, blank=True, db_default="")
    # What stands of all decisions on it.
    decided = models.CharField(max_length=13, blank=True, db_default="")
    waits = models.BooleanField(default=False)
    since = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "item to review"
        verbose_name_plural = "items to review"
        indexes: ClassVar = [
            models.Index(fields=["since"], condition=Q(waits=True), name="review_waits"),
            models.Index(fields=["project", "since"], name="review_of_project"),
        ]

    def __str__(self) -> str:
        return f"{self.item_id}: {'waits' if self.waits else self.decided or 'settled'}"


class Benchmark(models.Model):
    """Where the models of a project send their traces: its queue of pass and flag.

    Models of other projects may enrol while it is open.
    """

    project = models.OneToOneField(Project, models.PROTECT, related_name="benchmark")
    queue = models.OneToOneField(Queue, models.PROTECT, related_name="benchmark")
    slug = models.SlugField(max_length=80, unique=True)
    is_open = models.BooleanField(default=False)
    # Who reads the votes on all its models.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    def __str__(self) -> str:
        return self.project.name


class TracedModel(Identified):
    """One source of outputs, with a key of its own to log them: a model of the protocol."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="traced_models")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="traced_models"
    )
    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80, unique=True)
    type = models.CharField(max_length=40, default="sdk")
    description = models.TextField(blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    # It names the model and opens nothing.
    publishable_key = models.CharField(max_length=40, unique=True, editable=False)
    api_key = models.OneToOneField(
        ApiKey, models.SET_NULL, null=True, editable=False, related_name="traced_model"
    )

    def __str__(self) -> str:
        return self.name


class Enrollment(Identified):
    """A model sends its traces to a benchmark."""

    model = models.ForeignKey(TracedModel, models.CASCADE, related_name="enrollments")
    benchmark = models.ForeignKey(Benchmark, models.PROTECT, related_name="enrollments")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["model", "benchmark"], name="enrollment_once")
        ]


class Trace(models.Model):
    """An output that a model has logged, by the name that its client gave it."""

    enrollment = models.ForeignKey(
        Enrollment, models.PROTECT, related_name="traces", db_index=False
    )
    trace_id = models.CharField(max_length=200)
    item = models.OneToOneField(Item, models.PROTECT, related_name="trace")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["enrollment", "trace_id"], name="trace_once")
        ]

    def __str__(self) -> str:
        return self.trace_id


class Share(models.Model):
    """A link that shows a report to whoever has it, until it is revoked or expires."""

    id: int
    project = models.ForeignKey(Project, models.CASCADE, related_name="shares")
    # Without a run it is the report of the project.
    run = models.ForeignKey(Run, models.CASCADE, null=True, related_name="shares")
    # For whom or what it is, in the owner's words.
    label = models.CharField(max_length=100, blank=True)
    token_sha256 = models.CharField(max_length=64, unique=True, editable=False)
    # Where the token begins, so that a link in an old mail can be found in the list.
    prefix = models.CharField(max_length=6, editable=False)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    # Search engines may list it.
    is_public = models.BooleanField(default=False)
    # It shows the outputs that divide people and judges.
    shows_outputs = models.BooleanField(default=False)
    views = models.PositiveIntegerField(default=0)
    viewed_at = models.DateTimeField(null=True)
    # Of a frozen report what it said when the link was made; a live one says what holds today.
    frozen = models.JSONField(null=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["run", "made_at"], name="share_of_run"),
            models.Index(
                fields=["expires_at"], condition=Q(revoked_at__isnull=True), name="share_ending"
            ),
        ]

    def __str__(self) -> str:
        return self.label or f"{self.prefix}…"

    @property
    def page(self) -> str:
        """The page that lists it."""
        name, subject_id = ("run", self.run_id) if self.run_id else ("project", self.project_id)
        return reverse(f"{name}-shares", args=[subject_id])

    @property
    def is_frozen(self) -> bool:
        return self.frozen is not None

    @cached_property
    def is_project_tuned(self) -> bool:
        """Whether half of a run of the project is held out; links are found together with it."""
        is_tuned = getattr(self, "is_found_tuned", None)
        if is_tuned is not None:
            return bool(is_tuned)
        return Queue.objects.filter(project=self.project_id, is_tuning=True).exists()

    @property
    def is_waiting(self) -> bool:
        """Whether a live one shows what held before judges were tuned."""
        return self.run.queue.is_tuning if self.run else self.is_project_tuned

    @property
    def frozen_seq(self) -> int | None:
        return None if self.frozen is None else self.frozen["head"]["seq"]


class ReportBeforeTuning(models.Model):
    """What a report said last before judges were tuned: its live links show it until that ends."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    # Without a run it is the report of the project.
    run = models.ForeignKey(Run, models.CASCADE, null=True, related_name="+")
    report = models.JSONField()


class FrozenRows(models.Model):
    """What a frozen report follows from beside the ledger: the lines of its bundle, packed."""

    share = models.OneToOneField(Share, models.CASCADE, related_name="rows")
    lines = models.BinaryField()


class PublishedHead(models.Model):
    """The head of a ledger that was published elsewhere: see reports.webhooks.heads."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="published_heads")
    seq = models.BigIntegerField()
    hash = models.BinaryField(max_length=32)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "seq"], name="published_head_once")
        ]

    @property
    def head(self) -> str:
        return bytes(self.hash).hex()


class Webhook(Identified):
    """Where a project's events are sent. What signs them is derived, so no secret is stored."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    # Names of events: see reports.webhooks.services.EVENTS.
    events = models.JSONField(default=list)
    # The quality score whose crossing is told, in [0, 1].
    line = models.FloatField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    # Counted up for a new secret.
    secret_number = models.PositiveIntegerField(default=1, editable=False)
    # Where the pages are that its messages link to.
    origin = models.CharField(max_length=200, editable=False)
    # One worker at a time sends to it.
    leased_until = models.DateTimeField(null=True, editable=False)

    def __str__(self) -> str:
        return self.url


class Delivery(models.Model):
    """One event on its way to one webhook: waiting until its next try, delivered, or given up."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_index=False)
    event = models.CharField(max_length=30)
    # What has the same key is told once.
    key = models.CharField(max_length=200)
    payload = models.JSONField()
    made_at = models.DateTimeField(default=timezone.now)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(default=timezone.now)
    # Of the last try: the status, and the beginning of the answer or what went wrong.
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.CharField(max_length=200, blank=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["webhook", "key"], name="delivery_once")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["webhook", "next_try_at"],
                condition=Q(state="waiting"),
                name="delivery_waiting",
            ),
            models.Index(fields=["webhook", "made_at"], name="delivery_of_webhook"),
        ]

    def __str__(self) -> str:
        return f"{self.event}: {self.state}"
