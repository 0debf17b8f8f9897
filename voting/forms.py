"""Input of the voting pages, checked before any service is called."""

from datetime import datetime, timedelta

from django import forms

from voting.models import Flag


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


class UndoForm(forms.Form):
    # What the page calls this undo, so that the same request again is not a second one.
    undo = forms.UUIDField(required=False)


class FlagForm(forms.Form):
    category = forms.ChoiceField(choices=Flag.Category)
    comment = forms.CharField(max_length=2000, required=False)
