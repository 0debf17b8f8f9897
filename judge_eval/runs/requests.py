"""What a call asks, word for word, and the key under which its reply is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.core.files.storage import default_storage
from django.db.models import Exists, OuterRef

from judge_eval.config.estimates import Price, cost, most_tokens, reservation
from judge_eval.config.run_config import Generation, Judging, RunConfig, parse
from judge_eval.models import Call, Provider
from judge_eval.prompts import generate, judge
from judge_eval.prompts.parse import VerdictUnreadable
from judge_eval.prompts.parse import parse as parse_verdict
from judge_eval.prompts.request_hash import request_hash
from judge_eval.providers.chat import ChatRequest
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import providers
from voting.models import Inference
from voting.pictures.store import png_path

MOST_CONFIGS = 32

Asked = tuple[str, str]
"""A provider and a model."""


@dataclass(frozen=True)
class Question:
    """One attempt at a call: it asks, or asks once more where the first reply was no answer."""

    call: Call
    config: RunConfig
    provider: Provider
    request: ChatRequest
    request_hash: str
    # What was wrong with the first reply, when this asks once more.
    problem: str = ""

    @property
    def asked(self) -> Asked:
        return self.provider.name, self.call.model

    @property
    def price(self) -> Price | None:
        return providers.price_of(self.provider, self.call.model)

    @property
    def reservation_nano(self) -> int:
        """The most that this attempt can cost; 0 where nobody has said a price."""
        price = self.price
        if price is None:
            return 0
        tokens = most_tokens(self.request.messages, price.picture_tokens)
        return providers.nano(reservation(tokens, self.request.max_tokens, price))

    def cost_nano(self, prompt_tokens: int | None, completion_tokens: int | None) -> int | None:
        """What an attempt has cost; the most it can have cost where the reply does not say."""
        price = self.price
        if price is None:
            return None
        if prompt_tokens is None or completion_tokens is None:
            return self.reservation_nano
        return providers.nano(cost(prompt_tokens, completion_tokens, price))

    def once_more(self, reply: str, problem: str) -> Question:
        """Return the question that says what was wrong with the reply to this one."""
        asked = [dict(message) for message in self.request.messages]
        request = replace(self.request, messages=judge.repair(asked, reply, problem))
        return replace(self, request=request, problem=problem)


def answered_by_another() -> Exists:
    """Say of a call whether another model has answered another call of its verdict."""
    answered = Call.objects.filter(verdict=OuterRef("verdict"), state=Call.State.DONE)
    return Exists(answered.exclude(reported_model=OuterRef("reported_model")))


class _Configs:
    """The configs of the runs that this process has lately worked for; a started one stays."""

    def __init__(self) -> None:
        self._kept: dict[UUID, RunConfig] = {}

    def of(self, call: Call) -> RunConfig:
        if call.run_id not in self._kept:
            if len(self._kept) >= MOST_CONFIGS:
                self._kept.clear()
            self._kept[call.run_id] = parse(call.run.config)
        return self._kept[call.run_id]


_configs = _Configs()


def question_of(call: Call, provider: Provider) -> Question:
    """Return what a call asks, or raise CallFailed where this machine cannot put it together."""
    try:
        return _question_of(call, provider)
    except (OSError, LookupError, ValueError) as error:
        # A picture that is not where it was stored, a config or a wording of another version.
        raise CallFailed(f"it could not be asked: {error}") from error


def _question_of(call: Call, provider: Provider) -> Question:
    config = _configs.of(call)
    if call.purpose == Call.Purpose.JUDGE:
        return _repairing(_judging(call, provider, config))
    assert call.prompt is not None  # the database says so
    messages = generate.messages(config.kind, config.prompts[call.prompt].text)
    return _question(call, provider, config, messages, config.generation)


def _judging(call: Call, provider: Provider, config: RunConfig) -> Question:
    assert call.verdict is not None  # the database says so
    item = call.verdict.item
    shown = item.seen(left=call.order[0])
    first, second = map(_as_shown, shown)
    queue = call.run.queue
    messages = judge.messages(
        config.judging.prompt_version,
        kind=config.kind,
        prompt=item.a.prompt,
        rubric=queue.rubric.text,
        ballot=queue.ballot,
        first=first,
        second=second,
    )
    pictures = [output.picture.png_sha256 for output in shown if output.picture]
    schema = judge.schema(queue.ballot)
    order = _shown_order(call, shown)
    return _question(call, provider, config, messages, config.judging, order, pictures, schema)


def _repairing(question: Question) -> Question:
    """Go on from a reply that was no verdict; a lost worker or connection starts nothing anew."""
    call = question.call
    if not call.is_repaired:
        return question
    try:
        parse_verdict(call.reply, call.run.queue.ballot)
    except VerdictUnreadable as unreadable:
        return question.once_more(call.reply, unreadable.reason)
    return question


def _shown_order(call: Call, shown: Sequence[Inference]) -> str:
    """Name the order by what is shown, so that a copy of a run asks the same questions.

    Which output is A there is drawn anew. Equal outputs are told apart by nothing else.
    """
    first, second = (output.output for output in shown)
    return call.order if first == second else "AB" if first < second else "BA"


def _as_shown(output: Inference) -> str | bytes:
    """Return what people see: a drawing's very picture, or the text."""
    return png_bytes(output.picture.png_sha256) if output.picture else output.output


@lru_cache(maxsize=128)
def png_bytes(png_sha256: str) -> bytes:
    with default_storage.open(png_path(png_sha256)) as file:
        return bytes(file.read())


def _question(
    call: Call,
    provider: Provider,
    config: RunConfig,
    messages: Sequence[Mapping[str, Any]],
    how: Generation | Judging,
    order: str = "",
    pictures: Sequence[str] = (),
    schema: dict[str, Any] | None = None,
) -> Question:
    parameters: dict[str, Any] = {
        **how.parameters,
        # The same name at another endpoint may be another model.
        "provider": provider.name,
        "url": provider.base_url,
        "schema": schema if provider.structured_output else None,
    }
    key = request_hash(
        model=call.model,
        parameters=parameters,
        messages=messages,
        pictures=pictures,
        order=order,
        sample=call.sample,
    )
    request = ChatRequest(
        model=call.model,
        messages=messages,
        temperature=how.temperature,
        max_tokens=how.max_tokens,
        schema=schema,
    )
    return Question(call, config, provider, request, key)
