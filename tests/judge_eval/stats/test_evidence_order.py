"""Which prompts enter as evidence, when, and what each brings for every two judges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.evidence_order import (
    ItemClosed,
    ItemOpened,
    OutOfOrder,
    VoteCast,
    VotesRequired,
    enter,
)
from judge_eval.stats.outcomes_table import FAILED, UNASSIGNED

A, B = 0, 1


def opened(prompts, wanted=1, verdicts=((A, B),)):
    """Open one comparison for each prompt, with numbers and entries from 0."""
    return [
        ItemOpened(n, n, prompt, wanted, verdicts[n % len(verdicts)])
        for n, prompt in enumerate(prompts)
    ]


def votes(*numbers, first=100):
    return [VoteCast(first + n, number, A) for n, number in enumerate(numbers)]


def test_prompts_enter_in_their_order_whatever_the_order_of_the_votes():
    entered = enter([*opened(range(4)), *votes(3, 1, 2, 0)], [2, 0, 1, 3])
    assert entered.prompts == (1, 2, 0, 3)
    assert entered.seqs.tolist() == [101, 102, 103, 103]


def test_a_prompt_that_is_not_complete_is_passed_over_once_ten_wait_behind_it():
    events = [*opened(range(13)), *votes(*range(1, 13))]
    assert enter(events[:-3], range(13)).prompts == ()
    assert enter(events[:-2], range(13)).prompts == (1,)
    assert enter(events, range(13)).prompts == (1, 2, 3)
    completed = enter([*events, *votes(0, first=200)], range(13))
    assert completed.prompts == (1, 2, 3, 0, *range(4, 13))


def test_what_waits_enters_when_voting_is_closed_and_the_incomplete_never_does():
    entered = enter([*opened(range(4)), *votes(3, 1), ItemClosed(200)], range(4))
    assert (entered.prompts, entered.seqs.tolist()) == ((1, 3), [200, 200])


def test_votes_in_an_order_of_the_voters_own_pass_over_no_prompt_until_voting_is_closed():
    events = [*opened(range(13)), OutOfOrder(99), *votes(*range(1, 13))]
    assert enter(events, range(13)).prompts == ()
    assert enter([*events, *votes(0, first=200)], range(13)).prompts == tuple(range(13))
    assert enter([*events, ItemClosed(200)], range(13)).prompts == tuple(range(1, 13))


def test_what_was_passed_over_before_such_a_vote_has_entered():
    events = [*opened(range(14)), *votes(*range(1, 12)), OutOfOrder(150), *votes(12, 13, first=151)]
    assert enter(events, range(14)).prompts == (1, 2)


def test_a_prompt_is_complete_when_all_its_open_comparisons_are():
    events = [*opened([0, 0]), *votes(0)]
    assert enter(events, [0]).prompts == ()
    assert enter([*events, *votes(1)], [0]).prompts == (0,)


def test_votes_wanted_hold_from_their_entry_on_for_what_is_not_complete():
    raised = [*opened([0]), VotesRequired(50, 0, 3), *votes(0, 0)]
    assert enter(raised, [0]).prompts == ()
    assert enter([*raised, *votes(0)], [0]).votes.tolist() == [[3, 3]]
    lowered = enter([*raised, VotesRequired(200, 0, 1)], [0])
    assert (lowered.seqs.tolist(), lowered.votes.tolist()) == ([200], [[1, 1]])
    too_late = enter([*opened([0]), *votes(0), VotesRequired(200, 0, 3), *votes(0, 0)], [0])
    assert (too_late.all_votes, too_late.votes.tolist()) == (1, [[1, 1]])


def test_votes_wanted_of_a_complete_prompt_that_waits_stay_as_they_are():
    """Who asks for more votes may have seen how these fell."""
    events = [
        *opened(range(2)),
        *votes(1),
        VotesRequired(200, 1, 3),
        ItemOpened(201, 1, 1, 3, [B, A]),
    ]
    entered = enter([*events, *votes(0, first=300)], range(2))
    assert (entered.prompts, entered.votes.tolist()) == ((0, 1), [[1, 1], [1, 1]])
    assert entered.differences.tolist() == [[1.0], [-1.0]]
    # A comparison that is opened meanwhile makes it wait for votes again.
    more = [*events, ItemOpened(202, 2, 1, 1, [A, B]), *votes(0, first=300)]
    assert enter(more, range(2)).prompts == (0,)
    assert enter([*more, *votes(2, first=400)], range(2)).votes.tolist() == [[1, 1], [2, 2]]


def test_what_comes_after_a_prompt_has_entered_changes_nothing_of_it():
    before = [*opened([0, 1]), *votes(0)]
    after = [ItemOpened(200, 7, 0, 1, [B, A]), *votes(7, first=201), VoteCast(300, 0, B)]
    entered = enter([*before, *after], [0, 1])
    assert (entered.votes.tolist(), entered.differences.tolist()) == ([[1, 1]], [[1.0]])


def test_the_last_verdicts_count():
    events = [*opened([0]), *votes(0), ItemOpened(200, 0, 0, 1, [B, A])]
    assert enter(events, [0]).differences.tolist() == [[-1.0]]


def test_a_prompt_brings_what_it_is_right_on_more_often_by_the_most_votes():
    cast = [VoteCast(10 + n, 0, choice) for n, choice in enumerate([A, B, A, B, B])]
    for wanted, difference in ((1, 1), (2, 0), (3, 1 / 3)):
        entered = enter([ItemOpened(0, 0, 0, wanted, [A, B]), *cast], [0])
        assert entered.differences.tolist() == [[difference]]
    # Of prompts with one comparison and three, a vote counts alike.
    sized = [*opened([0, 1, 1, 1]), *votes(0, 1, 2), VoteCast(300, 3, B)]
    assert enter(sized, [0, 1]).differences.tolist() == [[1 / 3], [1 / 3]]


def test_a_very_large_prompt_enters_with_four_times_the_median():
    """Its comparisons in their order, the last with its first votes."""
    sizes = [
        ItemOpened(0, 0, 0, 1, [A, B]),
        ItemOpened(1, 1, 1, 3, [A, B]),
        ItemOpened(2, 2, 1, 3, [B, A]),
    ]
    events = [*sizes, ItemOpened(3, 3, 2, 1, [A, B]), VoteCast(9, 0, A)]
    events += [VoteCast(10 + n, comparison, A) for n, comparison in enumerate([1, 2] * 3)]
    cut = enter([*events, VoteCast(30, 3, A)], range(3), [0, 2, 1, 3])
    assert (cut.votes[:, 0].tolist(), cut.right.tolist()) == ([1, 4, 1], [[1, 0], [1, 3], [1, 0]])
    assert (cut.most_votes.tolist(), cut.cut, cut.planned.tolist()) == ([4] * 3, 1, [1, 4, 1])
    assert (cut.all_votes, cut.differences.tolist()) == (8, [[1 / 4], [-2 / 4], [1 / 4]])
    by_number = enter([*events, VoteCast(30, 3, A)], range(3))
    assert by_number.right.tolist() == [[1, 0], [3, 1], [1, 0]]


def test_of_whose_votes_a_large_prompt_holds_many_is_said_judge_by_judge():
    """12 of 14 votes are on one prompt, which enters with 4; one judge was not asked there."""
    asked = [[A, B], *[[A, UNASSIGNED]] * 4, [A, B]]
    wanted = zip((1, 3, 3, 3, 3, 1), (0, 1, 1, 1, 1, 2), asked, strict=True)
    events = [
        ItemOpened(n, n, prompt, votes, said) for n, (votes, prompt, said) in enumerate(wanted)
    ]
    cast = [VoteCast(9 + n, place, A) for n, place in enumerate([0, *[1, 2, 3, 4] * 3, 5])]
    assert enter([*events, *cast], range(3)).lopsided == ("one prompt holds 86 % of the votes", "")
    # Also before it has entered, and nothing where no prompt is cut.
    assert enter([*events, *cast[:2], cast[-1]], range(3)).lopsided[0].startswith("one prompt")
    assert enter([*events, cast[0], cast[-1]], range(3)).lopsided == ()
    # Of a judge that was asked of nothing that has votes there is nothing to say.
    nowhere_else = enter([*events, *cast[1:-1]], range(3))
    assert nowhere_else.lopsided == ("one prompt holds 100 % of the votes", "")


def test_prompts_without_votes_make_no_median():
    events = [*opened([0, 1, 2], wanted=0), *(ItemOpened(n, n, n, 2, [A, B]) for n in (3, 4))]
    entered = enter([*events, *votes(3, 3, 4, 4)], range(5))
    assert entered.votes[3:].tolist() == [[2, 2]] * 2
    assert entered.cut == 0


def test_no_verdict_is_not_right_and_what_was_not_asked_of_both_is_left_out():
    verdicts = [[A, FAILED, UNASSIGNED], [A, B, A]]
    entered = enter([*opened([0, 0], verdicts=verdicts), *votes(0, 1)], [0])
    # One against two, one against three, two against three.
    assert entered.differences.tolist() == [[1.0, 0.0, -1 / 2]]
    assert entered.shared.tolist() == [[2, 1, 1]]
    assert entered.right.tolist() == [[2, 0, 1]]
    assert entered.votes.tolist() == [[2, 2, 1]]


def test_the_most_votes_rise_for_prompts_that_enter_later():
    events = [*opened([0, 1]), *votes(0), VotesRequired(150, 1, 4), *votes(1, 1, 1, 1)]
    assert enter(events, [0, 1]).most_votes.tolist() == [1, 4]
    # They do not fall below what has entered, but what is lowered before never counts.
    fallen = [*opened([0, 1], wanted=4), VotesRequired(50, 1, 1), *votes(0, 0, 0, 0, 1)]
    assert enter(fallen, [0, 1]).most_votes.tolist() == [4, 4]
    assert enter(
        [*fallen[:3], VotesRequired(51, 0, 1), *fallen[3:]], [0, 1]
    ).most_votes.tolist() == [1, 1]


def test_nothing_is_there_before_anything_is_open():
    entered = enter([], [])
    assert (entered.prompts, entered.differences.shape, entered.n_judges) == ((), (0, 0), 0)


def test_comparisons_with_other_judges_are_an_error():
    with pytest.raises(ValueError, match="a code of every judge"):
        enter([ItemOpened(0, 0, 0, 1, [A]), ItemOpened(1, 1, 1, 1, [A, B])], [0, 1])


@st.composite
def ledgers(draw, judges=3):
    """Runs of up to 25 prompts, with votes wanted that change and prompts that stay incomplete."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=25))
    prompts = [prompt for prompt, size in enumerate(sizes) for _ in range(size)]
    some = st.integers(0, len(prompts) - 1)
    codes = st.lists(st.integers(UNASSIGNED, B), min_size=judges, max_size=judges)
    events = [
        ItemOpened(n, n, prompt, draw(st.integers(1, 3)), draw(codes))
        for n, prompt in enumerate(prompts)
    ]
    later = st.one_of(
        st.tuples(st.just(VoteCast), some, st.integers(A, B)),
        st.tuples(st.just(VoteCast), some, st.integers(A, B)),
        st.tuples(st.just(VotesRequired), some, st.integers(1, 3)),
    )
    steps = draw(st.lists(later, max_size=150))
    events += [kind(len(prompts) + n, *of) for n, (kind, *of) in enumerate(steps)]
    return events, draw(st.permutations(range(len(sizes))))


@given(ledgers(), st.data())
def test_what_has_entered_stays_as_it_is_while_the_ledger_goes_on(ledger, data):
    events, order = ledger
    known = len([event for event in events if isinstance(event, ItemOpened)])
    before = enter(events[: data.draw(st.integers(known, len(events)))], order)
    after, n = enter(events, order), len(before.prompts)
    assert after.prompts[:n] == before.prompts
    for name in ("seqs", "right", "votes", "most_votes", "shared", "differences"):
        assert np.array_equal(getattr(after, name)[:n], getattr(before, name), equal_nan=True)


@given(ledgers(), st.data())
def test_votes_on_the_same_comparisons_in_another_order_bring_the_same(ledger, data):
    """Where none is too many, so that the first wanted votes are all votes."""
    events, order = ledger
    events = [
        ItemOpened(n, n, e.prompt, 3, e.verdicts) for n, e in enumerate(events) if len(e) == 5
    ]
    cast = [(n, choice) for n in range(len(events)) for choice in (A, A, B)]
    brought = []
    for numbers in (cast, data.draw(st.permutations(cast))):
        voted = [VoteCast(1000 + n, *of) for n, of in enumerate(numbers)]
        entered = enter([*events, *voted, ItemClosed(5000)], order)
        brought.append(dict(zip(entered.prompts, entered.differences.tolist(), strict=True)))
    assert str(brought[0]) == str({prompt: brought[1][prompt] for prompt in brought[0]})


@given(ledgers())
def test_the_counts_are_possible(ledger):
    entered = enter(*ledger)
    assert ((entered.right >= 0) & (entered.right <= entered.votes)).all()
    assert (entered.votes <= entered.most_votes[:, None]).all()
    assert (np.diff(entered.seqs) >= 0).all()
    assert (np.diff(entered.most_votes) >= 0).all()
    one, other = np.triu_indices(entered.n_judges, 1)
    assert (entered.shared <= np.minimum(entered.votes[:, one], entered.votes[:, other])).all()
    assert np.array_equal(entered.shared == 0, np.isnan(entered.differences))
    known = entered.differences[entered.shared > 0]
    assert (abs(known) <= 1).all()
    apart = np.nan_to_num(entered.differences * entered.most_votes[:, None])
    assert (abs(apart) <= entered.shared + 1e-9).all()
    # Of judges that were asked about the same, it is the difference of what they are right on.
    alike = entered.shared == np.maximum(entered.votes[:, one], entered.votes[:, other])
    expected = entered.right[:, one] - entered.right[:, other]
    assert apart[alike] == pytest.approx(expected[alike])
