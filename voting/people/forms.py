"""Input of the voting pages, checked before any service is called."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from voting.ledger.decisions import LONGEST_GROUP, group_name
from voting.models import Flag, Project

LONGEST_NAME = 100
MOST_PERSONAL_LINKS = 200


def completed(posted: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {name: v for name, v in usual.items() if v is not None} | {n: posted[n] for n in posted}


class JoinForm(forms.Form):
    name = forms.CharField(
        max_length=LONGEST_NAME,
        required=False,
        label="Your name (optional)",
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )


class _ProjectSelect(forms.Select):
    """A list of projects, which may be a thousand: Django would make each with a template."""

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        offered: Any = self.choices
        labels = {"": offered.field.empty_label} if offered.field.empty_label else {}
        labels |= {str(key): title for key, title in offered.queryset.values_list("pk", "name")}
        selected_marks = {key: SafeString(" selected") for key in self.format_value(value)}
        options = format_html_join(
            "\n",
            '<option value="{}"{}>{}</option>',
            ((key, selected_marks.get(key, ""), title) for key, title in labels.items()),
        )
        about = flatatt(self.build_attrs(self.attrs, {"name": name, **(attrs or {})}))
        return format_html("<select{}>\n{}\n</select>", about, options)


class ProjectField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """One of the projects that its form offers, which may be a thousand."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Project.objects.none(), required=False, widget=_ProjectSelect, **options)


class GroupField(forms.CharField):
    """The name of a voter group; the page offers the known ones as the list `voter-groups`."""

    def __init__(self, **options: Any) -> None:
        suggested = forms.TextInput(attrs={"list": "voter-groups", "autocomplete": "off"})
        super().__init__(max_length=LONGEST_GROUP, required=False, widget=suggested, **options)

    def clean(self, value: Any) -> str:
        try:
            return group_name(super().clean(value))
        except ValueError as odd:
            raise forms.ValidationError(str(odd)) from odd


class _InvitingForm(forms.Form):
    group = GroupField(
        label="Voter group (optional)",
        help_text="The board has figures for each group. Its name stays in the ledger for good: "
        "write what people do, not who they are.",
    )
    days = forms.TypedChoiceField(
        choices=[("1", "a day"), ("7", "a week"), ("30", "30 days"), ("", "until it is withdrawn")],
        coerce=int,
        empty_value=None,
        required=False,
        initial="30",
        label="Valid for",
    )

    def expires_at(self, now: datetime) -> datetime | None:
        days = self.cleaned_data["days"]
        return None if days is None else now + timedelta(days=days)


class InviteForm(_InvitingForm):
    label = forms.CharField(max_length=100, required=False, label="For whom (optional)")
    max_voters = forms.IntegerField(
        min_value=1, max_value=100_000, required=False, label="Limit (people)"
    )
    field_order = ("label", "group", "days", "max_voters")


class PersonalInvitesForm(_InvitingForm):
    names = forms.CharField(
        max_length=MOST_PERSONAL_LINKS * (LONGEST_NAME + 2),
        label="Names, one per line",
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    field_order = ("names", "group", "days")

    def clean_names(self) -> list[str]:
        names = [name for line in self.cleaned_data["names"].splitlines() if (name := line.strip())]
        if too_long := [place for place, name in enumerate(names, 1) if len(name) > LONGEST_NAME]:
            raise forms.ValidationError(
                f"Name {too_long[0]} is longer than {LONGEST_NAME} characters."
            )
        if len(names) > MOST_PERSONAL_LINKS:
            raise forms.ValidationError(f"At most {MOST_PERSONAL_LINKS} names at once.")
        if twice := [name for name, number in Counter(names).items() if number > 1]:
            raise forms.ValidationError(f"The name {twice[0]} is listed twice.")
        return names


class UndoForm(forms.Form):
    # What the page calls this undo, so that the same request again is not a second one.
    undo = forms.UUIDField(required=False)
    # Which vote, instead of the latest one.
    vote = forms.UUIDField(required=False)


class FlagForm(forms.Form):
    category = forms.ChoiceField(choices=Flag.Category)
    comment = forms.CharField(max_length=2000, required=False)
