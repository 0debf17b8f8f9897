"""Which pairs a voter gets next, and the leases that keep two people off the last one."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all
from voting.ballot import assignment
from voting.ballot.assignment import LEASED, ballot_for, give_back, next_pairs
from voting.ballot.queries import progress
from voting.ballot.services import undo_last_vote
from voting.items.order import fresh_turn, left_side, prompt_order
from voting.models import Assignment, Item

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def handed(voter, run, have=(), held=None, later=timedelta()):
    """What a page that holds `have` gets, until it holds `held` pairs."""
    held = len(have) + 10 if held is None else held
    found = next_pairs(voter, run.queue, list(have), held, timezone.now() + later)
    return [pair.pk for pair in found[0]]


def gone(voter, run, have):
    return next_pairs(voter, run.queue, have, len(have), timezone.now())[1]


def leased(voter):
    live = Assignment.objects.filter(voter=voter, leased_until__gt=timezone.now())
    return set(live.values_list("item", flat=True))


def make_prompts(*sizes, **fields):
    """Return a run with so many pairs for each prompt, and the prompts in the keyed order."""
    run = make_run(pairs=sum(sizes), **fields)
    names = [f"prompt {n}" for n, size in enumerate(sizes) for _ in range(size)]
    for pair, name in zip(pairs_of(run), names, strict=True):
        turn = fresh_turn(run.queue_id, name)
        Item.objects.filter(pk=pair.pk).update(prompt_key=name, turn=turn)
    return run, sorted(set(names), key=lambda name: prompt_order(run.queue_id, name))


def prompts_of(pks):
    prompts = dict(Item.objects.filter(pk__in=pks).values_list("pk", "prompt_key"))
    return [prompts[pk] for pk in pks]


def vote_on(run, prompt, voter=None, pairs=1):
    for pair in Item.objects.filter(queue=run.queue, prompt_key=prompt)[:pairs]:
        make_vote(voter or make_voter(run), pair)
    seal_all(run.queue.project)


def test_prompts_come_in_the_keyed_order_shuffled_within_ten():
    run, prompts = make_prompts(*[1] * 60, votes_wanted=9)
    orders = set()
    for voter in (make_voter(run) for _ in range(4)):
        order = []
        while len(order) < 60:
            order += handed(voter, run, have=order, held=len(order) + 2)
        places = [prompts.index(prompt) for prompt in prompts_of(order)]
        assert sorted(places) == list(range(60))
        # What is handed out is among the first ten that are left.
        for n, place in enumerate(places):
            assert place in sorted(places[n:])[: 10 + 1]
        orders.add(tuple(places))
    assert len(orders) == 4


def test_the_order_is_that_of_no_file():
    run, prompts = make_prompts(*[1] * 40)
    assert prompts != [f"prompt {n}" for n in range(40)]
    first = prompts_of(handed(make_voter(run), run, held=10))
    assert set(first) == set(prompts[:10])


@pytest.mark.parametrize("places", [[39], [12, 39, 25]])
def test_prompts_that_were_begun_come_first(places):
    run, prompts = make_prompts(*[2] * 40)
    for place in places:
        vote_on(run, prompts[place])
    begun = [prompts[place] for place in places]
    fresh = [prompt for prompt in prompts if prompt not in begun]
    # Of what was begun one pair is left, and two of the others: all pairs of the first ten prompts.
    pairs = len(begun) + 2 * (10 - len(begun))
    first = prompts_of(handed(make_voter(run), run, held=pairs))
    assert set(first) == {*begun, *fresh[: 10 - len(begun)]}


def test_a_prompt_is_begun_for_all_its_pairs_and_for_no_other_queue():
    run, prompts = make_prompts(*[3] * 30)
    make_prompts(*[3] * 30, project=run.queue.project)
    vote_on(run, prompts[-1])
    begun = Item.objects.filter(turn__lt=2**62)
    assert set(begun.values_list("queue", "prompt_key")) == {(run.queue_id, prompts[-1])}
    assert begun.filter(votes=0).count() == 2


@pytest.mark.parametrize("sizes", [[4, 4], [6, 2, 2, 2], [5, 1, 1, 1, 1], [150, 150, 150]])
def test_one_prompt_does_not_come_twice_in_a_row_where_that_can_be_avoided(sizes):
    run, _ = make_prompts(*sizes)
    voter, order = make_voter(run), []
    while new := handed(voter, run, have=order, held=min(len(order) + 2, 60)):
        order += new
    prompts = prompts_of(order)
    assert len(prompts) == min(sum(sizes), 60)
    assert not [n for n in range(1, len(prompts)) if prompts[n] == prompts[n - 1]]


def test_a_voter_is_always_given_the_same_order():
    run, _ = make_prompts(*[2] * 20)
    voter = make_voter(run)
    assert handed(voter, run) == handed(voter, run)


def test_no_more_than_the_page_wants_and_none_that_it_has():
    run = make_run(pairs=6)
    voter = make_voter(run)
    first = handed(voter, run, held=2)
    more = handed(voter, run, have=first, held=5)
    assert (len(first), len(more)) == (2, 3)
    assert not set(first) & set(more)


def test_what_was_voted_on_does_not_come_again():
    run = make_run(pairs=2, votes_wanted=9)
    voter = make_voter(run)
    [pair] = [pair for pair in pairs_of(run) if pair.pk == handed(voter, run, held=1)[0]]
    make_vote(voter, pair)
    assert pair.pk not in handed(voter, run)


def test_pairs_that_are_not_open_yet_or_have_enough_votes_are_not_handed_out():
    run = make_run(pairs=3)
    voted, closed, left = pairs_of(run)
    make_vote(make_voter(run), voted)
    seal_all(run.queue.project)
    Item.objects.filter(pk=closed.pk).update(opened_at=None)
    assert handed(make_voter(run), run) == [left.pk]


def test_what_is_on_the_screen_and_the_next_two_are_leased_and_nothing_else():
    run = make_run(pairs=20)
    voter = make_voter(run)
    page = handed(voter, run, held=6)
    assert leased(voter) == set(page[:3])
    for pk in page[:2]:
        make_vote(voter, Item.objects.get(pk=pk))
    page = page[2:] + handed(voter, run, have=page[2:], held=6)
    assert leased(voter) == set(page[:3])
    assert Assignment.objects.filter(voter=voter).count() == 8


def test_what_one_page_does_not_lease_is_free_for_the_next():
    run = make_run(pairs=6)
    first, second, third = (make_voter(run) for _ in range(3))
    assert len(handed(first, run, held=6)) == 6
    assert len(handed(second, run, held=6)) == 3
    assert not leased(first) & leased(second)
    # Nothing is free any more: the pair that was leased longest ago.
    assert handed(third, run, held=6)[0] in leased(first)


def test_the_last_pair_is_given_to_one_of_two_voters():
    run = make_run(pairs=2)
    first, second = make_voter(run), make_voter(run)
    assert handed(first, run, held=1) != handed(second, run, held=1)


def test_nobody_is_idle_while_others_merely_look():
    run = make_run()
    voters = [make_voter(run) for _ in range(4)]
    assert [len(handed(voter, run)) for voter in voters] == [1] * 4


def test_idle_voters_are_spread_over_what_is_left():
    run = make_run(pairs=3)
    handed(make_voter(run), run)
    given = [handed(make_voter(run), run)[0] for _ in range(3)]
    assert set(given) == {pair.pk for pair in pairs_of(run)}


def test_a_pair_whose_last_vote_is_on_its_way_into_the_ledger_is_nobodys():
    run = make_run()
    make_vote(make_voter(run), pairs_of(run)[0])
    assert handed(make_voter(run), run) == []


def test_the_longest_leased_pair_is_no_second_pair_for_a_page_that_has_one():
    run = make_run(pairs=2)
    handed(make_voter(run), run)
    voter = make_voter(run)
    have = handed(voter, run)
    assert len(have) == 1
    assert handed(voter, run, have=have) == []


def test_a_reload_brings_the_same_pairs_although_they_are_leased():
    run = make_run(pairs=3)
    voter = make_voter(run)
    assert handed(voter, run) == handed(voter, run) != []


@pytest.mark.parametrize("is_left", [False, True])
def test_a_page_goes_on_where_the_last_one_was(is_left):
    run = make_run(pairs=40)
    voter = make_voter(run)
    page = handed(voter, run, held=6)
    for _ in range(8):
        make_vote(voter, Item.objects.get(pk=page.pop(0)))
        seal_all(run.queue.project)
        page += handed(voter, run, have=page, held=6)
        if is_left:
            give_back(voter, run.queue, page, timezone.now())
        assert handed(voter, run, held=6) == page


def test_others_are_not_told_that_nothing_is_left_while_a_lease_runs():
    run = make_run()
    first, second = make_voter(run), make_voter(run)
    handed(first, run)
    assert progress(second, run.queue).left_for_me == 1


def test_a_lease_that_ran_out_frees_the_pair(settings):
    run = make_run(pairs=4)
    first, second = make_voter(run), make_voter(run)
    handed(first, run)
    lease = timedelta(minutes=settings.LEASE_MINUTES)
    assert len(handed(second, run, later=lease - timedelta(seconds=1))) == 1
    assert len(handed(second, run, later=lease + timedelta(seconds=1))) == 4


def test_a_page_that_is_left_gives_back_what_it_held():
    run = make_run(pairs=3)
    first, second = make_voter(run), make_voter(run)
    have = handed(first, run)
    give_back(first, run.queue, have[:1], timezone.now())
    assert leased(first) == set(have[1:])
    assert handed(second, run) == have[:1]


def test_nobody_gives_back_what_others_hold():
    run = make_run(pairs=3)
    first, second = make_voter(run), make_voter(run)
    have = handed(first, run)
    give_back(second, run.queue, have, timezone.now())
    assert leased(first) == set(have)


def test_what_the_page_still_holds_is_leased_anew(settings):
    run = make_run(pairs=4)
    first, second = make_voter(run), make_voter(run)
    lease = timedelta(minutes=settings.LEASE_MINUTES)
    have = handed(first, run)
    assert handed(first, run, have=have, later=lease / 2) == []
    assert handed(second, run, later=lease * 1.2) == have[3:]


def test_a_page_is_told_which_of_its_pairs_are_somebody_elses_by_now():
    run = make_run(pairs=6)
    first, second = make_voter(run), make_voter(run)
    have = handed(first, run, held=6)
    make_vote(make_voter(run), Item.objects.get(pk=have[5]))
    taken = handed(second, run, held=2)
    assert set(taken) <= set(have[3:])
    assert set(gone(first, run, have)) == {*taken, have[5]}
    assert leased(first) == set(have[:3])


def test_holding_a_pair_of_somebody_else_gives_no_lease():
    run = make_run()
    voter = make_voter(run)
    handed(voter, run, have=[pairs_of(run)[0].pk])
    assert not Assignment.objects.exists()


def test_as_many_leases_as_votes_are_wanted():
    run = make_run(pairs=2, votes_wanted=2)
    one, other = (pair.pk for pair in pairs_of(run))
    voters = [make_voter(run) for _ in range(4)]
    given = [handed(voter, run, held=1)[0] for voter in voters]
    assert sorted([given.count(one), given.count(other)]) == [2, 2]


def test_a_vote_that_is_not_counted_yet_holds_its_place_and_a_counted_one_is_not_counted_twice():
    run = make_run(pairs=2, votes_wanted=2)
    first, second = make_voter(run), make_voter(run)
    pair = Item.objects.get(pk=handed(first, run, held=1)[0])
    make_vote(first, pair)
    for _ in range(2):
        assert len(handed(second, run)) == 2
        give_back(second, run.queue, [p.pk for p in pairs_of(run)], timezone.now())
        seal_all(run.queue.project)


@pytest.mark.parametrize("portion", [1, 4, 100])
def test_leases_of_a_crowd_do_not_hide_the_pairs_behind_them(monkeypatch, portion):
    monkeypatch.setattr(assignment, "PORTION", portion)
    run = make_run(pairs=3 * LEASED)
    given = [set(handed(make_voter(run), run, held=LEASED)) for _ in range(3)]
    assert set.union(*given) == {pair.pk for pair in pairs_of(run)}


def test_pairs_skipped_for_good_do_not_hide_the_pairs_behind_them(monkeypatch):
    monkeypatch.setattr(assignment, "PORTION", 4)
    run = make_run(pairs=16, votes_wanted=9)
    voter = make_voter(run)
    skipped = handed(voter, run)
    Assignment.objects.filter(voter=voter, item__in=skipped).update(skips=2)
    assert len(skipped) == 10
    assert len(handed(voter, run)) == 6


def test_who_has_voted_on_most_pairs_is_handed_the_rest():
    run, prompts = make_prompts(*[1] * 12, votes_wanted=2)
    voter = make_voter(run)
    for prompt in prompts[:10]:
        vote_on(run, prompt, voter)
    assert set(prompts_of(handed(voter, run))) == set(prompts[10:])


def test_a_prompt_begun_behind_a_voters_back_is_found():
    run, prompts = make_prompts(*[1] * 12, votes_wanted=2)
    voter = make_voter(run)
    for prompt in prompts[2:]:
        vote_on(run, prompt, voter)
    assert set(prompts_of(handed(voter, run))) == set(prompts[:2])
    vote_on(run, prompts[0])
    run.queue.project.refresh_from_db()
    assert set(prompts_of(handed(voter, run))) == set(prompts[:2])
    vote_on(run, prompts[1], voter)
    assert prompts_of(handed(voter, run)) == prompts[:1]


def test_a_pair_that_was_passed_and_wants_votes_again_is_found():
    run, prompts = make_prompts(*[1] * 4, votes_wanted=2)
    voter = make_voter(run)
    for prompt in prompts[:3]:
        vote_on(run, prompt, voter)
    run.queue.project.refresh_from_db()
    assert prompts_of(handed(voter, run)) == prompts[3:]
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    vote_on(run, prompts[3], voter)
    assert prompts_of(handed(voter, run)) == [prompts[2]]


def test_another_queue_of_the_project_is_another_list():
    run = make_run(pairs=2)
    other = make_run(run.queue.project, pairs=2)
    voter = make_voter(run)
    assert set(handed(voter, other)) == {pair.pk for pair in pairs_of(other)}


def test_a_ballot_shows_the_side_that_the_keyed_hash_decides(settings):
    run = make_run(pairs=20)
    voter = make_voter(run)
    lefts = [ballot_for(voter, run.queue, pair).left for pair in pairs_of(run)]
    key = settings.SECRET_KEY
    assert lefts == [left_side(key, voter.pk, pair.pk) for pair in pairs_of(run)]


def test_two_presentations_have_two_ballots():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    one, other = (ballot_for(voter, run.queue, pair) for _ in range(2))
    assert one.uid != other.uid
    assert (one.left, one.choices) == (other.left, tuple(run.queue.ballot))


@pytest.mark.parametrize("held", [0, 6])
def test_the_queries_do_not_grow_with_the_queue(held):
    small, large = make_run(pairs=10), make_run(pairs=300)
    assert queries_of(small, held) == queries_of(large, held)


def queries_of(run, held):
    voter = make_voter(run)
    handed(voter, run, held=held)
    with CaptureQueriesContext(connection) as queries:
        handed(voter, run, held=held)
    return len(queries)
