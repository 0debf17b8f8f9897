"""Runs, their judges, what the judges said, and the standings that the ledger gives them."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from judge_eval import elo
from voting.models import Choice, Comparison, Queue


class Run(models.Model):
    """One study: pairs, judges, and a queue of votes on the pairs."""

    class State(models.TextChoices):
        DRAFT = "draft"
        GENERATING = "generating"
        JUDGING = "judging"
        VOTING = "voting"
        COMPLETE = "complete"
        STOPPED = "stopped"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    queue = models.OneToOneField(Queue, models.PROTECT, related_name="run")
    name = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    # Boards and pair pages need a login until the owner shares them.
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return self.name


class Judge(models.Model):
    """A competitor of one run. A changed fingerprint is a new judge that starts at 1000."""

    class Provider(models.TextChoices):
        BASELINE = "baseline"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, models.PROTECT, related_name="judges", db_index=False)
    # Place in the run's order of judges, in which ELO games are played; it never changes.
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=200)
    provider = models.CharField(max_length=20, choices=Provider)
    fingerprint = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "position"], name="judge_position"),
            models.UniqueConstraint(fields=["run", "fingerprint"], name="judge_fingerprint"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_baseline(self) -> bool:
        return self.provider == self.Provider.BASELINE


class Verdict(models.Model):
    """What one judge says of one comparison: waiting, done, or failed with a reason."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    class Order(models.TextChoices):
        STORED = "AB", "as stored"
        SWAPPED = "BA", "swapped"
        BOTH = "both", "both orders"

    judge = models.ForeignKey(Judge, models.PROTECT, related_name="verdicts", db_index=False)
    comparison = models.ForeignKey(Comparison, models.PROTECT, related_name="verdicts")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    leased_until = models.DateTimeField(null=True, blank=True)
    order = models.CharField(max_length=4, choices=Order, default=Order.STORED)
    winner = models.CharField(max_length=8, choices=Choice, blank=True)
    # Whether both orders agreed; empty where only one was asked.
    consistent = models.BooleanField(null=True, blank=True)
    score_a = models.FloatField(null=True, blank=True)
    score_b = models.FloatField(null=True, blank=True)
    feedback = models.TextField(blank=True)
    error = models.TextField(blank=True)
    latency_ms = models.FloatField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["judge", "comparison"], name="verdict_once"),
            models.CheckConstraint(
                name="verdict_failure_is_no_score",
                condition=Q(state="done") & ~Q(winner="") & Q(error="")
                | Q(state="failed", winner="", score_a=None, score_b=None) & ~Q(error="")
                | Q(state="waiting", winner="", score_a=None, score_b=None),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["leased_until"], condition=Q(state="waiting"), name="verdict_waiting"
            )
        ]

    def __str__(self) -> str:
        return f"{self.judge_id}: {self.winner or self.state}"


class JudgeRating(models.Model):
    """A judge's standing; judge_eval.projection makes it from the ledger alone."""

    judge = models.OneToOneField(Judge, models.CASCADE, primary_key=True, related_name="rating")
    elo = models.FloatField(default=elo.START)
    agree = models.PositiveIntegerField(default=0)
    disagree = models.PositiveIntegerField(default=0)
    # Comparisons on which it was asked, and on which it gave a verdict: its coverage.
    asked = models.PositiveIntegerField(default=0)
    answered = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.judge_id}: {self.elo:.0f}"


class Board(models.Model):
    """How many votes a run's ratings are made of, and as of which ledger entry."""

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="board")
    votes = models.PositiveIntegerField(default=0)
    unblinded = models.PositiveIntegerField(default=0)
    seq = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.run_id}: {self.votes} votes"


class RatingPoint(models.Model):
    """A point of the rating graph: the ratings after so many votes, in the run's judge order."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="points", db_index=False)
    votes = models.PositiveIntegerField()
    ratings = models.JSONField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "votes"], name="ratingpoint_votes")
        ]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.votes}"
