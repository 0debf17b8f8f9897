"""What waits for a curator: opened and closed by votes, flags and decisions, as a replay has it."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reports.models import Review
from reports.quality.parameters import change
from reports.review.services import decide, reverse, reviews
from tests.helpers.scene import assert_sound, make_scene
from tests.makers import (
    make_item,
    make_queue,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.ballot.services import NothingToUndo, VoteConflict, flag, undo_last_vote
from voting.curating.services import decisions_on, decisions_on_voters, exclude_voter
from voting.items.kinds import VoteDetails
from voting.ledger import ledger
from voting.models import Entry, Project, Voter
from voting.people.voters import erase

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def vote_on(pair, *choices):
    """Let as many people vote so; return them."""
    queue = pair.queue
    voters = [Voter.objects.create(project=queue.project) for _ in choices]
    for voter, choice in zip(voters, choices, strict=True):
        make_vote(voter, pair, choice)
    seal_all(queue.project)
    return voters


def single(kind, *answers):
    """Return an item of one output, with votes given as (choice, value)."""
    item = make_item(make_queue(kind=kind, ballot=["pass", "flag"]))
    queue = item.queue
    for choice, value in answers:
        Entry.objects.create(
            project=queue.project,
            kind="vote",
            queue=queue,
            item=item,
            voter=Voter.objects.create(project=queue.project),
            rubric=queue.rubric,
            at=timezone.now(),
            choice=choice,
            value=value,
        )
    seal_all(queue.project)
    return item


def waiting():
    return set(Review.objects.filter(waits=True).values_list("item", flat=True))


def review_of(item):
    assert ledger.replay(item.queue.project, write=False) == []
    return Review.objects.get(item=item)


def a_disputed_pair():
    [pair] = pairs_of(make_run(votes_wanted=9))
    voters = vote_on(pair, "A", "B", "tie")
    return pair, voters


def test_a_disputed_pair_waits_until_enough_people_agree():
    pair, _ = a_disputed_pair()
    assert waiting() == {pair.pk}
    vote_on(pair, "A", "A", "A")
    assert not review_of(pair).waits


def test_too_few_votes_and_two_thirds_dispute_nothing():
    few, agreed = pairs_of(make_run(pairs=2, votes_wanted=9))
    vote_on(few, "A", "B")
    vote_on(agreed, "A", "B", "A")
    assert not Review.objects.exists()


def test_other_limits_open_and_close_what_was_voted_on():
    [pair] = pairs_of(make_run(votes_wanted=9))
    [voter, _] = vote_on(pair, "A", "B")
    assert waiting() == set()
    change(pair.queue.project, {"min_votes": 2}, voter)
    seal_all(pair.queue.project)
    assert review_of(pair).waits
    change(pair.queue.project, {"min_votes": 3}, voter)
    seal_all(pair.queue.project)
    assert not review_of(pair).waits


def test_a_vote_that_is_taken_back_closes_it():
    pair, voters = a_disputed_pair()
    undo_last_vote(voters[1], pair.queue)
    seal_all(pair.queue.project)
    assert not review_of(pair).waits


def test_a_flag_puts_it_on_the_list_at_once():
    [pair] = pairs_of(make_run())
    flag(make_voter(pair.queue.run), pair.pk, "unsafe", "")
    review = review_of(pair)
    assert (review.waits, review.flags, review.category) == (True, 1, "unsafe")


def flagged_item(*flags):
    """Return an item of one output with a flag vote for each (category, comment), unsealed."""
    item = make_item(make_queue(kind="pass_flag", ballot=["pass", "flag"], votes_per_item=9))
    for category, comment in flags:
        voter = Voter.objects.create(project=item.queue.project)
        make_vote(voter, item, "flag", further=VoteDetails(0, category, comment))
    return item


def review_by(project, setting):
    change(project, {"flags_to_review": setting}, Voter.objects.filter(project=project)[0])
    seal_all(project)


def test_flags_of_two_people_wait_and_those_of_one_are_read_under_all_flags():
    one, two, calm = flagged_item(("", "")), flagged_item(("", ""), ("format", "")), flagged_item()
    for item in (one, two, calm):
        seal_all(item.queue.project)
    assert waiting() == {two.pk}
    assert (review_of(one).flags, review_of(two).flags) == (1, 2)
    everybody = Project.objects.all()
    request = user_client().get("/").wsgi_request
    listed = set(reviews("flags", request, everybody).values_list("item", flat=True))
    assert listed == {one.pk, two.pk}


def test_one_person_who_flags_a_pair_twice_is_one():
    [pair] = pairs_of(make_run())
    voter, other = make_voter(pair.queue.run), make_voter(pair.queue.run)
    flag(voter, pair.pk, "format", "")
    flag(voter, pair.pk, "other", "")
    assert not review_of(pair).waits
    flag(other, pair.pk, "other", "")
    assert review_of(pair).waits


@pytest.mark.parametrize(
    "setting, category, comment, waits",
    [
        *(("with_reason", "unsafe", "", True), ("with_reason", "", "It is rude.", True)),
        *(("with_reason", "", "", False), ("all", "", "", True)),
        *(("none", "unsafe", "It is rude.", False), ("none", "", "", False)),
        *(("two_or_unsafe", "unsafe", "", True), ("two_or_unsafe", "format", "Long.", False)),
    ],
)
def test_a_flag_vote_waits_as_the_project_says(setting, category, comment, waits):
    item = flagged_item((category, comment))
    review_by(item.queue.project, setting)
    assert (item.pk in waiting()) is waits
    assert ledger.replay(item.queue.project, write=False) == []
    if waits:
        review = review_of(item)
        assert (review.flags, review.category, review.is_divided) == (1, category, False)


def test_another_setting_opens_and_closes_what_was_flagged_before():
    item = flagged_item(("", ""), ("", ""))
    voter = Voter.objects.all()[0]
    seal_all(item.queue.project)
    for setting, waits in [("all", True), ("with_reason", False), ("all", True), ("none", False)]:
        change(item.queue.project, {"flags_to_review": setting}, voter)
        seal_all(item.queue.project)
        assert review_of(item).waits is waits


def test_where_no_flags_are_reviewed_neither_are_those_on_pairs():
    [pair] = pairs_of(make_run())
    voter = make_voter(pair.queue.run)
    change(pair.queue.project, {"flags_to_review": "none"}, voter)
    seal_all(pair.queue.project)
    flag(voter, pair.pk, "unsafe", "")
    assert not review_of(pair).waits


@pytest.mark.parametrize("sealed_between", [True, False])
def test_a_flag_vote_that_is_taken_back_waits_no_longer(sealed_between):
    item = flagged_item(("unsafe", ""))
    if sealed_between:
        seal_all(item.queue.project)
        assert waiting() == {item.pk}
    undo_last_vote(Voter.objects.get(), item.queue)
    seal_all(item.queue.project)
    assert waiting() == set()
    assert_sound(item.queue.project)


def test_a_flag_vote_of_an_excluded_voter_waits_no_longer():
    item = flagged_item(("unsafe", ""))
    seal_all(item.queue.project)
    voter = Voter.objects.get()
    exclude_voter(voter.pk, item.queue, voter, after=None)
    seal_all(item.queue.project)
    assert not review_of(item).waits


def test_a_kept_item_comes_back_with_a_new_flag_vote_and_not_with_one_without_a_reason():
    item = flagged_item(("unsafe", ""), ("", "It is rude."))
    project = item.queue.project
    review_by(project, "with_reason")
    assert review_of(item).flags == 2
    curator = Voter.objects.create(project=project)
    decide(item, "keep", curator, "", after=None)
    seal_all(project)
    assert waiting() == set()
    make_vote(Voter.objects.create(project=project), item, "flag", further=VoteDetails(0))
    seal_all(project)
    assert waiting() == set()
    voter = Voter.objects.create(project=project)
    make_vote(voter, item, "flag", further=VoteDetails(0, "format"))
    seal_all(project)
    assert review_of(item).waits
    assert Review.objects.get().category == "format"


def test_what_was_flagged_with_a_comment_waits_when_the_person_is_forgotten():
    item = flagged_item(("", "It is rude."))
    review_by(item.queue.project, "with_reason")
    erase(Voter.objects.get())
    seal_all(item.queue.project)
    assert review_of(item).waits


who = st.integers(0, 2)
happenings = st.one_of(
    st.tuples(st.just("vote"), who, st.sampled_from([(), ("unsafe",), ("", "Rude.")])),
    st.tuples(st.just("vote"), who, st.sampled_from([(), ("unsafe",), ("", "Rude.")])),
    st.tuples(st.just("undo"), who, st.none()),
    st.tuples(st.just("exclude"), who, st.none()),
    st.tuples(st.just("decide"), who, st.sampled_from(["keep", "exclude", "another_round"])),
    st.tuples(
        st.just("set"), who, st.sampled_from(["two_or_unsafe", "with_reason", "all", "none"])
    ),
    st.tuples(st.just("seal"), who, st.integers(1, 4)),
)


def happen(item, voter, what, how):
    if what == "vote":
        make_vote(voter, item, "flag", further=VoteDetails(0, *how))
    elif what == "undo":
        undo_last_vote(voter, item.queue)
    elif what == "exclude":
        latest = decisions_on_voters(item.queue).filter(voter=voter).first()
        exclude_voter(voter.pk, item.queue, voter, after=latest and latest.uid)
    elif what == "decide":
        latest = decisions_on(item.pk).first()
        decide(item, how, voter, "", after=latest and latest.uid)
    else:
        change(item.queue.project, {"flags_to_review": how}, voter)


@given(st.lists(happenings, max_size=15), st.integers(1, 4))
@settings(
    max_examples=settings().max_examples // 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_flags_in_whatever_batches_are_listed_as_a_replay_lists_them(happened, last):
    item = flagged_item()
    project = item.queue.project
    voters = [Voter.objects.create(project=project) for _ in range(3)]

    def seal(size):
        with override_settings(SEAL_BATCH=size):
            sealed = ledger.seal(project.pk, now=timezone.now() + timedelta(seconds=1))
        assert ledger.replay(project, write=False) == []
        return sealed

    for what, number, how in happened:
        if what == "seal":
            seal(how)
        else:
            with suppress(VoteConflict, NothingToUndo):
                happen(item, voters[number], what, how)
    while seal(last):
        pass


@pytest.mark.parametrize(
    "values, variance, waits",
    [((900_000, 800_000, 600_000), 0.015556, False), ((1_000_000, 0, 0), 0.222222, True)],
)
def test_an_ambiguous_item_waits(values, variance, waits):
    item = single("pass_flag", *[(("flag", "pass")[v >= 500_000], v) for v in values])
    assert (item.pk in waiting()) is waits
    if waits:
        assert review_of(item).variance == pytest.approx(variance, abs=1e-6)


@pytest.mark.parametrize("kind", ["category", "rating", "labels"])
def test_choices_between_words_are_disputed_as_those_of_pairs_are(kind):
    assert single(kind, ("1", None), ("2", None), ("1", None)).pk not in waiting()
    item = single(kind, ("1", None), ("2", None), ("3", None))
    assert review_of(item).waits


@pytest.mark.parametrize("action", ["keep", "exclude", "another_round"])
def test_a_decision_takes_it_off_the_list_at_once_and_its_reversal_puts_it_back(action):
    pair, [curator, *_] = a_disputed_pair()
    made = decide(pair, action, curator, "", after=None)
    assert waiting() == set()
    seal_all(pair.queue.project)
    assert review_of(pair).decided == action
    reverse(made, curator, "")
    assert waiting() == ({pair.pk} if action != "exclude" else set())
    seal_all(pair.queue.project)
    assert waiting() == {pair.pk}
    assert_sound(pair.queue.project)


def test_a_note_decides_nothing():
    pair, [curator, *_] = a_disputed_pair()
    decide(pair, "note", curator, "Ask Ann.", after=None)
    assert waiting() == {pair.pk}


def test_what_was_kept_comes_back_with_a_new_flag_and_not_with_new_votes():
    pair, [curator, *_] = a_disputed_pair()
    flag(curator, pair.pk, "format", "")
    decide(pair, "keep", curator, "", after=None)
    vote_on(pair, "A", "B", "tie")
    assert waiting() == set()
    flag(curator, pair.pk, "unsafe", "Look again.")
    assert review_of(pair).waits
    assert Review.objects.get().category == "unsafe"


def test_another_round_comes_back_when_it_is_over_and_settled_nothing():
    pair, [curator, *_] = a_disputed_pair()
    made = decide(pair, "another_round", curator, "", after=None, votes=1)
    assert made.payload["votes_wanted"] == 10
    vote_on(pair, *["A", "B"] * 3)
    assert waiting() == set()
    vote_on(pair, "tie")
    assert review_of(pair).waits


def test_pretend_votes_are_nobodys_dispute():
    [pair] = pairs_of(make_run(is_simulated=True, votes_wanted=9))
    for choice in ("A", "B", "tie"):
        voter = make_voter(pair.queue.run)
        Entry.objects.create(
            project=pair.queue.project,
            kind="vote",
            queue=pair.queue,
            item=pair,
            voter=voter,
            rubric=pair.queue.rubric,
            at=timezone.now(),
            choice=choice,
            simulated=True,
        )
    seal_all(pair.queue.project)
    assert waiting() == set()


def test_what_is_ambiguous_is_the_projects_own_affair():
    item = single("pass_flag", ("pass", 900_000), ("pass", 800_000), ("pass", 600_000))
    assert waiting() == set()
    change(item.queue.project, {"critical_variance": 0.01}, Voter.objects.all()[0])
    seal_all(item.queue.project)
    assert review_of(item).waits
    change(item.queue.project, {"min_votes": 4}, Voter.objects.all()[0])
    seal_all(item.queue.project)
    assert not review_of(item).waits


def test_a_replay_finds_a_list_that_is_not_as_it_must_be():
    pair, _ = a_disputed_pair()
    Review.objects.update(waits=False, is_divided=False)
    found = ledger.replay(pair.queue.project, write=True)
    assert {str(each).partition(" ")[0] for each in found} == {"waits", "is_divided"}
    assert review_of(pair).waits
    Review.objects.all().delete()
    assert ledger.replay(pair.queue.project, write=True)
    assert review_of(pair).waits


def test_the_queries_of_a_batch_do_not_grow_with_what_waits():
    counts = []
    for pairs in (1, 20):
        scene = make_scene(pairs=pairs)
        for pair in scene.pairs:
            for voter, choice in zip(scene.voters, ["A", "B", "tie"], strict=False):
                make_vote(voter, pair, choice)
        with CaptureQueriesContext(connection) as queries:
            seal_all(scene.project)
        counts.append(len({query["sql"].split(" WHERE ")[0] for query in queries}))
        assert Review.objects.filter(project=scene.project, waits=True).count() == pairs
    assert counts[1] <= counts[0] + 2
