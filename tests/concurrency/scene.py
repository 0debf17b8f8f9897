"""A run that people can vote on at once, made without workers: for concurrency tests and benches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from random import Random

from django.utils import timezone

from judge_eval.judging import verdicts_entry
from judge_eval.models import Board, Judge, JudgeRating, Run, Verdict
from voting import chain, ledger
from voting.allotment import ballot_for
from voting.ballots import Ballot
from voting.models import Comparison, Entry, Inference, Project, Queue, Voter, VoterPrompt

CHOICES = ("A", "B", "both_bad")
POSITIONS = ("left", "right", "both_bad")
ROWS_AT_ONCE = 2000


@dataclass
class Scene:
    """A run in voting, its open pairs, and voters who have not voted yet."""

    run: Run
    comparisons: list[Comparison]
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
    *,
    judges: int = 3,
    pairs: int = 8,
    voters: int = 8,
    votes_wanted: int = 1000,
    verdict_rows: bool = True,
) -> Scene:
    """Write a run whose verdicts are sealed; `verdict_rows=False` leaves only the entries."""
    project = Project.objects.create(name="Scene")
    rubric = VoterPrompt.objects.create(project=project, text="Which one is better?")
    queue = Queue.objects.create(
        project=project, name="Scene", rubric=rubric, ballot=CHOICES, votes_per_item=votes_wanted
    )
    run = Run.objects.create(queue=queue, name="Scene", state=Run.State.VOTING)
    Board.objects.create(run=run)
    scene = Scene(run, _comparisons(queue, pairs, votes_wanted), _voters(project, voters))
    _judge(run, scene.comparisons, _judges(run, judges), verdict_rows=verdict_rows)
    seal_all(project)
    return scene


def _comparisons(queue: Queue, pairs: int, votes_wanted: int) -> list[Comparison]:
    a, b = (
        Inference.objects.create(
            project=queue.project, prompt="A poem", output=f"Poem {name}", kind="text", generator=name
        )
        for name in ("first", "second")
    )
    return Comparison.objects.bulk_create(
        [
            Comparison(
                queue=queue,
                position=position,
                a=a,
                b=b,
                votes_wanted=votes_wanted,
                opened_at=timezone.now(),
            )
            for position in range(pairs)
        ],
        batch_size=ROWS_AT_ONCE,
    )


def _voters(project: Project, number: int) -> list[Voter]:
    return Voter.objects.bulk_create(Voter(project=project, name=f"{n}") for n in range(number))


def _judges(run: Run, number: int) -> list[Judge]:
    judges = Judge.objects.bulk_create(
        Judge(
            run=run,
            position=position,
            name=f"judge {position}",
            provider=Judge.Provider.BASELINE,
            fingerprint=sha256(f"judge {position}".encode()).hexdigest(),
        )
        for position in range(number)
    )
    JudgeRating.objects.bulk_create(JudgeRating(judge=judge) for judge in judges)
    return judges


def _judge(
    run: Run, comparisons: list[Comparison], judges: list[Judge], *, verdict_rows: bool
) -> None:
    """Let every judge say something, and now and then nothing."""
    dice = Random(7)
    for first in range(0, len(comparisons), ROWS_AT_ONCE):
        said = {
            comparison: [_verdict(judge, comparison, dice) for judge in judges]
            for comparison in comparisons[first : first + ROWS_AT_ONCE]
        }
        if verdict_rows:
            Verdict.objects.bulk_create([verdict for row in said.values() for verdict in row])
        Entry.objects.bulk_create(verdicts_entry(pair, row) for pair, row in said.items())


def _verdict(judge: Judge, comparison: Comparison, dice: Random) -> Verdict:
    if dice.random() < 0.05:
        state, winner, error = Verdict.State.FAILED, "", "no answer"
    else:
        state, winner, error = Verdict.State.DONE, dice.choice(CHOICES), ""
    return Verdict(judge=judge, comparison=comparison, state=state, winner=winner, error=error)


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
