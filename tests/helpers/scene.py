"""A run with voters and judges of differing opinions, and what must be true of its ledger."""

from dataclasses import dataclass
from random import Random

from judge_eval.models import Board, Run
from tests.makers import make_items, make_judges, make_queue, make_run, make_voter, pairs_of
from voting.ballot.assignment import ballot_for
from voting.ballot.signed_form import Ballot
from voting.ledger import chain, ledger
from voting.models import Entry, Item, Project, Queue, Voter

# What a judge says, now and then nothing.
OPINIONS = ("A", "B", "both_bad", "tie", "A", "B", None)


@dataclass
class Scene:
    """A run in voting, its pairs, and voters who have not voted yet."""

    run: Run
    pairs: list[Item]
    voters: list[Voter]

    @property
    def queue(self) -> Queue:
        return self.run.queue

    @property
    def project(self) -> Project:
        return self.run.queue.project

    def ballot(self, voter: int = 0, pair: int = 0) -> Ballot:
        """A new ballot for a voter and a pair, each given by its number."""
        return ballot_for(self.voters[voter], self.queue, self.pairs[pair])


def make_scene(*, judges=3, pairs=8, voters=8, votes_wanted=1000) -> Scene:
    dice = Random(7)
    says = [[dice.choice(OPINIONS) for _ in range(judges)] for _ in range(pairs)]
    run = make_run(says=says, votes_wanted=votes_wanted)
    return Scene(run, pairs_of(run), [make_voter(run) for _ in range(voters)])


def make_unjudged_run(names, *, pairs) -> tuple[Run, list[Item]]:
    """Return a run whose baselines have not been asked yet: there is no row of a verdict."""
    queue = make_queue()
    run = Run.objects.create(queue=queue, name="Not judged yet", state=Run.State.JUDGING)
    Board.objects.create(run=run)
    make_judges(run, names)
    return run, make_items(queue, pairs, opened=False)


def assert_sound(project: Project) -> None:
    """Every entry is sealed, and the ledger is whole."""
    assert not Entry.objects.filter(project=project, seq__isnull=True).exists()
    assert_whole(project)


def assert_whole(project: Project) -> None:
    """What is sealed is numbered without a gap, chained, and scored as a replay scores it."""
    project.refresh_from_db()
    sealed = Entry.objects.filter(project=project, seq__isnull=False).order_by("seq")
    assert list(sealed.values_list("seq", flat=True)) == list(range(1, project.head_seq + 1))
    verified = chain.verify(ledger.export(project), head=project.ledger_head)
    assert verified.entries == project.head_seq
    assert ledger.replay(project, write=False) == []
