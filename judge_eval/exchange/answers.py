"""What a queue of single items asks, and one answer to it as votes and verdicts hold it.

Where an import does not state what is asked, the answers themselves tell: `Answers` looks at each.
"""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from judge_eval.exchange import fields
from judge_eval.exchange.fields import Label, Unfit
from voting.choices import ONE, PASS_FLAG
from voting.kinds import LONGEST_CHOICE, LONGEST_WORD, SEPARATOR, joined

PASS, FLAG = PASS_FLAG
VoteKind = Literal["pass_flag", "category", "rating", "labels", "text"]
# More different answers, or longer ones, are texts of people's own.
MOST_CATEGORIES: Final = 20
MOST_CHOICES: Final = 200
HIGHEST_RATING: Final = 10
USUAL_RATING: Final = 5


class Answer(NamedTuple):
    """An answer: the choice that agreement is told by, its typed label, its worth in millionths.

    A label is None where the choice says all, a value is None but for pass or flag.
    """

    choice: str
    label: str | float | bool | list[str] | None = None
    value: int | None = None


def answer_of(kind: VoteKind, raw: Label) -> Answer:
    """Read one answer; raises Unfit.

    Examples
    --------
    >>> answer_of("pass_flag", "0.8"), answer_of("rating", 4).choice
    (Answer(choice='pass', label=None, value=800000), '4')
    >>> answer_of("labels", ("b", "a")), answer_of("labels", ()).choice
    (Answer(choice='a;b', label=['a', 'b'], value=None), 'none')
    """
    return _READERS[kind](raw)


def _pass_flag(raw: Label) -> Answer:
    worth = _worth(raw)
    if worth is None or not 0 <= worth <= 1:
        shown = fields.shorten(str(raw))
        raise Unfit(f"{shown!r} is neither {PASS}, {FLAG} nor a number within 0..1")
    value = round(worth * ONE)
    return Answer(PASS if 2 * value >= ONE else FLAG, value=value)


def _worth(raw: Label) -> float | None:
    if isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, str) and raw.strip().lower() in (PASS, FLAG):
        return float(raw.strip().lower() == PASS)
    return _number(raw)


def _number(raw: Label) -> float | None:
    """Return the number that a label is, also one that is written as text."""
    if isinstance(raw, bool | tuple):
        return None
    try:
        return fields.number(raw)
    except Unfit:
        return None


def _category(raw: Label) -> Answer:
    word = _word(raw)
    return Answer(word, word)


def _word(raw: Label) -> str:
    if isinstance(raw, tuple):
        raise Unfit("must be one label, not a list")
    return _checked(_spelt(raw))


def _checked(word: str) -> str:
    if not _is_short(word):
        raise Unfit(f"{fields.shorten(word)!r} is not one line of 1 to {LONGEST_WORD} characters")
    return word


def _is_short(word: str) -> bool:
    return 0 < len(word) <= LONGEST_WORD and word.isprintable()


def _spelt(raw: Label) -> str:
    if isinstance(raw, bool):
        return str(raw).lower()
    return f"{raw:g}" if isinstance(raw, float) else str(raw).strip()


def _rating(raw: Label) -> Answer:
    number = _number(raw)
    if number is None or int(number) != number:
        raise Unfit(f"{fields.shorten(str(raw))!r} is not a whole number")
    return Answer(str(int(number)), int(number))


def _labels(raw: Label) -> Answer:
    given = raw if isinstance(raw, tuple) else fields.words(_spelt(raw))
    words = sorted(_checked(word) for word in {word.strip() for word in given} - {""})
    if wrong := next((word for word in words if SEPARATOR in word), None):
        raise Unfit(f"{fields.shorten(wrong)!r} holds {SEPARATOR!r}")
    choice = joined(words)
    if len(choice) > LONGEST_CHOICE:
        raise Unfit(f"labels of more than {LONGEST_CHOICE} characters together")
    return Answer(choice, words)


def _text(raw: Label) -> Answer:
    return Answer("", SEPARATOR.join(raw) if isinstance(raw, tuple) else raw)


_READERS: Final[dict[VoteKind, Callable[[Label], Answer]]] = {
    "pass_flag": _pass_flag,
    "category": _category,
    "rating": _rating,
    "labels": _labels,
    "text": _text,
}


class Answers:
    """Tells from answers what was asked.

    Examples
    --------
    >>> answers = Answers()
    >>> for label in ("yes", "no", "yes"):
    ...     answers.take(label)
    >>> answers.kind, answers.ballot(answers.kind)
    ('category', ['no', 'yes'])
    """

    def __init__(self) -> None:
        self.graded = False
        self._words: set[str] = set()
        self._highest = USUAL_RATING
        self._lowest = 1
        self._has_lists = False
        self._are_marks = self._are_ratings = self._are_words = self._are_short = True

    def take(self, label: Label) -> None:
        number, worth = _number(label), _worth(label)
        self._has_lists |= isinstance(label, tuple)
        self._are_marks &= not isinstance(label, bool) and worth is not None and 0 <= worth <= 1
        self._are_ratings &= number in range(HIGHEST_RATING + 1)
        self._are_words &= number is None
        if number is not None and self._are_ratings:
            self._lowest, self._highest = (
                min(self._lowest, int(number)),
                max(self._highest, int(number)),
            )
        self.graded |= number is not None and 0 < number < 1
        for word in label if isinstance(label, tuple) else (_spelt(label),):
            self._are_short &= _is_short(word)
            if len(self._words) <= MOST_CHOICES:
                self._words.add(word[:LONGEST_WORD])

    @property
    def kind(self) -> VoteKind:
        """What was asked.

        A set of labels where any answer is a list; pass or flag where all are these words or
        numbers from 0 to 1, or where there is none; a rating where all are whole numbers from 0 to
        10; a category where there are few different ones and none is long; else a text.
        """
        if self._has_lists:
            return "labels"
        if self._are_marks:
            return "pass_flag"
        if self._are_ratings:
            return "rating"
        are_few = len(self._words) <= MOST_CATEGORIES and self._are_short
        return "category" if self._are_words and are_few else "text"

    def ballot(self, kind: VoteKind) -> list[str]:
        """Return the choices that occur; raises Unfit where they are too many to choose from."""
        if kind == "pass_flag":
            return [*PASS_FLAG]
        if kind == "rating":
            return [str(number) for number in range(self._lowest, self._highest + 1)]
        if kind == "text":
            return []
        if len(self._words) > MOST_CHOICES:
            raise Unfit(f"more than {MOST_CHOICES} different answers: is it the right task?")
        return sorted(self._words)
