"""Whatever people and judges do, in whatever batches: live figures, replay and reference agree."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reports.review.services import decide, reverse
from tests.helpers.reference import assert_as_expected
from tests.makers import change_verdicts, make_run, make_vote, make_voter, pairs_of
from voting.ballot.services import NothingToUndo, VoteConflict, record_exposure, undo_last_vote
from voting.curating import services
from voting.curating.services import (
    AlreadyDecided,
    change_for_all,
    change_for_disputed,
    decisions_on,
    decisions_on_voters,
    exclude_voter,
)
from voting.ledger import chain, ledger
from voting.ledger.decisions import Rules
from voting.models import Entry

pytestmark = [pytest.mark.both, pytest.mark.django_db]

RUNS, PAIRS, VOTERS, JUDGES = 2, 3, 3, 3


@pytest.fixture(autouse=True)
def _checkpoints_within_batches(monkeypatch):
    monkeypatch.setattr("judge_eval.ledger.projection.CHECKPOINT_EVERY", 2)


choices = st.sampled_from(["A", "B", "tie", "both_bad"])
winners = st.lists(st.none() | choices, min_size=JUDGES, max_size=JUDGES)
run_number = st.integers(0, RUNS - 1)
voter_number = st.integers(0, VOTERS - 1)
actions = st.sampled_from(["exclude", "exclude", "keep", "another_round", "note"])
pair_number = st.integers(0, PAIRS - 1)
# Votes are the rule; everything else happens in between.
vote = st.tuples(st.just("vote"), run_number, voter_number, pair_number, choices)
steps = st.one_of(
    vote,
    vote,
    vote,
    st.tuples(st.just("undo"), run_number, voter_number),
    st.tuples(st.just("see"), run_number, voter_number, pair_number),
    st.tuples(st.just("change"), run_number, pair_number, winners),
    st.tuples(st.just("decide"), run_number, pair_number, actions),
    st.tuples(st.just("exclude_voter"), run_number, voter_number),
    st.tuples(st.just("want"), run_number, st.integers(1, 4), st.booleans()),
    st.tuples(st.just("reverse"), st.integers(0, 5)),
    st.tuples(st.just("seal"), st.integers(1, 5)),
)


def anything_happens(test):
    """Call a test with what judges say, what happens then, and how many entries a seal takes."""
    happens = given(
        st.lists(winners, min_size=RUNS * PAIRS, max_size=RUNS * PAIRS),
        st.lists(steps, max_size=20),
        st.integers(1, 7),
    )
    slow = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    # One of these takes as long as many examples of other tests.
    some = settings().max_examples // 3
    return settings(max_examples=some, suppress_health_check=slow)(happens(test))


class World:
    """Two runs of one project, some voters, and everything that can happen to them."""

    def __init__(self, says):
        first = make_run(says=says[:PAIRS])
        self.runs = [first, make_run(first.queue.project, says=says[PAIRS:])]
        self.project = first.queue.project
        self.voters = [make_voter(first) for _ in range(VOTERS)]
        self.pairs = [pairs_of(run) for run in self.runs]

    def vote(self, run, voter, pair, choice):
        with suppress(VoteConflict):
            make_vote(self.voters[voter], self.pairs[run][pair], choice)

    def undo(self, run, voter):
        with suppress(NothingToUndo):
            undo_last_vote(self.voters[voter], self.runs[run].queue)

    def see(self, run, voter, pair):
        record_exposure(self.voters[voter].pk, [self.pairs[run][pair].pk], timezone.now())

    def change(self, run, pair, winners):
        change_verdicts(self.pairs[run][pair], winners)

    def decide(self, run, pair, action):
        item = self.pairs[run][pair]
        latest = decisions_on(item.pk).first()
        decide(item, action, self.voters[0], "", after=latest and latest.uid)

    def exclude_voter(self, run, voter):
        queue, voter = self.runs[run].queue, self.voters[voter]
        latest = decisions_on_voters(queue).filter(voter=voter).first()
        exclude_voter(voter.pk, queue, self.voters[0], after=latest and latest.uid)

    def want(self, run, votes, is_for_all):
        queue, lead = self.runs[run].queue, self.voters[0]
        if is_for_all:
            rules = Rules(votes_per_item=votes, overlap_share=0.5, overlap_votes=2)
            change_for_all(queue, rules, lead)
        else:
            change_for_disputed(queue, votes, lead)

    def reverse(self, number):
        decisions = Entry.objects.filter(project=self.project, kind="decision")
        decisions = decisions.exclude(payload__action="reverse")
        with suppress(AlreadyDecided):
            if decision := decisions.order_by("-pk")[number : number + 1].first():
                if decision.item:
                    reverse(decision, self.voters[0], "")
                else:
                    services.reverse(decision.uid, self.voters[0])

    def seal(self, size):
        """Seal one batch, which may end between a vote and its retraction."""
        with override_settings(SEAL_BATCH=size):
            sealed = ledger.seal(self.project.pk, now=timezone.now() + timedelta(seconds=1))
        self.check()
        return sealed

    def check(self):
        self.project.refresh_from_db()
        assert ledger.replay(self.project, write=False) == []
        for run in self.runs:
            assert_as_expected(run)


@anything_happens
def test_live_figures_replay_and_reference_agree_after_every_batch(says, steps, last_batches):
    world = World(says)
    for name, *arguments in steps:
        getattr(world, name)(*arguments)
    while world.seal(last_batches):
        pass
    numbers = Entry.objects.filter(project=world.project).order_by("seq")
    count = numbers.count()
    assert list(numbers.values_list("seq", flat=True)) == list(range(1, count + 1))
    assert chain.verify(ledger.export(world.project), world.project.ledger_head).entries == count
