"""What a queue of single items asks of people and judges, and their answers as rows keep them."""

from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from judge_eval.exchange.answers import Answers, VoteKind, answer_of
from judge_eval.exchange.fields import Label, Unfit, shorten
from judge_eval.exchange.import_report import ImportOptions
from judge_eval.exchange.rows import MAIN, Misfit, Row
from voting.choices import ONE
from voting.kinds import LONGEST_CHOICE, Options, combined, options_of
from voting.models import Queue

Columns: TypeAlias = dict[str, Any]
USUAL: Final = Options()
USUAL_JSON: Final = USUAL.model_dump(mode="json")
MOST_CATEGORIES: Final = 9


class Asked:
    """What is asked, as far as it is known: of a new run, the answers tell what is not stated.

    The first answer tells the task, all of them the kind and the choices. Until the kind is known
    an answer is kept as it was given, under `MAIN`, and `settled` makes a choice of it.
    """

    def __init__(self, options: ImportOptions, queue: Queue | None = None) -> None:
        self._is_fixed, self._answers = queue is not None, Answers()
        self._kind: VoteKind | None
        if queue is None:
            self._kind, self._task = options.single_kind, options.task
            self._ballot = options.ballot
            self._categories = [*(options.flag_categories or USUAL.flag_categories)]
            self._is_graded, self._criteria = options.graded, USUAL.criteria
        else:
            asks = options_of(queue)
            self._kind, self._task, self._ballot = queue.kind, asks.task, queue.ballot  # type: ignore[assignment]
            self._categories, self._is_graded = [*asks.flag_categories], asks.graded
            self._criteria = asks.criteria

    def take(self, row: Row) -> None:
        """Check what a row answers, and learn from it; raises Misfit."""
        if not row.labels or row.error:
            return
        main = self._main(row)
        self._answers.take(main)
        if self._kind:
            self._check_answer(row, self._kind, main)
        if row.category:
            self._check_category(row.category)

    def _check_answer(self, row: Row, kind: VoteKind, main: Label) -> None:
        field = "vote" if row.voter else "verdict"
        try:
            answer = answer_of(kind, main)
        except Unfit as error:
            raise Misfit(field, str(error)) from error
        if row.voter and self._ballot and kind != "text":
            words = answer.label if isinstance(answer.label, list) else [answer.choice]
            if unknown := next((word for word in words if word not in self._ballot), None):
                offered = ", ".join(self._ballot)
                raise Misfit("vote", f"{shorten(unknown)!r} is not on the ballot: {offered}")

    def _check_category(self, category: str) -> None:
        if category in self._categories:
            return
        if self._is_fixed or len(self._categories) == MOST_CATEGORIES:
            near = get_close_matches(category, self._categories, 1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            known = ", ".join(self._categories)
            raise Misfit("category", f"{shorten(category)!r} is not one of {known}{guess}")
        self._categories.append(category)

    def _main(self, row: Row) -> Label:
        if self._criteria and MAIN not in row.labels:
            return combined(self._criteria, self._grades(row))
        if self._task is None and MAIN not in row.labels:
            self._task = next(iter(row.labels))
        named = row.labels.get(self._task or USUAL.task)
        main = row.labels.get(MAIN, named)
        if main is None:
            raise Misfit("labels", f"no answer to {self._task or USUAL.task!r}, which is asked")
        if named not in (None, main):
            raise Misfit("labels", f"the answer to {self._task!r} stands there twice")
        return main

    def _grades(self, row: Row) -> dict[str, float]:
        """Return what a row says of each criterion, from 0 to 1."""
        grades = {}
        for name in (each.name for each in self._criteria):
            if (label := row.labels.get(name)) is None:
                raise Misfit("labels", f"no answer to {name!r}, which is a criterion")
            try:
                grades[name] = (answer_of("pass_flag", label).value or 0) / ONE
            except Unfit as error:
                raise Misfit(f"labels.{name}", str(error)) from error
        return grades

    def statement(self, row: Row) -> Columns | None:
        """Return the labels of a row, as they are kept until they are `settled`."""
        if not row.labels or row.error:
            return {name: _plain(label) for name, label in row.labels.items()} or None
        others = {
            name: _plain(label)
            for name, label in row.labels.items()
            if name not in (MAIN, self._task)
        }
        if self._criteria and MAIN not in row.labels:
            others |= self._grades(row)
        return {MAIN: _plain(self._main(row)), **others}

    def settled(self, stated: Columns, choice: str) -> Columns:
        """Return a vote or verdict with its choice and value, once the kind is known."""
        labels = dict(stated["labels"] or {})
        if self._kind is None or MAIN not in labels:
            return stated
        raw = labels.pop(MAIN)
        answer = answer_of(self._kind, tuple(raw) if isinstance(raw, list) else raw)
        if answer.label is not None:
            labels = {self._task or USUAL.task: answer.label, **labels}
        said = stated | {choice: answer.choice, "labels": labels or None}
        if choice == "winner":
            # A free text is no choice; but a verdict always says something.
            return said | {choice: answer.choice or str(answer.label)[:LONGEST_CHOICE]}
        return said | {"value": answer.value}

    def rules(self) -> Columns:
        """Return what a new queue is to ask, as its columns hold it; raises Unfit."""
        kind = self._kind or self._answers.kind
        is_graded = self._answers.graded if self._is_graded is None else self._is_graded
        options = {
            "task": self._task or USUAL.task,
            "graded": kind == "pass_flag" and is_graded,
            "flag_categories": self._categories,
        }
        return {
            "kind": kind,
            "ballot": self._ballot or self._answers.ballot(kind),
            "options": {
                name: value for name, value in options.items() if value != USUAL_JSON[name]
            },
        }


def answered(stated: Columns, choice: str) -> Columns:
    """Return a vote or verdict with its answer in place of a choice, where that is not known."""
    labels = dict(stated["labels"] or {})
    if MAIN not in labels:
        return stated
    return stated | {choice: labels.pop(MAIN), "labels": labels or None}


def _plain(label: Label) -> Any:
    return list(label) if isinstance(label, tuple) else label
