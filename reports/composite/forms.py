"""A composite as a form with a row for each component, or as JSON: both say the same config."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self, TypeAlias

from django import forms
from django.forms.boundfield import BoundField
from django.http import QueryDict
from django.utils.html import format_html

from humanjudge.http import Context
from humanjudge.lib import strict_json
from humanjudge.lib.text import excerpt
from humanjudge.lib.validation import ConfigError, ConfigInvalid
from judge_eval.models import Run
from judge_eval.pages.run_form import LINES, shortened
from reports.composite.config import CompositeConfig, source_in_words
from reports.composite.sources import offered, read_config

Data: TypeAlias = Mapping[str, Any]

CHECKS: Final = {"win_rate": "the share of votes won", "pass_rate": "the share of passes"}
_GROUPS: Final = {
    **dict.fromkeys(("win_rate", "pass_rate"), "Votes"),
    **dict.fromkeys(("judge_score", "judge_wins", "agreement"), "Judges"),
    "label": "Further tasks",
}
# Of these one says which values count how much.
_RULED: Final = ("judge_score", "label", "metadata")
# By the end of a mistake's path; what else is wrong with a source stands at the source.
_FIELDS: Final = {
    **{field: field for field in ("weight", "reason", "equals")},
    "range": "low",
    "range[0]": "low",
    "range[1]": "high",
}
_TEXT: Final = {"autocomplete": "off"}
_NUMBER: Final = _TEXT | {"inputmode": "decimal"}


class JsonForm(forms.Form):
    config = forms.CharField(max_length=50_000, widget=forms.Textarea(attrs=LINES | {"rows": 24}))
    composite: CompositeConfig | None = None
    is_json: Final = True

    def __init__(self, run: Run, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix, self._run = "", run

    def clean_config(self) -> str:
        text: str = self.cleaned_data["config"]
        try:
            self.composite = read_config(self._run, strict_json.loads(text))
        except strict_json.NotJson as error:
            raise forms.ValidationError(f"It is {error}.") from error
        except ConfigInvalid as invalid:
            raise forms.ValidationError(shortened(invalid.errors)) from invalid
        return text


class ComponentForm(forms.Form):
    """The fields of one row; what may be in them is said by the config alone."""

    name = forms.CharField(widget=forms.TextInput(_TEXT))
    weight = forms.CharField(required=False, widget=forms.TextInput(_NUMBER))
    source = forms.ChoiceField(label="What it is", required=False)
    low = forms.CharField(label="0 is", required=False, widget=forms.TextInput(_NUMBER))
    high = forms.CharField(label="1 is", required=False, widget=forms.TextInput(_NUMBER))
    equals = forms.CharField(
        label="or 1 where it is", required=False, widget=forms.TextInput(_TEXT)
    )
    reason = forms.CharField(
        label="Why it counts so much", required=False, widget=forms.TextInput(_TEXT)
    )
    gate = forms.BooleanField(label="Gate: below 1 the composite is 0", required=False)


class CompositeForm(forms.Form):
    label = forms.CharField(
        label="Name of the composite", required=False, widget=forms.TextInput(_TEXT)
    )
    check = forms.ChoiceField(label="Checked against", choices=[*CHECKS.items()])
    composite: CompositeConfig | None = None
    is_json: Final = False

    def __init__(self, run: Run, rows: Sequence[Data], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix, self._run, self._places = "", run, range(len(rows))
        choices = _choices(offered(run), [row.get("source", "") for row in rows])
        for place, row in enumerate(rows):
            self.initial.update({f"{name}-{place}": value for name, value in row.items()})
            of_row = ComponentForm()
            of_row.fields["source"].choices = choices  # type: ignore[attr-defined]
            for name, field in of_row.fields.items():
                words, number = field.label or name.capitalize(), place + 1
                hidden = '{}<span class="visually-hidden"> of component {}</span>'
                field.label = format_html(hidden, words, number)
                self.fields[f"{name}-{place}"] = field

    @classmethod
    def of_data(cls, run: Run, data: Data) -> Self:
        """Return the form that says what a config says."""
        names = dict.fromkeys([*data["weights"], *data["gates"]])
        initial = {"label": data.get("label", ""), "check": data["check"]}
        return cls(run, [_row_of(name, data) for name in names], initial=initial)

    @classmethod
    def changed(cls, run: Run, post: QueryDict, change: str) -> Self:
        """Return the form with a row more, or without one, and all else as it was sent."""
        rows, (kind, _, place) = rows_of(post), change.partition("-")
        focus = len(rows)
        if kind == "remove" and place.isdecimal():
            del rows[int(place) : int(place) + 1]
            focus = min(int(place), len(rows) - 1)
        else:
            rows.append({})
        form = cls(run, rows, initial={name: post.get(name, "") for name in ("label", "check")})
        if field := form.fields.get(f"name-{focus}"):
            field.widget.attrs["autofocus"] = True
        return form

    @property
    def rows(self) -> list[dict[str, BoundField]]:
        names = ComponentForm.base_fields
        return [{name: self[f"{name}-{place}"] for name in names} for place in self._places]

    def as_data(self) -> Context:
        """Return the config that the form says, right or wrong."""
        got = self.cleaned_data
        data: Context = {"label": got["label"]} if got.get("label") else {}
        data |= {"weights": {}, "gates": [], "sources": {}, "check": got.get("check")}
        for row in self._cleaned_rows():
            name, weight = row["name"], row["weight"]
            data["sources"][name] = _source(row)
            if row["gate"]:
                data["gates"].append(name)
            if weight or row["reason"] or not row["gate"]:
                counts = {"weight": _number(weight)} if weight else {}
                data["weights"][name] = counts | {"reason": row["reason"]}
        return data

    def clean(self) -> None:
        names, data = [row["name"] for row in self._cleaned_rows()], self.as_data()
        try:
            self.composite = read_config(self._run, data)
        except ConfigInvalid as invalid:
            shown = {excerpt(name, 60)[1:-1] or "''": n for n, name in enumerate(names)}
            places = {f"{part}.{name}": n for name, n in shown.items() for part in data}
            places |= {f"gates[{n}]": names.index(gate) for n, gate in enumerate(data["gates"])}
            self._show(invalid.errors, places)
        for place, name in enumerate(names):
            if name and name in names[:place]:
                self.add_error(f"name-{place}", "Another component has this name.")

    def _cleaned_rows(self) -> list[Context]:
        got, names = self.cleaned_data, ComponentForm.base_fields
        return [{name: got.get(f"{name}-{place}", "") for name in names} for place in self._places]

    def _show(self, errors: Sequence[ConfigError], places: Mapping[str, int]) -> None:
        """Put each error at the field that it is about, unless that was complained of."""
        complained, said = set(self.errors), set[tuple[str, str]]()
        for error in errors:
            field = _field_of(error.path, places)
            # A name that is none is one in the weights, the gates and the sources.
            once = (field.rpartition("-")[2], error.message)
            if field not in self.fields:
                self.add_error(None, f"{error}.")
            elif field not in complained and once not in said:
                self.add_error(field, f"{error.message[:1].upper()}{error.message[1:]}.")
            said.add(once)


def rows_of(post: QueryDict) -> list[Context]:
    """Return what was sent in each row, as it was sent."""
    number = sum(name.startswith("source-") for name in post)
    names = ComponentForm.base_fields
    return [{name: post.get(f"{name}-{n}", "") for name in names} for n in range(number)]


def _row_of(name: str, data: Data) -> Context:
    """Return what stands in the row of a component of a config."""
    source, counts = data["sources"][name], data["weights"].get(name, {})
    row = {"name": name, "source": _key(source), "gate": name in data["gates"]}
    row |= {"reason": counts.get("reason", "")}
    written = {key: _written(value) for key, value in (counts | source).items()}
    row |= {key: written[key] for key in ("weight", "equals") if key in written}
    return row | dict(zip(("low", "high"), map(_written, source.get("range", ())), strict=False))


def _choices(sources: Sequence[Data], chosen: Sequence[str]) -> list[tuple[str, Any]]:
    """Return what a component may be, in groups, and what was chosen of what is not there."""
    groups: dict[str, dict[str, str]] = {}
    for source in sources:
        group = groups.setdefault(_GROUPS.get(source["from"], "Outputs"), {})
        group[_key(source)] = source_in_words(source)
    known = {key for group in groups.values() for key in group}
    if others := {key: key for key in chosen if key and key not in known}:
        groups["Others"] = others
    return [(title, [*group.items()]) for title, group in groups.items()]


def _key(source: Data) -> str:
    return json.dumps(
        {key: source[key] for key in ("from", "judge", "task", "key") if key in source}
    )


def _source(row: Data) -> object:
    """Return the source that a row says; what it takes no rule for has none."""
    source = _parsed(row["source"])
    if not isinstance(source, dict) or source.get("from") not in _RULED:
        return source
    if row["low"] or row["high"]:
        source["range"] = [_number(row["low"]), _number(row["high"])]
    if row["equals"] and source["from"] != "judge_score":
        source["equals"] = _scalar(row["equals"])
    return source


def _parsed(text: str) -> object:
    try:
        return strict_json.loads(text)
    except strict_json.NotJson:
        return text


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _scalar(text: str) -> object:
    value = _parsed(text)
    return value if isinstance(value, str | int | float) else text


def _written(value: object) -> str:
    """Write a value so that `_scalar` reads the same: text in quotes where it looks like another.

    Examples
    --------
    >>> [_written(value) for value in ("yes", "5", 5.0, True)]
    ['yes', '"5"', '5', 'true']
    """
    if isinstance(value, str) and value and _scalar(value.strip()) == value:
        return value
    return json.dumps(value, ensure_ascii=False).removesuffix(".0")


def _field_of(path: str, places: Mapping[str, int]) -> str:
    """Return the field that a mistake is about, by the beginnings of paths of each row."""
    for start in sorted(places, key=len, reverse=True):
        if path == start or path.startswith(f"{start}."):
            rest, place = path[len(start) + 1 :], places[start]
            if rest:
                return f"{_FIELDS.get(rest, 'source')}-{place}"
            return f"{'low' if start.startswith('sources') else 'name'}-{place}"
    return path
