"""What reports keep beside the ledger."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from judge_eval.models import Run
from voting.models import Item, Project


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
    """Score files that were asked for: waiting, done and kept as a zip, or failed with a reason."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="score_reports", db_index=False)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    # What was asked for; None means the default.
    config = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    asked_at = models.DateTimeField(default=timezone.now, editable=False)
    done_at = models.DateTimeField(null=True)
    # Whoever makes it holds the lease; one that ran out is anybody's, but not for ever.
    leased_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    # The summary that is in the files, for pages and scripts: see scores.table.ScoreTable.
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
        indexes: ClassVar = [models.Index(fields=["run", "asked_at"], name="score_report_of_run")]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.state}"


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
    # Where the fold goes on: see reports.quality.score.Standing.
    standing = models.JSONField()

    class Meta:
        verbose_name_plural = "qualities"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "series"], name="quality_of_project")
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
