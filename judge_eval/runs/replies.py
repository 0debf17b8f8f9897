"""What a reply comes to: an output of a generator, or what a judge said."""

from __future__ import annotations

from typing import Any

from judge_eval.models import Call
from judge_eval.prompts.output import NotExtractable, extract
from judge_eval.prompts.parse import VerdictUnreadable, parse
from judge_eval.providers.chat import ChatReply
from judge_eval.providers.errors import as_text
from judge_eval.runs.requests import Question
from judge_eval.services import picture_of
from voting.models import Inference


class NoAnswer(Exception):
    """A reply came, and it is no output or no verdict; the text says why."""

    def __init__(self, reason: str, *, may_be_repaired: bool = False) -> None:
        super().__init__(reason)
        self.may_be_repaired = may_be_repaired


def read(question: Question, reply: ChatReply) -> dict[str, Any]:
    """Return what a call has to keep of a reply, or raise NoAnswer."""
    if reply.refusal:
        raise NoAnswer(f"refused: {reply.refusal[:300]}")
    is_output = question.call.purpose == Call.Purpose.GENERATE
    fields = _output(question, reply) if is_output else _verdict(question, reply)
    return fields | {"reply": reply.text}


def raw(reply: ChatReply) -> str:
    """Return what came, for people to read; where no text did, all that came instead."""
    return reply.text or as_text(reply.raw)


def _verdict(question: Question, reply: ChatReply) -> dict[str, Any]:
    try:
        said = parse(reply.text, question.call.run.queue.ballot)
    except VerdictUnreadable as unreadable:
        raise NoAnswer(f"{unreadable.reason}{_cut(reply)}", may_be_repaired=True) from unreadable
    return {
        "winner": said.winner,
        "score_a": said.score_a,
        "score_b": said.score_b,
        "reason": said.reason,
    }


def _output(question: Question, reply: ChatReply) -> dict[str, Any]:
    call, config = question.call, question.config
    assert call.prompt is not None  # the database says so
    cut = _cut(reply)
    try:
        extracted = extract(reply.text, config.kind)
    except NotExtractable as failure:
        raise NoAnswer(f"{failure.reason}{cut}") from failure
    prompt = config.prompts[call.prompt]
    inference = Inference.objects.create(
        project_id=call.run.queue.project_id,
        prompt=prompt.text,
        output=extracted.output,
        kind=config.kind,
        generator=call.model,
        tags=list(prompt.tags),
        metadata={"prompt_id": prompt.id, "reported_model": reply.model},
        picture=picture_of(extracted.output) if config.kind == "svg" else None,
    )
    changes = [*extracted.changes, *([cut.strip(" ()")] if cut else [])]
    return {"inference": inference, "changes": changes}


def _cut(reply: ChatReply) -> str:
    return " (it reached max_tokens)" if reply.finish_reason == "length" else ""
