"""Runs, their judges, what the judges said, and the standings that the ledger gives them."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar, Final

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from judge_eval.stats import elo
from judge_eval.stats.estimate import MARGIN
from voting.items.kinds import LONGEST_CHOICE
from voting.models import ApiKey, Inference, Item, Project, Queue, Voter, VoterPrompt

# Instead of a provider's name: a baseline, or a judge whose verdicts were imported.
RESERVED_NAMES = ("baseline", "imported")

# No other secret of this machine is sent to an endpoint that somebody typed in.
validate_key_variable = RegexValidator(
    r"^[A-Z][A-Z0-9_]*_API_KEY\Z", "The name of an environment variable that ends in _API_KEY."
)
# A key must not be typed into an address. Azure's classic one has a version, and nothing else.
validate_base_url = RegexValidator(
    r"^(?i:https?)://([^\s/?#@:\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?(/[^\s?#]*)?"
    r"(\?api-version=[0-9a-z-]{1,30})?\Z",
    "An http or https address without name, password or query (but ?api-version=… of Azure).",
)
validate_provider_name = RegexValidator(
    rf"^({'|'.join(RESERVED_NAMES)})\Z",
    "%(value)s is what judges that are not asked go by.",
    inverse_match=True,
)


class Provider(models.Model):
    """An endpoint, OpenAI-compatible as a rule. Its key stays in the environment."""

    # Whose money it spends: without a project, the installation's.
    project = models.ForeignKey(
        Project, models.CASCADE, null=True, blank=True, help_text="Empty: every project may use it."
    )
    name = models.CharField(max_length=50, unique=True, validators=[validate_provider_name])
    # Not a URLField: that refuses the bare host names of a private network.
    base_url = models.CharField(
        max_length=500, validators=[validate_base_url], help_text="Ends in /v1 as a rule."
    )
    key_variable = models.CharField(
        max_length=100,
        blank=True,
        validators=[validate_key_variable],
        help_text="Environment variable of the workers that holds the key, such as OPENAI_API_KEY.",
    )
    protocol = models.CharField(
        max_length=50, default="openai-compatible", help_text="How it is spoken to."
    )
    structured_output = models.BooleanField(default=True, help_text="Ask for a JSON schema.")
    timeout_s = models.PositiveSmallIntegerField("timeout in seconds", default=60)
    concurrency = models.PositiveSmallIntegerField("calls at once", default=8)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    prices = models.JSONField(
        default=dict,
        blank=True,
        help_text='US dollars a million tokens: {"model": {"input": "2.50", "output": "10"}}',
    )
    # What the workers know of it together: when the next call may start, and which models are left
    # alone for a while: until when, and why.
    next_start_at = models.DateTimeField(null=True, editable=False)
    pauses = models.JSONField(default=dict, editable=False)
    # By model, what it refuses and is asked without.
    refused = models.JSONField(default=dict, editable=False)
    # Workers that wait for a place, and until when.
    guests = models.JSONField(default=dict, editable=False)
    # The call by which it was last tried: see runs.trial.
    trial = models.ForeignKey(
        "Call", models.SET_NULL, null=True, related_name="+", editable=False, db_index=False
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="provider_is_used", condition=Q(concurrency__gte=1)),
            models.CheckConstraint(name="provider_waits", condition=Q(timeout_s__gte=1)),
        ]

    def __str__(self) -> str:
        return self.name


def new_salt() -> str:
    return secrets.token_hex(16)


class WholeRuns(models.Manager["Run"]):
    """Leaves out runs that are still being imported: nobody is shown half of one."""

    def get_queryset(self) -> models.QuerySet[Run]:
        return super().get_queryset().exclude(state=Run.State.IMPORTING)


class Run(models.Model):
    """One study: pairs, judges, and a queue of votes on the pairs."""

    class State(models.TextChoices):
        IMPORTING = "importing"
        DRAFT = "draft"
        GENERATING = "generating"
        JUDGING = "judging"
        VOTING = "voting"
        COMPLETE = "complete"
        STOPPED = "stopped"
        FAILED = "failed"

    # Calls are made in these states.
    AT_WORK: ClassVar = (State.GENERATING, State.JUDGING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    queue = models.OneToOneField(Queue, models.PROTECT, related_name="run")
    name = models.CharField(max_length=200)
    # What is asked, in one line for readers.
    question = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    # Why it stopped or failed, in a sentence.
    note = models.TextField(blank=True)
    # As `run_config.parse` read it; None where the outputs were given.
    config = models.JSONField(null=True, blank=True)
    # Billionths of a US dollar: whole numbers add up exactly on every database.
    budget_nano = models.BigIntegerField(null=True, blank=True)
    spent_nano = models.BigIntegerField(default=0)
    reserved_nano = models.BigIntegerField(default=0)
    # How much worse than a person a judge may be in the Alt-Test: settled before anybody looks.
    epsilon = models.FloatField(default=0.2)
    # Boards and pair pages need a login until the owner shares them.
    is_shared = models.BooleanField(default=False)
    # So many items with votes are asked again each day, of each judge: see judge_eval.gate.drift.
    anchors_a_day = models.PositiveSmallIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    # For the hashes of its rows in the ledger: see judge_eval.ledger.objects. Public bundles have
    # only the first; a run that one of them brought has no private one.
    salt = models.CharField(max_length=32, default=new_salt, editable=False)
    private_salt = models.CharField(max_length=32, default=new_salt, blank=True, editable=False)
    # Left out of lists, and still to be read.
    archived_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = WholeRuns()
    every: ClassVar = models.Manager["Run"]()

    class Meta:
        base_manager_name = "every"
        constraints: ClassVar = [
            models.CheckConstraint(
                name="run_epsilon_is_a_share", condition=Q(epsilon__gte=0, epsilon__lt=1)
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["state", "-created_at"], name="run_states"),
            models.Index(fields=["-created_at"], name="run_newest"),
            # Those to which items may come one by one.
            models.Index(
                fields=["queue"],
                condition=Q(state="voting", config__outputs="given"),
                name="run_growing",
            ),
            # Those whose judges are watched.
            models.Index(fields=["queue"], condition=Q(anchors_a_day__gt=0), name="run_watched"),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, **how: Any) -> None:
        super().save(**how)
        if "state" in (how.get("update_fields") or ["state"]):
            # Never the same number twice, so that whoever is at it notices.
            Board.objects.filter(run=self).update(handled_seq=-time.time_ns())

    @property
    def is_given(self) -> bool:
        """Whether its outputs were brought here: nothing can be generated again."""
        return self.config is None or self.config.get("outputs") == "given"

    @property
    def margin(self) -> float:
        """Within how much agreement per vote its judges are practically the same, as was stated.

        An entry of the ledger fixes it later, perhaps a smaller one.
        """
        return float((self.config or {}).get("margin", MARGIN))

    @property
    def budget_usd(self) -> Decimal | None:
        return None if self.budget_nano is None else Decimal(self.budget_nano) / 1_000_000_000

    def record(self, kind: str, text: str, **data: Any) -> RunEvent:
        return RunEvent.objects.create(run=self, kind=kind, text=text, data=data)


class Judge(models.Model):
    """A competitor of one run. A changed fingerprint is a new judge that starts at 1000."""

    BASELINE: ClassVar = "baseline"
    IMPORTED: ClassVar = "imported"
    # The model of those whose verdicts were written for the demo.
    EXAMPLE: ClassVar = "example"
    TUNED: ClassVar = "tuned"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, models.PROTECT, related_name="judges", db_index=False)
    # Place in the run's order of judges, in which ELO games are played; it never changes.
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=200)
    # What it is, in one line for readers.
    description = models.CharField(max_length=200, blank=True)
    # `baseline`, `imported`, or the name of a Provider.
    provider = models.CharField(max_length=50)
    # The model as it is asked for, and as it called itself in its first reply.
    model = models.CharField(max_length=200, blank=True)
    reported_model = models.CharField(max_length=200, blank=True)
    fingerprint = models.CharField(max_length=64)
    # Of a judge that is no one model: its `type` with its `version`, its `parts` and `options`.
    # Of a baseline with a way of its own: of type `baseline`, with its `orders` among the options.
    recipe = models.JSONField(null=True, blank=True)
    # It joined while judges were tuned on votes of this run: only those that were held out tell
    # how good it is.
    is_tuned = models.BooleanField(default=False, editable=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "position"], name="judge_position"),
            models.UniqueConstraint(fields=["run", "fingerprint"], name="judge_fingerprint"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_baseline(self) -> bool:
        return self.provider == self.BASELINE

    @property
    def is_asked(self) -> bool:
        """Whether a model is asked here: of an import only the verdicts are known."""
        return self.provider not in (self.BASELINE, self.IMPORTED)

    @property
    def own_orders(self) -> str:
        """The orders in which a baseline answers, where these are not its run's own."""
        options = (self.recipe or {}).get("options", {}) if self.is_baseline else {}
        return str(options.get("orders", ""))

    @property
    def model_names(self) -> list[str]:
        """The models that answer for it; of one that is asked nowhere, its own name."""
        parts = (self.recipe or {}).get("parts", ())
        return [part["id"] for part in parts] or [self.model or self.name]

    @property
    def tag(self) -> str:
        """Return what stands beside its name: no model judges there, or one that was tuned."""
        if self.is_tuned:
            return self.TUNED
        is_example = (self.provider, self.model) == (self.IMPORTED, self.EXAMPLE)
        return self.EXAMPLE if is_example else self.BASELINE if self.is_baseline else ""


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
    item = models.ForeignKey(Item, models.PROTECT, related_name="verdicts")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    order = models.CharField(max_length=4, choices=Order, default=Order.STORED)
    winner = models.CharField(max_length=LONGEST_CHOICE, blank=True)
    # Whether both orders agreed; empty where only one was asked.
    consistent = models.BooleanField(null=True, blank=True)
    # What was picked in each order as it stood there, with one vote of several samples.
    picks = models.JSONField(default=list, blank=True)
    first_picks = models.PositiveSmallIntegerField(null=True, blank=True)
    # The share of samples that said what the majority said; empty where one was asked.
    sample_consistency = models.FloatField(null=True, blank=True)
    score_a = models.FloatField(null=True, blank=True)
    score_b = models.FloatField(null=True, blank=True)
    feedback = models.TextField(blank=True)
    error = models.TextField(blank=True)
    # Further tasks that the judge answered, as people do beside their vote.
    labels = models.JSONField(null=True, blank=True)
    latency_ms = models.FloatField(null=True, blank=True)
    # What its calls cost, in billionths of a dollar, and how many of them have no known price: only
    # where they were made elsewhere. Calls that were made here say it themselves.
    cost_nano = models.BigIntegerField(null=True, blank=True)
    unpriced = models.PositiveIntegerField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["judge", "item"], name="verdict_once"),
            models.CheckConstraint(
                name="verdict_failure_is_no_score",
                condition=Q(state="done") & ~Q(winner="") & Q(error="")
                | Q(state="failed", winner="", score_a=None, score_b=None) & ~Q(error="")
                | Q(state="waiting", winner="", score_a=None, score_b=None),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["judge"], condition=Q(state="waiting"), name="verdict_waiting")
        ]

    def __str__(self) -> str:
        return f"{self.judge_id}: {self.winner or self.state}"


# So begins the comment of a flag by which a lead asks curators to look at votes again.
SLIP_BEGINS: Final = "The votes may be a slip:"


class DisagreementTag(models.Model):
    """What a person makes of a verdict that most people do not share, by some rubric."""

    class Tag(models.TextChoices):
        JUDGE_WRONG = "judge_wrong", "judge wrong"
        VOTE_SLIP = "vote_slip", "vote a slip"
        RUBRIC_UNCLEAR = "rubric_unclear", "rubric unclear"
        BOTH_FINE = "both_fine", "both fine"

    verdict = models.OneToOneField(Verdict, models.CASCADE, related_name="tag")
    tag = models.CharField(max_length=14, choices=Tag)
    rubric = models.ForeignKey(VoterPrompt, models.PROTECT, related_name="+", db_index=False)

    def __str__(self) -> str:
        return f"{self.verdict_id}: {self.tag}"


class Call(models.Model):
    """One request to a model: an output for a prompt, or one order and sample of a verdict.

    Whoever holds its lease works on it; what is said after a lease ran out is not written down.
    """

    class Purpose(models.TextChoices):
        GENERATE = "generate"
        JUDGE = "judge"
        # Before a run: see runs.trial.
        TRIAL = "trial"
        # Another wording of a judge's instructions: see runs.suggestion.
        SUGGEST = "suggest"

    State = Verdict.State

    # None of a provider's trial.
    run = models.ForeignKey(Run, models.PROTECT, null=True, related_name="calls", db_index=False)
    purpose = models.CharField(max_length=8, choices=Purpose)
    provider = models.CharField(max_length=50)
    model = models.CharField(max_length=200)
    # Of a generation: the place of its prompt in the config, what came of it, and whether the
    # outputs of this prompt have been paired since.
    prompt = models.PositiveIntegerField(null=True)
    inference = models.OneToOneField(Inference, models.PROTECT, null=True, related_name="call")
    is_paired = models.BooleanField(default=False)
    # The item on which a judge is tried; `sample` is its place among them.
    item = models.ForeignKey(Item, models.CASCADE, null=True, related_name="+", db_index=False)
    # Whose instructions are to be worded anew.
    judge = models.ForeignKey(Judge, models.CASCADE, null=True, related_name="+", db_index=False)
    # Of a verdict: which order, and which of several samples.
    verdict = models.ForeignKey(Verdict, models.PROTECT, null=True, related_name="calls")
    order = models.CharField(max_length=2, blank=True)
    sample = models.PositiveSmallIntegerField(default=0)

    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    lease = models.UUIDField(null=True)
    leased_until = models.DateTimeField(null=True)
    not_before = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveSmallIntegerField(default=0)

    request_hash = models.CharField(max_length=64, blank=True)
    # The call whose stored reply answered this one too.
    reused = models.ForeignKey("self", models.SET_NULL, null=True, related_name="+", db_index=False)
    reported_model = models.CharField(max_length=200, blank=True)
    reply = models.TextField(blank=True)
    # Emptied by the project's retention: what was made of it stays.
    reply_removed_at = models.DateTimeField(null=True)
    # What had to be done to the reply before it could be read, in words.
    changes = models.JSONField(default=list)
    is_repaired = models.BooleanField(default=False)
    error = models.TextField(blank=True)
    winner = models.CharField(max_length=LONGEST_CHOICE, blank=True)
    score_a = models.FloatField(null=True)
    score_b = models.FloatField(null=True)
    reason = models.TextField(blank=True)

    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    cost_nano = models.BigIntegerField(null=True)
    reserved_nano = models.BigIntegerField(default=0)
    latency_ms = models.FloatField(null=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "model", "prompt"],
                condition=Q(purpose="generate"),
                name="call_per_output",
            ),
            models.UniqueConstraint(
                fields=["verdict", "order", "sample"],
                condition=Q(purpose="judge"),
                name="call_per_sample",
            ),
            models.CheckConstraint(
                name="call_shape",
                condition=Q(purpose="trial", prompt__isnull=True, verdict__isnull=True)
                | Q(purpose="generate", prompt__isnull=False, verdict__isnull=True)
                & Q(run__isnull=False)
                | Q(purpose="judge", prompt__isnull=True, verdict__isnull=False)
                & Q(run__isnull=False)
                | Q(purpose="suggest", prompt__isnull=True, verdict__isnull=True)
                & Q(run__isnull=False, judge__isnull=False),
            ),
            models.CheckConstraint(
                name="call_failure_is_no_answer",
                condition=Q(state="failed", winner="", inference=None) & ~Q(error="")
                | ~Q(state="failed"),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["run", "provider", "not_before"],
                condition=Q(state="waiting"),
                name="call_waiting",
            ),
            models.Index(
                fields=["provider", "leased_until"],
                condition=Q(state="waiting", leased_until__isnull=False),
                name="call_leased",
            ),
            models.Index(
                fields=["request_hash"], condition=Q(state="done"), name="call_stored_reply"
            ),
            models.Index(fields=["run", "purpose", "state"], name="call_progress"),
            models.Index(fields=["run"], condition=Q(state="failed"), name="call_failed"),
            models.Index(
                fields=["run"],
                condition=Q(state="waiting", purpose__in=["trial", "suggest"]),
                name="call_tried",
            ),
            models.Index(
                fields=["judge"], condition=Q(judge__isnull=False), name="call_suggestion"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.model}: {self.state}"

    @property
    def is_trial(self) -> bool:
        """Whether somebody waits for its answer: it is made once, and reads no stored reply."""
        return self.purpose in TRIALS

    @property
    def is_repeat(self) -> bool:
        return self.purpose == "judge" and REPEATS_APART <= self.sample < SAMPLES_APART


TRIALS: Final = (Call.Purpose.TRIAL, Call.Purpose.SUGGEST)
# Samples of a verdict are numbered from 0. The same is asked again, as a repeat, with numbers from
# here on, and the samples of each further model of a judge have theirs.
REPEATS_APART: Final = 40
SAMPLES_APART: Final = 1000
# Of calls: they say whether a judge agrees with itself, and are in no verdict and no cost of one.
REPEATED: Final = Q(purpose="judge", sample__gte=REPEATS_APART, sample__lt=SAMPLES_APART)


class Watch(models.Model):
    """That a judge is asked about anchors again and again, to notice that it changes.

    It answers about each so many times at once, which is its yardstick; see judge_eval.gate.drift.
    """

    judge = models.ForeignKey(Judge, models.CASCADE, related_name="watches")
    # Numbers of items.
    anchors = models.JSONField()
    repeats = models.PositiveIntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    # When its yardstick was complete.
    began_at = models.DateTimeField(null=True)
    # When the judge had changed, or all of its yardstick was used.
    ended_at = models.DateTimeField(null=True)
    # "worse" or "better", and since about when.
    direction = models.CharField(max_length=6, blank=True)
    since = models.DateField(null=True)
    leased_until = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["judge"], condition=Q(ended_at=None), name="one_watch_at_a_time"
            )
        ]


class Anchor(models.Model):
    """An answer of a yardstick, and later the one that is set against it.

    It is in no figure of agreement: only how the two answers differ is looked at.
    """

    watch = models.ForeignKey(Watch, models.CASCADE, related_name="answers", db_index=False)
    item = models.ForeignKey(Item, models.CASCADE, related_name="+", db_index=False)
    # Of those on the same item.
    number = models.PositiveIntegerField()
    # Verdicts; empty where there was none.
    stored = models.CharField(max_length=LONGEST_CHOICE, blank=True)
    stored_model = models.CharField(max_length=200, blank=True)
    answer = models.CharField(max_length=LONGEST_CHOICE, blank=True)
    answered_at = models.DateTimeField(null=True)
    answered_model = models.CharField(max_length=200, blank=True)
    # Of the votes on the item, how many more the later answer equals, as a share.
    difference = models.FloatField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["watch", "number", "item"], name="anchor_once")
        ]


class RunEvent(models.Model):
    """Something that happened to a run, for whoever follows it; the number is the cursor."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="events", db_index=False)
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=20)
    text = models.TextField()
    data = models.JSONField(default=dict)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["run", "id"], name="runevent_cursor")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Extension(models.Model):
    """Whether an extension may be used here; one without a row may."""

    id = models.CharField(primary_key=True, max_length=50)
    is_enabled = models.BooleanField(default=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    changed_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.id


class ExtensionValue(models.Model):
    """What an extension keeps with a run."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="+", db_index=False)
    extension = models.CharField(max_length=50)
    name = models.CharField(max_length=200)
    value = models.JSONField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "extension", "name"], name="extensionvalue_once")
        ]


class JudgeRating(models.Model):
    """A judge's standing; judge_eval.ledger.projection makes it from the ledger alone."""

    judge = models.OneToOneField(Judge, models.CASCADE, primary_key=True, related_name="rating")
    # Of a judge that plays no game the start; `stats.elo.players` says who plays.
    elo = models.FloatField(default=elo.START)
    agree = models.PositiveIntegerField(default=0)
    disagree = models.PositiveIntegerField(default=0)
    # Comparisons on which it was called, and on which it gave a verdict: its coverage.
    requested = models.PositiveIntegerField(default=0)
    answered = models.PositiveIntegerField(default=0)
    # By what stands of the decisions on it: then it is in no figure.
    is_left_out = models.BooleanField(default=False)

    @property
    def total(self) -> int:
        return self.agree + self.disagree

    @property
    def agree_rate(self) -> float | None:
        return elo.agree_rate(self.agree, self.disagree)

    @property
    def coverage(self) -> float | None:
        return 100 * self.answered / self.requested if self.requested else None


class Board(models.Model):
    """How many votes a run's ratings are made of, and as of which ledger entry."""

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="board")
    votes = models.PositiveIntegerField(default=0)
    unblinded = models.PositiveIntegerField(default=0)
    seq = models.BigIntegerField(default=0)
    # Up to which entry what follows from it was seen to: whether the run is complete, and which of
    # its findings are behind. Below zero where the run has entered another state since.
    handled_seq = models.BigIntegerField(default=-1)

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["run"], condition=Q(seq__gt=F("handled_seq")), name="board_unhandled"
            )
        ]


class RatingPoint(models.Model):
    """A point of the rating graph: the ratings after so many votes, in the run's judge order."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="points", db_index=False)
    votes = models.PositiveIntegerField()
    ratings = models.JSONField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "votes"], name="ratingpoint_votes")
        ]


class Checkpoint(models.Model):
    """The standings of a run's judges after a counted vote: an undo counts again from there."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="+", db_index=False)
    # The vote's entry.
    seq = models.BigIntegerField()
    standings = models.JSONField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "seq"], name="checkpoint_seq")
        ]


class Findings(models.Model):
    """What a run's votes and verdicts show, or a part of them; without data, being computed."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="findings", db_index=False)
    # As findings.filters writes it; empty for the whole run.
    part = models.CharField(max_length=300, blank=True, db_default="")
    # As findings.model.RunFindings stores it.
    data = models.JSONField(null=True)
    # As `voter_stats.VoteFigures`, of a whole run with very many votes.
    people = models.JSONField(null=True)
    # The voter by whose votes alone the first judge is ahead, which is told to leads alone.
    carrier = models.ForeignKey(Voter, models.SET_NULL, null=True, related_name="+")
    # The last ledger entry that is in it, and how long it took.
    seq = models.BigIntegerField(default=0)
    # Whether there are later ones.
    is_behind = models.BooleanField(default=True)
    seconds = models.FloatField(default=0)
    computed_at = models.DateTimeField(null=True)
    # Nobody computes it before; parts that nobody asks for any more are not computed again.
    not_before = models.DateTimeField(default=timezone.now)
    requested_at = models.DateTimeField(default=timezone.now)
    # Attempts since the last success, and how the last one failed; a killed one says nothing.
    attempts = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=200, blank=True)

    MOST_ATTEMPTS: ClassVar = 3

    class Meta:
        verbose_name_plural = "findings"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "part"], name="findings_once")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["requested_at"], condition=Q(is_behind=True), name="findings_behind"
            ),
            models.Index(fields=["-computed_at"], condition=Q(part=""), name="findings_newest"),
        ]

    @property
    def failure(self) -> str:
        """Why there are no figures, or no newer ones, once several attempts failed; else empty."""
        # Without an error, the last attempt may still be at work.
        if self.attempts < self.MOST_ATTEMPTS + (not self.error):
            return ""
        reason = self.error or "each attempt ended without a result, perhaps for lack of memory"
        return f"The figures could not be computed: {reason}."


# Of imports whose files wait for somebody to say what becomes of them.
UPLOADED = Q(state="draft") | Q(user__isnull=False, state__in=["refused", "failed"])


class Import(models.Model):
    """Files that were brought to become a run or join one, and how far that has come."""

    class State(models.TextChoices):
        DRAFT = "draft"
        WAITING = "waiting"
        READING = "reading"
        WRITING = "writing"
        DONE = "done"
        REFUSED = "refused"
        FAILED = "failed"

    UNFINISHED: ClassVar = (State.WAITING, State.READING, State.WRITING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # A bundle may bring its project.
    project = models.ForeignKey(Project, models.CASCADE, null=True, related_name="imports")
    # The run that is added to, or that is made; of a bundle, the first of its runs.
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="imports")
    # Of a run that is made; empty for one that is added to.
    name = models.CharField(max_length=200, blank=True)
    api_key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+")
    # Who brought it on the page. Its files are kept until it is done, so that it can be changed.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    # What came beside the files: `options`, `mapping`, `format`, and the files' names; of a bundle
    # that is being written, what was settled when it was begun; of one that was brought on the
    # page, its `columns` and the `choices` of its form.
    form = models.JSONField()
    is_bundle = models.BooleanField(default=False)
    # Asked for by a command, which is not bound by the limits of files that are posted.
    is_local = models.BooleanField(default=False)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    rows_read = models.PositiveIntegerField(default=0)
    # Of what was read and put together: how much is written, and how much there is to write.
    written = models.PositiveIntegerField(default=0)
    to_write = models.PositiveIntegerField(default=0)
    # What came of it, and for what was refused the status that says so over HTTP.
    report = models.JSONField(null=True)
    status = models.PositiveSmallIntegerField(null=True)
    detail = models.TextField(blank=True)
    requested_at = models.DateTimeField(default=timezone.now, editable=False)
    done_at = models.DateTimeField(null=True)
    # Whoever is at it holds the lease; one that ran out is anybody's. Attempts that wrote nothing
    # are counted: not for ever.
    lease = models.UUIDField(null=True)
    leased_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    # Called at every step, for whoever waits in the same process.
    on_progress: Callable[[], None] | None = None

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["requested_at"],
                condition=Q(state__in=["waiting", "reading", "writing"]),
                name="import_unfinished",
            ),
            models.Index(fields=["done_at"], name="import_done"),
            models.Index(
                fields=["requested_at"],
                condition=UPLOADED,
                name="import_uploaded",
            ),
        ]

    @property
    def can_be_changed(self) -> bool:
        """Whether its files are here, and nothing of them was written."""
        is_over = self.state in (self.State.REFUSED, self.State.FAILED)
        is_clean = not self.written and (not self.name or self.run_id is None)
        return self.state == self.State.DRAFT or (self.user_id is not None and is_over and is_clean)
