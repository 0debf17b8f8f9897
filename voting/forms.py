"""Input of the voting pages, checked before any service is called."""

from __future__ import annotations

from django import forms

from voting.models import Flag
from voting.sides import POSITIONS

LONGEST_LOOK_MS = 24 * 60 * 60 * 1000


class JoinForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        required=False,
        label="Your name (optional)",
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )


class VoteForm(forms.Form):
    ballot = forms.CharField(max_length=2000)
    choice = forms.ChoiceField(choices=[(position, position) for position in POSITIONS])
    # A clock of somebody else's: kept when it makes sense, never a reason to lose a vote.
    elapsed_ms = forms.CharField(required=False)

    def clean_elapsed_ms(self) -> int | None:
        text = self.cleaned_data["elapsed_ms"]
        if not text.isdecimal() or len(text) > 9:
            return None
        return min(int(text), LONGEST_LOOK_MS)


class PairForm(forms.Form):
    ballot = forms.CharField(max_length=2000)


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
