"""Undo goes back through the voter's own votes, as retractions in the ledger."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge_eval.board.voter_stats import figures_of
from judge_eval.models import Board, JudgeRating
from tests.helpers.pages import ballots_in, text_of
from tests.helpers.reference import assert_as_expected
from tests.makers import entry_of, make_run, make_vote, make_voter, pairs_of, seal_all, voter_client
from voting.ballot.queries import open_to, progress, standing_votes, votes_on_item
from voting.ballot.services import NothingToUndo, VotingClosed, record_exposure, undo_last_vote
from voting.curating.services import decide
from voting.ledger import ledger
from voting.ledger.bulk_sql import key
from voting.ledger.counts import COUNTED, OF_PEOPLE
from voting.models import Entry, Queue

pytestmark = pytest.mark.django_db


def test_undo_retracts_and_deletes_nothing():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    vote = entry_of(make_vote(voter, pair))
    assert undo_last_vote(voter, run.queue) == pair
    vote.refresh_from_db()
    retraction = Entry.objects.get(kind="retraction")
    assert vote.retracted
    assert (retraction.target, retraction.voter, retraction.item) == (vote, voter, pair)
    assert retraction.at > vote.at


def test_any_vote_of_ones_own_is_changed_and_only_that():
    run = make_run(pairs=3)
    voter, pairs = make_voter(run), pairs_of(run)
    first, second = (make_vote(voter, pair) for pair in pairs[:2])
    client = voter_client(voter)
    mine = client.get(reverse("my-votes", args=[run.queue_id]))
    number = re.search(rf'value="{first.uid}"><input[^>]*value="([^"]+)"', mine.content.decode())[1]
    for _ in range(2):  # the same request again is not a second one
        answer = client.post(
            reverse("undo", args=[run.queue_id]), {"vote": first.uid, "undo": number}
        )
        assert answer.url.endswith(f"?again={pairs[0].pk}")
    assert entry_of(first).retracted
    assert not entry_of(second).retracted
    other = voter_client(make_voter(run)).post(
        reverse("undo", args=[run.queue_id]), {"vote": second.uid}
    )
    assert other.status_code == 409
    assert not entry_of(second).retracted


def test_what_was_taken_back_and_skipped_is_found_under_ones_own_votes():
    """After the reveal its blind vote still counts: nobody is handed it again."""
    run = make_run(pairs=2)
    voter, pairs = make_voter(run), pairs_of(run)
    for pair in pairs:
        make_vote(voter, pair)
        record_exposure(voter.pk, [pair.pk], timezone.now())
    mine, client = reverse("my-votes", args=[run.queue_id]), voter_client(voter)
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    page = client.get(mine)
    again = f"/vote/{run.queue_id}/?again={pairs[1].pk}"
    assert ("taken back" in text_of(page), page.content.decode().count("?again=")) == (True, 1)
    assert f'href="{again}"' in page.content.decode()
    # On a phone each vote is a card: the way to change it is in view.
    assert page.content.decode().count('data-label="You chose"') == 2
    assert ballots_in(client.get(again))
    make_vote(voter, pairs[1], "B")
    page = client.get(mine)
    assert [own["vote"].retracted for own in page.context["votes"]] == [False, False]


@pytest.mark.parametrize("sealed_between", [True, False])
@pytest.mark.parametrize("again", [[], ["B"], ["B", "A", "B"]])
def test_a_vote_changed_after_the_reveal_stays_in_judges_figures_and_is_not_what_is_said_now(
    sealed_between, again
):
    run = make_run(says=[["A", "B"]])
    voter, [pair] = make_voter(run), pairs_of(run)
    vote = make_vote(voter, pair, "A")
    record_exposure(voter.pk, [pair.pk], timezone.now())
    if sealed_between:
        seal_all(run.queue.project)
    client, change = voter_client(voter), reverse("undo", args=[run.queue_id])
    mine = client.get(reverse("my-votes", args=[run.queue_id])).content.decode()
    assert (f'value="{vote.uid}"' in mine, "compared with your first vote" in mine) == (True, True)
    told = client.post(change, {"vote": vote.uid}, follow=True).content.decode()
    assert "a new vote on it is not blind" in told
    for number, choice in enumerate(again):
        if number:
            undo_last_vote(voter, run.queue)
        latest = make_vote(voter, pair, choice)
    seal_all(run.queue.project)
    first = entry_of(vote)
    assert (first.retracted, first.unblinded, first.retracted_after_reveal) == (True, False, True)
    said = list(Entry.objects.filter(OF_PEOPLE, item=pair))
    assert said == ([entry_of(latest)] if again else [])
    assert all(later.unblinded for later in said)
    assert list(Entry.objects.filter(COUNTED, item=pair)) == [first]
    board = Board.objects.get(run=run)
    assert (board.votes, board.unblinded) == (1, len(said))
    assert JudgeRating.objects.get(judge__run=run, judge__position=0).agree == 1
    assert figures_of(run).voters[str(key(voter.pk))].votes == 1
    assert progress(voter, run.queue).left_for_me == 0
    assert [entry.pk for entry in votes_on_item(pair)] == [first.pk, *(each.pk for each in said)]
    assert ledger.replay(run.queue.project, write=False) == []
    assert_as_expected(run)
    Entry.objects.filter(pk=first.pk).update(retracted_after_reveal=False)
    assert ledger.replay(run.queue.project, write=True) != []
    assert entry_of(vote).retracted_after_reveal


def test_a_vote_after_the_change_is_not_blind_even_by_a_clock_that_is_behind():
    run = make_run()
    voter, [pair, *_] = make_voter(run), pairs_of(run)
    first = make_vote(voter, pair)
    record_exposure(voter.pk, [pair.pk], timezone.now())
    undo_last_vote(voter, run.queue)
    late = make_vote(voter, pair, "B", at=timezone.now() - timedelta(seconds=4))
    seal_all(run.queue.project)
    assert (entry_of(first).unblinded, entry_of(late).unblinded) == (False, True)
    assert list(Entry.objects.filter(COUNTED, item=pair)) == [entry_of(first)]


VOTERS, PAIRS = 2, 2
voter_number, pair_number = st.integers(0, VOTERS - 1), st.integers(0, PAIRS - 1)
steps = st.one_of(
    st.tuples(
        st.sampled_from(["vote", "vote", "change", "reveal"]),
        voter_number,
        pair_number,
        st.sampled_from(["A", "B", "tie"]),
    ),
    st.tuples(st.just("undo"), voter_number),
    st.tuples(st.just("seal"), st.integers(1, 3)),
)


class Voting:
    """What each voter says of a pair, and what of it the judges are measured by, beside a run."""

    def __init__(self):
        self.run = make_run(pairs=PAIRS, votes_wanted=2)
        self.voters = [make_voter(self.run) for _ in range(VOTERS)]
        self.pairs = pairs_of(self.run)
        # By voter and pair; those that were voted on stand in the order of the votes.
        self.said, self.judged, self.seen = {}, {}, set()

    def vote(self, voter, pair, choice):
        place = voter, pair
        if place not in self.said:
            make_vote(self.voters[voter], self.pairs[pair], choice)
            self.said[place] = choice
            if place not in self.seen:
                self.judged[place] = choice

    def reveal(self, voter, pair, _choice):
        if (voter, pair) in self.said:
            record_exposure(self.voters[voter].pk, [self.pairs[pair].pk], timezone.now())
            self.seen.add((voter, pair))

    def change(self, voter, pair, choice):
        if (voter, pair) in self.said:
            own = standing_votes(self.voters[voter], self.run.queue)
            vote = own.get(item=self.pairs[pair])
            self.take_back((voter, pair), vote=vote.uid)
            self.vote(voter, pair, choice)

    def undo(self, voter):
        if own := [place for place in self.said if place[0] == voter]:
            self.take_back(own[-1])

    def take_back(self, place, **named):
        undo_last_vote(self.voters[place[0]], self.run.queue, **named)
        del self.said[place]
        if place not in self.seen:
            del self.judged[place]

    def seal(self, size):
        with override_settings(SEAL_BATCH=size):
            ledger.seal(self.run.queue.project_id, now=timezone.now() + timedelta(seconds=1))
        assert ledger.replay(self.run.queue.project, write=False) == []
        assert_as_expected(self.run)

    def found(self, counted):
        votes = Entry.objects.filter(counted, queue=self.run.queue)
        return sorted(
            (self.voters.index(vote.voter), self.pairs.index(vote.item), vote.choice)
            for vote in votes.select_related("voter", "item")
        )


@given(st.lists(steps, max_size=15))
@settings(
    max_examples=settings().max_examples // 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_an_acknowledged_vote_is_never_lost_or_counted_twice(steps):
    voting = Voting()
    for name, *arguments in steps:
        getattr(voting, name)(*arguments)
    voting.seal(100)
    assert voting.found(OF_PEOPLE) == sorted((*at, said) for at, said in voting.said.items())
    assert voting.found(COUNTED) == sorted((*at, said) for at, said in voting.judged.items())


def test_undo_once_voting_has_closed_is_refused_and_the_vote_stands():
    run = make_run()
    voter, [pair, *_] = make_voter(run), pairs_of(run)
    vote = make_vote(voter, pair)
    closed_meanwhile = Queue.objects.get(pk=run.queue_id)
    Queue.objects.update(is_open=False)
    with pytest.raises(VotingClosed, match="Voting has closed"):
        undo_last_vote(voter, closed_meanwhile)
    seal_all(run.queue.project)
    assert not entry_of(vote).retracted
    assert not Entry.objects.filter(kind="retraction").exists()


def test_an_undo_that_came_through_before_voting_closed_is_answered_alike_afterwards():
    run = make_run()
    voter, [pair, *_] = make_voter(run), pairs_of(run)
    make_vote(voter, pair)
    uid = uuid4()
    undo_last_vote(voter, run.queue, uid)
    Queue.objects.update(is_open=False)
    assert undo_last_vote(voter, run.queue, uid) == pair
    with pytest.raises(NothingToUndo):
        undo_last_vote(voter, run.queue)


def test_a_vote_on_an_item_that_was_excluded_meanwhile_can_be_undone_and_given_again():
    run = make_run()
    voter, [pair, *_] = make_voter(run), pairs_of(run)
    make_vote(voter, pair)
    decide(pair.pk, "exclude", make_voter(run), after=None)
    seal_all(run.queue.project)
    assert undo_last_vote(voter, run.queue) == pair
    again = entry_of(make_vote(voter, pair, "B"))
    seal_all(run.queue.project)
    again.refresh_from_db()
    assert (again.choice, again.retracted, again.excluded) == ("B", False, True)


def test_undo_twice_goes_further_back():
    run = make_run(pairs=3)
    voter, pairs = make_voter(run), pairs_of(run)
    for pair in pairs[:2]:
        make_vote(voter, pair)
    assert [undo_last_vote(voter, run.queue) for _ in range(2)] == [pairs[1], pairs[0]]
    with pytest.raises(NothingToUndo):
        undo_last_vote(voter, run.queue)


def test_the_number_of_somebody_elses_entry_undoes_nothing():
    run = make_run(pairs=2)
    voter, other = make_voter(run), make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    theirs = make_vote(other, pairs_of(run)[1])
    with pytest.raises(NothingToUndo):
        undo_last_vote(voter, run.queue, theirs.uid)
    assert not Entry.objects.filter(retracted=True).exists()


def test_undo_after_a_new_vote_takes_back_the_new_one():
    run = make_run(pairs=2)
    voter, pairs = make_voter(run), pairs_of(run)
    make_vote(voter, pairs[0])
    undo_last_vote(voter, run.queue)
    again = make_vote(voter, pairs[0], "B")
    undo_last_vote(voter, run.queue)
    assert Entry.objects.filter(kind="retraction").count() == 2
    assert entry_of(again).retracted


def test_only_ones_own_votes_in_this_queue_are_undone():
    run = make_run()
    other_run = make_run(run.queue.project)
    voter, stranger = make_voter(run), make_voter(run)
    make_vote(stranger, pairs_of(run)[0])
    make_vote(voter, pairs_of(other_run)[0])
    with pytest.raises(NothingToUndo):
        undo_last_vote(voter, run.queue)


@pytest.mark.parametrize("sealed", [True, False])
def test_the_pair_is_open_to_its_voter_again(sealed):
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    make_vote(voter, pair)
    if sealed:
        seal_all(run.queue.project)
    assert not open_to(voter, run.queue).exists()
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    assert open_to(voter, run.queue).get() == pair
    assert progress(voter, run.queue).mine == 0
    pair.refresh_from_db()
    assert pair.votes == 0


def test_a_vote_of_a_clock_that_runs_ahead_is_retracted_behind_it():
    run = make_run()
    voter = make_voter(run)
    ahead = timezone.now() + timedelta(minutes=2)
    make_vote(voter, pairs_of(run)[0], at=ahead)
    undo_last_vote(voter, run.queue)
    assert Entry.objects.get(kind="retraction").at > ahead
    seal_all(run.queue.project, later=timedelta(minutes=5))
    kinds = Entry.objects.order_by("seq").values_list("kind", flat=True)
    assert list(kinds) == ["verdicts", "vote", "retraction"]
