"""What is voted on, who votes, and the ledger of what was voted.

The database refuses what must not be: a second vote of one voter on one item, a vote about
nothing, two entries with one number.
"""

import secrets
import uuid
from functools import reduce
from hashlib import sha256
from operator import add, sub
from typing import ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, ForeignKey, Index, Q, UniqueConstraint
from django.db.models.functions import Cast, Coalesce, NullIf
from django.utils import timezone
from django.utils.functional import cached_property

from voting.items.choices import ANSWERS, ANSWERS_FOR, FIXED, MILLION, PASS_FLAG, VOTES_FOR
from voting.items.conversations import latest
from voting.items.kinds import LONGEST_CHOICE, Figure, Noun, kind_of
from voting.ledger import chain


class Identified(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        abstract = True


class Project(Identified):
    """A body of work with one ledger."""

    name = models.CharField(max_length=200)
    # The end of the sealed chain; only voting.ledger.ledger writes these two.
    head_seq = models.BigIntegerField(default=0, editable=False)
    head_hash = models.BinaryField(max_length=32, editable=False)
    # For how long raw replies of models are kept once a run is over; empty keeps them.
    keep_replies_days = models.PositiveIntegerField(null=True, blank=True)
    # Families of models by what their names start with, where the names do not tell.
    model_families = models.JSONField(default=dict, blank=True)

    class Meta:
        indexes: ClassVar = [
            Index(fields=["-created_at"], name="project_newest"),
            Index(
                fields=["keep_replies_days"],
                condition=Q(keep_replies_days__isnull=False),
                name="project_replies_removed",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: object, **kwargs: object) -> None:
        if not self.head_hash:
            self.head_hash = chain.genesis(self.id)
        super().save(*args, **kwargs)  # type: ignore[arg-type]

    @property
    def ledger_head(self) -> str:
        return bytes(self.head_hash).hex()


class Member(models.Model):
    """A person's role in a project: see voting.access.roles for what each role may do."""

    class Role(models.TextChoices):
        OWNER = "owner", "owner"
        EVALUATOR = "evaluator", "evaluator"
        CURATOR = "curator", "curator"
        VIEWER = "viewer", "viewer"

    project = ForeignKey(Project, models.CASCADE, related_name="members")
    user = ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=9, choices=Role, default=Role.VIEWER)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints: ClassVar = [
            UniqueConstraint(fields=["project", "user"], name="member_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role} of {self.project}"


class Identity(models.Model):
    """Whom the team's identity provider calls by this name: an account of this server."""

    user = ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name_plural = "identities"
        constraints: ClassVar = [
            UniqueConstraint(fields=["issuer", "subject"], name="identity_once"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"


class VoterPrompt(models.Model):
    """One version of a rubric; a version that was shown never changes."""

    project = ForeignKey(Project, models.PROTECT, related_name="voter_prompts")
    name = models.CharField(max_length=100, default="rubric")
    version = models.PositiveIntegerField(default=1)
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints: ClassVar = [
            UniqueConstraint(fields=["project", "name", "version"], name="voterprompt_version")
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class Picture(models.Model):
    """The rendering of one SVG: one row per content hash, whoever drew it and however often."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    source_sha256 = models.CharField(max_length=64, unique=True)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    leased_until = models.DateTimeField(null=True, blank=True)
    # Address of the PNG bytes: the judges were sent the same ones.
    png_sha256 = models.CharField(max_length=64, blank=True, db_index=True)
    width = models.PositiveIntegerField(default=0)
    height = models.PositiveIntegerField(default=0)
    renderer = models.CharField(max_length=60, blank=True)
    error = models.TextField(blank=True)
    # Screening refused the drawing, so no other try can bring a picture of it.
    is_refused = models.BooleanField(default=False)
    # What the drawing refers to outside itself: the picture is without it.
    left_out = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"{self.source_sha256[:12]} {self.state}"


class Inference(Identified):
    """One output of one generator for one prompt."""

    class Kind(models.TextChoices):
        SVG = "svg", "SVG"
        TEXT = "text", "text"
        CODE = "code", "code"
        IMAGE = "image", "image"

    project = ForeignKey(Project, models.PROTECT, related_name="inferences")
    prompt = models.TextField()
    output = models.TextField()
    kind = models.CharField(max_length=5, choices=Kind)
    generator = models.CharField(max_length=200)
    metadata = models.JSONField(default=dict, blank=True)
    tags = models.JSONField(default=list, blank=True)
    picture = ForeignKey(Picture, models.PROTECT, null=True, blank=True, related_name="inferences")

    def __str__(self) -> str:
        return f"{self.generator}: {latest(self.prompt)[:60]}"

    @property
    def language(self) -> str:
        """What code is written in, where that is known."""
        language = self.metadata.get("language", "") if isinstance(self.metadata, dict) else ""
        return language if isinstance(language, str) else ""


class Queue(Identified):
    """A list of things to vote on, and the rules of voting on them."""

    class Reveal(models.TextChoices):
        AFTER_EACH = "after_each", "after each vote"
        AT_END = "at_end", "at the end"
        NEVER = "never", "never"

    project = ForeignKey(Project, models.PROTECT, related_name="queues")

    class Kind(models.TextChoices):
        COMPARISON = "comparison", "which of two outputs is better"
        PASS_FLAG = "pass_flag", "pass or flag one output"
        CATEGORY = "category", "one category for each output"
        RATING = "rating", "a rating"
        LABELS = "labels", "a set of labels for each output"
        TEXT = "text", "a free text about each output"

    name = models.CharField(max_length=200)
    # What all its items are, and with what the votes on them are cast: see voting.items.kinds.
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.COMPARISON, editable=False)
    options = models.JSONField(default=dict, blank=True, editable=False)
    rubric = ForeignKey(VoterPrompt, models.PROTECT, related_name="queues")
    ballot = models.JSONField(default=list, help_text="Choices offered, see voting.items.choices.")
    votes_per_item = models.PositiveSmallIntegerField(default=1)
    overlap_share = models.FloatField(default=0.0)
    overlap_votes = models.PositiveSmallIntegerField(default=3)
    reveal = models.CharField(max_length=10, choices=Reveal, default=Reveal.AFTER_EACH)
    is_open = models.BooleanField(default=True)
    # Who fills the queue is not done: no more pairs for a voter now does not mean none later.
    more_may_come = models.BooleanField(default=False, editable=False)
    # Pretend votes only: what people vote and what a script makes up never meet in one run.
    is_simulated = models.BooleanField(default=False, editable=False)
    # Its run was deleted: what the ledger refers to is left of its items, without their texts.
    deleted_at = models.DateTimeField(null=True, editable=False)
    # While judges are tuned on one half of the prompts, the other is held out: those whose number
    # in `voting.items.order` is this or larger. Kept by voting.ballot.tuning.Halves.
    is_tuning = models.BooleanField(default=False, editable=False)
    held_out_from = models.BigIntegerField(null=True, editable=False)
    # Items with enough votes; kept by voting.ledger.counts.VoteCounts.
    done = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        constraints: ClassVar = [
            CheckConstraint(
                name="queue_overlap_is_a_share",
                condition=Q(overlap_share__gte=0) & Q(overlap_share__lte=1),
            ),
            CheckConstraint(
                name="queue_wants_votes",
                condition=Q(votes_per_item__gte=1) & Q(overlap_votes__gte=1),
            ),
        ]
        indexes: ClassVar = [Index(fields=["-created_at"], name="queue_newest")]

    def __str__(self) -> str:
        return f"{self.name} ({self.project.name})"

    @property
    def noun(self) -> Noun:
        """What its items are called on pages."""
        return kind_of(self).noun

    @property
    def figures(self) -> tuple[Figure, ...]:
        return kind_of(self).figures

    @cached_property
    def turned_prompts(self) -> frozenset[int]:
        """The prompts in the other half than `held_out_from` says: see voting.ballot.tuning."""
        changes = Entry.objects.filter(project=self.project_id, queue=self, kind="parameters")
        turned = changes.values_list("payload__tuning__turned", flat=True)
        return frozenset(number for numbers in turned for number in numbers or ())


def prompt_key(prompt: str) -> str:
    return sha256(prompt.encode()).hexdigest()


_COMPARED = F("votes") * reduce(add, map(F, ANSWERS))
_ALIKE = (F(VOTES_FOR[choice]) * F(ANSWERS_FOR[choice]) for choice in FIXED)
_DIFFERING = reduce(sub, _ALIKE, _COMPARED)
_DISAGREEMENT = Coalesce(
    Cast(_DIFFERING, models.FloatField()) / NullIf(Cast(_COMPARED, models.FloatField()), 0.0), -1.0
)


class Item(models.Model):
    """What is voted on: two outputs for one prompt, or one. It opens for voting when every judge's
    verdict is final.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    queue = ForeignKey(Queue, models.PROTECT, related_name="items", db_index=False)
    # 0, 1, 2 … without gaps, so that the last one tells how many there are.
    position = models.PositiveIntegerField()
    # What an import calls this pair; importing it again finds it by that.
    external_id = models.CharField(max_length=200, blank=True, db_default="")
    # Pairs of one prompt are no independent evidence: a hash of its text, or what an import says.
    prompt_key = models.CharField(max_length=200)
    a = ForeignKey(Inference, models.PROTECT, related_name="+")
    # The other output of a pair; an item of one output has none.
    b = ForeignKey(Inference, models.PROTECT, related_name="+", null=True, blank=True)
    votes_wanted = models.PositiveSmallIntegerField(default=1)
    # How many of these because people disagree; kept by voting.ledger.counts.
    extra_votes = models.PositiveSmallIntegerField(default=0, editable=False)
    # Sealed votes that count; kept by voting.ledger.counts. Then by what they chose, and of
    # those for a side how many were seen to stand left or right, and chose the left.
    votes = models.PositiveIntegerField(default=0, editable=False)
    votes_a = models.PositiveIntegerField(default=0, editable=False)
    votes_b = models.PositiveIntegerField(default=0, editable=False)
    votes_tie = models.PositiveIntegerField(default=0, editable=False)
    votes_both_bad = models.PositiveIntegerField(default=0, editable=False)
    votes_sided = models.PositiveIntegerField(default=0, editable=False)
    votes_left = models.PositiveIntegerField(default=0, editable=False)
    votes_pass = models.PositiveIntegerField(default=0, editable=False)
    votes_flag = models.PositiveIntegerField(default=0, editable=False)
    # Sums of the votes' values, in millionths, and of the squares of these.
    value_sum = models.PositiveBigIntegerField(default=0, editable=False)
    value_squares = models.PositiveBigIntegerField(default=0, editable=False)
    # How many judges answered so, baselines left aside; kept by judge_eval.ledger.projection.
    answers_a = models.PositiveIntegerField(default=0, editable=False)
    answers_b = models.PositiveIntegerField(default=0, editable=False)
    answers_tie = models.PositiveIntegerField(default=0, editable=False)
    answers_both_bad = models.PositiveIntegerField(default=0, editable=False)
    answers_wrong = models.PositiveIntegerField(default=0, editable=False)
    answers_pass = models.PositiveIntegerField(default=0, editable=False)
    answers_flag = models.PositiveIntegerField(default=0, editable=False)
    # Every answer set beside every vote: how many differ, and which share of all, -1 where there
    # is none. The database itself keeps them, as pairs are sorted by them.
    differing = models.GeneratedField(
        expression=_DIFFERING, output_field=models.IntegerField(), db_persist=True
    )
    disagreement = models.GeneratedField(
        expression=_DISAGREEMENT, output_field=models.FloatField(), db_persist=True
    )
    opened_at = models.DateTimeField(null=True, blank=True)
    # Why it is left out: a drawing that cannot be rendered, or a curator who excluded it.
    unusable = models.TextField(blank=True)
    # Its outputs, or one of them, are not here: votes on it came with an import, and nobody is
    # handed it.
    lacks_output = models.BooleanField(default=False, db_default=False, editable=False)
    # Where answers are ranked by their order: another prompt of one item has the same key, or the
    # next that opens gets it; both items are handed to the same voter.
    is_coupled = models.BooleanField(default=False, editable=False)
    # Of a queue opened for tuning: on which half it is. Kept by voting.ballot.tuning.Halves.
    is_held_out = models.BooleanField(default=False, db_default=False, editable=False)
    # Pairs are handed out by this number, the lowest first; see voting.items.order.
    turn = models.BigIntegerField(editable=False)

    class Meta:
        constraints: ClassVar = [
            UniqueConstraint(fields=["queue", "position"], name="item_position"),
            UniqueConstraint(
                fields=["queue", "external_id"],
                condition=~Q(external_id=""),
                name="item_external_id",
            ),
            CheckConstraint(name="item_of_two", condition=~Q(a=F("b"))),
            CheckConstraint(name="item_of_a_prompt", condition=~Q(prompt_key="")),
        ]
        indexes: ClassVar = [
            # Pairs that want votes, in the order in which they are handed out.
            Index(
                fields=["queue", "turn", "position"],
                condition=Q(opened_at__isnull=False, unusable="", votes__lt=F("votes_wanted")),
                name="item_turns",
            ),
            Index(fields=["queue", "prompt_key"], name="item_prompts"),
            # What is not ready or never will be is counted on every page, and is little.
            Index(fields=["queue"], condition=Q(opened_at__isnull=True), name="item_closed"),
            Index(fields=["queue"], condition=~Q(unusable=""), name="item_unusable"),
            Index(fields=["queue"], condition=Q(lacks_output=True), name="item_lacking"),
            Index(
                fields=["queue", "-disagreement", "-differing", "position"], name="item_disputed"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.queue_id}:{self.position}"

    @property
    def pair(self) -> tuple[Inference, Inference]:
        assert self.b is not None
        return self.a, self.b

    @property
    def outputs(self) -> list[Inference]:
        return [self.a] if self.b is None else [self.a, self.b]

    def displayed(self, left: str) -> list[Inference]:
        """Return the outputs as they stand on a page with this one on the left."""
        return self.outputs[::-1] if left == "B" else self.outputs

    @property
    def compared(self) -> int:
        """How many pairs of a judge's answer and a vote there are."""
        answers: int = sum(getattr(self, name) for name in ANSWERS)
        return self.votes * answers


class ApiKey(models.Model):
    """A key for scripts. Only its hash is kept, so it can be shown exactly once."""

    class Kind(models.TextChoices):
        """What a key's text begins with."""

        SCRIPT = "hj", "a script"
        MODEL = "gj_sk", "a model"
        PERSON = "gj_pat", "a person"

    class Scope(models.TextChoices):
        READ = "read", "read runs and results"
        VOTE = "vote", "vote as the key's own voter"
        VERDICTS = "verdicts", "see verdicts before voting"
        MANAGE = "manage", "make, start, stop, import and export runs"
        INGEST = "ingest", "log traces, as the key's own model"

    kind = models.CharField(max_length=6, choices=Kind, default=Kind.SCRIPT, editable=False)
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True, editable=False)
    secret_sha256 = models.CharField(max_length=64, editable=False)
    scopes = models.JSONField(default=list)
    project = ForeignKey(
        Project, models.CASCADE, null=True, blank=True, help_text="Empty: every project."
    )
    # Whose it is: it never does more than that person may.
    user = ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Invite(Identified):
    """A link that lets whoever holds it become a voter. The link is a signature of the row's id."""

    queue = ForeignKey(Queue, models.CASCADE, related_name="invites")
    label = models.CharField(max_length=100, blank=True)
    # Whoever joins by it belongs to this group: figures can be seen for each group.
    group = models.CharField(max_length=60, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    max_voters = models.PositiveIntegerField(null=True, blank=True)
    # Voters of the project already, whom another invite had let in; they take a place here too.
    guests: "models.ManyToManyField[Voter, models.Model]" = models.ManyToManyField(
        "Voter", related_name="+", blank=True, editable=False
    )

    def __str__(self) -> str:
        return self.label or f"invite to {self.queue_id}"

    @property
    def person(self) -> str:
        """Whom a personal link is for: it lets in one, and is labelled with the name."""
        return self.label if self.max_voters == 1 else ""

    @cached_property
    def joined(self) -> int:
        """How many voters it has let in; a list of invites counts them all at once."""
        return Voter.objects.filter(invite=self).count() + self.guests.count()


def new_pseudonym() -> str:
    return secrets.token_hex(8)


class Voter(Identified):
    """A person (or a key) in one project. The ledger knows only the pseudonym."""

    project = ForeignKey(Project, models.PROTECT, related_name="voters")
    pseudonym = models.CharField(max_length=16, default=new_pseudonym, editable=False)
    name = models.CharField(max_length=100, blank=True)
    # As the ledger says, for figures of a group; only voting.ledger.groups writes it.
    group = models.CharField(max_length=60, blank=True)
    # What an import calls this voter.
    external_id = models.CharField(max_length=200, blank=True, db_default="")
    # Weight of the voter's votes in a quality score, in millionths.
    reputation = models.PositiveIntegerField(default=MILLION)
    invite = ForeignKey(Invite, models.SET_NULL, null=True, blank=True, related_name="voters")
    user = ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    api_key = ForeignKey(ApiKey, models.SET_NULL, null=True, blank=True, related_name="voters")
    blocked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            UniqueConstraint(fields=["project", "pseudonym"], name="voter_pseudonym"),
            UniqueConstraint(
                fields=["project", "external_id"],
                condition=~Q(external_id=""),
                name="voter_external_id",
            ),
            UniqueConstraint(fields=["project", "user"], name="voter_per_user"),
            UniqueConstraint(fields=["project", "api_key"], name="voter_per_key"),
            CheckConstraint(name="voter_reputation_positive", condition=Q(reputation__gt=0)),
        ]

    def __str__(self) -> str:
        return self.name or self.pseudonym


class Assignment(models.Model):
    """A pair shown to a voter: leased for some minutes, and how often it was skipped."""

    voter = ForeignKey(Voter, models.CASCADE, related_name="assignments", db_index=False)
    item = ForeignKey(Item, models.CASCADE, related_name="assignments")
    leased_until = models.DateTimeField()
    skips = models.PositiveSmallIntegerField(default=0)
    # The ballot of the last skip: the same request again is not a second skip.
    skipped_by = models.UUIDField(null=True)

    class Meta:
        constraints: ClassVar = [UniqueConstraint(fields=["voter", "item"], name="assignment_once")]
        indexes: ClassVar = [
            Index(fields=["voter", "leased_until"], name="assignment_leased"),
            Index(fields=["voter"], condition=Q(skips__gt=0), name="assignment_skipped"),
        ]


class Exposure(models.Model):
    """When a voter saw an item's verdicts: votes after it are not blind."""

    voter = ForeignKey(Voter, models.CASCADE, related_name="+", db_index=False)
    item = ForeignKey(Item, models.CASCADE, related_name="+", db_index=False)
    seen_at = models.DateTimeField()
    # The first vote that was taken back afterwards: later ones are not blind, whatever clocks say.
    last_blind = models.BigIntegerField(null=True)

    class Meta:
        constraints: ClassVar = [UniqueConstraint(fields=["item", "voter"], name="exposure_once")]

    @classmethod
    def before_entry(cls) -> models.Exists:
        """Say of an entry that its voter had seen the verdicts before."""
        entry = models.OuterRef
        exposures = cls._default_manager.filter(
            Q(seen_at__lt=entry("at")) | Q(last_blind__lt=entry("id")),
            voter=entry("voter"),
            item=entry("item"),
        )
        return models.Exists(exposures)


class Flag(models.Model):
    """A voter's word that something is wrong with an item; it waits for a curator."""

    class Category(models.TextChoices):
        INCORRECT = "incorrect", "incorrect"
        UNSAFE = "unsafe", "unsafe"
        OFF_TOPIC = "off-topic", "off-topic"
        FORMAT = "format", "format"
        OTHER = "other", "other"

    item = ForeignKey(Item, models.PROTECT, related_name="flags")
    voter = ForeignKey(Voter, models.PROTECT, related_name="flags")
    category = models.CharField(max_length=10, choices=Category)
    comment = models.TextField(blank=True, max_length=2000)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints: ClassVar = [UniqueConstraint(fields=["voter", "item"], name="flag_once")]

    def __str__(self) -> str:
        return f"{self.category}: {self.item_id}"


# SQLite takes an index of what is no vote only for a query that says so: the kind that it asks for
# is not enough, and all votes of a project would be read.
NO_VOTE: Final = ~Q(kind="vote")


class Entry(models.Model):
    """One fact of a project's ledger. It is inserted unsealed; voting.ledger.ledger seals it.

    A sealed entry is never changed in anything its hash covers. `retracted`, `retracted_seq`,
    `retracted_after_reveal` and `excluded` are not covered: they say what later entries make of
    this one.
    """

    class Kind(models.TextChoices):
        VOTE = "vote"
        RETRACTION = "retraction"
        VERDICTS = "verdicts"
        DECISION = "decision"
        PARAMETERS = "parameters"
        ERASURE = "erasure"
        OBJECT = "object"

    # For a vote from the page this is the number of its ballot, so a ballot counts once.
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    project = ForeignKey(Project, models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=10, choices=Kind)
    at = models.DateTimeField()
    seq = models.BigIntegerField(null=True)
    hash = models.BinaryField(max_length=32, null=True)

    queue = ForeignKey(Queue, models.PROTECT, null=True, related_name="+", db_index=False)
    item = ForeignKey(Item, models.PROTECT, null=True, related_name="+")
    voter = ForeignKey(Voter, models.PROTECT, null=True, related_name="+", db_index=False)

    # A vote: a choice of the ballot, of which the empty one is a free text's. A vote that passes or
    # flags has a value in millionths, and a flag may have a category.
    choice = models.CharField(max_length=LONGEST_CHOICE, db_default="")
    value = models.PositiveIntegerField(null=True)
    category = models.CharField(max_length=60, db_default="")
    left_side = models.CharField(max_length=1, db_default="")
    rubric = ForeignKey(VoterPrompt, models.PROTECT, null=True, related_name="+", db_index=False)
    elapsed_ms = models.PositiveIntegerField(null=True)
    reputation = models.PositiveIntegerField(null=True)
    unblinded = models.BooleanField(db_default=False)
    simulated = models.BooleanField(db_default=False)
    # The chain holds only SHA-256(salt || text): erasing a person empties the other two.
    comment_sha256 = models.CharField(max_length=64, db_default="")
    comment = models.TextField(db_default="")
    salt = models.CharField(max_length=32, db_default="")
    # Further tasks answered with the vote (a category, a rating, an explanation). The payload
    # holds SHA-256(salt || canonical labels); erasing a person empties this too.
    labels = models.JSONField(null=True)

    # A retraction, or a decision about one entry.
    target = ForeignKey("self", models.PROTECT, null=True, related_name="+", db_index=False)
    retracted = models.BooleanField(db_default=False)
    retracted_seq = models.BigIntegerField(null=True)
    # A blind vote of a person who then saw the verdicts: judges are still measured by it.
    retracted_after_reveal = models.BooleanField(db_default=False)
    # A vote that a curator's decision on its item or its voter excludes, as long as that stands.
    excluded = models.BooleanField(db_default=False)

    # Every other kind says what it has to say here.
    payload = models.JSONField(null=True)

    class Meta:
        verbose_name = "ledger entry"
        verbose_name_plural = "ledger entries"
        # A check that comes out NULL lets the row in: what must be there is said to be there.
        constraints: ClassVar = [
            UniqueConstraint(fields=["project", "seq"], name="entry_seq"),
            UniqueConstraint(
                fields=["voter", "item"],
                condition=Q(kind="vote", retracted=False),
                name="one_vote_per_item",
            ),
            UniqueConstraint(
                fields=["target"], condition=Q(kind="retraction"), name="one_retraction_per_vote"
            ),
            UniqueConstraint(
                fields=["target"], condition=Q(kind="decision"), name="one_reversal_per_decision"
            ),
            CheckConstraint(
                name="entry_sealed_whole",
                condition=Q(seq__isnull=True, hash__isnull=True)
                | Q(seq__isnull=False, seq__gt=0, hash__isnull=False),
            ),
            CheckConstraint(
                name="entry_shape",
                condition=Q(
                    Q(kind="vote", voter__isnull=False, rubric__isnull=False, item__isnull=False)
                    & (~Q(choice="") | Q(payload__isnull=False))
                    & (Q(value__isnull=True) | Q(value__lte=MILLION) & Q(choice__in=PASS_FLAG))
                )
                | Q(kind="retraction", voter__isnull=False, target__isnull=False)
                | Q(kind="verdicts", item__isnull=False, payload__isnull=False)
                | Q(
                    kind__in=["decision", "parameters", "erasure", "object"], payload__isnull=False
                ),
            ),
        ]
        indexes: ClassVar = [
            Index(fields=["project", "at"], condition=Q(seq__isnull=True), name="entry_unsealed"),
            Index(
                fields=["queue", "seq"],
                condition=Q(kind="vote", seq__isnull=False),
                name="entry_sealed_votes",
            ),
            # Quality scores take votes in the order of their own times.
            Index(
                fields=["project", "at", "seq"],
                condition=Q(kind="vote", seq__isnull=False),
                name="entry_votes_in_time",
            ),
            Index(
                fields=["queue", "item", "seq"], condition=Q(kind="verdicts"), name="entry_verdicts"
            ),
            Index(
                fields=["project", "seq"], condition=Q(kind="parameters"), name="entry_parameters"
            ),
            Index(fields=["project", "item"], condition=Q(kind="decision"), name="entry_decisions"),
            # What an audit is narrowed to is read from its newest entry on. Votes have indexes of
            # their own above, so the others cost them nothing.
            Index(fields=["project", "kind", "seq"], condition=NO_VOTE, name="entry_kinds"),
            Index(fields=["queue", "seq"], condition=NO_VOTE, name="entry_of_queue"),
            Index(fields=["project", "at", "seq"], condition=NO_VOTE, name="entry_in_time"),
            Index(
                fields=["voter", "seq"],
                condition=Q(voter__isnull=False, seq__isnull=False),
                name="entry_of_voter",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.seq or 'unsealed'}"
