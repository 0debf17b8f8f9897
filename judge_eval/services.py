"""Making a run: its outputs, its pairs, its judges, its queue of votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from humanjudge.enqueue import enqueue
from judge_eval.models import Board, Judge, JudgeRating, Run, Verdict
from judge_eval.pairing import all_pairs, wants_overlap
from voting.chain import canonical
from voting.models import Comparison, Inference, Picture, Project, Queue, VoterPrompt
from voting.pictures import source_address

# A change of what a baseline answers must change its fingerprint: it is another competitor then.
BASELINE_VERSION = 1


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
    ballot: Sequence[str] = ("A", "B", "both_bad")
    votes_per_item: int = 1
    overlap_share: float = 0.0
    overlap_votes: int = 3
    reveal: str = Queue.Reveal.AFTER_EACH


def create_run(project: Project, spec: RunSpec) -> Run:
    """Write a run with all its rows and let the workers begin."""
    with transaction.atomic():
        queue = Queue.objects.create(
            project=project,
            name=spec.name,
            rubric=_rubric(project, spec),
            ballot=list(spec.ballot),
            votes_per_item=spec.votes_per_item,
            overlap_share=spec.overlap_share,
            overlap_votes=spec.overlap_votes,
            reveal=spec.reveal,
        )
        run = Run.objects.create(queue=queue, name=spec.name, state=Run.State.JUDGING)
        Board.objects.create(run=run)
        comparisons = _create_comparisons(queue, spec)
        judges = _create_judges(run, spec.judges)
        Verdict.objects.bulk_create(
            Verdict(judge=judge, comparison=comparison)
            for comparison in comparisons
            for judge in judges
        )
        enqueue("judge_eval.tasks.advance", str(run.pk))
    return run


def _rubric(project: Project, spec: RunSpec) -> VoterPrompt:
    """Return the rubric of this name: its last version, or the next one if the text is new."""
    longest = VoterPrompt._meta.get_field("name").max_length
    name = spec.name[:longest]
    versions = VoterPrompt.objects.filter(project=project, name=name)
    last = versions.order_by("-version").first()
    if last is not None and last.text == spec.rubric:
        return last
    version = last.version + 1 if last else 1
    return VoterPrompt.objects.create(project=project, name=name, version=version, text=spec.rubric)


def _create_comparisons(queue: Queue, spec: RunSpec) -> list[Comparison]:
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
                picture=_picture(output) if spec.kind == Inference.Kind.SVG else None,
            )
            outputs[inference.pk] = inference
        Inference.objects.bulk_create(outputs.values())
        key = settings.SECRET_KEY
        pairs += [(outputs[a], outputs[b]) for a, b in all_pairs(list(outputs), key)]
    # Neighbours in the list would otherwise be pairs of one prompt.
    Random(str(queue.pk)).shuffle(pairs)  # noqa: S311  an order, not a secret
    return Comparison.objects.bulk_create(
        [
            Comparison(queue=queue, position=n, a=a, b=b, votes_wanted=_wanted(queue, pk), pk=pk)
            for n, (a, b) in enumerate(pairs)
            for pk in [uuid4()]
        ]
    )


def _picture(source: str) -> Picture:
    return Picture.objects.get_or_create(source_sha256=source_address(source))[0]


def _wanted(queue: Queue, comparison: UUID) -> int:
    overlaps = wants_overlap(settings.SECRET_KEY, comparison, queue.overlap_share)
    return queue.overlap_votes if overlaps else queue.votes_per_item


def _create_judges(run: Run, names: Sequence[str]) -> list[Judge]:
    judges = Judge.objects.bulk_create(
        Judge(
            run=run,
            position=position,
            name=name,
            provider=Judge.Provider.BASELINE,
            fingerprint=baseline_fingerprint(name),
        )
        for position, name in enumerate(names)
    )
    JudgeRating.objects.bulk_create(JudgeRating(judge=judge) for judge in judges)
    return judges


def baseline_fingerprint(name: str) -> str:
    competitor = {"provider": "baseline", "model": name, "version": BASELINE_VERSION}
    return sha256(canonical(competitor)).hexdigest()
