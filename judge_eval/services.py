"""Making a run: its outputs, its pairs, its judges, its queue of votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from humanjudge.enqueue import enqueue
from judge_eval.config.run_config import JudgeSpec, RunConfig
from judge_eval.models import Board, Judge, JudgeRating, Run, Verdict
from judge_eval.pairing import all_pairs, wants_overlap
from judge_eval.prompts.request_hash import judge_fingerprint
from voting.choices import DEFAULT_BALLOT
from voting.ledger.chain import canonical
from voting.models import (
    Inference,
    Item,
    Picture,
    Project,
    Queue,
    VoterPrompt,
    prompt_key,
)
from voting.order import fresh_turn
from voting.pictures.rendering import renderer_id
from voting.pictures.store import source_address

# A change of what a baseline answers must change its fingerprint: it is another competitor then.
BASELINE_VERSION = 2


@dataclass(frozen=True)
class PromptOutputs:
    """One prompt and what each generator made of it."""

    text: str
    outputs: Sequence[tuple[str, str]]
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class RunSpec:
    """What a run is made of."""

    name: str
    kind: str
    rubric: str
    prompts: Sequence[PromptOutputs]
    judges: Sequence[str]
    ballot: Sequence[str] = DEFAULT_BALLOT
    votes_per_item: int = 1
    overlap_share: float = 0.0
    overlap_votes: int = 3
    reveal: str = Queue.Reveal.AFTER_EACH


def create_run(project: Project, spec: RunSpec) -> Run:
    """Write a run of outputs that are there already, and let the workers begin."""
    with transaction.atomic():
        queue = create_queue(
            project,
            spec.name,
            spec.rubric,
            ballot=list(spec.ballot),
            votes_per_item=spec.votes_per_item,
            overlap_share=spec.overlap_share,
            overlap_votes=spec.overlap_votes,
            reveal=spec.reveal,
        )
        run = Run.objects.create(queue=queue, name=spec.name, state=Run.State.JUDGING)
        Board.objects.create(run=run)
        items = _create_items(queue, spec)
        judges = add_judges(run, [baseline(run, name) for name in spec.judges])
        create_verdicts(judges, items)
        enqueue("judge_eval.tasks.advance", str(run.pk))
    return run


def create_queue(project: Project, name: str, rubric: str, **settings: Any) -> Queue:
    """Make a queue of votes with the rubric of this name and text."""
    return Queue.objects.create(
        project=project, name=name, rubric=_rubric(project, name, rubric), **settings
    )


def create_verdicts(judges: Sequence[Judge], items: Sequence[Item]) -> None:
    Verdict.objects.bulk_create(
        [Verdict(judge=judge, item=item) for item in items for judge in judges],
        batch_size=1000,
    )


def _rubric(project: Project, name: str, text: str) -> VoterPrompt:
    """Return the rubric of this name: its last version, or the next one if the text is new."""
    longest = VoterPrompt._meta.get_field("name").max_length
    name = name[:longest]
    versions = VoterPrompt.objects.filter(project=project, name=name)
    last = versions.order_by("-version").first()
    if last is not None and last.text == text:
        return last
    version = last.version + 1 if last else 1
    return VoterPrompt.objects.create(project=project, name=name, version=version, text=text)


def _create_items(queue: Queue, spec: RunSpec) -> list[Item]:
    pairs: list[tuple[Inference, Inference]] = []
    for prompt in spec.prompts:
        outputs = {}
        for generator, output in prompt.outputs:
            inference = Inference(
                project=queue.project,
                prompt=prompt.text,
                output=output,
                kind=spec.kind,
                generator=generator,
                tags=list(prompt.tags),
                picture=picture_of(output) if spec.kind == Inference.Kind.SVG else None,
            )
            outputs[inference.pk] = inference
        Inference.objects.bulk_create(outputs.values())
        key = settings.SECRET_KEY
        pairs += [(outputs[a], outputs[b]) for a, b in all_pairs(list(outputs), key)]
    # Neighbours in the list would otherwise be pairs of one prompt.
    Random(str(queue.pk)).shuffle(pairs)  # noqa: S311  an order, not a secret
    return add_items(queue, pairs)


def add_items(queue: Queue, pairs: Sequence[tuple[Inference, Inference]]) -> list[Item]:
    """Put pairs behind those that a queue has; the caller holds its lock."""
    last = queue.items.order_by("-position").values_list("position", flat=True).first()
    first = 0 if last is None else last + 1
    return Item.objects.bulk_create(
        [
            Item(
                pk=pk,
                queue=queue,
                position=n,
                prompt_key=prompt_key(a.prompt),
                turn=fresh_turn(queue.pk, prompt_key(a.prompt)),
                a=a,
                b=b,
                votes_wanted=_wanted(queue, pk),
            )
            for n, (a, b) in enumerate(pairs, start=first)
            for pk in [uuid4()]
        ],
        batch_size=1000,
    )


def picture_of(source: str) -> Picture:
    return Picture.objects.get_or_create(source_sha256=source_address(source))[0]


def _wanted(queue: Queue, item: UUID) -> int:
    overlaps = wants_overlap(settings.SECRET_KEY, item, queue.overlap_share)
    return queue.overlap_votes if overlaps else queue.votes_per_item


def add_judges(run: Run, judges: Sequence[Judge]) -> list[Judge]:
    """Give judges their places behind those that a run has, and the rating that all start with."""
    last = run.judges.order_by("-position").values_list("position", flat=True).first()
    first = 0 if last is None else last + 1
    for position, judge in enumerate(judges, start=first):
        judge.position = position
    added = Judge.objects.bulk_create(judges)
    JudgeRating.objects.bulk_create(JudgeRating(judge=judge) for judge in added)
    return added


def baseline(run: Run, name: str) -> Judge:
    fingerprint = baseline_fingerprint(name)
    return Judge(run=run, name=name, provider=Judge.BASELINE, fingerprint=fingerprint)


def judge_of(run: Run, config: RunConfig, spec: JudgeSpec) -> Judge:
    """Return a judge of a config, as yet without a place."""
    if spec.is_baseline:
        return baseline(run, spec.id)
    return Judge(
        run=run,
        name=spec.id,
        provider=spec.provider,
        model=spec.id,
        fingerprint=model_fingerprint(config, spec.provider, spec.id),
    )


def model_fingerprint(config: RunConfig, provider: str, model: str) -> str:
    """Return the name of a competitor: whatever would make it another one."""
    return judge_fingerprint(
        model=model,
        provider=provider,
        prompt_version=config.judging.prompt_version,
        parameters={
            **config.judging.parameters,
            "samples": config.judging.samples,
            "orders": config.verdict_orders,
        },
        renderer=renderer_id(settings.SVG_RENDERER) if config.kind == "svg" else None,
    )


def baseline_fingerprint(name: str) -> str:
    competitor = {"provider": "baseline", "model": name, "version": BASELINE_VERSION}
    return sha256(canonical(competitor)).hexdigest()
