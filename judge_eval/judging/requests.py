"""What a call asks, word for word, and the key under which its reply is stored."""

import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import TypeAlias
from uuid import UUID

from django.core.files.storage import default_storage
from django.db import DatabaseError
from django.db.models import Exists, OuterRef

from judge_eval.judging import provider_access
from judge_eval.judging.config.estimates import Price, cost, most_tokens, reservation
from judge_eval.judging.config.run_config import ExampleItem, Generation, Judging, RunConfig, parse
from judge_eval.judging.prompts import judge
from judge_eval.judging.prompts.judge import Message
from judge_eval.judging.prompts.parse import ReplyUnreadable, parse_verdict
from judge_eval.judging.prompts.request_hash import request_hash
from judge_eval.judging.prompts.suggest import Case, suggestion_messages
from judge_eval.judging.providers.chat import ChatRequest
from judge_eval.judging.providers.errors import LEFT_OUT, CallFailed
from judge_eval.judging.providers.protocols import OPENAI_COMPATIBLE
from judge_eval.models import SAMPLES_APART, Call, Judge, Provider, Run
from judge_eval.workshop.disagreements import tagged
from voting.items.choices import SWAPPED
from voting.items.kinds import kind_of, options_of
from voting.models import Inference, Item, Queue
from voting.pictures.store import stored_path

logger = logging.getLogger(__name__)

# How models are asked for another wording; many refuse a temperature.
_SUGGESTING = Generation(temperature=None)
# A provider and a model.
ModelName: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class ModelQuestion:
    """One attempt at a call: it asks, or asks once more where the first reply was no answer."""

    call: Call
    config: RunConfig
    provider: Provider
    request: ChatRequest
    request_hash: str
    # What was wrong with the first reply, when this asks once more.
    problem: str = ""

    @property
    def run(self) -> Run:
        assert self.call.run is not None  # workers claim calls of runs alone
        return self.call.run

    @property
    def model(self) -> ModelName:
        return self.provider.name, self.call.model

    @property
    def price(self) -> Price | None:
        return provider_access.price_of(self.provider, self.call.model)

    @property
    def lacks_price(self) -> bool:
        """Whether nobody knows what this costs, though it has to be paid from a budget."""
        return self.run.budget_nano is not None and self.price is None

    @property
    def reservation_nano(self) -> int:
        """The most that this attempt can cost; 0 where nobody has said a price."""
        price = self.price
        if price is None:
            return 0
        tokens = most_tokens(self.request.messages, price.picture_tokens)
        return provider_access.nano(reservation(tokens, self.request.max_tokens, price))

    def cost_nano(self, prompt_tokens: int | None, completion_tokens: int | None) -> int | None:
        """What an attempt has cost; the most it can have cost where the reply does not say."""
        price = self.price
        if price is None:
            return None
        if prompt_tokens is None or completion_tokens is None:
            return self.reservation_nano
        return provider_access.nano(cost(prompt_tokens, completion_tokens, price))


def judge_question(queue: Queue) -> judge.JudgeQuestion:
    """Return what judges are asked about the items of a queue, as people are."""
    options = options_of(queue)
    return judge.JudgeQuestion(
        queue.ballot,
        queue.kind,
        is_graded=options.graded,
        criteria=options.criteria_in_words,
    )


def answered_by_another() -> Exists:
    """Say of a call whether another model has answered where the same one was asked."""
    same = {name: OuterRef(name) for name in ("verdict", "provider", "model")}
    answered = Call.objects.filter(state=Call.State.DONE, **same)
    return Exists(answered.exclude(reported_model=OuterRef("reported_model")))


@lru_cache(maxsize=64)
def started_config(run_id: UUID, judge: UUID | None = None) -> RunConfig:
    """Read the config of a run that was started: it stays as it is, but for judges that join.

    So of one that is asked a config is read that names it.
    """
    return parse(Run.every.values_list("config", flat=True).get(pk=run_id))


@lru_cache(maxsize=128)
def png_bytes(png_sha256: str) -> bytes:
    with default_storage.open(stored_path(png_sha256)) as file:
        png = bytes(file.read())
    if sha256(png).hexdigest() != png_sha256:
        raise ValueError(f"picture {png_sha256} is another than was rendered")
    return png


def _content(output: Inference) -> str | bytes:
    return png_bytes(output.picture.png_sha256) if output.picture else output.output


def _examples_beside(
    item: Item, queue: Queue, examples: tuple[ExampleItem, ...], order: str
) -> list[judge.Example]:
    """Return examples in the order in which an item is shown, so that none favours a side.

    None is of the item's own prompt: the judge would be given the answer.
    """
    beside = []
    for row, answer in _example_items(queue.pk, examples):
        if row.prompt_key != item.prompt_key and row.a.prompt != item.a.prompt:
            outputs = [_content(output) for output in row.displayed(left=order[0])]
            shown_answer = SWAPPED[answer] if row.b and order == "BA" else answer
            beside.append(judge.Example(row.a.prompt, outputs, kind_of(queue).words(shown_answer)))
    return beside


@lru_cache(maxsize=64)
def _example_items(queue: UUID, examples: tuple[ExampleItem, ...]) -> list[tuple[Item, str]]:
    """Return the items of examples, none that is held out whatever a config that came here says."""
    items = Item.objects.select_related("a__picture", "b__picture").filter(queue=queue)
    rows = items.filter(is_held_out=False).in_bulk([example.item for example in examples])
    return [(rows[example.item], example.answer) for example in examples if example.item in rows]


def _suggestion_messages(queue: Queue, config: RunConfig, target_judge: Judge) -> list[Message]:
    """Return what a model is told that words a judge's instructions anew, of the tuning half."""
    spec = config.spec_of(target_judge.name)
    opening = judge.opening_of(config.judging.prompt_version, judge_question(queue))
    cases = [
        Case(
            disagreement.verdict.item.a.prompt,
            [output.output for output in disagreement.verdict.item.outputs],
            disagreement.answer,
            disagreement.verdict.feedback,
            disagreement.people,
            disagreement.tag.get_tag_display() if disagreement.tag else "",
        )
        for disagreement in tagged(target_judge)
    ]
    return suggestion_messages(queue.rubric.text, (spec and spec.instructions) or opening, cases)


def question_of(call: Call, provider: Provider | None) -> ModelQuestion:
    """Return what a call asks, or raise CallFailed where this machine cannot put it together."""
    if provider is None:
        raise CallFailed(f"there is no provider named {call.provider}")
    assert call.run is not None
    if not provider_access.is_usable(provider, call.run.queue.project_id):
        raise CallFailed(f"runs of this project may not use the provider {call.provider}")
    if call.verdict and call.verdict.judge.rating.is_left_out:
        raise CallFailed(LEFT_OUT)
    try:
        return _question(call, call.run, provider)
    except DatabaseError:
        raise
    except Exception as error:
        # A picture that is not where it was stored, a config or a wording of another version.
        logger.warning("call %s cannot be asked", call.pk, exc_info=True)
        raise CallFailed(f"it could not be asked: {error}") from error


def _question(call: Call, run: Run, provider: Provider) -> ModelQuestion:
    queue, verdict = run.queue, call.verdict
    config = started_config(run.pk, verdict.judge_id if verdict else call.judge_id)
    spec = config.spec_of(verdict.judge.name) if verdict else None
    item = verdict.item if verdict else call.item
    sampling: Judging | Generation = _SUGGESTING
    schema, order, problem, question = None, "", "", judge_question(queue)
    if item:
        sampling = config.asking(verdict.judge.name if verdict else "", call.provider, call.model)
    elif call.judge is None:
        sampling = config.generating(call.model)
    if call.judge:
        messages = _suggestion_messages(queue, config, call.judge)
    elif item is None:
        assert call.prompt is not None  # the database says so
        messages = judge.generation_messages(config.kind, config.prompts[call.prompt].text)
    else:
        outputs = item.displayed(left=call.order[0]) if item.b else [item.a]
        if spec:
            examples = _examples_beside(item, queue, spec.examples, call.order)
            question = replace(question, instructions=spec.instructions, examples=examples)
        messages = judge.messages(
            config.judging.prompt_version,
            question,
            kind=config.kind,
            prompt=item.a.prompt,
            rubric=queue.rubric.text,
            outputs=[_content(output) for output in outputs],
        )
        schema = judge.schema(question)
        # By what is shown, so that a copy of a run asks the same questions: which output is A
        # there is drawn anew. Equal outputs are told apart by nothing else.
        texts = [output.output for output in outputs]
        is_first = texts == sorted(texts)
        order = call.order if len(set(texts)) == 1 else "AB" if is_first else "BA"
    is_usual = provider.protocol == OPENAI_COMPATIBLE
    protocol = {} if is_usual else {"protocol": provider.protocol}
    key = request_hash(
        model=call.model,
        parameters={
            **sampling.parameters,
            # The same name at another endpoint may be another model.
            "provider": provider.name,
            "url": provider.base_url,
            "schema": schema if provider.structured_output else None,
            **protocol,
        },
        messages=messages,
        order=order,
        # A model that is part of a judge is asked what it would be asked as a judge of its own.
        sample=call.sample % SAMPLES_APART,
    )
    if call.is_repaired:
        # Go on from a reply that was no verdict; a lost worker or connection starts nothing anew.
        try:
            parse_verdict(call.reply, question)
        except ReplyUnreadable as unreadable:
            problem = str(unreadable)
            messages = judge.repair(messages, call.reply, problem)
    request = ChatRequest(
        call.model,
        messages,
        sampling.temperature,
        sampling.max_tokens,
        schema,
        sampling.reasoning_effort,
    )
    return ModelQuestion(call, config, provider, request, key, problem)
