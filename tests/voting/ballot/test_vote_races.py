"""The same thing asked twice at once: it happens once, and everybody is told the truth."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from threading import Event
from time import sleep
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from judge_eval.judging import verdicts
from judge_eval.models import Run, Verdict
from judge_eval.runs import deletion, state
from tests.helpers.concurrent_calls import only, together
from tests.helpers.scene import assert_sound, make_scene, make_unjudged_run
from tests.makers import judges_of, make_invite, seal_all
from voting.ballot import services
from voting.ballot.assignment import ballot_for, next_pairs
from voting.ballot.services import NothingToUndo, RecordedVote, VoteConflict, VotingClosed
from voting.ballot.signed_form import Ballot
from voting.items.kinds import VoteDetails
from voting.ledger import ledger
from voting.models import ApiKey, Assignment, Entry, Flag, Item, Voter
from voting.people.voters import InviteRefused, erase, join, voter_of_key

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]


def votes():
    return Entry.objects.filter(kind=Entry.Kind.VOTE)


def test_one_ballot_from_eight_threads_is_one_vote_and_one_answer():
    scene = make_scene()
    ballot = scene.ballot()

    answers = together(*[partial(services.cast_vote, ballot, "A")] * 8)

    assert len(only(RecordedVote, answers)) == 8
    assert {(answer.uid, answer.choice) for answer in answers} == {(ballot.uid, "A")}
    assert sum(not answer.repeated for answer in answers) == 1
    assert votes().get().uid == ballot.uid
    seal_all(scene.project)
    assert_sound(scene.project)


def test_eight_tabs_with_a_ballot_each_are_one_vote():
    scene = make_scene()
    ballots = [scene.ballot() for _ in range(8)]

    answers = together(*[partial(services.cast_vote, ballot, "B") for ballot in ballots])

    recorded = votes().get()
    assert {answer.uid for answer in answers} == {recorded.uid}
    assert sum(not answer.repeated for answer in answers) == 1


@pytest.mark.parametrize("one_ballot", [True, False])
def test_two_choices_at_once_record_one_and_name_it_to_the_others(one_ballot):
    scene = make_scene()
    shared = scene.ballot()

    answers = together(
        *[
            partial(services.cast_vote, shared if one_ballot else scene.ballot(), choice)
            for choice in ["A", "B"] * 4
        ]
    )

    recorded = votes().get()
    accepted, refused = only(RecordedVote, answers), only(VoteConflict, answers)
    assert (len(accepted), len(refused)) == (4, 4)
    assert {answer.choice for answer in accepted} == {recorded.choice}
    assert {answer.recorded.uid for answer in refused} == {recorded.uid}
    assert {answer.recorded.choice for answer in refused} == {recorded.choice}


def test_two_voters_on_one_pair_do_not_disturb_each_other():
    scene = make_scene()
    ballots: list[Ballot] = [scene.ballot(voter=voter) for voter in range(8)]

    answers = together(*[partial(services.cast_vote, ballot, "A") for ballot in ballots])

    assert [answer.repeated for answer in answers] == [False] * 8
    assert votes().count() == 8


def test_the_same_undo_many_times_at_once_takes_back_one_vote():
    scene = make_scene()
    for pair in range(4):
        services.cast_vote(scene.ballot(pair=pair), "A")

    same = partial(services.undo_last_vote, scene.voters[0], scene.queue, uuid4())
    answers = together(*[same] * 8)

    assert [answer.pk for answer in only(Item, answers)] == [scene.pairs[3].pk] * 8
    assert Entry.objects.filter(kind=Entry.Kind.RETRACTION).count() == 1


def test_undo_from_many_threads_is_one_retraction():
    scene = make_scene()
    ballot = scene.ballot()
    services.cast_vote(ballot, "A")

    answers = together(*[partial(services.undo_last_vote, scene.voters[0], scene.queue)] * 8)

    assert [answer.pk for answer in only(Item, answers)] == [ballot.item]
    assert len(only(NothingToUndo, answers)) == 7
    retraction = Entry.objects.get(kind=Entry.Kind.RETRACTION)
    assert retraction.target is not None
    assert retraction.target.uid == ballot.uid
    seal_all(scene.project)
    assert_sound(scene.project)


def test_a_ballot_repeated_while_its_vote_is_undone_never_votes_again():
    scene = make_scene(pairs=20)
    for pair in range(20):
        ballot = scene.ballot(pair=pair)
        services.cast_vote(ballot, "A")

        undone, *repeats = together(
            partial(services.undo_last_vote, scene.voters[0], scene.queue),
            *[partial(services.cast_vote, ballot, "A")] * 3,
        )

        assert isinstance(undone, Item)
        assert {(repeat.uid, repeat.repeated) for repeat in repeats} == {(ballot.uid, True)}
    assert not votes().filter(retracted=False).exists()
    assert votes().count() == 20


def test_a_vote_undone_while_it_is_sealed_is_counted_nowhere():
    scene = make_scene(pairs=20)
    later = timezone.now() + timedelta(hours=1)
    for pair in range(20):
        services.cast_vote(scene.ballot(pair=pair), "A")
        answers = together(
            partial(services.undo_last_vote, scene.voters[0], scene.queue),
            partial(ledger.seal, scene.project.pk, now=later),
        )
        assert not only(Exception, answers)
    seal_all(scene.project)
    assert_sound(scene.project)
    assert set(Item.objects.values_list("votes", flat=True)) == {0}


def test_each_of_eight_who_ask_at_once_is_leased_another_pair():
    scene = make_scene(pairs=8, voters=8, votes_wanted=1)
    ask = [partial(next_pairs, voter, scene.queue, [], 1, timezone.now()) for voter in scene.voters]

    answers = together(*ask)

    assert {pair.pk for [pair], _ in answers} == {pair.pk for pair in scene.pairs}
    assert Assignment.objects.filter(leased_until__gt=timezone.now()).count() == 8


def test_of_eight_voters_at_once_none_is_idle_while_a_pair_wants_a_vote():
    scene = make_scene(pairs=30, voters=8, votes_wanted=1)

    def vote_until_the_end(voter):
        handed = next_pairs(voter, scene.queue, [], 6, timezone.now())[0]
        while handed:
            services.cast_vote(ballot_for(voter, scene.queue, handed[0]), "A")
            handed = next_pairs(voter, scene.queue, [], 6, timezone.now())[0]
        # Votes only come: a pair that lacks one now lacked it when nothing was handed out.
        lacking = Item.objects.filter(queue=scene.queue).exclude(pk__in=voted)
        return list(lacking.values_list("pk", flat=True))

    voted = votes().values("item")
    assert together(*[partial(vote_until_the_end, voter) for voter in scene.voters]) == [[]] * 8
    seal_all(scene.project)
    assert not Item.objects.filter(votes=0).exists()
    assert_sound(scene.project)


def test_two_tabs_of_one_voter_are_given_the_same_pairs():
    scene = make_scene(pairs=5, votes_wanted=1)
    ask = partial(next_pairs, scene.voters[0], scene.queue, [], 10, timezone.now())

    first, second = together(ask, ask)

    assert first == second
    assert Assignment.objects.count() == 5


def test_skips_at_once_are_counted_and_never_an_error():
    scene = make_scene()
    skips = [partial(services.skip, scene.ballot()) for _ in range(2)]

    assert together(*skips, *skips) == [None] * 4
    assert Assignment.objects.get().skips == services.SKIPS_BEFORE_RELEASE


def test_the_same_skip_many_times_at_once_is_one():
    scene = make_scene()

    answers = together(*[partial(services.skip, scene.ballot())] * 8)

    assert answers == [None] * 8
    assert Assignment.objects.get().skips == 1


@pytest.mark.parametrize("what", ["the voter is erased", "the run is deleted"])
def test_no_comment_is_written_behind_what_forgets_all_comments(what):
    scene = make_scene()
    Run.objects.update(state=Run.State.COMPLETE)
    voter, is_done, further = scene.voters[0], Event(), VoteDetails(comment="I am Ada.")

    def forget():
        with transaction.atomic():
            if what == "the voter is erased":
                erase(voter)
            else:
                deletion.delete(scene.run.pk, scene.run.name)
            is_done.set()
            sleep(0.3)  # not committed yet, and the vote is cast

    def cast():
        is_done.wait()
        services.cast_vote(scene.ballot(), "A", details=further)

    assert len(only(VotingClosed, together(forget, cast))) == 1
    assert not votes().exists()


def test_flags_at_once_are_one_flag():
    scene = make_scene()
    voter, pair = scene.voters[0], scene.pairs[0].pk

    answers = together(*[partial(services.flag, voter, pair, "format", "cut off")] * 4)

    assert len(only(Flag, answers)) == 4
    assert Flag.objects.count() == 1


def test_an_invite_lets_in_no_more_than_its_cap():
    scene = make_scene(voters=0)
    invite = make_invite(scene.run, max_voters=3)

    answers = together(*[partial(join, invite, "somebody", timezone.now())] * 8)

    assert (len(only(Voter, answers)), len(only(InviteRefused, answers))) == (3, 5)
    assert invite.voters.count() == 3


def test_a_key_is_one_voter_however_many_requests_it_begins_with():
    scene = make_scene(voters=0)
    key = ApiKey.objects.create(name="script", prefix="12345678", secret_sha256="")

    answers = together(*[partial(voter_of_key, scene.project.pk, key)] * 8)

    assert len(set(answers)) == 1
    assert Voter.objects.count() == 1


def test_a_pair_whose_verdicts_are_final_is_opened_once():
    run, (pair,) = make_unjudged_run(["random", "longer-wins"], pairs=1)
    make_verdict_rows(run, [pair], state="done", winner="A")

    answers = together(*[partial(verdicts.open_those_final, [pair.pk])] * 8)

    assert answers == [None] * 8
    assert Entry.objects.get(kind=Entry.Kind.VERDICTS).item == pair


def test_judges_that_are_asked_twice_at_once_answer_once():
    run, pairs = make_unjudged_run(["random", "longer-wins"], pairs=2)
    make_verdict_rows(run, pairs)

    answers = together(*[partial(state.advance, run.pk)] * 8)

    assert answers == [True] * 8
    assert set(Verdict.objects.values_list("state", flat=True)) == {"done"}
    opened = Entry.objects.filter(kind=Entry.Kind.VERDICTS)
    assert sorted(entry.item_id for entry in opened) == sorted(pair.pk for pair in pairs)
    assert all(len(entry.payload["verdicts"]) == 2 for entry in opened)
    seal_all(run.queue.project)
    assert_sound(run.queue.project)


def test_a_run_that_many_advance_at_once_goes_over_to_voting_once():
    run, pairs = make_unjudged_run(["random", "longer-wins"], pairs=4)
    make_verdict_rows(run, pairs, state="done", winner="B")

    answers = together(*[partial(state.advance, run.pk)] * 6)

    assert answers == [True] * 6
    run.refresh_from_db()
    assert run.state == "voting"
    assert Entry.objects.filter(kind=Entry.Kind.VERDICTS).count() == 4


def make_verdict_rows(run, pairs, **fields):
    return Verdict.objects.bulk_create(
        Verdict(judge=judge, item=pair, **fields) for pair in pairs for judge in judges_of(run)
    )
