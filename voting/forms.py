"""Input of the voting pages, checked before any service is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django import forms

from voting.choices import POSITIONS, Position
from voting.models import Flag

LONGEST_BALLOT = 2000
LONGEST_LOOK_MS = 24 * 60 * 60 * 1000


class JoinForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        required=False,
        label="Your name (optional)",
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )


class InviteForm(forms.Form):
    label = forms.CharField(max_length=100, required=False, label="For whom (optional)")
    days = forms.TypedChoiceField(
        choices=[("1", "a day"), ("7", "a week"), ("30", "30 days"), ("", "until it is withdrawn")],
        coerce=int,
        empty_value=None,
        required=False,
        initial="30",
        label="Lets people in for",
    )
    max_voters = forms.IntegerField(
        min_value=1, max_value=100_000, required=False, label="At most so many people (optional)"
    )

    def expires_at(self, now: datetime) -> datetime | None:
        days = self.cleaned_data["days"]
        return None if days is None else now + timedelta(days=days)


class VoteInvalid(ValueError):
    """What was posted is no vote; the text names the field and what is wrong with it."""


@dataclass(frozen=True)
class VoteInput:
    ballot: str
    position: Position
    elapsed_ms: int | None


def read_vote(posted: Mapping[str, str]) -> VoteInput:
    """Read what a button of the voting page posts.

    By hand: a form copies its fields for each request, which took longer than all else here.
    """
    ballot = posted.get("ballot", "")
    if not 0 < len(ballot) <= LONGEST_BALLOT:
        raise VoteInvalid("ballot: there is none, or it is too long; reload the page")
    position = _POSITION.get(posted.get("choice", ""))
    if position is None:
        raise VoteInvalid(f"choice: not one of {', '.join(POSITIONS)}")
    return VoteInput(ballot, position, _elapsed(posted.get("elapsed_ms", "")))


_POSITION: dict[str, Position] = {position: position for position in POSITIONS}


def _elapsed(text: str) -> int | None:
    """Read a clock of somebody else's: kept when it makes sense, never a reason to lose a vote."""
    if not text.isdecimal() or len(text) > 9:
        return None
    return min(int(text), LONGEST_LOOK_MS)


class PairForm(forms.Form):
    ballot = forms.CharField(max_length=LONGEST_BALLOT)


class UndoForm(forms.Form):
    # What the page calls this undo, so that the same request again is not a second one.
    undo = forms.UUIDField(required=False)


class FlagForm(PairForm):
    category = forms.ChoiceField(choices=Flag.Category)
    comment = forms.CharField(max_length=2000, required=False)


def first_error(form: forms.Form) -> str:
    """Return one line that names the field and what is wrong with it."""
    name, errors = next(iter(form.errors.items()))
    return f"{name}: {errors[0]}"
