"""The parameters of a project's quality score, and the entries of the ledger that set them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from pydantic import Field

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import INTEGER, Part, validated
from reports.quality.score import MICROSECONDS, Rule, Unit, half_life, microseconds
from voting.access.members import OF_A_PERSON
from voting.ledger.counts import OF_PEOPLE
from voting.ledger.ledger import Fact
from voting.ledger.scheduler import nudge
from voting.models import Entry, Project, Voter

# Of a `parameters` entry: what it holds for quality scores.
KEY: Final = "quality"
# Today's reputations by pseudonym, in millionths, for votes that were sealed before.
REPUTATIONS: Final = "reputations"
Rate = Annotated[float, Field(ge=1e-6, le=1000)]
# Which flags put an item before the curators: those of two people or one as unsafe, or all with a
# reason, which is a category or a comment, or all.
FlagsToReview: TypeAlias = Literal["two_or_unsafe", "with_reason", "all", "none"]


class Parameters(Part):
    """All that a project's quality score and its review list depend on, beside the votes."""

    decay_rate: Rate = 0.01
    decay_unit: Unit = "second"
    initial_score: Annotated[float, Field(ge=0, le=1)] = 0.5
    # Seconds: votes that come within so many after the first are one batch.
    batch_window: Annotated[float, Field(ge=0, le=30 * 86_400)] = 0.0
    # Votes in [0, 1] never vary by more than 0.25.
    critical_variance: Annotated[float, Field(gt=0, lt=0.25)] = 0.05
    min_votes: Annotated[int, Field(ge=1, le=1000), INTEGER] = 3
    flags_to_review: FlagsToReview = "two_or_unsafe"

    @property
    def half_life(self) -> float:
        """In seconds."""
        return half_life(self.decay_rate, self.decay_unit)

    def rule(self, project: Project) -> Rule:
        return Rule(
            initial=self.initial_score,
            rate=self.decay_rate,
            unit=self.decay_unit,
            window=round(self.batch_window * MICROSECONDS),
            start=microseconds(project.created_at),
        )


DEFAULT: Final = Parameters()


class Preset(NamedTuple):
    """A value of lambda that a form offers, and for what it is good."""

    rate: float
    unit: Unit
    remembers: str
    remark: str = ""


PRESETS: Final = (
    Preset(0.01, "second", "minutes", ", for live voting"),
    Preset(0.1, "day", "weeks"),
    Preset(0.01, "day", "months"),
)
# Where a person makes a project; by API DEFAULT holds.
SUGGESTED: Final = Parameters.model_validate(
    {"decay_rate": float(OF_A_PERSON["decay_rate"]), "decay_unit": OF_A_PERSON["decay_unit"]}
)


def payload_of(parameters: Parameters) -> JsonObject:
    """Return what an entry holds: the chain takes no floats, so they are their texts."""
    return {KEY: {n: repr(v) if isinstance(v, float) else v for n, v in parameters}}


def parameters_in(payload: JsonObject) -> Parameters:
    """Return what an entry says; what it does not say is as by default.

    So is all of it where it makes no sense: a bundle from elsewhere may hold anything.
    """
    content = payload[KEY]
    try:
        return Parameters(**{n: type(v)(content[n]) for n, v in DEFAULT if n in content})
    except (TypeError, ValueError):
        return DEFAULT


def reputations_in(payload: JsonObject) -> dict[str, int]:
    """Return the reputations by pseudonym that an entry gives to earlier votes."""
    content = payload[REPUTATIONS]
    numbers = content.items() if isinstance(content, Mapping) else ()
    return {name: number for name, number in numbers if isinstance(number, int) and number > 0}


def settings_of(project: Project) -> QuerySet[Entry]:
    """Return the entries that set parameters, the newest first; those not sealed yet are first."""
    entries = Entry.objects.filter(
        project=project, kind=Entry.Kind.PARAMETERS, payload__has_key=KEY
    )
    return entries.order_by(F("seq").desc(nulls_first=True), "-at", "-id")


def parameters_of(project: Project, batch: Sequence[Fact] = ()) -> Parameters:
    """Return the parameters that hold for a project, or behind a batch that is being sealed."""
    payloads = [fact.payload for fact in batch if is_settings(fact)]
    sealed = settings_of(project).filter(seq__isnull=False).values_list("payload", flat=True)
    last = payloads[-1] if payloads else sealed.first()
    return parameters_in(last) if last else DEFAULT


def is_settings(entry: Fact) -> bool:
    return entry.kind == Entry.Kind.PARAMETERS and KEY in (entry.payload or {})


def change(
    project: Project, changes: JsonObject, actor: Voter, *, apply_reputations: bool = False
) -> Entry | None:
    """Let other parameters hold, for all votes there are: an entry that sealing folds anew by.

    `apply_reputations` gives today's reputations to votes that were sealed with others. Raises
    ConfigInvalid for values that cannot be; returns None where nothing changes.
    """
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        last = settings_of(project).values_list("payload", flat=True).first()
        before = parameters_in(last) if last else DEFAULT
        after = validated(Parameters, before.model_dump() | dict(changes))
        if after == before and not apply_reputations:
            return None
        payload = payload_of(after)
        if apply_reputations:
            # In millionths, of voters who had another with some vote.
            votes = Entry.objects.filter(OF_PEOPLE, project=project)
            changed_votes = votes.exclude(reputation=F("voter__reputation"))
            voters = Voter.objects.filter(pk__in=changed_votes.values("voter"))
            numbers = voters.order_by("pseudonym").values_list("pseudonym", "reputation")
            payload[REPUTATIONS] = dict(numbers)
        transaction.on_commit(partial(nudge, project.pk))
        kind = Entry.Kind.PARAMETERS
        return Entry.objects.create(
            project=project, kind=kind, at=timezone.now(), voter=actor, payload=payload
        )
