import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self, TypeAlias

from django import forms
from django.forms.boundfield import BoundField
from django.http import QueryDict
from django.utils.html import format_html

from humanjudge.core import strict_json
from humanjudge.core.http import Context
from humanjudge.core.validation import ConfigError, ConfigInvalid
from judge_eval.models import Run
from reports.composite.config import LONGEST_NAME, NAME, CompositeConfig, source_in_words
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
# A mistake in a row, and where its field is not called as the end of the path is.
_IN_ROW: Final = re.compile(r"(?:weights|sources)\.c(\d+)\.?(.*)")
_FIELDS: Final = {"": "low", "range": "low", "range[0]": "low", "range[1]": "high"}
_TEXT: Final = {"autocomplete": "off"}
_NUMBER: Final = _TEXT | {"inputmode": "decimal"}


def _text(label: str = "", attrs: dict[str, str] = _TEXT) -> forms.CharField:
    return forms.CharField(label=label, required=False, widget=forms.TextInput(attrs))


class ComponentForm(forms.Form):
    """The fields of one row; what may be in them is said by the config alone."""

    name = forms.RegexField(
        NAME,
        max_length=LONGEST_NAME,
        widget=forms.TextInput(_TEXT),
        error_messages={
            "invalid": "Must be plain words on one line.",
            "max_length": "Has %(show_value)d characters, the most is %(limit_value)d.",
        },
    )
    weight = _text("Weight", _NUMBER)
    source = forms.ChoiceField(label="What it is", required=False)
    low = _text("0 is", _NUMBER)
    high = _text("1 is", _NUMBER)
    equals = _text("or 1 where it is")
    reason = _text("Why it counts so much")
    gate = forms.BooleanField(label="Must pass, or the output counts 0", required=False)


COLUMNS: Final = tuple(ComponentForm.base_fields)


class CompositeForm(forms.Form):
    label = _text("Name of the composite")
    check = forms.ChoiceField(label="Checked against", choices=[*CHECKS.items()])
    composite: CompositeConfig | None = None

    def __init__(self, run: Run, rows: Sequence[Data], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix, self._run, self._rows = "", run, rows
        choices = _choices(offered(run), [row.get("source", "") for row in rows])
        for place, row in enumerate(rows):
            self.initial.update({f"{name}-{place}": value for name, value in row.items()})
            of_row = ComponentForm()
            of_row.fields["source"].choices = choices  # type: ignore[attr-defined]
            for name, field in of_row.fields.items():
                hidden = '{}<span class="visually-hidden"> of component {}</span>'
                field.label = format_html(hidden, field.label or name.capitalize(), place + 1)
                self.fields[f"{name}-{place}"] = field

    @classmethod
    def of_data(cls, run: Run, data: Data) -> Self:
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
        return [{name: self[f"{name}-{n}"] for name in COLUMNS} for n in range(len(self._rows))]

    def as_data(self, names: Sequence[str] = ()) -> Context:
        """Return the config that was sent, right or wrong; `names` stand for those of its rows."""
        label = self.data.get("label", "").strip()
        data: Context = {"label": label} if label else {}
        data |= {"weights": {}, "gates": [], "sources": {}, "check": self.data.get("check")}
        for place, row in enumerate(self._rows):
            name = names[place] if names else row["name"]
            data["sources"][name] = _source(row)
            if row["gate"]:
                data["gates"].append(name)
            if row["weight"] or row["reason"] or not row["gate"]:
                counts = {"weight": _number(row["weight"])} if row["weight"] else {}
                data["weights"][name] = counts | {"reason": row["reason"]}
        return data

    def clean(self) -> None:
        names = [row["name"] for row in self._rows]
        for place, name in enumerate(names):
            if name and name in names[:place]:
                self.add_error(f"name-{place}", "Another component has this name.")
        complained = set(self.errors)
        try:
            # Under numbers for names, every mistake tells its row.
            read_config(self._run, self.as_data([f"c{place}" for place in range(len(names))]))
        except ConfigInvalid as invalid:
            for error in invalid.errors:
                self._show(error, complained)
        if not self.errors:
            self.composite = read_config(self._run, self.as_data())

    def _show(self, error: ConfigError, complained: Collection[str]) -> None:
        """Put an error at the field that it is about, unless that was complained of."""
        field = error.path
        if place := _IN_ROW.fullmatch(field):
            name = _FIELDS.get(place[2], place[2])
            field = f"{name if name in COLUMNS else 'source'}-{place[1]}"
        if field not in self.fields:
            self.add_error(None, f"{error}.")
        elif field not in complained:
            self.add_error(field, f"{error.message[:1].upper()}{error.message[1:]}.")


def rows_of(post: QueryDict) -> list[Context]:
    number = sum(name.startswith("source-") for name in post)
    return [{c: post.get(f"{c}-{n}", "").strip() for c in COLUMNS} for n in range(number)]


def _row_of(name: str, data: Data) -> Context:
    source, counts = data["sources"][name], data["weights"].get(name, {})
    row = {"name": name, "source": _key(source), "gate": name in data["gates"]}
    row |= {"reason": counts.get("reason", "")}
    texts = {key: _scalar_text(value) for key, value in (counts | source).items()}
    row |= {key: texts[key] for key in ("weight", "equals") if key in texts}
    ends = map(_scalar_text, source.get("range", ()))
    return row | dict(zip(("low", "high"), ends, strict=False))


def _choices(sources: Sequence[Data], chosen_keys: Sequence[str]) -> list[tuple[str, Any]]:
    """Return what a component may be, in groups, and what was chosen of what is not there."""
    groups: dict[str, dict[str, str]] = {}
    for source in sources:
        group = groups.setdefault(_GROUPS.get(source["from"], "Outputs"), {})
        group[_key(source)] = source_in_words(source)
    offered = {key for group in groups.values() for key in group}
    for key in chosen_keys:
        if key and key not in offered:
            words = key
            with suppress(KeyError, TypeError):
                words = source_in_words(_parsed(key))  # type: ignore[arg-type]
            groups.setdefault("Others", {})[key] = words
    return [(title, [*group.items()]) for title, group in groups.items()]


def _key(source: Data) -> str:
    return json.dumps({k: source[k] for k in ("from", "judge", "task", "key") if k in source})


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


def _scalar_text(value: object) -> str:
    """Write a value so that `_scalar` reads the same: text in quotes where it looks like another.

    Examples
    --------
    >>> [_scalar_text(value) for value in ("yes", "5", 5.0, True)]
    ['yes', '"5"', '5', 'true']
    """
    if isinstance(value, str) and value and _scalar(value.strip()) == value:
        return value
    return json.dumps(value, ensure_ascii=False).removesuffix(".0")
