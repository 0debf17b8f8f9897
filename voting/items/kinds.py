"""What differs between the kinds of items that can be voted on: one small class for each.

Ballot, assignment, undo, skip, flag, exposure, reveal and progress know items only. All items of a
queue are of one kind, and `kind_of` says of which.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from math import fsum
from typing import Annotated, Any, Final, Literal, TypeAlias, TypedDict, cast

from pydantic import Field, JsonValue

from humanjudge.core.text import UNSTORABLE, listed, number_of
from humanjudge.core.validation import Line, Part
from voting.items.choices import (
    CHOICES,
    MILLION,
    PASS_FLAG,
    PASSES_FROM,
    SIDES,
    SWAPPED,
    TABLE,
    VOTES_FOR,
    WITHOUT_SIDE,
    WRONG,
    Choice,
    ChoiceRow,
    Fixed,
    Side,
    row_of,
)

# What stands for a set of no labels, and between the labels of a set.
NO_LABELS: Final = "none"
SEPARATOR: Final = ";"
RATINGS: Final = ("1", "2", "3", "4", "5")
LONGEST_COMMENT: Final = 2000
# Of what is kept of a vote or a verdict: all labels of a set together.
LONGEST_CHOICE: Final = 500
# An answer to a task beside the choice.
Label: TypeAlias = str | int | float | list[str]
# What a form has sent, by the names of its fields.
Posted: TypeAlias = Mapping[str, str]
# `Options`, as a queue or a ballot keeps them.
StoredOptions: TypeAlias = Mapping[str, JsonValue]
LONGEST_WORD: Final = 60
Noun = Literal["pair", "item"]
# What only some kinds have: each judge's labels beside people's, how it finds what people flag, how
# models do against each other, and how a judge answers in both orders of the outputs.
Figure = Literal["confusion", "flags", "models", "orders"]
Word = Annotated[Line, Field(max_length=LONGEST_WORD)]


class AnswerInvalid(ValueError):
    """An answer that the ballot does not offer: which field, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class Criterion(Part):
    """One of several things by which an output passes; each is answered by itself."""

    name: Word
    graded: bool = False
    weight: Annotated[float, Field(ge=0)] = 1.0
    # Where it does not pass in full, nothing else counts.
    gate: bool = False

    def rule(self, total: float) -> str:
        """Return what it counts beside the others, whose weights add up to a total with its own.

        >>> Criterion(name="safe", gate=True, weight=1.0).rule(4.0)
        'must pass · counts 25%'
        """
        gate = ("must reach 1" if self.graded else "must pass") if self.gate else ""
        share = f"counts {self.weight / total:.0%}" if self.weight else ""
        return " · ".join(filter(None, (gate, share)))


class Options(Part):
    """What a queue asks of a single output, beside its rubric and its choices."""

    # What is asked for, as files and figures name it.
    task: Word = "label"
    graded: bool = False
    flag_categories: Annotated[tuple[Word, ...], Field(strict=False, max_length=9)] = (
        "incorrect",
        "unsafe",
        "off-topic",
        "format",
        "other",
    )
    criteria: Annotated[tuple[Criterion, ...], Field(strict=False, max_length=20)] = ()
    # Where people disagree an item wants so many votes more: see voting.items.disputes.
    extra_votes: Annotated[int, Field(ge=0, le=100)] = 0
    critical_variance: Annotated[float, Field(gt=0, lt=0.25)] = 0.05

    @property
    def takes_grades(self) -> bool:
        """Whether a vote may lie between a flag and a pass."""
        return self.graded or bool(self.criteria)

    @property
    def criteria_in_words(self) -> tuple[str, ...]:
        """Say of each criterion how it is answered and what it counts, as people see it.

        >>> safe = Criterion(name="safe", gate=True, weight=0.0)
        >>> Options(criteria=(safe, Criterion(name="funny", graded=True))).criteria_in_words
        ('safe (pass or flag; must pass)', 'funny (from 0 to 1; counts 100%)')
        """
        total = sum(criterion.weight for criterion in self.criteria)
        return tuple(
            f"{criterion.name} ({'from 0 to 1' if criterion.graded else 'pass or flag'}"
            f"{'; ' if criterion.rule(total) else ''}{criterion.rule(total)})"
            for criterion in self.criteria
        )


DEFAULT_OPTIONS: Final = Options()


@dataclass(frozen=True, slots=True)
class VoteDetails:
    # Between 0 and 1, in millionths.
    value: int | None = None
    # Of a flag.
    category: str = ""
    comment: str = ""
    # Answers by task or criterion.
    labels: Mapping[str, Label] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VoteAnswer:
    choice: str
    details: VoteDetails | None = None


@dataclass(frozen=True, slots=True)
class Button:
    """A word of a ballot, with what the page asks of a `ChoiceRow`."""

    position: str
    spoken: str
    keys: str
    rest: str = ""

    @property
    def key_names(self) -> str:
        return self.keys


class ItemsConfig(TypedDict):
    items: dict[str, JsonValue] | None
    ballot: Sequence[str]


class Kind:
    """What is asked of an item, and what all its votes and verdicts are like."""

    # What queues, configs, files and the API call it.
    name: str
    # What one item is called on pages, and what the ledger calls it.
    noun: Noun = "item"
    subject: str = "item"
    # The sides of an item, each an output, and what outputs are called on the voting page.
    sides: tuple[Side, ...] = ("A",)
    names: tuple[str, ...] = ("Output",)
    template: str = "voting/ballot/_item.html"
    # The columns of an item that count its votes: all of them first.
    tally: tuple[str, ...] = ("votes",)
    # The choices, where they are the same for all queues, and those that every ballot offers.
    choices: tuple[Fixed, ...] = ()
    required: tuple[str, ...] = ()
    # Choices that prefer no output. A judge in two minds gives the first of them.
    without_side: tuple[str, ...] = ()
    # What a verdict may be beside the choices: right for no vote.
    never_right: tuple[str, ...] = ()
    # Whether a vote is its choice alone, without comment, value and labels.
    is_choice_only: bool = False
    # Figures that not all kinds have.
    figures: tuple[Figure, ...] = ("confusion",)
    # How far people liked an output, as sources of composites: the usual one first.
    shares: tuple[str, ...] = ("pass_rate",)
    # How a judge's choice and its scores are called on the page of an item.
    verb: str = "Said"
    scores: tuple[str, ...] = ("Score",)
    # Why a run ends that needs items and has none.
    no_items_reason: str = "No output came."

    def task(self, options: Options) -> str:
        """Return the name of what is asked, among the labels of votes and verdicts."""
        return options.task

    def request(self, ballot: Sequence[str], options: Options) -> str:
        """Say what a voter will do with each item."""
        raise NotImplementedError

    def config(self, ballot: Sequence[str], options: StoredOptions) -> ItemsConfig:
        return {"items": {"kind": self.name, **options}, "ballot": []}

    def buttons(self, ballot: Sequence[str]) -> Sequence[ChoiceRow | Button]:
        """Return the choices in their order; the first nine have keys."""
        keys = "123456789"[: len(ballot)]
        return [Button(word, word, key) for word, key in zip_longest(ballot, keys, fillvalue="")]

    def answer(
        self, posted: Posted, ballot: Sequence[str], options: Options, left: str
    ) -> VoteAnswer:
        """Return what a form says, in terms of the stored item; raise AnswerInvalid.

        Where nothing stood on the `left`, the form names the stored outputs.
        """
        choice = _require_offered("choice", posted.get("choice", ""), ballot)
        return VoteAnswer(choice, _vote_details(posted, labels=self.labelled(choice, options)))

    def labelled(self, choice: str, options: Options) -> dict[str, Label]:
        """Return what a choice says as labels of the task: what a vote or a verdict keeps."""
        return {options.task: choice}

    def typed(self, label: Label) -> Label:
        """Return an answer as files for other tools have it: a word, a rating or a list."""
        return str(label)

    def words(self, choice: str) -> list[str]:
        """Return the words of the ballot that a stored choice holds."""
        return [choice]

    def spoken(self, choice: str, left: str) -> str:
        """Return what a stored choice is called on the screen of a voter with this left side."""
        return choice

    def counted(self, choice: str, left_side: str, value: int | None) -> tuple[int, ...]:
        """Return what one vote adds to each column of `tally`."""
        return (1,)

    def is_ordered(self, options: Options) -> bool:
        """Say whether answers are in an order, so that judges are ranked by it."""
        return False


class Comparison(Kind):
    """Two outputs for one prompt: which is better, or neither."""

    name = "comparison"
    noun = "pair"
    subject = "comparison"
    sides = SIDES
    names = ("Left output", "Right output")
    template = "voting/ballot/_pair.html"
    # At last, of the votes for a side, how many saw it on the left or right, and how many chose
    # the left.
    tally = ("votes", *(VOTES_FOR[choice] for choice in CHOICES), "votes_sided", "votes_left")
    choices = CHOICES
    required = SIDES
    without_side = WITHOUT_SIDE
    never_right = (WRONG,)
    is_choice_only = True
    figures = ("models", "orders")
    shares = ("win_rate", "pass_rate")
    verb = "Picked"
    scores = ("A", "B")
    no_items_reason = "No two outputs of a prompt came, so there is no pair."

    def task(self, options: Options) -> str:
        return "winner"

    def request(self, ballot: Sequence[str], options: Options) -> str:
        return "You will see two outputs for one prompt and say which is better."

    def config(self, ballot: Sequence[str], options: StoredOptions) -> ItemsConfig:
        return {"items": None, "ballot": ballot}

    def buttons(self, ballot: Sequence[str]) -> Sequence[ChoiceRow]:
        """Return the choices of a ballot in the order of the page: a side's stands on that side."""
        return [row_of(choice) for choice in ("A", *WITHOUT_SIDE, "B") if choice in ballot]

    def answer(
        self, posted: Posted, ballot: Sequence[str], options: Options, left: str
    ) -> VoteAnswer:
        named = posted.get("choice", "")
        choice = self.choice_at(named, left) if left else named
        if choice is None or choice not in ballot:
            offered = [self.spoken(option, left) for option in ballot] if left else ballot
            raise AnswerInvalid("choice", f"{named!r} must be one of {', '.join(offered)}")
        return VoteAnswer(choice)

    def choice_at(self, position: str, left: str) -> str | None:
        """Translate what was pressed into the stored item's A and B; None for any other word.

        >>> COMPARISON.choice_at("left", "B"), COMPARISON.choice_at("both_bad", "B")
        ('B', 'both_bad')
        """
        for choice in CHOICES:
            if TABLE[choice].position == position:
                return choice if left == "A" else SWAPPED[choice]
        return None

    def spoken(self, choice: str, left: str) -> str:
        """Return what a stored choice is called on the screen of a voter with this left side.

        >>> COMPARISON.spoken("A", "B"), COMPARISON.spoken("both_bad", "A")
        ('Right', 'Both bad')
        """
        return row_of(choice if left == "A" else SWAPPED[cast(Choice, choice)]).spoken

    def labelled(self, choice: str, options: Options) -> dict[str, Label]:
        return {}

    def counted(self, choice: str, left_side: str, value: int | None) -> tuple[int, ...]:
        return _counted_of_pair(choice, left_side)


# Sealing asks for thousands in a second.
@cache
def _counted_of_pair(choice: str, left_side: str) -> tuple[int, ...]:
    names = ["votes", *(column for code, column in VOTES_FOR.items() if code == choice)]
    if left_side and choice in SIDES:
        names += ["votes_sided", "votes_left"] if choice == left_side else ["votes_sided"]
    return tuple(int(column in names) for column in Comparison.tally)


class PassFlag(Kind):
    """One output that passes or is flagged, or is graded between the two."""

    name = "pass_flag"
    tally = ("votes", *(VOTES_FOR[choice] for choice in PASS_FLAG), "value_sum", "value_squares")
    choices = PASS_FLAG
    required = PASS_FLAG
    figures = ("confusion", "flags")

    def request(self, ballot: Sequence[str], options: Options) -> str:
        if options.criteria:
            names = listed(f"{c.name} (must pass)" if c.gate else c.name for c in options.criteria)
            questions = number_of(len(options.criteria), "question")
            return _single_request(f"answer {questions} about it: {names}")
        if options.graded:
            return _single_request("grade it, from 0 to 1, which is as good as it can be")
        return _single_request("say whether it passes, or flag it")

    def answer(
        self, posted: Posted, ballot: Sequence[str], options: Options, left: str
    ) -> VoteAnswer:
        """Return a vote with its value: of the criteria, the grade, or the choice itself."""
        labels: dict[str, float] = {}
        if options.criteria:
            labels = {
                row.name: _grade(f"criterion.{row.name}", posted, is_graded=row.graded)
                for row in options.criteria
            }
            value = combined(options.criteria, labels)
        elif options.graded:
            value = _grade("value", posted, is_graded=True)
        else:
            # Whoever says why, flags.
            named = posted.get("choice") or "flag" * bool(posted.get("category"))
            value = row_of(_require_offered("choice", named, PASS_FLAG)).quality
        choice = PASS_FLAG[value < PASSES_FROM]
        category = posted.get("category", "") if choice == "flag" else ""
        if category:
            _require_offered("category", category, options.flag_categories)
        details = {"value": round(value * MILLION), "category": category, "labels": labels}
        return VoteAnswer(choice, _vote_details(posted, **details))

    def labelled(self, choice: str, options: Options) -> dict[str, Label]:
        return {}

    def buttons(self, ballot: Sequence[str]) -> Sequence[ChoiceRow | Button]:
        return [row_of(choice) for choice in ("flag", "pass")]

    def spoken(self, choice: str, left: str) -> str:
        return row_of(choice).spoken

    def counted(self, choice: str, left_side: str, value: int | None) -> tuple[int, ...]:
        is_pass, worth = choice == "pass", value or 0
        return (1, int(is_pass), int(not is_pass), worth, worth * worth)

    def is_ordered(self, options: Options) -> bool:
        return options.takes_grades


class Categories(Kind):
    """One output, and which one word of the ballot fits it."""

    name = "category"

    def request(self, ballot: Sequence[str], options: Options) -> str:
        return _single_request(f"choose what fits it: {listed(ballot, 'or')}")

    def config(self, ballot: Sequence[str], options: StoredOptions) -> ItemsConfig:
        return {"items": {"kind": self.name, "choices": [*ballot], **options}, "ballot": []}


class RatingKind(Kind):
    """One output, and how good it is: mostly from 1 to 5."""

    name = "rating"

    def request(self, ballot: Sequence[str], options: Options) -> str:
        lowest, highest = ballot[0], ballot[-1]
        return _single_request(f"rate it, from {lowest}, the lowest, to {highest}, the highest")

    def is_ordered(self, options: Options) -> bool:
        return True

    def buttons(self, ballot: Sequence[str]) -> Sequence[ChoiceRow | Button]:
        ends = {ballot[0]: "lowest", ballot[-1]: "highest"}
        return [Button(word, word, word, ends.get(word, "")) for word in ballot]

    def labelled(self, choice: str, options: Options) -> dict[str, Label]:
        return {options.task: self.typed(choice)}

    def typed(self, label: Label) -> float:
        number = float(cast(str, label))
        return int(number) if number.is_integer() else number


class Labels(Categories):
    """One output, and which of some labels fit it. The choices come in one field, separated."""

    name = "labels"

    def request(self, ballot: Sequence[str], options: Options) -> str:
        words = listed(ballot, "or")
        return _single_request(f"choose whichever of these fit it: {words}. None is an answer too")

    def spoken(self, choice: str, left: str) -> str:
        """Return a set in words.

        >>> KINDS["labels"].spoken("long;rude", ""), KINDS["labels"].spoken("none", "")
        ('long, rude', 'none of these')
        """
        return "none of these" if choice == NO_LABELS else choice.replace(SEPARATOR, ", ")

    def answer(
        self, posted: Posted, ballot: Sequence[str], options: Options, left: str
    ) -> VoteAnswer:
        labels = {word for word in posted.get("choice", "").split(SEPARATOR) if word}
        choice = joined(_require_offered("choice", word, ballot) for word in labels - {NO_LABELS})
        return VoteAnswer(choice, _vote_details(posted, labels=self.labelled(choice, options)))

    def words(self, choice: str) -> list[str]:
        return [] if choice == NO_LABELS else choice.split(SEPARATOR)

    def labelled(self, choice: str, options: Options) -> dict[str, Label]:
        return {options.task: self.words(choice)}

    def typed(self, label: Label) -> list[str]:
        return label if isinstance(label, list) else self.words(str(label))


class Text(Kind):
    """One output, and a free text about it."""

    name = "text"

    def request(self, ballot: Sequence[str], options: Options) -> str:
        return _single_request("answer in your own words")

    def answer(
        self, posted: Posted, ballot: Sequence[str], options: Options, left: str
    ) -> VoteAnswer:
        text = _storable("text", posted.get("text", "").strip())
        if not 0 < len(text) <= LONGEST_COMMENT:
            raise AnswerInvalid("text", f"between 1 and {LONGEST_COMMENT} characters")
        return VoteAnswer("", _vote_details(posted, labels={options.task: text}))


COMPARISON: Final = Comparison()
KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (COMPARISON, PassFlag(), Categories(), RatingKind(), Labels(), Text())
}


def kind_of(source: Any) -> Kind:
    """Return the kind of a queue or a ballot: of all its items."""
    return KINDS[source.kind]


def options_of(source: Any) -> Options:
    """Return what a queue or a ballot asks beside its choices."""
    return Options.model_validate(source.options) if source.options else DEFAULT_OPTIONS


def is_ordered(source: Any) -> bool:
    """Say whether answers are in an order, so that judges are ranked by it: ratings and grades."""
    return kind_of(source).is_ordered(options_of(source))


def grade_of(choice: str, score: int | None) -> float:
    """Return how good an answer of an ordered kind says an output is; `score` is in millionths.

    Of ratings the score decides between equal ones only.

    >>> grade_of("4", None), grade_of("pass", 800_000), grade_of("flag", None)
    (4.0, 0.8, 0.0)
    """
    if choice in PASS_FLAG:
        return row_of(choice).quality if score is None else score / MILLION
    return float(choice) + (score or 0) / (100 * MILLION)


def joined(labels: Iterable[str]) -> str:
    """Write a set of labels as votes and verdicts hold it.

    >>> joined({"rude", "long"}), joined([])
    ('long;rude', 'none')
    """
    return SEPARATOR.join(sorted(labels)) or NO_LABELS


def combined(criteria: Sequence[Criterion], grades: Mapping[str, float]) -> float:
    """Return the value of a vote on several criteria: 0 where a gate fails, else a weighted mean.

    Source: SCORING, composite with hard gates.

    >>> safe = Criterion(name="safe", gate=True, weight=0.0)
    >>> funny, short = Criterion(name="funny", weight=0.6), Criterion(name="short", weight=0.4)
    >>> round(combined([safe, funny, short], {"safe": 1.0, "funny": 0.9, "short": 0.7}), 6)
    0.82
    >>> combined([safe, funny, short], {"safe": 0.0, "funny": 1.0, "short": 1.0})
    0.0
    """
    if any(criterion.gate and grades[criterion.name] < 1 for criterion in criteria):
        return 0.0
    total = fsum(criterion.weight for criterion in criteria)
    if not total:
        return 1.0
    # Each product is made of a share, so that no rounding leaves [0, 1] by more than the last bit.
    weighted = (criterion.weight / total * grades[criterion.name] for criterion in criteria)
    return min(1.0, fsum(weighted))


def _require_offered(field: str, word: str, offered: Collection[str]) -> str:
    if word not in offered:
        raise AnswerInvalid(field, f"{word!r} must be one of {', '.join(offered)}")
    return word


def _single_request(request: str) -> str:
    return f"You will see one output at a time and {request}."


def _vote_details(posted: Posted, **fields: Any) -> VoteDetails:
    comment = posted.get("comment", "").strip()
    if len(comment) > LONGEST_COMMENT:
        raise AnswerInvalid("comment", f"longer than {LONGEST_COMMENT} characters")
    return VoteDetails(comment=_storable("comment", comment), **fields)


def _grade(field: str, posted: Posted, *, is_graded: bool) -> float:
    raw = posted.get(field, "")
    if not is_graded:
        return row_of(_require_offered(field, raw, PASS_FLAG)).quality
    try:
        grade = float(raw)
    except ValueError:
        raise AnswerInvalid(field, "must be a number between 0 and 1") from None
    if not 0 <= grade <= 1:
        raise AnswerInvalid(field, "must be between 0 and 1")
    return grade


def _storable(field: str, text: str) -> str:
    if UNSTORABLE.search(text):
        raise AnswerInvalid(field, "holds a character that cannot be stored")
    return text
