"""What people voted as data for trainers (DPO, KTO, judges) and for other annotation tools.

Only votes of people that count are used. A preference or a label is one that more than half of an
item's votes give; other items are left out, but for the annotation tools, which take every vote.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import takewhile
from operator import itemgetter, or_
from typing import Any, Final, NamedTuple, cast
from uuid import uuid5

from django.db.models import Q

from humanjudge.core.strict_json import JsonObject
from judge_eval.exports.rows import JudgedItem, judged_items, label_of
from judge_eval.models import Run, Verdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from voting.items import kinds
from voting.items.choices import row_of
from voting.items.conversations import Message, messages_of
from voting.items.disputes import majority
from voting.items.kinds import kind_of, options_of
from voting.models import Entry, Inference
from voting.pictures.images import data_url


class Majority(NamedTuple):
    """A choice of more than half of the votes on an item, their share, and how many votes are."""

    choice: str
    share: float
    n: int


def majority_of(choices: Sequence[str]) -> Majority | None:
    """Return what more than half of the choices are, or None.

    >>> majority_of(["A", "A", "tie"]), majority_of(["A", "B"])
    (Majority(choice='A', share=0.6666666666666666, n=3), None)
    """
    choice = majority([(choice, None) for choice in choices])
    return Majority(choice, choices.count(choice) / len(choices), len(choices)) if choice else None


def _agreed_items(run: Run) -> Iterator[tuple[JudgedItem, Majority]]:
    """Yield the items whose outputs are here and on which a majority of votes agrees."""
    for judged in judged_items(run):
        agreed = majority_of([vote.choice for vote in judged.votes])
        is_whole = not any(output.metadata.get(OUTPUT_ABSENT) for output in judged.item.outputs)
        if agreed and is_whole:
            yield judged, agreed


# --- for models -----------------------------------------------------------------------------------


class _Turns:
    """How the texts of a run go to a trainer: as they are, or all of them as lists of messages.

    trl takes a file of the one form or of the other, so one conversation in it decides for all.
    """

    def __init__(self, run: Run) -> None:
        texts = ("a__prompt", "a__output", "b__output")
        opening = reduce(or_, (Q(**{f"{text}__startswith": "["}) for text in texts))
        rows = run.queue.items.filter(opening).values_list(*texts)
        self._is_chat = any(messages_of(text or "") for row in rows.iterator() for text in row)

    def split(self, output: Inference) -> tuple[Any, Any]:
        """Return what the model was asked, and its answer."""
        if not self._is_chat:
            return output.prompt, output.output
        answer = _messages(output.output, "assistant")
        # An output may be the whole conversation, with what began it.
        before = list(takewhile(lambda message: message["role"] != "assistant", answer))
        return before or _messages(output.prompt, "user"), answer[len(before) :]


def _messages(text: str, role: str) -> list[JsonObject]:
    """Return the messages of a conversation; any other text is one."""
    messages = messages_of(text) or (Message(role, text),)
    return [message._asdict() for message in messages]


def _graded(run: Run) -> Iterator[tuple[JsonObject, list[tuple[Inference, float]]]]:
    """Yield how sure people are of an item, and its outputs with the grades a majority gives."""
    # A category may have the name of a choice.
    choices = kind_of(run.queue).choices
    for judged, agreed in _agreed_items(run):
        outputs = judged.item.outputs
        # A picture is no text to train on.
        if agreed.choice in choices and outputs[0].kind != Inference.Kind.IMAGE:
            facts = {"item": judged.name, "agreement": agreed.share, "n": agreed.n}
            yield facts, list(zip(outputs, row_of(agreed.choice).grades, strict=False))


def dpo(run: Run) -> Iterator[JsonObject]:
    """Yield preference pairs as trl reads them: which output of a pair most votes prefer."""
    turns = _Turns(run)
    for facts, graded in _graded(run):
        if {grade for _, grade in graded} == {0, 1}:
            (preferred, _), (rejected, _) = sorted(graded, key=itemgetter(1), reverse=True)
            prompt, better = turns.split(preferred)
            yield {"prompt": prompt, "chosen": better, "rejected": turns.split(rejected)[1]} | facts


def kto(run: Run) -> Iterator[JsonObject]:
    """Yield single outputs as trl reads them: true for the better one of a pair and for what
    passes, false for the other one, for both that are bad and for what is flagged.
    """
    turns = _Turns(run)
    for facts, graded in _graded(run):
        for output, grade in graded:
            # Half of a grade, that of a tie, is no label.
            if grade in (0, 1):
                prompt, completion = turns.split(output)
                yield {"prompt": prompt, "completion": completion, "label": bool(grade)} | facts


def judge_rows(run: Run) -> Iterator[JsonObject]:
    """Yield what a judge learns from: what most people say of an item, and why they and judges
    who agree say so.
    """
    for judged, (choice, share, n) in _agreed_items(run):
        yield {
            "item": judged.name,
            "prompt": judged.item.a.prompt,
            "outputs": [data_url(output.output) for output in judged.item.outputs],
            "majority": choice,
            "share": share,
            "n": n,
            "reason": _join_texts(vote.comment for vote in judged.votes if vote.choice == choice),
            "judge_reason": _join_texts(
                verdict.feedback for verdict in judged.verdicts if verdict.winner == choice
            ),
        }


def _join_texts(reasons: Iterable[str]) -> str:
    return "\n\n".join(filter(None, reasons))


# --- for annotation tools -------------------------------------------------------------------------

# The controls of a Label Studio project, and what their values are called; docs/exporting.md shows
# the projects. Whatever is asked otherwise has choices.
_CONTROLS: Final = {"rating": ("rating", "rating"), "text": ("textarea", "text")}
_CHOICES: Final = ("choices", "choices")
_SIDES: Final = {"A": "left", "B": "right"}
# What the name of an agent in Argilla cannot have.
_NO_AGENT: Final = re.compile(r"[^A-Za-z0-9:./\s_-]")


class _Answers:
    """Turns votes and verdicts of a run into the values that other tools have for them."""

    def __init__(self, run: Run) -> None:
        self._kind = kind_of(run.queue)
        self._task = self._kind.task(options_of(run.queue))

    def value(self, row: Entry | Verdict, choice: str) -> Any:
        """Return a word, of a rating a number, of a set of labels a list."""
        return self._kind.typed(cast(kinds.Label, label_of(row, choice, self._task)))

    def results(
        self, row: Entry | Verdict, choice: str, author: str, reason: str
    ) -> list[JsonObject]:
        """Return an answer, and the reason for it, as results of Label Studio."""
        value, sides = self.value(row, choice), _SIDES if self._kind.noun == "pair" else {}
        name, target = ("neither", "left") if sides else ("answer", "output")
        control, key = _CONTROLS.get(self._kind.name, _CHOICES)
        content = value if control == "rating" or isinstance(value, list) else [value]
        results = [_result(name, target, control, {key: content}, author)]
        if sides and value in sides:
            results = [_result("pw", "left,right", "pairwise", {"selected": sides[value]}, author)]
        if reason:
            results.append(_result("comment", target, "textarea", {"text": [reason]}, author))
        return results


def _result(name: str, target: str, control: str, value: JsonObject, author: str) -> JsonObject:
    fields = {"from_name": name, "to_name": target, "type": control, "value": value}
    return {"id": f"{name} {author}", **fields, "meta": {"text": [author]}}


def label_studio(run: Run) -> Iterator[JsonObject]:
    """Yield tasks for Label Studio: votes as annotations, verdicts as predictions."""
    answers = _Answers(run)
    for judged in judged_items(run):
        texts = _texts(judged, "left", "right")
        data = {"item": judged.name} | texts | _models(judged, "left_model", "right_model")
        annotations = []
        for vote, voter in _with_voters(judged):
            results = answers.results(vote, vote.choice, voter, vote.comment)
            seconds = None if vote.elapsed_ms is None else vote.elapsed_ms / 1000
            annotations.append({"result": results, "lead_time": seconds, "was_cancelled": False})
        predictions = []
        for verdict in judged.done:
            name = verdict.judge.name
            results = answers.results(verdict, verdict.winner, name, verdict.feedback)
            predictions.append({"model_version": name, "result": results})
        yield {"data": data, "annotations": annotations, "predictions": predictions}


def _with_voters(judged: JudgedItem) -> Iterator[tuple[Entry, str]]:
    return ((vote, vote.voter.pseudonym) for vote in judged.votes if vote.voter)


def _texts(judged: JudgedItem, *names: str) -> JsonObject:
    outputs = [data_url(output.output) for output in judged.item.outputs]
    named = zip(names if judged.item.b_id else ["output"], outputs, strict=True)
    return {"prompt": judged.item.a.prompt, **dict(named)}


def _models(judged: JudgedItem, *names: str) -> JsonObject:
    models = [output.generator for output in judged.item.outputs]
    return dict(zip(names if judged.item.b_id else ["model"], models, strict=True))


def argilla(run: Run) -> Iterator[JsonObject]:
    """Yield records for Argilla: votes as responses, what most judges say as a suggestion."""
    answers, project = _Answers(run), run.queue.project_id
    for judged in judged_items(run):
        responses: dict[str, list[JsonObject]] = {"answer": [], "comment": []}
        for vote, pseudonym in _with_voters(judged):
            # Argilla names people by such a number; the same person has the same one everywhere.
            author = {"user_id": str(uuid5(project, pseudonym)), "status": "submitted"}
            responses["answer"].append({"value": answers.value(vote, vote.choice), **author})
            if vote.comment:
                responses["comment"].append({"value": vote.comment, **author})
        yield {
            "id": judged.name,
            "fields": _texts(judged, "response_a", "response_b"),
            "metadata": _models(judged, "model_a", "model_b"),
            "suggestions": _suggestions(judged, answers),
            "responses": responses,
        }


def _suggestions(judged: JudgedItem, answers: _Answers) -> JsonObject:
    verdicts = [verdict for verdict in judged.done if not verdict.judge.is_baseline]
    agreed = majority_of([verdict.winner for verdict in verdicts])
    if agreed is None:
        return {}
    same = [verdict for verdict in verdicts if verdict.winner == agreed.choice]
    agent = _NO_AGENT.sub("_", " ".join(verdict.judge.name for verdict in same))[:200]
    value = answers.value(same[0], agreed.choice)
    return {"answer": {"value": value, "score": agreed.share, "agent": agent}}
