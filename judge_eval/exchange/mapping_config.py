"""A column mapping as people write it, checked: every mistake is named by its path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Final

from judge_eval.exchange import fields
from judge_eval.exchange.fields import Converter
from judge_eval.exchange.mapping import FIELDS, LABELS, Column, ColumnMapping

LABEL_TYPES: Final[dict[str, Converter]] = {
    "text": fields.text,
    "number": fields.number,
    "truth": fields.flag,
}
JUDGES: Final = "judges"
_SETTINGS = ("column", "value", "values", "separator", "timezone", "type")


class MappingError(ValueError):
    """A mapping that cannot be used.

    Parameters
    ----------
    problems : iterable of (path, why)
        Everything that is wrong with it; a path reads like ``labels.rating.type``.
    """

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{path}: {why}" for path, why in self.problems))


def parse(config: object) -> ColumnMapping:
    """Check a mapping and make it ready for use.

    Parameters
    ----------
    config : mapping
        By field (the keys of `mapping.FIELDS`) the name of a column, or an object of:

        ``column`` or ``value``
            The column, or one value for every row.
        ``values``
            What each raw value stands for; null for nothing. A value not listed is an error.
        ``separator``
            Between the texts of one cell (``tags``, and labels that are sets).
        ``timezone``
            The zone of times that name none: ``UTC`` or ``+01:00`` (``voted_at`` only).
        ``type``
            ``text``, ``number`` or ``truth`` (labels only; as in the file where not given).

        ``labels`` holds the same by task, and ``judges`` by the names of judges whose verdicts are
        columns of one row. What the mapping does not name is not read. Without ``pair``, rows of
        one prompt, generators and outputs are of one pair.

    Raises
    ------
    MappingError

    Examples
    --------
    >>> mapping = parse(
    ...     {
    ...         "pair": "idx",
    ...         "voter": {"value": "annotator 1"},
    ...         "vote": {"column": "annotator1", "values": {"1": "A", "2": "B", "0": "tie"}},
    ...         "labels": {"rating": {"column": "stars", "type": "number"}},
    ...     }
    ... )
    >>> sorted(mapping.named())
    ['annotator1', 'idx', 'stars']
    >>> parse({"pair": "idx", "votes": "x"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    judge_eval.exchange.mapping_config.MappingError: votes: not a field of a row: is ...
    """
    reader = _Reader()
    mapping = reader.mapping(config)
    if reader.problems:
        raise MappingError(reader.problems)
    return mapping


class _Reader:
    """Reads on behind a mistake, so that all of them are told at once."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []

    def mapping(self, config: object) -> ColumnMapping:
        if not isinstance(config, Mapping):
            self._say("mapping", "must be an object of columns by field")
            return ColumnMapping((), {})
        columns = []
        for field, spec in config.items():
            if field in FIELDS:
                columns.append(self._column(field, spec, FIELDS[field]))
            elif field not in (LABELS, JUDGES):
                near = get_close_matches(str(field), [*FIELDS, LABELS, JUDGES], 1)
                meant = f": is {near[0]!r} meant?" if near else ""
                self._say(str(field), f"not a field of a row{meant}")
        return ColumnMapping(
            tuple(columns),
            self._group(LABELS, "task", config, fields.label),
            self._group(JUDGES, "judge", config, fields.choice),
        )

    def _group(
        self, group: str, of: str, config: Mapping[str, object], convert: Converter
    ) -> dict[str, Column]:
        specs = config.get(group, {})
        if not isinstance(specs, Mapping):
            self._say(group, f"must be an object of columns by {of}")
            return {}
        return {
            str(name): self._column(f"{group}.{name}", spec, convert)
            for name, spec in specs.items()
        }

    def _column(self, field: str, spec: object, convert: Converter) -> Column:
        if isinstance(spec, str):
            spec = {"column": spec}
        if not isinstance(spec, Mapping):
            self._say(field, "must be the name of a column or an object that holds one")
            return Column(field, None, convert)
        for key in spec:
            if key not in _SETTINGS:
                self._say(f"{field}.{key}", f"not one of {', '.join(_SETTINGS)}")
        convert = self._converter(field, spec, convert)
        return self._source(field, spec, convert)

    def _source(self, field: str, spec: Mapping[str, object], convert: Converter) -> Column:
        column, values = spec.get("column"), spec.get("values")
        if ("column" in spec) == ("value" in spec):
            self._say(field, "needs one of column and value")
        elif "value" in spec:
            if field == "pair" or values is not None:
                self._say(f"{field}.value", "cannot stand here: it is the same for every row")
            return Column(field, None, convert, constant=self._value(field, spec, convert))
        elif not isinstance(column, str) or not column:
            self._say(f"{field}.column", "must be the name of a column")
        return Column(
            field,
            column if isinstance(column, str) else None,
            convert,
            self._values(field, values, convert),
        )

    def _value(self, field: str, spec: Mapping[str, object], convert: Converter) -> object:
        return self._converted(f"{field}.value", spec["value"], convert)

    def _values(self, field: str, values: object, convert: Converter) -> dict[str, object] | None:
        if values is None:
            return None
        if not isinstance(values, Mapping) or not values:
            self._say(f"{field}.values", "must be an object of what each value stands for")
            return None
        return {
            str(raw): None
            if meant is None
            else self._converted(f'{field}.values["{raw}"]', meant, convert)
            for raw, meant in values.items()
        }

    def _converter(self, field: str, spec: Mapping[str, object], convert: Converter) -> Converter:
        is_label = field.startswith(f"{LABELS}.")
        settings: dict[str, tuple[bool, Callable[[object], Converter]]] = {
            "separator": (is_label or field == "tags", _splitting),
            "timezone": (field == "voted_at", _zoned),
            "type": (is_label, _typed),
        }
        for setting, (belongs, make) in settings.items():
            if setting not in spec:
                continue
            if not belongs:
                self._say(f"{field}.{setting}", "does not belong here")
                continue
            try:
                convert = make(spec[setting])
            except ValueError as error:
                self._say(f"{field}.{setting}", str(error))
        return convert

    def _converted(self, path: str, raw: object, convert: Converter) -> object:
        try:
            value = convert(raw)
        except ValueError as error:
            self._say(path, str(error))
            return None
        if value is None:
            self._say(path, "must not be empty")
        return value

    def _say(self, path: str, why: str) -> None:
        self.problems.append((path, why))


def _splitting(raw: object) -> Converter:
    if not isinstance(raw, str) or not raw:
        raise ValueError("must be the text between two values")
    return partial(fields.words, separator=raw)


def _zoned(raw: object) -> Converter:
    return partial(fields.moment, zone=fields.zone_of(raw))


def _typed(raw: object) -> Converter:
    if not isinstance(raw, str) or raw not in LABEL_TYPES:
        raise ValueError(f"must be one of {', '.join(LABEL_TYPES)}")
    return LABEL_TYPES[raw]
