"""The config of a run: one model for the form, the API and the command line.

The shape is PathScore's. What `parse` returns is complete, every default filled in, so that a
stored config means the same later.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Final, Literal, Self, TypeAlias, get_args
from uuid import UUID

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
)
from pydantic_core import PydanticKnownError

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import excerpt
from humanjudge.core.validation import (
    INTEGER,
    Caption,
    ConfigError,
    ConfigInvalid,
    Line,
    Name,
    Part,
    Place,
    Storable,
    StorableJson,
    Text,
    alone,
    choice_type,
    validated,
)
from judge_eval.judging.baselines import (
    BASELINES,
    BLIND,
    MOST_FREQUENT,
    constants_for,
    is_baseline,
    is_constant,
    names_for,
    names_for_single,
)
from judge_eval.judging.prompts import judge
from judge_eval.judging.prompts.judge import JudgeQuestion
from judge_eval.stats.estimate import MARGIN
from voting.items.choices import CHOICES, DEFAULT_BALLOT, PASS_FLAG, SIDES, Choice
from voting.items.conversations import MOST_MESSAGES, conversation
from voting.items.kinds import LONGEST_CHOICE, NO_LABELS, RATINGS, SEPARATOR, Options, Word

__all__ = ["ConfigError", "ConfigInvalid", "RunConfig", "parse"]

MOST_PROMPTS: Final = 5_000
MOST_USD: Final = 1_000_000
DEFAULT_PROVIDER: Final = "default"
# Provider of the judges that are answered here; no endpoint can be called this.
BASELINE: Final = "baseline"
NO_OTHERS: Final = f"{BASELINE} is the provider of all baselines and no others"

# Pictures are brought, and judged as they are: nothing here generates them.
Kind = Literal["svg", "text", "code", "image"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
# The built-in mode, as configs of before call it too, and the built-in type of judges.
JUDGE_EVAL: Final = "builtin-judge-eval"
_OLD_NAMES: Final[Mapping[object, str]] = MappingProxyType({"judge_eval": JUDGE_EVAL})
ONE_MODEL: Final = "model"
RUBRICS: Final = MappingProxyType[Kind, str](
    {
        "svg": "Which drawing better shows what was asked? First check that everything in the "
        "prompt is there, in the right number and place; then judge how well it is drawn: "
        "composition, colour, readable text, clean shapes. A plain drawing that fits the prompt "
        "can beat a rich one that does not.",
        "text": "Which answer would you rather have received? First check that it is right and "
        "does what was asked, including any limit on length or form; then weigh how clear and "
        "pleasant it is to read. Length is not a merit in itself.",
        "code": "Which code would you rather have received? First check that it is correct and "
        "does what was asked, edge cases included; then weigh how clear and simple it is to read "
        "and to change. Length and comments are not a merit in themselves.",
        "image": "Which picture better shows what was asked? First check that everything in the "
        "prompt is there, in the right number and place; then judge how well it is made: "
        "composition, light, anatomy, readable text, no flaws.",
    }
)
# The choices of items that have their own.
_FIXED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"pass_flag": PASS_FLAG, "rating": RATINGS}
)
SINGLE_RUBRICS: Final = MappingProxyType[str, str](
    {
        "pass_flag": "Is this good enough to be used as it is? Pass what is right and does what "
        "was asked, including any limit on length or form; flag what is wrong, unsafe or beside "
        "the point.",
        "category": "Which of these labels fits best?",
        "rating": "How good is this? 1: of no use. 3: usable, with faults. 5: nothing to improve. "
        "First check that it is right and does what was asked; then weigh how clear it is.",
        "labels": "Which of these labels fit? Several may, or none.",
    }
)


def _decimal(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise PydanticKnownError("float_type")
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def old_name(value: object) -> object:
    """Return what a mode is called now."""
    return _OLD_NAMES.get(value, value) if isinstance(value, str) else value


# An object of JSON.
Long: TypeAlias = Annotated[Text, Field(max_length=20_000)]
Provider: TypeAlias = Annotated[Line, Field(max_length=50)]
# The id of an extension. `validate_run` says whether it is here: a run outlives what made it.
Extension: TypeAlias = Annotated[Line, Field(max_length=50)]
Temperature: TypeAlias = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None
# How much worse than a person a judge may be in the Alt-Test.
Epsilon: TypeAlias = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
# Within how much agreement per vote two judges are practically the same, as a share.
Margin: TypeAlias = Annotated[float, Field(gt=0, le=0.25, allow_inf_nan=False)]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000), INTEGER]
# What a provider calls its levels: low, medium, high and others.
Effort: TypeAlias = Annotated[Line, Field(max_length=20)]
Votes: TypeAlias = Annotated[int, Field(ge=1, le=100), INTEGER]
Usd: TypeAlias = Annotated[
    Decimal,
    Field(gt=0, le=MOST_USD),
    BeforeValidator(_decimal),
    PlainSerializer(float),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": MOST_USD}),
]


class ModelSettings(Part):
    """What one model is sent in place of what all are sent; what is not given is as for all."""

    temperature: Temperature = None
    max_tokens: Tokens | None = None
    reasoning_effort: Effort | None = None

    @property
    def settings(self) -> JsonObject:
        """What was given. A temperature of None is: none is sent, as some models refuse any."""
        field_values = {
            n: getattr(self, n) for n in ModelSettings.model_fields.keys() & self.model_fields_set
        }
        return {
            n: value for n, value in field_values.items() if value is not None or n == "temperature"
        }

    @model_serializer(mode="wrap")
    def _short(self, serialize: SerializerFunctionWrapHandler) -> JsonObject:
        absent = ModelSettings.model_fields.keys() - self.settings.keys()
        return {name: value for name, value in serialize(self).items() if name not in absent}


class ModelSpec(ModelSettings):
    """A model that generates."""

    id: Name


class JudgePart(ModelSettings):
    """A model that a judge made of several asks."""

    id: Name
    provider: Provider = ""


MOST_REPEATS: Final = 20
MOST_EXAMPLES: Final = 8
_VARIED: Final = ("model", "instructions", "examples", "samples", "orders")
_JudgePart = Annotated[
    JudgePart, BeforeValidator(alone("id"), json_schema_input_type=Name | JudgePart)
]


class ExampleItem(Part):
    """An item that people voted on, and what most of them said when its variant joined."""

    item: Annotated[UUID, Field(strict=False)]
    answer: Annotated[Storable, Field(max_length=LONGEST_CHOICE)] = ""


_Example = Annotated[
    ExampleItem, BeforeValidator(alone("item"), json_schema_input_type=UUID | ExampleItem)
]


class JudgeSpec(JudgePart):
    """A model that judges, a baseline, which is asked nowhere, or a judge of another type.

    The id is a label of one's own where `model` names who is asked: so one model may judge by
    several `instructions`, as variants. These stand in place of what judges are told first.
    """

    model: Name | Literal[""] = ""
    # What it is, for whoever reads the board; it is told to no model.
    description: Caption = ""
    instructions: Long | Literal[""] = ""
    # Only of variants: their answers are set when these join.
    examples: Annotated[tuple[_Example, ...], Field(strict=False, max_length=MOST_EXAMPLES)] = ()
    samples: Annotated[int, Field(ge=1, le=25), INTEGER] | None = None
    # In place of the run's: both, one that is drawn for each pair, or always the same.
    orders: Literal["both", "random", "AB", "BA"] | None = None
    # How often the same is asked, to see whether it is answered alike; the first answer counts.
    repeats: Annotated[int, Field(ge=1, le=MOST_REPEATS), INTEGER] = 1
    type: Extension = ONE_MODEL
    # Whom a judge of another type may ask, and what else that type wants to know.
    parts: Annotated[tuple[_JudgePart, ...], Field(strict=False, max_length=25)] = ()
    options: StorableJson = Field(default_factory=dict)

    @property
    def is_baseline(self) -> bool:
        return self.provider == BASELINE

    @property
    def models(self) -> tuple[JudgePart, ...]:
        """Whom it asks: its parts, or else the model that it is; a baseline asks nobody."""
        if self.is_baseline:
            return ()
        model = self.model or self.id
        return self.parts or (JudgePart(id=model, provider=self.provider, **self.settings),)

    @property
    def variation(self) -> JsonObject:
        """What makes it another competitor than the model that is asked as all are."""
        varied_fields = self.model_dump(mode="json", include={*_VARIED} - {"model"})
        return {name: value for name, value in varied_fields.items() if value}

    @model_serializer(mode="wrap")
    def _short(self, serialize: SerializerFunctionWrapHandler) -> JsonObject:
        absent = ModelSettings.model_fields.keys() - self.settings.keys()
        absent |= {name for name in (*_VARIED, "description") if not getattr(self, name)}
        absent |= {"repeats"} if self.repeats == 1 else set()
        if self.type == ONE_MODEL:
            absent |= {"type", "parts", "options"}
        return {name: value for name, value in serialize(self).items() if name not in absent}


class ChatMessage(Part):
    """One turn of a conversation, in the one of its forms that is documented."""

    role: str
    # A text, its parts, or nothing beside the call of a tool.
    content: object


Messages: TypeAlias = Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES)]


class PromptSpec(Part):
    """What every model is given: a text, or a conversation as a list of messages."""

    id: Name = ""
    text: Annotated[
        Long,
        BeforeValidator(
            lambda value: conversation(value) or value, json_schema_input_type=Long | Messages
        ),
    ]
    tags: Annotated[tuple[Name, ...], Field(strict=False, max_length=50)] = ()


class _Sampling(Part):
    temperature: Temperature
    max_tokens: Tokens
    reasoning_effort: Effort | None = None

    @property
    def parameters(self) -> JsonObject:
        """What is sent: no temperature where it is None, since some models refuse any."""
        return self.model_dump(include={*ModelSettings.model_fields}, exclude_none=True)

    @model_serializer(mode="wrap")
    def _short(self, serialize: SerializerFunctionWrapHandler) -> JsonObject:
        serialized: JsonObject = serialize(self)
        if self.reasoning_effort is None:
            serialized.pop("reasoning_effort", None)
        return serialized

    def for_model(self, model: ModelSettings) -> Self:
        """Return how one model is asked, which may differ from how all are."""
        return self.model_copy(update=model.settings)


class Generation(_Sampling):
    """How outputs are asked for."""

    temperature: Temperature = 0.7
    max_tokens: Tokens = 4_000


class Judging(_Sampling):
    """How verdicts are asked for.

    >>> Judging(temperature=None).parameters
    {'max_tokens': 400}
    """

    temperature: Temperature = 0.0
    prompt_version: choice_type(tuple(judge.VERSIONS)) = judge.CURRENT  # type: ignore[valid-type]
    max_tokens: Tokens = 400
    samples: Annotated[int, Field(ge=1, le=25), INTEGER] = 1


class Overlap(Part):
    """The share of the pairs that several people vote on, and how many."""

    share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    votes: Votes = 3


class Items(Options):
    """Single items: what people and judges are asked about each output by itself.

    >>> Items(kind="rating").offered
    ('1', '2', '3', '4', '5')
    """

    kind: Literal["pass_flag", "category", "rating", "labels"] = "pass_flag"
    choices: Annotated[tuple[Word, ...], Field(strict=False, max_length=50)] = ()

    @property
    def offered(self) -> tuple[str, ...]:
        return _FIXED.get(self.kind, self.choices)

    @property
    def options(self) -> JsonObject:
        """What a queue of such items keeps."""
        return self.model_dump(mode="json", include={*Options.model_fields})


_Model = Annotated[ModelSpec, BeforeValidator(alone("id"), json_schema_input_type=Name | ModelSpec)]
_Judge = Annotated[JudgeSpec, BeforeValidator(alone("id"), json_schema_input_type=Name | JudgeSpec)]


def _tagged(value: object) -> object:
    """Take a text alone, and what PathScore calls a category as one of the tags."""
    data = alone("text")(conversation(value) or value)
    if not isinstance(data, dict) or not isinstance(data.get("category", 0), str | None):
        return data
    category, tags = data["category"], data.get("tags", ())
    is_new = category and isinstance(tags, list | tuple) and category not in tags
    rest = {name: field_value for name, field_value in data.items() if name != "category"}
    return rest | {"tags": [*tags, category]} if is_new else rest


_Prompt = Annotated[
    PromptSpec, BeforeValidator(_tagged, json_schema_input_type=Long | Messages | PromptSpec)
]


class JoiningJudges(Part):
    """Judges that are asked about the items that a run has already, and how."""

    judges: Annotated[tuple[_Judge, ...], Field(strict=False, min_length=1, max_length=50)]
    # So many voted items of the tuning half are drawn as examples of each, beside those it names.
    draw_examples: Annotated[int, Field(ge=0, le=MOST_EXAMPLES), INTEGER] = 0
    provider: Provider = DEFAULT_PROVIDER
    # Of a run whose judges are imported; others go on as their config says.
    judging: Judging = Judging()
    budget_usd: Usd | None = None


class RunConfig(Part):
    """A config that is right and complete; `parse` makes them."""

    name: Name
    # What is asked, as readers are told it: "Did the model refuse?"
    question: Caption = ""
    mode: Annotated[Extension, BeforeValidator(old_name)] = JUDGE_EVAL
    # What a mode of an extension wants to know.
    mode_options: StorableJson = Field(default_factory=dict)
    kind: Kind = "svg"
    # How few there may be depends on the mode.
    models: Annotated[
        tuple[_Model, ...],
        Field(strict=False, max_length=50, json_schema_extra={"minItems": 1}),
    ]
    judges: Annotated[tuple[_Judge, ...], Field(strict=False, min_length=1, max_length=50)]
    prompts: Annotated[
        tuple[_Prompt, ...],
        Field(strict=False, max_length=MOST_PROMPTS, json_schema_extra={"minItems": 1}),
    ]
    # Given ones were imported or logged: nothing is generated, and judges joined later.
    outputs: Literal["generated", "given"] = "generated"
    rubric: Long = ""
    # None: outputs are compared in pairs.
    items: Items | None = None
    ballot: Annotated[
        tuple[Choice, ...],
        Field(strict=False, max_length=len(CHOICES), json_schema_extra={"uniqueItems": True}),
    ] = DEFAULT_BALLOT
    votes_per_pair: Votes = 1
    overlap: Overlap = Overlap()
    reveal: Literal["after_each", "at_end", "never"] = "after_each"
    verdict_orders: Literal["both", "random"] = "both"
    generation: Generation = Generation()
    judging: Judging = Judging()
    provider: Provider = DEFAULT_PROVIDER
    budget_usd: Usd | None = None
    epsilon: Epsilon = 0.2
    margin: Margin = MARGIN

    @property
    def providers(self) -> set[str]:
        generating = {self.provider} if self.outputs == "generated" else set[str]()
        return generating | {model.provider for judge in self.judges for model in judge.models}

    @property
    def floor(self) -> list[str]:
        """Name the baselines that it starts with; where these are all, just those that it names."""
        named = [judge.id for judge in self.judges if judge.is_baseline]
        return named if len(named) == len(self.judges) else self.whole_floor(named)

    def whole_floor(self, names: Iterable[str]) -> list[str]:
        """Add to baselines all that look at nothing; without these a coin would beat the floor."""
        if not (named := list(names)):
            return []
        if self.items:
            offered = names_for_single(self.items.kind, self.items.offered)
        else:
            offered = names_for(self.kind, self.ballot)
        blind = (name for name in offered if name in BLIND or is_constant(name))
        return list(dict.fromkeys([*named, *blind]))

    @property
    def ways(self) -> list[str]:
        """The orders in which its judges are asked, as baselines are to answer."""
        judge_orders = [
            judge.orders or self.verdict_orders for judge in self.judges if not judge.is_baseline
        ]
        return list(dict.fromkeys(judge_orders))

    def generating(self, model: str) -> Generation:
        return self.generation.for_model(next(spec for spec in self.models if spec.id == model))

    def asking(self, judge: str, provider: str, model: str) -> Judging:
        """Return how a model is asked as a judge, or as a part of one."""
        judge_spec = self.spec_of(judge)
        specs = sorted(self.judges, key=lambda spec: spec is not judge_spec)
        parts = (part for spec in specs for part in spec.models)
        same = (part for part in parts if (part.provider, part.id) == (provider, model))
        return self.judging.for_model(next(same, ModelSettings()))

    def spec_of(self, judge: str) -> JudgeSpec | None:
        by_id = {spec.id: spec for spec in self.judges}
        # A judge that calls itself something else goes by another name by then.
        longest = max((id_ for id_ in by_id if judge.startswith(f"{id_} (")), key=len, default="")
        return by_id.get(judge) or by_id.get(longest)

    @property
    def judge_question(self) -> JudgeQuestion:
        if self.items is None:
            return JudgeQuestion(self.ballot)
        items = self.items
        return JudgeQuestion(
            items.offered,
            items.kind,
            is_graded=items.graded,
            criteria=items.criteria_in_words,
        )

    def as_dict(self) -> JsonObject:
        """Return the config as JSON can hold it, such that it parses back to an equal one."""
        return self.model_dump(mode="json")


def parse(data: object, also: Iterable[tuple[Place, str]] = ()) -> RunConfig:
    """Check a config, as read from JSON, and fill in its defaults; ConfigInvalid has every error.

    Models, judges and prompts may be plain texts. The extensions that it names need not be here:
    `validate_run` looks for them where a run is made; its mistakes, `also`, join the others.

    >>> config = parse({"name": "r", "models": ["m", "n"], "judges": ["j"], "prompts": ["a cat"]})
    >>> config.kind, config.ballot, config.prompts[0]
    ('svg', ('A', 'B', 'both_bad'), PromptSpec(id='1', text='a cat', tags=()))
    >>> parse({"name": "r", "models": [{"id": "m"}, {"id": ""}], "judge": ["j"], "prompts": ["p"]})
    Traceback (most recent call last):
        ...
    humanjudge.core.validation.ConfigInvalid: models[1].id: is empty
    judges: is missing
    judge: unknown; did you mean 'judges'?
    """
    conflicts = [*_conflicts(data), *also] if isinstance(data, dict) else []
    config = validated(RunConfig, data, conflicts=conflicts)
    prompts = tuple(
        prompt if prompt.id else prompt.model_copy(update={"id": str(number)})
        for number, prompt in enumerate(config.prompts, start=1)
    )
    items = config.items
    rubric = SINGLE_RUBRICS[items.kind] if items else RUBRICS[config.kind]
    ballot = () if items else config.ballot
    return config.model_copy(
        update={
            "prompts": prompts,
            "judges": tuple(_judges(config)),
            "rubric": config.rubric or rubric,
            "ballot": tuple(choice for choice in CHOICES if choice in ballot),
        }
    )


def _judges(config: RunConfig) -> Iterator[JudgeSpec]:
    """Say who is asked where, and that a label is said by a baseline of its own."""
    names = {judge.id for judge in config.judges}
    for judge_ in config.judges:
        if config.items and judge_.id == MOST_FREQUENT:
            constant = constants_for(config.items.kind, config.items.offered)
            yield from (JudgeSpec(id=n, provider=BASELINE) for n in constant if n not in names)
        else:
            usual = BASELINE if is_baseline(judge_.id) else config.provider
            provider = judge_.provider or usual
            parts = tuple(
                part if part.provider else part.model_copy(update={"provider": provider})
                for part in judge_.parts
            )
            yield judge_.model_copy(update={"provider": provider, "parts": parts})


def _objects(config: JsonObject, key: str) -> Iterator[tuple[int, JsonObject]]:
    items = config.get(key)
    for number, item in enumerate(items[:MOST_PROMPTS] if isinstance(items, list | tuple) else ()):
        if isinstance(item, str):
            yield number, {"text" if key == "prompts" else "id": item}
        elif isinstance(item, dict):
            yield number, item


def _line(item: JsonObject, key: str) -> str:
    text = item.get(key)
    return text.strip() if isinstance(text, str) else ""


def _conflicts(config: JsonObject) -> Iterator[tuple[Place, str]]:
    """Find what is wrong between values, on the data itself: it is said with all the rest."""
    for key in ("models", "judges", "prompts"):
        known_names = {""}
        for number, item in _objects(config, key):
            name = _line({"id": str(number + 1), **item} if key == "prompts" else item, "id")
            if name and name in known_names:
                yield (key, number, "id"), f"{excerpt(name, 60)} is given twice"
            known_names.add(name)
    if config.get("kind") == "image" and config.get("outputs") != "given":
        yield ("kind",), "is image: pictures are imported, and not generated here"
    yield from _conflicts_of_baselines(config)
    yield from _conflicts_of_numbers(config)
    items, ballot = config.get("items"), config.get("ballot")
    if isinstance(items, dict):
        yield from _conflicts_of_items(items)
        if ballot and isinstance(ballot, list | tuple):
            yield ("ballot",), "is of pairs; single items are voted on with items.choices"
    elif isinstance(ballot, list | tuple):
        yield from _conflicts_of_ballot(ballot)


def _conflicts_of_numbers(config: JsonObject) -> Iterator[tuple[Place, str]]:
    is_given = config.get("outputs") == "given"
    for key in ("models", "prompts"):
        if is_given and config.get(key):
            yield (key,), "are of outputs that are generated; these were given"
    if not is_given and config.get("prompts") == []:
        yield ("prompts",), "must have at least 1, has 0"


def _conflicts_of_ballot(ballot: Sequence[object]) -> Iterator[tuple[Place, str]]:
    twice = [n for n, choice in enumerate(ballot[:10]) if choice in ballot[:n]]
    yield from ((("ballot", n), "is given twice") for n in twice)
    if not all(side in ballot for side in SIDES):
        yield ("ballot",), "must offer A and B"


def _conflicts_of_items(items: JsonObject) -> Iterator[tuple[Place, str]]:
    kind, words = items.get("kind", "pass_flag"), _words(items)
    place: Place = ("items", "choices")
    if kind in ("category", "labels"):
        if len(words) < 2:
            yield place, f"must have at least 2, has {len(words)}"
        yield from ((("items", "choices", n), reason) for n, reason in _wrong_words(kind, words))
    elif words:
        yield place, f"{kind} has choices of its own"
    for name in ("graded", "criteria"):
        if items.get(name) and kind != "pass_flag":
            yield ("items", name), "is of items that are passed or flagged"


def _wrong_words(kind: str, words: list[str]) -> Iterator[tuple[int, str]]:
    for number, word in enumerate(words):
        if word in words[:number]:
            yield number, "is given twice"
        if kind == "labels" and word == NO_LABELS:
            yield number, f"{NO_LABELS} is what is kept where no label fits"
        if kind == "labels" and SEPARATOR in word:
            yield number, f"must not hold {SEPARATOR!r}, which stands between the labels of a set"
    if kind == "labels" and len(SEPARATOR.join(words)) > LONGEST_CHOICE:
        yield 0, f"all of them together are longer than {LONGEST_CHOICE} characters"


def _conflicts_of_baselines(config: JsonObject) -> Iterator[tuple[Place, str]]:
    if _line(config, "provider") == BASELINE:
        yield ("provider",), "is what baselines are asked through; no model answers there"
    for number, model in _objects(config, "models"):
        if is_baseline(name := _line(model, "id")):
            yield ("models", number, "id"), f"{name} is a baseline: it judges and generates nothing"
    for number, spec in _objects(config, "judges"):
        name = _line(spec, "id")
        if is_baseline(name) and (reason := _misplaced(name, config)):
            yield ("judges", number, "id"), f"{name} {reason}"
        if "provider" in spec and _line(spec, "provider") != BASELINE and is_baseline(name):
            yield ("judges", number, "provider"), NO_OTHERS
        yield from _conflicts_of_variants(number, spec)
        if spec.get("orders") and isinstance(config.get("items"), dict):
            yield ("judges", number, "orders"), "are of pairs; a single item has none"


def _conflicts_of_variants(number: int, judge: JsonObject) -> Iterator[tuple[Place, str]]:
    if is_baseline(_line(judge, "id")) or judge.get("type", ONE_MODEL) != ONE_MODEL:
        for field in (*_VARIED, "repeats"):
            if judge.get(field):
                yield ("judges", number, field), "is of a judge that is one model"


def _misplaced(name: str, config: JsonObject) -> str:
    """Say why a run has no place for a baseline; nothing where it has."""
    kind, items = config.get("kind", "svg"), config.get("items")
    if isinstance(items, dict):
        item_kind = str(items.get("kind", "pass_flag"))
        offered = _FIXED.get(item_kind, _words(items))
        names = [*names_for_single(item_kind, offered), MOST_FREQUENT]
        return "" if name in names else f"must be one of the baselines here: {', '.join(names)}"
    if name not in BASELINES:
        return "judges single items only"
    ballot = config.get("ballot") or DEFAULT_BALLOT
    if kind in KINDS and name not in names_for(kind, CHOICES):
        only = "drawings" if name not in names_for("text", CHOICES) else "what is written"
        return f"judges {only} only; the kind of this run is {kind}"
    if isinstance(ballot, list | tuple) and BASELINES[name].always not in {"", *map(str, ballot)}:
        return "is never right: its answer is not on the ballot"
    return ""


def _words(items: JsonObject) -> list[str]:
    choices = items.get("choices")
    listed = choices if isinstance(choices, list | tuple) else ()
    return [choice.strip() for choice in listed if isinstance(choice, str)]
