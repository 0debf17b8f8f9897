"""A run that people can vote on at once, made without workers: for concurrency tests and benches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from random import Random

from django.utils import timezone

from judge_eval.baselines import names_for
from judge_eval.judging import verdicts_entry
from judge_eval.models import Board, Judge, JudgeRating, Run, Verdict
from voting import chain, ledger
from voting.allotment import ballot_for
from voting.ballots import Ballot
from voting.models import Comparison, Entry, Inference, Project, Queue, Voter, VoterPrompt

CHOICES = ("A", "B", "both_bad")
ROWS_AT_ONCE = 2000


@dataclass
class Scene:
    """A run, its pairs, its judges, and voters who have not voted yet."""

    run: Run
    comparisons: list[Comparison]
    judges: list[Judge]
    voters: list[Voter]

    @property
    def queue(self) -> Queue:
        return self.run.queue

    @property
    def project(self) -> Project:
        return self.run.queue.project

    def ballot(self, voter: int = 0, comparison: int = 0) -> Ballot:
        return ballot_for(self.voters[voter], self.queue, self.comparisons[comparison])


def make_scene(
    *, judges: int = 3, pairs: int = 8, voters: int = 8, votes_wanted: int = 1000
) -> Scene:
    """Write a run in voting whose verdicts are sealed."""
    scene = make_undecided_scene(
        judges=judges, pairs=pairs, voters=voters, votes_wanted=votes_wanted
    )
    dice = Random(7)
    for first in range(0, pairs, ROWS_AT_ONCE):
        _decide(scene, scene.comparisons[first : first + ROWS_AT_ONCE], dice)
    Comparison.objects.filter(queue=scene.queue).update(opened_at=timezone.now())
    scene.run.state = Run.State.VOTING
    scene.run.save()
    seal_all(scene.project)
    return scene


def make_undecided_scene(
    *, judges: int = 3, pairs: int = 1, voters: int = 0, votes_wanted: int = 1000
) -> Scene:
    """Write a run whose judges have not been asked yet; of its verdicts there is no row."""
    project = Project.objects.create(name="Scene")
    rubric = VoterPrompt.objects.create(project=project, text="Which one is better?")
    queue = Queue.objects.create(
        project=project, name="Scene", rubric=rubric, ballot=CHOICES, votes_per_item=votes_wanted
    )
    run = Run.objects.create(queue=queue, name="Scene", state=Run.State.JUDGING)
    Board.objects.create(run=run)
    return Scene(
        run,
        _comparisons(queue, pairs, votes_wanted),
        _judges(run, judges),
        Voter.objects.bulk_create(Voter(project=project, name=f"{n}") for n in range(voters)),
    )


def _comparisons(queue: Queue, pairs: int, votes_wanted: int) -> list[Comparison]:
    a, b = (
        Inference.objects.create(
            project=queue.project, prompt="A poem", output=f"{name} poem", kind="text", generator=name
        )
        for name in ("one", "another")
    )
    return Comparison.objects.bulk_create(
        [
            Comparison(queue=queue, position=position, a=a, b=b, votes_wanted=votes_wanted)
            for position in range(pairs)
        ],
        batch_size=ROWS_AT_ONCE,
    )


def _judges(run: Run, number: int) -> list[Judge]:
    names = [*names_for("text"), *(f"judge {n}" for n in range(number))][:number]
    judges = Judge.objects.bulk_create(
        Judge(
            run=run,
            position=position,
            name=name,
            provider=Judge.Provider.BASELINE,
            fingerprint=sha256(name.encode()).hexdigest(),
        )
        for position, name in enumerate(names)
    )
    JudgeRating.objects.bulk_create(JudgeRating(judge=judge) for judge in judges)
    return judges


def _decide(scene: Scene, comparisons: list[Comparison], dice: Random) -> None:
    said = {
        comparison: [_verdict(judge, comparison, dice) for judge in scene.judges]
        for comparison in comparisons
    }
    Verdict.objects.bulk_create(
        [verdict for verdicts in said.values() for verdict in verdicts], batch_size=ROWS_AT_ONCE
    )
    Entry.objects.bulk_create(verdicts_entry(pair, verdicts) for pair, verdicts in said.items())


def _verdict(judge: Judge, comparison: Comparison, dice: Random) -> Verdict:
    """Let a judge say something, and now and then nothing."""
    verdict = Verdict(judge=judge, comparison=comparison)
    if dice.random() < 0.05:
        verdict.state, verdict.error = Verdict.State.FAILED, "no answer"
    else:
        verdict.state, verdict.winner = Verdict.State.DONE, dice.choice(CHOICES)
    return verdict


def seal_all(project: Project) -> None:
    """Seal whatever there is, however young."""
    while ledger.seal(project.pk, now=timezone.now() + timedelta(seconds=1)):
        pass


def assert_sound(project: Project) -> None:
    """Everything is sealed, numbered without a gap, chained, and scored as a replay scores it."""
    project.refresh_from_db()
    seqs = list(Entry.objects.filter(project=project).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, len(seqs) + 1))
    assert project.head_seq == len(seqs)
    verified = chain.verify(ledger.export(project), head=project.head)
    assert verified.entries == len(seqs)
    assert ledger.replay(project, write=False) == []
