"""What a queue of single items asks of people and judges, and their answers as it keeps them.

Where an import does not state what is asked, the answers themselves tell: `Answers` looks at each.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import meant
from judge_eval.imports import fields
from judge_eval.imports.fields import Label, Unfit, shorten
from judge_eval.imports.import_report import ImportOptions, VoteKind
from judge_eval.imports.row_models import MAIN, ImportRow, InvalidField, ShapeName, checked
from voting.items.choices import DEFAULT_BALLOT, MILLION, PASS_FLAG, in_order
from voting.items.kinds import (
    LONGEST_CHOICE,
    LONGEST_WORD,
    SEPARATOR,
    Options,
    combined,
    joined,
    options_of,
)

# A vote or verdict by the columns of its row in the database.
Columns: TypeAlias = JsonObject
PASS, FLAG = PASS_FLAG
# More different answers, or longer ones, are texts of people's own.
MOST_CATEGORIES: Final = 20
MOST_NAMED: Final = 5
MOST_CHOICES: Final = 200
MOST_FLAG_CATEGORIES: Final = 9
USUAL_RATING: Final = 5
# Ratings from 0 to 100 are so where they are beyond the first.
HIGHEST_SHORT, HIGHEST_LONG = 10, 100
# How far apart ratings are: the widest that all of them fit, and how often it is in 1.
_STEPS: Final = (1, 2, 10, 20)
# In the error of a verdict that is outside the choices, which follow.
NONE_OF: Final = "none of: "
_USUAL_JSON: Final = Options().model_dump(mode="json")


class Queued(Protocol):
    """A queue of the database, as far as this needs it."""

    kind: str
    ballot: list[str]
    options: Any


# --- one answer -----------------------------------------------------------------------------------


class ParsedAnswer(NamedTuple):
    """An answer: the choice that agreement is told by, its typed label, its worth in millionths.

    A label is None where the choice says all, a value is None but for pass or flag.
    """

    choice: str
    label: str | float | bool | list[str] | None = None
    value: int | None = None


def answer_of(kind: VoteKind, raw: Label) -> ParsedAnswer:
    """Read one answer; raises Unfit.

    Examples
    --------
    >>> answer_of("pass_flag", "0.8"), answer_of("rating", 4).choice
    (ParsedAnswer(choice='pass', label=None, value=800000), '4')
    >>> answer_of("labels", ("b", "a")), answer_of("labels", ()).choice
    (ParsedAnswer(choice='a;b', label=['a', 'b'], value=None), 'none')
    """
    return _READERS[kind](raw)


def _pass_flag(raw: Label) -> ParsedAnswer:
    worth = _worth(raw)
    if worth is None or not 0 <= worth <= 1:
        quoted = shorten(str(raw))
        raise Unfit(f"{quoted!r} is neither {PASS}, {FLAG} nor a number within 0..1")
    value = round(worth * MILLION)
    return ParsedAnswer(PASS if 2 * value >= MILLION else FLAG, value=value)


# Words that can mean nothing else, and those that are taken for such beside them alone: where all
# is yes or no, what is asked may be whether something is wrong.
_MARKS: Final = {
    **dict.fromkeys((PASS, "passed", "\N{THUMBS UP SIGN}"), 1.0),
    **dict.fromkeys((FLAG, "flagged", "fail", "failed", "\N{THUMBS DOWN SIGN}"), 0.0),
}
_TRUTHS: Final = {
    **dict.fromkeys(("true", "yes", "correct"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect"), 0.0),
}


def _worth(raw: Label) -> float | None:
    if isinstance(raw, bool):
        return float(raw)
    word = raw.strip().lower() if isinstance(raw, str) else ""
    return (_MARKS | _TRUTHS).get(word) if word in _MARKS or word in _TRUTHS else _number(raw)


def _number(raw: Label) -> float | None:
    if isinstance(raw, bool | tuple):
        return None
    try:
        return fields.number(raw)
    except Unfit:
        return None


def _category(raw: Label) -> ParsedAnswer:
    if isinstance(raw, tuple):
        raise Unfit("must be one label, not a list")
    word = _one_line(_spelt(raw))
    return ParsedAnswer(word, word)


def _one_line(word: str) -> str:
    if not _is_short(word):
        raise Unfit(f"{shorten(word)!r} is not one line of 1 to {LONGEST_WORD} characters")
    return word


def _is_short(word: str) -> bool:
    return 0 < len(word) <= LONGEST_WORD and word.isprintable()


def _spelt(raw: Label) -> str:
    if isinstance(raw, bool):
        return str(raw).lower()
    return f"{raw:g}" if isinstance(raw, float) else str(raw).strip()


def _rating(raw: Label) -> ParsedAnswer:
    number = _number(raw)
    if number is None:
        raise Unfit(f"{shorten(str(raw))!r} is not a number")
    return ParsedAnswer(f"{number:.10g}", int(number) if number == int(number) else number)


def _labels(raw: Label) -> ParsedAnswer:
    raw_words = raw if isinstance(raw, tuple) else fields.words(_spelt(raw))
    words = sorted(_one_line(word) for word in {word.strip() for word in raw_words} - {""})
    if wrong := next((word for word in words if SEPARATOR in word), None):
        raise Unfit(f"{shorten(wrong)!r} holds {SEPARATOR!r}")
    choice = joined(words)
    if len(choice) > LONGEST_CHOICE:
        raise Unfit(f"labels of more than {LONGEST_CHOICE} characters together")
    return ParsedAnswer(choice, words)


def _text(raw: Label) -> ParsedAnswer:
    return ParsedAnswer("", SEPARATOR.join(raw) if isinstance(raw, tuple) else raw)


_READERS: Final[dict[VoteKind, Callable[[Label], ParsedAnswer]]] = {
    "pass_flag": _pass_flag,
    "category": _category,
    "rating": _rating,
    "labels": _labels,
    "text": _text,
}


# --- all answers ----------------------------------------------------------------------------------


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
        self.number = 0
        self._words: set[str] = set()
        self._lowest, self._highest = inf, -inf
        # Of the steps that ratings are apart, the first that may still be right.
        self._step = 0
        self._has_lists = self._has_mark = False
        self._are_marks = self._are_ratings = self._are_words = self._are_short = True

    def take(self, label: Label) -> None:
        number, worth = _number(label), _worth(label)
        self.number += 1
        self._has_lists |= isinstance(label, tuple)
        self._are_marks &= not isinstance(label, bool) and worth is not None and 0 <= worth <= 1
        self._has_mark |= number is not None or str(label).strip().lower() in _MARKS
        self._are_ratings &= number is not None
        self._are_words &= number is None
        if number is not None:
            self._lowest, self._highest = min(self._lowest, number), max(self._highest, number)
            while self._step < len(_STEPS) and round(number * _STEPS[self._step], 6) % 1:
                self._step += 1
        self.graded |= number is not None and 0 < number < 1
        for word in label if isinstance(label, tuple) else (_spelt(label),):
            self._are_short &= _is_short(word)
            if len(self._words) <= MOST_CHOICES:
                self._words.add(word[:LONGEST_WORD])

    @property
    def words(self) -> list[str]:
        return sorted(self._words)

    @property
    def kind(self) -> VoteKind:
        """What was asked.

        A set of labels where any answer is a list; pass or flag where all are these words, in any
        of their spellings, or numbers from 0 to 1, or where there is none; a rating where all are
        numbers; a category where there are few different ones and none is long; else a text. Raises
        Unfit where only some of few short answers are numbers.
        """
        if self._has_lists:
            return "labels"
        if self._are_marks and (self._has_mark or not self.number):
            return "pass_flag"
        if self._are_ratings:
            return "rating"
        are_few = len(self._words) <= MOST_CATEGORIES and self._are_short
        if are_few and not self._are_words:
            words = ", ".join(sorted(map(shorten, self._words))[:MOST_NAMED])
            raise Unfit(f"some answers are numbers, and some are not: {words}; say vote_kind")
        return "category" if are_few else "text"

    def ballot(self, kind: VoteKind) -> list[str]:
        """Return the choices that occur; raises Unfit where they are too many to choose from."""
        if kind == "pass_flag":
            return [*PASS_FLAG]
        if kind == "rating":
            return self._scale()
        if kind == "text":
            return []
        if len(self._words) > MOST_CHOICES:
            raise Unfit(f"more than {MOST_CHOICES} different answers: is it the right task?")
        return sorted(self._words)

    def _scale(self) -> list[str]:
        lowest, highest = self._lowest, self._highest
        if lowest < 0:
            lowest, highest = min(lowest, -highest), max(highest, -lowest)
        elif HIGHEST_SHORT < highest <= HIGHEST_LONG:
            lowest, highest = 0, HIGHEST_LONG
        else:
            lowest, highest = min(lowest, 1), max(highest, USUAL_RATING)
        per_step = _STEPS[self._step] if self._step < len(_STEPS) else 0
        number = round((highest - lowest) * per_step) + 1
        if not 0 < number - 1 <= MOST_CHOICES:
            span = f"{lowest:.10g} to {highest:.10g}"
            raise Unfit(f"too many ratings lie within {span}: round them, or map them to fewer")
        return [f"{lowest + place / per_step:.10g}" for place in range(number)]


# --- what is asked --------------------------------------------------------------------------------


class ImportQuestion:
    """What is asked, as far as it is known: of a new run, the answers tell what is not stated.

    The first answer tells the task; people's answers tell the kind and the choices, and those of
    judges only where there are no others. Until these are known an answer is kept as it was given,
    under `MAIN`, and `settled` makes a choice of it.
    """

    def __init__(self, options: ImportOptions, queue: Queued | None = None) -> None:
        # What a person should know of how answers are read.
        self.notes: list[str] = []
        self._is_fixed = queue is not None
        self._of_people, self._of_judges = Answers(), Answers()
        # By judge: its verdicts, those that are numbers, and those that lie between 0 and 1.
        self._verdicts, self._numbers, self._shares = Counter[str](), Counter[str](), Counter[str]()
        self._has_others = False
        self._asks: Any = None
        self._kind: VoteKind | None = options.single_kind
        self._task, self._ballot, self._is_graded = options.task, options.ballot, options.graded
        self._more = options.queue_options
        if queue is not None:
            self._more = options_of(queue)
            self._kind, self._ballot = queue.kind, queue.ballot  # type: ignore[assignment]
            self._task = self._more.task
        self._criteria, self._categories = self._more.criteria, [*self._more.flag_categories]

    def take(self, row: ImportRow) -> None:
        """Check what a row answers, and learn from it; raises InvalidField."""
        self._asks = self._asks or row.asks
        if not row.labels or row.error:
            return
        main = self._main(row)
        if main is None:
            self._has_others = True
            return
        if row.judge:
            # A judge that answers anything else has failed, and its file is right.
            self._of_judges.take(main)
            number = _number(main)
            self._verdicts[row.judge] += 1
            self._numbers[row.judge] += number is not None
            self._shares[row.judge] += number is not None and 0 < number < 1
            return
        self._of_people.take(main)
        if self._kind:
            answer = checked("vote", main, partial(answer_of, self._kind))
            if unknown := self._not_offered(self._kind, answer):
                raise off_ballot(shorten(unknown), self._ballot or ())
        if row.category:
            self._check_category(row.category)

    @property
    def _answers(self) -> Answers:
        return self._of_people if self._of_people.number else self._of_judges

    def _not_offered(self, kind: VoteKind, answer: ParsedAnswer) -> str | None:
        if kind == "text" or not self._ballot:
            return None
        words = answer.label if isinstance(answer.label, list) else [answer.choice]
        return next((word for word in words if word not in self._ballot), None)

    def _check_category(self, category: str) -> None:
        if category in self._categories:
            return
        if self._is_fixed or len(self._categories) == MOST_FLAG_CATEGORIES:
            names = f"{', '.join(self._categories)}{meant(category, self._categories)}"
            raise InvalidField("category", f"{shorten(category)!r} is not one of {names}")
        self._categories.append(category)

    def _main(self, row: ImportRow) -> Label | None:
        if self._criteria and MAIN not in row.labels:
            return combined(self._criteria, self._grades(row))
        if self._task is None and MAIN not in row.labels:
            self._task = next(iter(row.labels))
        task = self._task or self._more.task
        named = row.labels.get(task)
        main = row.labels.get(MAIN, named)
        if named not in (None, main):
            raise InvalidField("labels", f"the answer to {task!r} stands there twice")
        return main

    def _grades(self, row: ImportRow) -> dict[str, float]:
        grades = {}
        for name in (criterion.name for criterion in self._criteria):
            if (label := row.labels.get(name)) is None:
                raise InvalidField("labels", f"no answer to {name!r}, which is a criterion")
            grade = checked(f"labels.{name}", label, partial(answer_of, "pass_flag"))
            grades[name] = (grade.value or 0) / MILLION
        return grades

    def statement(self, row: ImportRow) -> Columns | None:
        """Return the labels of a row, as they are kept until they are `settled`."""
        if not row.labels or row.error:
            return plain_labels(row)
        other_labels = {name: label for name, label in row.labels.items() if name != self._task}
        if self._criteria and MAIN not in row.labels:
            other_labels |= self._grades(row)
        if (main := self._main(row)) is not None:
            other_labels[MAIN] = main
        return {name: _plain(label) for name, label in other_labels.items()}

    def settled(self, columns: Columns, choice: str) -> Columns:
        """Return a vote or verdict with its choice and value, once the kind is known.

        A verdict waits for the ballot too: one that says anything else has failed.
        """
        labels = dict(columns["labels"] or {})
        is_early = choice == "winner" and not self._is_fixed
        is_answered = MAIN in labels or columns.get("winner") or columns.get("state") == "failed"
        if choice == "winner" and labels and not is_answered:
            # Without an answer to what is asked a verdict has failed; a vote has no choice.
            reason = f"no answer to {self._task or self._more.task!r}, which is asked"
            return columns | {"state": "failed", "error": reason}
        if self._kind is None or is_early or MAIN not in labels:
            return columns
        raw = labels.pop(MAIN)
        raw = tuple(raw) if isinstance(raw, list) else raw
        if choice == "winner" and (reason := self._failure_of(self._kind, raw)):
            no_answer = {"labels": None, "score_a": None, "score_b": None}
            return columns | {"state": "failed", "error": reason} | no_answer
        answer = answer_of(self._kind, raw)
        if choice == "winner" and self._more.takes_grades and columns.get("score_a") is None:
            columns = columns | {"score_a": _number(raw)}
        if answer.label is not None:
            labels = {self._task or self._more.task: answer.label, **labels}
        settled_columns = columns | {choice: answer.choice, "labels": labels or None}
        if choice == "winner":
            # A free text is no choice; but a verdict always says something.
            return settled_columns | {choice: answer.choice or str(answer.label)[:LONGEST_CHOICE]}
        return settled_columns | {"value": answer.value}

    def _failure_of(self, kind: VoteKind, raw: Label) -> str:
        """Return the error of a verdict that is no answer here, empty where it is one."""
        number = _number(raw)
        is_between = number is not None and 0 < number < 1
        with suppress(Unfit):
            if kind == "rating" and self._ballot and number is not None:
                is_answer = float(self._ballot[0]) <= number <= float(self._ballot[-1])
            elif kind == "pass_flag" and is_between:
                is_answer = self._more.takes_grades
            else:
                is_answer = self._not_offered(kind, answer_of(kind, raw)) is None
            if is_answer:
                return ""
        quoted = shorten(SEPARATOR.join(raw) if isinstance(raw, tuple) else str(raw))
        return f"{quoted!r} is {NONE_OF}{', '.join(self._ballot or ())}"

    def rules(self) -> Columns:
        """Return what a new queue is to ask, as its columns hold it; raises Unfit, also where
        verdicts are no answers to what is asked.
        """
        if self._is_fixed:
            self._refuse_numbers(self._kind, takes_grades=self._more.takes_grades)
            return {}
        if self._has_others and not self._answers.number:
            raise Unfit(f"no row answers {self._task!r}, which is asked")
        is_graded_there = self._asks == "graded" and any(self._shares.values())
        kind = self._kind or (None if self._of_people.number else self._asks)
        kind = "pass_flag" if kind == "graded" else kind
        if not kind:
            kind, of_judges = self._of_people.kind, self._of_judges.kind
            if not self._of_people.number and of_judges != kind:
                reason = "nobody votes here, and what judges say does not tell what is asked"
                raise Unfit(f"{reason}: say vote_kind, for instance {of_judges}")
        # Grades of single criteria make a value that lies between.
        is_seen = (self._of_people.graded or is_graded_there) and not self._criteria
        is_graded = is_seen if self._is_graded is None else self._is_graded
        self._refuse_numbers(kind, takes_grades=is_graded or bool(self._criteria))
        options = self._more.model_dump(mode="json") | {
            "task": self._task or self._more.task,
            "graded": kind == "pass_flag" and is_graded,
            "flag_categories": self._categories,
        }
        ballot = self._ballot or self._answers.ballot(kind)
        self._note_how_read(kind, ballot)
        return {
            "kind": kind,
            "ballot": ballot,
            "options": {
                name: value for name, value in options.items() if value != _USUAL_JSON[name]
            },
        }

    def _note_how_read(self, kind: VoteKind, ballot: Sequence[str]) -> None:
        if kind == "rating" and ballot != [f"{number}" for number in range(1, USUAL_RATING + 1)]:
            self.notes.append(f"What people say are ratings from {ballot[0]} to {ballot[-1]}.")
        read_as: dict[float, list[str]] = {1.0: [], 0.0: []}
        for word in self._of_people.words if kind == "pass_flag" else ():
            if word.lower() not in PASS_FLAG and _number(word) is None:
                read_as[_worth(word) or 0.0].append(word)
        for worth, choice in ((1.0, PASS), (0.0, FLAG)):
            if read_as[worth]:
                self.notes.append(f"Read as {choice}: {', '.join(read_as[worth])}.")

    def _refuse_numbers(self, kind: VoteKind | None, *, takes_grades: bool) -> None:
        """Refuse verdicts that are numbers where answers are none; raises Unfit.

        A few of a judge's are failed verdicts, as is all else that is no answer.
        """
        if kind == "rating" or takes_grades:
            return
        numbers = self._shares if kind == "pass_flag" else self._numbers
        for judge, number in numbers.items():
            if 2 * number > self._verdicts[judge]:
                column = f'{{"judges": {{"{judge}": {{"column": "verdict.{judge}", '
                remedy = (
                    '"threshold": 0.5}}}, or say graded'
                    if kind == "pass_flag"
                    else ('"values": {"1": "…"}}}}')
                )
                raise Unfit(
                    f"{judge} says numbers, and what is asked is {kind}: map {column}{remedy}"
                )


class PairQuestion:
    """The same of pairs, whose choices are few and known."""

    notes: Sequence[str] = ()

    def __init__(self, options: ImportOptions, queue: Queued | None = None) -> None:
        # Of a new run without a stated ballot, every choice that occurs is on it.
        self._is_fixed = queue is not None or options.ballot is not None
        self._ballot = {*(queue.ballot if queue else options.ballot or DEFAULT_BALLOT)}

    def take(self, row: ImportRow) -> None:
        if not self._is_fixed:
            self._ballot |= {choice for choice in (row.vote, row.verdict) if choice}
        elif row.vote and row.vote not in self._ballot:
            raise off_ballot(row.vote, in_order(self._ballot))

    def statement(self, row: ImportRow) -> Columns | None:
        return plain_labels(row)

    def settled(self, columns: Columns, choice: str) -> Columns:
        return columns

    def rules(self) -> Columns:
        return {"ballot": in_order(self._ballot)}


def question_of(
    shape: ShapeName, options: ImportOptions, queue: Queued | None = None
) -> ImportQuestion | PairQuestion:
    kind = PairQuestion if shape == "pair" else ImportQuestion
    return kind(options, queue)


def off_ballot(choice: str, ballot: Iterable[str]) -> InvalidField:
    return InvalidField("vote", f"{choice!r} is not on the ballot: {', '.join(ballot)}")


def plain_labels(row: ImportRow) -> Columns | None:
    return {name: _plain(label) for name, label in row.labels.items()} or None


def _plain(label: Label) -> Any:
    return list(label) if isinstance(label, tuple) else label
