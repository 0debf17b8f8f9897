"""What the voting page asks of an item: its buttons or fields with their keys, and the words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final, TypeAlias

from humanjudge.core.text import duration, excerpt, number_of
from voting.items.choices import MILLION, PASS_FLAG, ChoiceRow, row_of
from voting.items.kinds import (
    COMPARISON,
    SEPARATOR,
    Button,
    Criterion,
    Options,
    Posted,
    kind_of,
    options_of,
)
from voting.models import Entry, Queue

# Nobody is told to sit longer than this at once.
LONG_SECONDS: Final = 45 * 60
_DIGITS: Final = "123456789"
_DEFAULT_TASK: Final = Options().task
# The forms: buttons that each send at once, fields and a button, a text.
CHOICES: Final = "voting/ballot/_choices.html"
FIELDS: Final = "voting/ballot/_fields.html"
TEXT: Final = "voting/ballot/_text.html"
# What keys do, and which ones.
KeyLines: TypeAlias = list[tuple[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Mark:
    """One of the answers of a field."""

    value: str
    label: str
    # What a screen reader is told was chosen.
    announcement: str
    # The keys that are shown, one character each, and the names browsers give to them.
    keys: str = ""
    key_names: str = ""
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """Answers of which one is to be chosen, or any number of them."""

    name: str
    label: str
    marks: Sequence[Mark]
    note: str = ""
    takes_many: bool = False

    @property
    def is_scale(self) -> bool:
        return len(self.marks) == len(_TENTHS) and not self.takes_many


@dataclass(frozen=True, slots=True)
class ItemQuestion:
    """All that stands in the form of one item, with what the voter had said before, if anything."""

    template: str
    # Above the answers, where the study has a word for what is asked.
    title: str = ""
    # Each sends the vote at once.
    buttons: Sequence[ChoiceRow | Button] = ()
    # Why an output is flagged: each flags it at once.
    reasons: Sequence[Mark] = ()
    fields: Sequence[Field] = ()
    # The same, where only all fields together tell whether it is flagged.
    reason_field: Field | None = None
    takes_comment: bool = True
    # Something may be wrong with an item that is no vote: a curator looks at it.
    takes_doubts: bool = True
    field_keys: Sequence[tuple[str, Sequence[str]]] = ()
    # What was answered before, by the names of the fields, and in words.
    answered: Posted = field(default_factory=dict)
    before: str = ""

    @property
    def is_long(self) -> bool:
        """Whether it is too high to stay in view on a phone."""
        return len(self.fields) > 1 or len(self.buttons) > _MOST_IN_A_ROW

    @property
    def on_touch(self) -> str:
        """What a finger may do."""
        sides = {button.position for button in self.buttons}
        gesture = ""
        if "left" in sides:
            gesture = ", or drag the pair to the better side and let go when it says so"
        elif "pass" in sides:
            gesture = ", or drag the item: to the right it passes, to the left it is flagged"
        return f"On a touch screen: tap{' a button' if self.buttons else ''}{gesture}."

    @property
    def key_lines(self) -> KeyLines:
        lines: KeyLines = [(f"{b.spoken} {b.rest}".strip(), b.keys) for b in self.buttons]
        if self.reasons:
            lines += [("Why it is flagged", [f"1\N{EN DASH}{len(self.reasons)}"]), *_NO_REASON]
        return [*lines, *self.field_keys, *(_COMMENT if self.takes_comment else ())]


_MOST_IN_A_ROW: Final = 5
_NO_REASON: Final[KeyLines] = [("Flag without a reason", ["Enter"])]
_COMMENT: Final[KeyLines] = [("Comment", ["C"])]
_SEND: Final[KeyLines] = [("Send", ["Enter"])]
_PASS_OR_FLAG: Final[KeyLines] = [("Pass, or 1", ["P"]), ("Flag, or 0", ["F"])]
_OF_LABELS: Final[KeyLines] = [("Tick, or untick", ["1\N{EN DASH}9"]), *_SEND]
_OF_CRITERIA: Final[KeyLines] = [*_PASS_OR_FLAG, *_SEND]
_OF_GRADES: Final[KeyLines] = [("Between 0 and 0.9", ["0\N{EN DASH}9"]), *_OF_CRITERIA]
_OF_TEXT: Final[KeyLines] = [("Write", ["Enter"]), ("Send what is written", ["Ctrl Enter"])]
_TENTHS: Final = tuple(f"{tenth / 10:g}" for tenth in range(11))


def question_of(queue: Queue, vote: Entry | None = None) -> ItemQuestion:
    """Return what is asked of each item of a queue; `vote` is one that was taken back."""
    if vote is None:
        return _QUESTIONS[queue.kind](queue, {})
    answered, before = posted_of(vote), f"{own_vote_in_words(vote)} before."
    return replace(_QUESTIONS[queue.kind](queue, answered), answered=answered, before=before)


def _pair_question(queue: Queue, answered: Posted) -> ItemQuestion:
    return ItemQuestion(CHOICES, buttons=kind_of(queue).buttons(queue.ballot), takes_comment=False)


def _word_question(queue: Queue, answered: Posted) -> ItemQuestion:
    return ItemQuestion(CHOICES, _title(queue), kind_of(queue).buttons(queue.ballot))


def _flag_question(queue: Queue, answered: Posted) -> ItemQuestion:
    options = options_of(queue)
    if not options.takes_grades:
        buttons = kind_of(queue).buttons(queue.ballot)
        words = zip(options.flag_categories, _DIGITS, strict=False)
        reasons = [Mark(word, word, f"Flag, {word}", key, key) for word, key in words]
        return ItemQuestion(CHOICES, buttons=buttons, reasons=reasons, takes_doubts=False)
    total = sum(criterion.weight for criterion in options.criteria)
    fields = [_criterion(criterion, total, answered) for criterion in options.criteria]
    fields = fields or [_scale("value", "How good is it?", "", answered)]
    keys = _OF_GRADES if any(field.is_scale for field in fields) else _OF_CRITERIA
    marks = [
        Mark(word, word, f"Flag, {word}", is_chosen=answered.get("category") == word)
        for word in options.flag_categories
    ]
    reason_field = Field("category", "If it is flagged, why?", marks) if marks else None
    return ItemQuestion(
        FIELDS, fields=fields, field_keys=keys, reason_field=reason_field, takes_doubts=False
    )


def _label_question(queue: Queue, answered: Posted) -> ItemQuestion:
    labels = answered.get("choice", "").split(SEPARATOR)
    marks = [
        Mark(word, word, word, key, key, word in labels)
        for word, key in zip_longest(queue.ballot, _DIGITS[: len(queue.ballot)], fillvalue="")
    ]
    label = _title(queue) or "Which of these fit?"
    field = Field("choice", label, marks, "as many as fit, or none", takes_many=True)
    return ItemQuestion(FIELDS, fields=[field], field_keys=_OF_LABELS)


def _text_question(queue: Queue, answered: Posted) -> ItemQuestion:
    title = _title(queue) or "Your answer"
    return ItemQuestion(TEXT, title, takes_comment=False, field_keys=_OF_TEXT)


_QUESTIONS: Final[Mapping[str, Callable[[Queue, Posted], ItemQuestion]]] = {
    COMPARISON.name: _pair_question,
    "pass_flag": _flag_question,
    "category": _word_question,
    "rating": _word_question,
    "labels": _label_question,
    "text": _text_question,
}


def _title(queue: Queue) -> str:
    task = options_of(queue).task
    return "" if task == _DEFAULT_TASK else task[:1].upper() + task[1:]


def _criterion(criterion: Criterion, total: float, answered: Posted) -> Field:
    name = f"criterion.{criterion.name}"
    if criterion.graded:
        return _scale(name, criterion.name, criterion.rule(total), answered)
    marks = [
        Mark(choice, row.spoken, f"{criterion.name}: {choice}", row.keys, row.key_names, is_chosen)
        for choice in reversed(PASS_FLAG)
        for row, is_chosen in [(row_of(choice), answered.get(name) == choice)]
    ]
    return Field(name, criterion.name, marks, criterion.rule(total))


def _scale(name: str, label: str, note: str, answered: Posted) -> Field:
    subject = "" if name == "value" else f"{label}: "
    keys = {"0": ("0F", "0 f"), "1": ("P", "p")}
    marks = [
        Mark(tenth, digit, f"{subject}{tenth}", *key, is_chosen=answered.get(name) == tenth)
        for tenth in _TENTHS
        for digit in [tenth[-2:]]
        for key in [keys.get(tenth, (digit[1:], digit[1:]))]
    ]
    return Field(name, label, marks, note)


# --- votes in words -------------------------------------------------------------------------------


def posted_of(vote: Entry) -> dict[str, str]:
    """Return a vote on a single output as the form that it was cast with had it."""
    posted = {"choice": vote.choice, "category": vote.category, "comment": vote.comment}
    if vote.value is not None:
        posted["value"] = f"{vote.value / MILLION:g}"
        posted |= {f"criterion.{name}": grade for name, grade in _criterion_words(vote).items()}
    elif not vote.choice:
        posted["text"] = _text_of(vote)
    return posted


def _criterion_words(vote: Entry) -> dict[str, str]:
    assert vote.queue is not None  # a vote on an item has one
    labels = vote.labels or {}
    return {
        row.name: f"{labels[row.name]:g}" if row.graded else PASS_FLAG[labels[row.name] < 1]
        for row in options_of(vote.queue).criteria
        if row.name in labels
    }


def _text_of(vote: Entry) -> str:
    return "".join(map(str, (vote.labels or {}).values()))


def in_words(vote: Entry) -> str:
    """Return what a vote says, as it stood on the screen of who voted."""
    assert vote.queue is not None  # a vote on an item has one
    spoken = kind_of(vote.queue).spoken(vote.choice, vote.left_side or "A")
    if vote.value is None:
        return spoken if vote.choice else excerpt(_text_of(vote))
    details = [f"{name} {grade}" for name, grade in _criterion_words(vote).items()]
    if not details and options_of(vote.queue).graded:
        details = [f"{vote.value / MILLION:g}"]
    details += [vote.category] if vote.category else []
    return f"{spoken} ({', '.join(details)})" if details else spoken


def own_vote_in_words(vote: Entry) -> str:
    return f"You {'chose' if vote.choice else 'wrote'} {in_words(vote)}"


def effort_in_words(items: int, noun: str, seconds: float) -> str:
    """Say how long voting takes one person.

    >>> effort_in_words(30, "pair", 12.4)
    '30 pairs, about 12 s each: some 7 min in all.'
    >>> effort_in_words(900, "item", 15)
    '900 items, about 15 s each. Vote on as many as you like.'
    >>> effort_in_words(0, "pair", 15)
    'No pair is ready yet; a vote takes about 15 s.'
    """
    vote_time = duration(round(seconds))
    if not items:
        return f"No {noun} is ready yet; a vote takes about {vote_time}."
    words = f"{number_of(items, noun)}, about {vote_time} each"
    if items * seconds > LONG_SECONDS:
        return f"{words}. Vote on as many as you like."
    return f"{words}: some {duration(items * seconds)} in all."


def request_in_words(queue: Queue) -> str:
    """Return what a voter will be asked to do, before the first item is seen."""
    return kind_of(queue).request(queue.ballot, options_of(queue))
