"""Which column of a file is which field of a row, how its values read, and the mapping of these
as people write it."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import chain
from typing import Annotated, Any, BinaryIO, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, Field

from humanjudge.lib.validation import ConfigError, ConfigInvalid, Part, meant, validated
from judge_eval.exchange import fields
from judge_eval.exchange.expressions import Expression
from judge_eval.exchange.fields import Converter, Label
from judge_eval.exchange.row_models import (
    ITEMS,
    PAIRS,
    SHAPES,
    Item,
    LeftOut,
    Misfit,
    Note,
    Row,
    RowError,
    Shape,
    Values,
    assemble,
    name_by_content,
    shape_of,
)
from judge_eval.exchange.sources import Record, records
from voting.choices import Choice

# What finds the rows of a record that holds several.
EACH: Final = "rows"
LABELS: Final = "labels"
JUDGES: Final = "judges"
VOTERS: Final = "voters"
METADATA: Final = "metadata"
# What the columns of several tasks, judges … begin with in a file that has our own names.
_PREFIXES: Final = {
    LABELS: "labels.",
    JUDGES: "verdict.",
    VOTERS: "vote.",
    METADATA: "metadata.",
}
_ONE_OF: Final = {LABELS: "task", JUDGES: "judge", VOTERS: "voter", METADATA: "name"}
# What others call columns of single items.
_ALIASES: Final = {"item": "id", "generator": "model"}
# Columns that nothing is made of are named so far.
MOST_NAMED: Final = 20
LONGEST_NAMED: Final = 40


Find: TypeAlias = Callable[[Values], object]


@dataclass(frozen=True, slots=True)
class Column:
    """Where one value of a row comes from: expressions on its record, or else the mapping itself.

    `field` is a column of ours, or one of a group, such as ``labels.TASK``. `find` is what the
    expressions find, put together.
    """

    field: str
    sources: Sequence[Expression]
    convert: Converter
    find: Find | None = None
    constant: object = None

    def read(self, record: Values) -> object:
        if not self.sources:
            return self.constant
        try:
            raw = self.find(record) if self.find else self.sources[0].of(record)
            return None if raw is None else self.convert(raw)
        except ValueError as error:
            names = [source.text for source in self.sources]
            named = "" if names == [self.field] else f" (column {', '.join(map(repr, names))})"
            raise Misfit(self.field, f"{error}{named}") from error


def by_name(field: str, column: str, convert: Converter) -> Column:
    return Column(field, [Expression(column)], convert)


def _looked_up(meanings: Values, raw: object) -> object:
    word = fields.plain(raw)
    known = word if word in meanings else word.strip()
    if known not in meanings and known:
        raise ValueError(f"{word!r} is not one of {', '.join(meanings)}")
    return meanings.get(known)


def _number(raw: object) -> float | None:
    value = None if raw is None else fields.number(raw)
    return None if value is None else float(value)


def winner_of(a: float | None, b: float | None, within: float = 0) -> str | None:
    """Return which of two scores is higher; None where one is missing.

    Examples
    --------
    >>> winner_of(8, 5), winner_of(7, 7), winner_of(6.5, 6, within=1), winner_of(1, None)
    ('A', 'tie', 'tie', None)
    """
    if a is None or b is None:
        return None
    return "tie" if abs(a - b) <= within else "A" if a > b else "B"


def _of_scores(a: Expression, b: Expression, within: float, record: Values) -> object:
    return winner_of(_number(a.of(record)), _number(b.of(record)), within)


def _of_one_hot(sources: Mapping[str, Expression], record: Values) -> object:
    hot = [choice for choice, source in sources.items() if _is_hot(source.of(record))]
    if len(hot) > 1:
        raise ValueError(f"{' and '.join(hot)} are marked at once")
    return hot[0] if hot else None


def _is_hot(raw: object) -> bool:
    word = str(raw).strip().lower()
    if raw is None or word in ("", "false"):
        return False
    return word == "true" or _number(raw) != 0


def _of_number(
    source: Expression, threshold: float, within: float, larger: str, record: Values
) -> object:
    winner = winner_of(_number(source.of(record)), threshold, within)
    return fields.SWAPPED[winner] if winner and larger == "B" else winner


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """How the records of one file become rows about items of one shape; made by `parse`.

    `groups` are columns of which there are as many as a file has: of labels by task, verdicts by
    judge, votes by voter, metadata by name. Those that are `nested` stand in an object, too, in a
    column that is called as they are.
    """

    columns: tuple[Column, ...]
    groups: Mapping[str, Mapping[str, Column]]
    shape: Shape = PAIRS
    nested: Collection[str] = ()
    # Where a record holds several rows: what finds them.
    each: Sequence[Expression] = ()

    def rows(self, file: str, record: Record) -> Iterator[Row | LeftOut | RowError]:
        """Turn one record into rows, more where it holds statements of several; or say what is
        wrong.
        """
        try:
            for part in self.parts(record.values):
                yield from self._rows(file, record.line, part)
        except ValueError as error:
            yield RowError(file, record.line, EACH, str(error))

    def parts(self, record: Values) -> Iterator[Values]:
        """Yield what the rows of a record are made of: it alone, or with each that it holds."""
        if not self.each:
            yield record
            return
        found = self.each[0].of(record)
        for one in found if isinstance(found, list) else [found] if found is not None else []:
            yield record | (one if isinstance(one, dict) else {"value": one})

    def _rows(self, file: str, line: int, raw: Values) -> Iterator[Row | LeftOut | RowError]:
        shape = self.shape
        try:
            values = {source.field: source.read(raw) for source in self.columns}
            if shape is ITEMS:
                values[METADATA] = dict(self._group(METADATA, raw)) or None
            labels = cast("dict[str, Label]", dict(self._group(LABELS, raw)))
            constants = [source.field for source in self.columns if not source.sources]
            if values.get(shape.name) is None and not self._is_named(raw):
                values[shape.name] = name_by_content(shape, values)
            about = {name: values.get(name) for name in (shape.name, *shape.about)}
            wide = [
                about | {who: name, field: answer}
                for group, who, field in (
                    (JUDGES, "judge", "verdict"),
                    (VOTERS, "voter", "vote"),
                )
                for name, answer in self._group(group, raw)
            ]
            if not wide or any(values.get(name) is not None for name in shape.answer_fields):
                yield from assemble(shape, file, line, values, labels, constants)
            for statement in wide:
                yield from assemble(shape, file, line, statement, {}, ())
        except Misfit as error:
            yield RowError(file, line, error.field, error.why)

    def _is_named(self, raw: Values) -> bool:
        """Say whether a record has the column that names what it is about, if only an empty one."""
        names = [column for column in self.columns if column.field == self.shape.name]
        return any(source.text in raw for column in names for source in column.sources)

    def expressions(self) -> list[Expression]:
        every = chain(self.columns, *(group.values() for group in self.groups.values()))
        return [source for each in every for source in each.sources]

    def unused(self, columns: Iterable[str]) -> list[str]:
        roots = set[str]().union(*(each.roots for each in (*self.expressions(), *self.each)))
        return [column for column in columns if column not in roots]

    def _group(self, group: str, record: Values) -> Iterator[tuple[str, object]]:
        sources = self.groups.get(group, {})
        if group in self.nested and (inner := record.get(group)) is not None:
            if not isinstance(inner, Mapping):
                what = "answers by task" if group == LABELS else "values by name"
                raise Misfit(group, f"must be an object of {what}")
            convert = converter_of(group, self.shape)
            flat = {_PREFIXES[group] + name: raw for name, raw in inner.items()}
            record = {**flat, **record}
            sources = {
                name.removeprefix(_PREFIXES[group]): by_name(name, name, convert) for name in flat
            } | {**sources}
        for name, source in sources.items():
            if (value := source.read(record)) is not None:
                yield name, value


@dataclass(frozen=True)
class OwnNames:
    """Reads files whose columns have the names of our own fields, each by the mapping it makes."""

    shape: Shape

    def rows(self, file: str, record: Record) -> Iterator[Row | LeftOut | RowError]:
        return _by_names(self.shape.name, tuple(record.values)).rows(file, record)

    def expressions(self) -> list[Expression]:
        """Nothing is named that every file must have."""
        return []

    def unused(self, columns: Collection[str]) -> list[str]:
        return [column for column, role in roles_of(columns, self.shape).items() if not role]


# Rows of a table all have the same columns, those of JSON a few sets of them; names may be long.
@lru_cache(maxsize=8)
def _by_names(shape_name: str, names: tuple[str, ...]) -> ColumnMapping:
    shape, columns = SHAPES[shape_name], list[Column]()
    groups: dict[str, dict[str, Column]] = {group: {} for group in groups_of(shape)}
    for name, role in roles_of(names, shape).items():
        if role in shape.fields:
            columns.append(by_name(role, name, shape.fields[role]))
        elif role and name != role:
            of_one = name.removeprefix(_PREFIXES[role])
            groups[role][of_one] = by_name(name, name, converter_of(role, shape))
    return ColumnMapping(tuple(columns), groups, shape, nested_in(shape))


def groups_of(shape: Shape) -> list[str]:
    return [group for group in _PREFIXES if group != METADATA or shape is ITEMS]


def nested_in(shape: Shape) -> list[str]:
    """Return the groups that may also stand in a column of objects."""
    return [group for group in (METADATA, LABELS) if group in groups_of(shape)]


def converter_of(group: str, shape: Shape) -> Converter:
    if group == LABELS:
        return fields.label
    return fields.fact if group == METADATA else shape.answer


OWN_NAMES: Final = OwnNames(PAIRS)
OWN_ITEM_NAMES: Final = OwnNames(ITEMS)


def rows_of(
    stream: BinaryIO,
    name: str,
    file_format: str | None,
    make: Callable[[Record], Iterator[Item]],
) -> Iterator[Item]:
    """Yield what `make` makes of each record, and an error where it raises Misfit."""
    for record in records(stream, name, file_format):
        if not isinstance(record, Record):
            yield record
            continue
        try:
            yield from make(record)
        except Misfit as error:
            yield RowError(name, record.line, error.field, error.why)


def own_rows(file: str, line: int, values: Values) -> Iterator[Row | LeftOut | RowError]:
    """Build rows from raw values by field, with every check that a file of ours gets."""
    own = OWN_ITEM_NAMES if shape_of(values) is ITEMS else OWN_NAMES
    return own.rows(file, Record(line, dict(values)))


# --- a whole file -----------------------------------------------------------------------------


def rows(
    records: Iterable[Record | RowError | Note], mapping: ColumnMapping | OwnNames, file: str
) -> Iterator[Item]:
    """Turn records into rows.

    Behind the last record stands an error for each column that the mapping names and that no record
    had, for a misspelt name must not read as a file without votes; and a note of the columns that
    nothing is made of.
    """
    columns, unmet = _Columns(mapping), mapping.expressions()
    line = 0
    for record in records:
        if not isinstance(record, Record):
            yield record
            continue
        line = record.line
        if new_fault := columns.look(list(record.values)):
            why = f"{new_fault} (so with every row that has these columns)"
            yield RowError(file, line, None, why)
        elif columns.fault:
            yield LeftOut(file, line, columns.fault)
        if unmet:
            unmet = [each for each in unmet if not _is_met(each, mapping, record.values)]
        if not columns.fault:
            yield from list(mapping.rows(file, record)) or [LeftOut(file, line, "it holds no row")]
    for column in sorted({each.text for each in unmet}) if line else ():
        why = f"no record has a column {column!r}{_nearest(column, columns.last)}"
        yield RowError(file, line, None, why, is_fatal=True)
    yield from columns.notes(file)


def _is_met(source: Expression, mapping: ColumnMapping | OwnNames, record: Values) -> bool:
    """Say whether a record has a column, or what an expression finds."""
    try:
        parts = mapping.parts(record) if isinstance(mapping, ColumnMapping) else [record]
        return any(
            source.text in part or (source.is_path and source.of(part) is not None)
            for part in parts
        )
    except ValueError:
        return False


class _Columns:
    """Watches which columns of a file nothing is made of, and what its rows lack for that."""

    def __init__(self, mapping: ColumnMapping | OwnNames) -> None:
        self._mapping = mapping
        self._faults: set[str] = set()
        self.last: list[str] = []
        self.fault = ""
        self.unread: dict[str, None] = {}

    def notes(self, file: str) -> Iterator[Note]:
        if self.unread:
            fields_of = self._mapping.shape.fields
            guesses = (_nearest(column, fields_of) for column in self.unread)
            is_own = isinstance(self._mapping, OwnNames)
            guess = next(filter(None, guesses), "") if is_own else ""
            yield Note(file, f"not read: {_listed(list(self.unread))}{guess}")

    def look(self, columns: list[str]) -> str:
        """Set why no row can be made of these columns; return it if that is news."""
        if columns == self.last:
            return ""  # nearly always: rows of a table all have the same
        self.last = columns
        unread = self._mapping.unused(columns)
        self.fault = _fault(columns, unread, self._mapping)
        if not self.fault and len(self.unread) <= MOST_NAMED:
            self.unread |= dict.fromkeys(unread)
        if not self.fault or self.fault in self._faults:
            return ""
        if len(self._faults) < MOST_NAMED:
            self._faults.add(self.fault)
        return self.fault


def _fault(columns: list[str], unread: list[str], mapping: ColumnMapping | OwnNames) -> str:
    shape, present = mapping.shape, {*columns}
    if unread and len(unread) == len(columns):
        return _unknown(columns, shape)
    if isinstance(mapping, ColumnMapping):
        return ""
    present |= {LABELS} if any(name.startswith(_PREFIXES[LABELS]) for name in columns) else set()
    if not present & {shape.name, _ALIASES.get(shape.name)}:
        if near := _nearest(shape.name, unread):
            return f"no column is called {shape.name!r}{near}"
        if not present & {"prompt", "prompt_id"} and not {*shape.outputs} <= present:
            what = f"neither {shape.name}, nor a prompt or {shape.outputs_in_words}"
            return f"no column says which {shape.name} a row is about: {what}"
    for name, needed in shape.needs.items():
        if name in present and not present & {*needed}:
            return f"beside {name!r} there is no column {needed[0]!r}{_nearest(needed[0], unread)}"
    return ""


def nearest(column: str, names: Iterable[str]) -> str:
    """Return the name that a column may mean, if one is near."""
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(column.lower(), by_lower, 1, 0.75)
    return by_lower[near[0]] if near else ""


def _nearest(column: str, names: Iterable[str]) -> str:
    near = nearest(column, names)
    return f": is it {near!r}?" if near else ""


def _unknown(columns: list[str], shape: Shape) -> str:
    return f"unknown columns: {_listed(columns)}; expected: {', '.join(shape.fields)}"


def _listed(columns: list[str]) -> str:
    names = [repr(column[:LONGEST_NAMED]) for column in columns[:MOST_NAMED]]
    return ", ".join([*names, *(["and more"] if len(columns) > MOST_NAMED else [])])


# --- a mapping as people choose it ------------------------------------------------------------


def roles_of(columns: Collection[str], shape: Shape) -> dict[str, str]:
    """Return what each column is taken for by its name: a field, a group of columns, or nothing.

    Examples
    --------
    >>> roles_of(["id", "verdict.gpt-4", "winer"], ITEMS)
    {'id': 'item', 'verdict.gpt-4': 'judges', 'winer': ''}
    """
    fields_by_alias = {alias: name for name, alias in _ALIASES.items() if name not in columns}
    roles = {}
    for column in columns:
        groups = (
            group
            for group in groups_of(shape)
            if column.startswith(_PREFIXES[group]) or column == group in nested_in(shape)
        )
        alias = fields_by_alias.get(column, "") if shape is ITEMS else ""
        roles[column] = column if column in shape.fields else alias or next(groups, "")
    return roles


# What others call our fields, by the last step of a path; the first that fits is proposed.
_SPELLINGS: Final = {
    "prompt": "question instruction query user_prompt",
    "output_a": "response_a answer_a completion_a response_1 response1 output_1 output1 answer1 "
    "conversation_a conv_a messages_a",
    "output_b": "response_b answer_b completion_b response_2 response2 output_2 output2 answer2 "
    "conversation_b conv_b messages_b",
    "generator_a": "model_a model_1 model1 generator_1 system_a",
    "generator_b": "model_b model_2 model2 generator_2 system_b",
    "output": "response answer completion model_output",
    "generator": "model_name model_id system",
    "vote": "winner preference human_winner human_label choice",
    "voter": "annotator annotator_id rater rater_id user user_id worker_id evaluator",
    "verdict": "judge_winner llm_winner judge_label judgment",
    "judge": "judge_model judge_name grader",
    "feedback": "reason reasoning rationale explanation",
    "voted_at": "timestamp created_at annotated_at",
}


_LAST_MESSAGE: Final = re.compile(r"\[-1\]\.(content|value)$")


def usual_roles(paths: Collection[str], shape: Shape) -> dict[str, str]:
    """Return what paths are taken for by their names, or may be where these are not ours.

    Examples
    --------
    >>> usual_roles(["id", "response_a", "data.response_b", "noise"], PAIRS)
    {'id': '', 'response_a': 'output_a', 'data.response_b': 'output_b', 'noise': ''}
    """
    roles, taken = roles_of(paths, shape), set[str]()
    if {shape.name, *shape.outputs} & {*roles.values()}:
        return roles
    by_word = {word: field for field, words in _SPELLINGS.items() for word in words.split()}
    for path, role in roles.items():
        if any(f"{path}{end}" in roles for end in ("[-1].content", "[-1].value")):
            continue
        # Of a conversation the last message is compared, and what stands before it is the prompt.
        bare = re.sub(r"(?<=\w)\[:-1\]$", ".prompt", re.sub(_LAST_MESSAGE, "", path.lower()))
        last = re.split(r"[.\[\]]+", bare)[-1].strip('"')
        field = role or (last if last in shape.fields else by_word.get(last, ""))
        roles[path] = "" if field in taken or field not in (*shape.fields, role) else field
        taken |= {field} if field in shape.fields else set()
    return roles


def fits(config: Values, columns: Collection[str]) -> bool:
    """Say whether a mapping names nothing but what a file with these columns has."""
    try:
        found = parse(config).expressions()
    except ConfigInvalid:
        return False
    if isinstance(config.get(EACH), str):
        # What a part of a record is called is not known here.
        found = [each for each in found if each.is_path] + [Expression(config[EACH])]
    tops = {re.split(r"[.\[]", column)[0] for column in columns}
    return bool(found) and all(each.text in columns or each.roots & tops for each in found)


def chosen(roles: Mapping[str, str], meanings: Mapping[str, Values], **same: str) -> Values:
    """Return the mapping that reads columns as chosen; raises ConfigInvalid.

    `meanings` are what the values of a column stand for, `same` what is the same in every row.
    """
    config: Values = {field: {"value": value} for field, value in same.items() if value}
    errors = []
    for column, role in roles.items():
        spec = {"column": column, **({"values": meanings[column]} if column in meanings else {})}
        if role in _PREFIXES:
            name = column.removeprefix(_PREFIXES[role])
            config.setdefault(role, {})[name] = spec
        elif role in config:
            errors.append(ConfigError(f"mapping.{role}", f"chosen again for {column!r}"))
        elif role:
            config[role] = spec
    if errors:
        raise ConfigInvalid(errors)
    return config


# --- a mapping as people write it -------------------------------------------------------------

LABEL_TYPES: Final[dict[str, Converter]] = {
    "text": fields.text,
    "number": fields.number,
    "truth": fields.flag,
}
_Filled = Annotated[str, Field(min_length=1)]


_WINNERS: Final = ("verdict", "vote", "pick_ab", "pick_ba")


class _Source(Part):
    column: _Filled = ""
    value: Any = None
    values: Annotated[Values, Field(min_length=1)] | None = None
    separator: _Filled = ""
    timezone: Annotated[Any, AfterValidator(fields.zone_of)] = None
    type: Literal["text", "number", "truth"] | None = None
    # A winner out of numbers.
    scores: Annotated[list[_Filled], Field(min_length=2, max_length=2)] | None = None
    one_hot: Annotated[dict[Choice, _Filled], Field(min_length=2)] | None = None
    threshold: float | None = None
    tie_within: Annotated[float, Field(ge=0)] = 0
    larger: Literal["A", "B"] = "B"

    @property
    def expressions(self) -> list[str]:
        if self.scores:
            return [*self.scores]
        return [*self.one_hot.values()] if self.one_hot else [self.column]


def parse(config: object, shape: Shape | None = None) -> ColumnMapping:
    """Check a mapping, as docs/importing.md describes it, and make it ready for use.

    It is one of pairs or of single items, as `shape` or else its fields say. Raises ConfigInvalid
    with all that is wrong; its paths begin with ``mapping``.

    Examples
    --------
    >>> parse({"pair": "idx", "tag": "x"})
    Traceback (most recent call last):
        ...
    humanjudge.lib.validation.ConfigInvalid: mapping.tag: unknown; did you mean 'tags'?
    """
    if not isinstance(config, Mapping):
        raise ConfigInvalid.at("mapping", "must be an object of columns by field")
    shape, parser = shape or shape_of(config) or _fitting(config), _Parser()
    groups = groups_of(shape)
    names = [*shape.fields, *groups, EACH]
    for name in config:
        if name not in names:
            parser.refuse(name, f"unknown{meant(name, names)}")
    columns = [
        parser.column(field, spec, shape.fields[field])
        for field, spec in config.items()
        if field in shape.fields
    ]
    parsed = {}
    for group in groups:
        specs, convert = config.get(group, {}), converter_of(group, shape)
        if not isinstance(specs, Mapping):
            parser.refuse(group, f"must be an object of columns by {_ONE_OF[group]}")
            specs = {}
        parsed[group] = {
            name: parser.column(f"{group}.{name}", spec, convert) for name, spec in specs.items()
        }
    each = [parser.expression(EACH, config[EACH])] if EACH in config else []
    if parser.errors:
        raise ConfigInvalid(parser.errors)
    return ColumnMapping(tuple(columns), parsed, shape, each=each)


def _fitting(config: Mapping[str, object]) -> Shape:
    """Return the shape that knows all fields of a mapping; of pairs, where neither does."""
    shapes = (PAIRS, ITEMS)
    return next((s for s in shapes if {*s.fields, *groups_of(s), EACH} >= config.keys()), PAIRS)


class _Parser:
    """Goes on behind a mistake, so that all of them are found at once."""

    def __init__(self) -> None:
        self.errors: list[ConfigError] = []

    def refuse(self, path: str, why: str) -> None:
        self.errors.append(ConfigError(f"mapping.{path}", why))

    def column(self, field: str, spec: object, convert: Converter) -> Column:
        try:
            given = {"column": spec} if isinstance(spec, str) else spec
            source = validated(_Source, given, path=f"mapping.{field}")
        except ConfigInvalid as invalid:
            self.errors += invalid.errors
            return Column(field, (), convert)
        self._refuse_misplaced(field, source)
        if source.separator:
            convert = partial(fields.words, separator=source.separator)
        if source.timezone:
            convert = partial(fields.moment, zone=source.timezone)
        convert = LABEL_TYPES[source.type] if source.type else convert
        if "value" in source.model_fields_set:
            constant = self._value(f"{field}.value", source.value, convert)
            return Column(field, (), convert, constant=constant)
        if source.values:
            meanings = {
                raw: None
                if word is None
                else self._value(f'{field}.values["{raw}"]', word, convert)
                for raw, word in source.values.items()
            }
            convert = partial(_looked_up, meanings)
        sources = [self.expression(field, text) for text in filter(None, source.expressions)]
        return Column(field, sources, convert, _finder(source, sources))

    def expression(self, path: str, text: object) -> Expression:
        try:
            if isinstance(text, str) and text:
                return Expression(text)
            why = "must be the name of a column, or an expression"
        except ValueError as error:
            why = str(error)
        self.refuse(path, why)
        return Expression("")

    def _refuse_misplaced(self, field: str, source: _Source) -> None:
        given, is_label = source.model_fields_set, field.startswith(f"{LABELS}.")
        if len(given & {"column", "value", "scores", "one_hot"}) != 1:
            choices = ", scores and one_hot" if field in _WINNERS else " and value"
            self.refuse(field, f"needs one of column{', value' if ',' in choices else ''}{choices}")
        elif "value" in given and (field in ("pair", "item") or source.values):
            self.refuse(f"{field}.value", "cannot stand here: it is the same for every row")
        allowed = {
            "separator": is_label or field == "tags",
            "timezone": field in ("voted_at", "time"),
            "type": is_label,
            **dict.fromkeys(("scores", "one_hot", "threshold"), field in _WINNERS),
            "tie_within": bool({"scores", "threshold"} & given),
            "larger": "threshold" in given,
        }
        for setting in [name for name, belongs in allowed.items() if not belongs]:
            if setting in given:
                self.refuse(f"{field}.{setting}", "does not belong here")

    def _value(self, path: str, raw: object, convert: Converter) -> object:
        try:
            value = None if raw is None else convert(raw)
        except ValueError as error:
            self.refuse(path, str(error))
            return None
        if value is None:
            self.refuse(path, "must not be empty")
        return value


def _finder(source: _Source, found: Sequence[Expression]) -> Find | None:
    """Return what makes one value of several, or of a number; None where a column is the value."""
    if source.scores:
        return partial(_of_scores, found[0], found[1], source.tie_within)
    if source.one_hot:
        return partial(_of_one_hot, dict(zip(source.one_hot, found, strict=True)))
    if source.threshold is None:
        return None
    return partial(_of_number, found[0], source.threshold, source.tie_within, source.larger)
