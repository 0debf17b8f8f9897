"""What a board says in words: sentences for real situations, and nothing that is not claimed."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.board.model import RunFindings
from judge_eval.stats.claims import claims, first_claim, too_few
from judge_eval.stats.evidence_order import NOBODY, ItemOpened, VoteCast, enter
from judge_eval.stats.wording import Words, odds

FLOOR = ("longer-wins", "random")


def words_of(
    right, names, *, agreement=None, coverage=None, left=1000, unvoted=0, voters=2, **about
):
    """Say it of judges that were right (1) or wrong (0) on one comparison per prompt.

    `right` has a row for each judge; so many further prompts are open and not voted on. People vote
    by turns.
    """
    right = np.array(right, dtype=bool).reshape(len(names), -1 if names else 0).T
    number, every = len(right), len(right) + unvoted
    verdicts = [[0 if yes else 1 for yes in row] for row in right] + [[0] * len(names)] * unvoted
    opened = [ItemOpened(n, n, n, 1, verdicts[n]) for n in range(every)]
    voted = (VoteCast(every + n, n, 0, voter=n % voters) for n in range(number))
    entered = enter([*opened, *voted], range(every))
    if agreement is None:
        agreement = right.mean(axis=0).tolist() if number else [None] * len(names)
    is_baseline = np.array([name in FLOOR for name in names], dtype=bool)
    values = np.array([np.nan if share is None else share for share in agreement])
    silent = np.array([share == 0 for share in coverage or [1] * len(names)], dtype=bool)
    found = claims(entered, is_baseline, values, left, is_silent=silent & (number > 0))
    order = sorted(range(len(names)), key=lambda n: -(agreement[n] or 0))
    about = {"votes": number, "people": 0.8, "prompts": number, "voters": voters} | about
    return Words(names, found, order, agreement, coverage or [1.0] * len(names), **about)


def some(share, of=60):
    """Right on a share of so many, spread evenly."""
    return [int((n + 1) * share + 1e-9) > int(n * share + 1e-9) for n in range(of)]


def headline(*arguments, **options):
    return " ".join(words_of(*arguments, **options).headline())


def points(*arguments, **options):
    return dict(words_of(*arguments, **options).points())


def test_before_a_vote_nothing_is_said():
    assert headline([[], []], ["a", "b"], unvoted=50, votes=0) == (
        "There are no votes yet, so nothing can be said about the judges."
    )


def test_too_few_prompts_are_named_before_anybody_votes():
    assert headline([[], []], ["a", "b"], unvoted=6, votes=0).endswith(
        "6 prompts are too few to tell judges apart: add prompts rather than pairs."
    )
    assert too_few(np.ones(5, int), judges=1, baselines=1) == (
        "5 prompts are too few to tell the judge from the floor: add prompts rather than pairs."
    )
    assert too_few(np.ones(6, int), judges=1, baselines=2) is not None
    assert too_few(np.ones(7, int), judges=1, baselines=1) is None
    assert too_few(np.ones(7, int), judges=1, baselines=1, most_over_floor=0.5) is not None
    assert too_few(np.ones(3, int), judges=1, baselines=0) is None
    assert too_few(np.zeros(3, int), judges=2, baselines=0) is None


def test_a_judge_that_beats_its_rival_is_not_the_best_while_the_rival_may_be():
    """The evidence for the rival was once enough for the best of four, not for beating one."""
    right = [[0] * 9 + [1] * 40, [1] * 9 + [0] * 40, [0] * 49, [0] * 49]
    found = words_of(right, ["north", "south", "west", "east"])
    assert (found.claims.best, found.claims.beats[0, 1], found.claims.ahead[0, 1]) == (None, 1, 0)
    assert found.headline()[0] == "north (82 %) agrees most, but the evidence points both ways."
    assert dict(found.points())["Not settled"] == (
        "The evidence on north and south points both ways."
    )


def test_the_best_judge_is_named_with_its_effect_and_the_votes_that_say_so():
    board = [some(0.8), some(0.3), some(0.3)], ["good", "flaky", "random"]
    assert headline(*board) == (
        "good agrees with people on 80 %, flaky on 30 %: 50 points more "
        "(evidence over 1,000,000 : 1). Best of 2 judges: 60 votes of 2 people on 60 prompts."
    )
    assert points(*board) == {
        "Floor": "Only good beats the baselines; "
        "nothing shows yet that flaky is better than random.",
        "People": "Among themselves they agree on 80 %.",
    }


def test_the_effect_stands_with_its_interval():
    differences = np.zeros((3, 2, 2))
    differences[:, 0, 1] = 0.0412, 0.021, 0.0603
    said = headline(
        *([some(0.84, 3000), some(0.8, 3000)], ["keywords", "gpt-4"]), differences=differences
    )
    assert said.startswith(
        "keywords agrees with people on 84 %, gpt-4 on 80 %: 4 points more "
        "(2 to 6; evidence 496 : 1)."
    )


@pytest.mark.parametrize(
    "about, end, may_stop",
    [
        ({"voters": 2}, "Best of 2 judges: 60 votes of 2 people on 60 prompts.", True),
        ({"voters": 1}, "Best of 2 judges: 60 votes on 60 prompts; one person voted.", False),
        ({"part": "votes of cats"}, "60 votes of 2 people on 60 prompts.", False),
        ({"is_tuning": True}, "60 votes of 2 people on 60 prompts.", False),
        ({"people": 0.3, "people_low": 0.2, "chance": 0.25}, "1,000,000 : 1).", False),
    ],
)
def test_nobody_is_told_to_stop_below_two_people_nor_by_a_part(about, end, may_stop):
    words = words_of([some(0.8), some(0.3)], ["good", "flaky"], **about)
    assert words.headline()[-1].endswith(end)
    assert words.may_stop == may_stop


def carried(voter_of, **about):
    """Say it of two judges; by turns one prompt is for the first and one for the other."""
    opened = [ItemOpened(n, n, n, 1, [n % 4 == 3, n % 4 != 3]) for n in range(80)]
    voted = [VoteCast(80 + n, n, 0, voter_of(n)) for n in range(80)]
    found = claims(enter([*opened, *voted], range(80)), np.zeros(2, bool), np.array([0.75, 0.25]))
    about = {"votes": 80, "prompts": 80, "voters": 2} | about
    return Words(["a", "b"], found, [0, 1], [0.75, 0.25], [1, 1], **about)


def test_a_lead_that_one_voter_carries_is_said_to_be_so():
    """The other voter alone has the judges even, or the first behind."""
    by_one = carried(lambda n: n % 4 // 2)
    assert by_one.headline()[1] == (
        "Best of 2 judges, by one voter's votes alone: 80 votes of 2 people on 80 prompts."
    )
    assert (by_one.claims.carriers[0, 1], by_one.carried, by_one.may_stop) == (0, (0, 1), False)
    by_all = carried(lambda n: n // 40)
    assert (by_all.carried, by_all.may_stop) == (None, True)
    # Labels of a file are nobody's.
    of_file = carried(lambda n: NOBODY, voters=0, labels=True)
    assert (of_file.carried, of_file.may_stop) == (None, False)
    assert of_file.headline()[1] == (
        "Best of 2 judges: 80 votes on 80 prompts, labels of the file."
    )
    both = carried(lambda n: n % 2 - 1, voters=1, labels=True)
    assert both.headline()[1].endswith("80 votes of 1 person and labels of the file on 80 prompts.")


@pytest.mark.parametrize(
    "up, down, said",
    [
        (8, 8, "a was ahead until vote 10; the later votes speak against it."),
        (10, 4, "a was ahead until vote 13; the later votes speak against it."),
    ],
)
def test_who_was_ahead_is_told_and_claimed_no_longer(up, down, said):
    words = words_of([[1] * up + [0] * down, [0] * up + [1] * down], ["a", "b"], unvoted=9)
    assert words.headline()[0] == said
    assert not words.claims.beats.any()
    assert (words.claims.best, words.may_stop) == (None, False)


def test_a_judge_that_beats_another_by_little_is_not_said_to_be_the_same():
    a, b = some(0.84, 3000), some(0.80, 3000)
    words = words_of([a, b], ["a", "b"])
    assert words.claims.beats[0, 1]
    assert words.claims.same[0, 1]
    assert "a agrees with people on 84 %, b on 80 %: 4 points more" in words.headline()[0]
    assert "Same" not in dict(words.points())


def test_a_best_judge_needs_less_evidence_than_to_beat_every_other():
    """Of three, 60 : 1 over each of the others, against 120 : 1."""
    board = [[1] * 9 + some(0.5), [0] * 9 + some(0.5), [0] * 9 + some(0.5)], ["a", "b", "c"]
    words = words_of(*board)
    assert (words.claims.best, words.claims.beats.any()) == (0, False)
    assert " ".join(words.headline()) == (
        "a agrees with people on 57 %, b on 43 %: 13 points more (evidence 102 : 1). "
        "Best of 3 judges: 69 votes of 2 people on 69 prompts."
    )
    assert words.claims.ranks() == [(1, 1), (2, 3), (2, 3)]
    assert words.claims.letters([0, 1, 2]) == ["a", "b", "b"]


def test_a_best_judge_beats_the_baselines():
    right = [[1] * 20 + some(0.5), [0] * 20 + some(0.5), [1] * 18 + [0, 1] + some(0.5)]
    names = ["good", "bad", "longer-wins"]
    assert words_of(right, names).claims.best is None
    assert headline(right, names) == (
        "good (62 %) agrees most, but nothing shows that it is better than longer-wins. "
        "80 votes of 2 people on 80 prompts; add prompts: at least 110 votes on new ones, "
        "perhaps far more."
    )
    assert points(right, names)["Floor"] == (
        "Nothing shows yet that good is better than longer-wins; bad is worse than longer-wins."
    )
    # Without the floor it is the best judge, and its rank says nothing else.
    assert words_of(right[:2], ["good", "bad"]).claims.best == 0


def test_a_part_of_a_run_is_named_and_nobody_may_stop():
    words = words_of([some(0.8), some(0.3)], ["good", "flaky"], part="votes of cats")
    assert words.headline()[0].startswith("Only votes of cats: good agrees with people on 80 %, ")
    assert not words.may_stop


def test_a_lead_is_not_settled_and_how_many_votes_it_takes_is_a_range():
    board = [[1] * 24, [1] * 18 + [0] * 6], ["good", "flaky"]
    leads = "good (100 %) leads flaky (75 %) by 25 points, not settled (18 : 1 of 40 : 1)."
    # From 3 to 170: an upper end so far away is not said.
    assert words_of(*board, unvoted=50).headline() == [
        leads,
        "24 votes of 2 people on 24 prompts; at least 3 more votes.",
    ]
    many = [some(0.95, 40)] + [some(0.7, 40)] * 9
    words = words_of(many, ["good", *map(str, range(9))], unvoted=50)
    assert words.headline()[1].endswith("; some 1 to 3 more votes.")
    open_end = headline([[1] * 36, [1] * 32 + [0] * 4], ["good", "flaky"], unvoted=50)
    assert open_end.endswith("; at least 12 more votes, perhaps far more.")


def test_what_is_asked_for_where_all_prompts_have_entered_are_prompts():
    """More votes on them move nothing."""
    board = [[1] * 24, [1] * 18 + [0] * 6], ["good", "flaky"]
    assert headline(*board).endswith("; add prompts: at least 3 votes on new ones.")
    # As where those that are to come cannot settle it, even if they all speak for it.
    assert "; add prompts: at least 12 votes on new ones, perhaps far more." in headline(
        *([[1] * 36, [1] * 32 + [0] * 4], ["good", "flaky"]), unvoted=1
    )


def test_before_20_prompts_no_number_of_votes_is_told():
    board = [[1] * 12, [1] * 8 + [0] * 4], ["good", "flaky"]
    assert headline(*board, unvoted=9).endswith("; too early to say how many more votes.")
    assert headline(*board).endswith("12 votes of 2 people on 12 prompts; add prompts.")
    few = "12 prompts are few: 1,200 votes on them count as 12. Add prompts."
    assert points(*board, votes=1200)["Not settled"] == few


def test_where_prompts_are_too_few_no_votes_are_asked_for():
    words = words_of([[1] * 7, [1] * 3 + [0] * 4], ["good", "flaky"])
    assert words.headline()[1] == "7 votes of 2 people on 7 prompts."
    assert dict(words.points())["Not settled"] == (
        "7 prompts are too few to tell judges apart: add prompts rather than pairs."
    )


@pytest.mark.parametrize(
    "left, end",
    [
        (3, "; at least 3 more votes."),
        (2, "; at least 3 more votes, and only 2 are planned: raise the votes wanted."),
        (1, "; at least 3 more votes, and only 1 is planned: raise the votes wanted."),
        (0, "; at least 3 more votes, and no more are planned: raise the votes wanted."),
    ],
)
def test_votes_that_are_planned_bound_what_can_be_settled(left, end):
    board = [[1] * 24, [1] * 18 + [0] * 6], ["a", "b"]
    assert headline(*board, left=left, unvoted=50).endswith(end)


def test_equals_are_named_in_the_headline_and_cost_no_votes():
    words = words_of([some(0.7, 90), some(0.7, 90)], ["a", "b"], identical=[[0, 1]])
    assert words.headline()[0] == "a and b gave the same verdict on every pair."
    practically = words_of([some(0.7, 90), some(0.7, 90)], ["a", "b"], left=0)
    alike = "a and b are practically the same: they differ by less than 10 points of agreement"
    assert practically.headline()[0] == f"{alike} per vote."
    for found in (words, practically):
        assert found.headline()[1] == "90 votes of 2 people on 90 prompts."
        assert [lead for lead, _ in found.points()] == ["People"]
    # Of a single judge, too, that says what a baseline does.
    copy = words_of([some(0.7), some(0.7)], ["only", "random"], identical=[[0, 1]])
    assert copy.headline()[0] == "only and random gave the same verdict on every pair."
    assert points([some(0.7), some(0.7)], ["only", "random"])["Floor"] == (
        "Nothing shows yet that only is better than random."
    )
    # Copies of which neither may be the best are named below.
    third = words_of([some(0.9, 90), *[some(0.2, 90)] * 2], [*"abc"], identical=[[1, 2]])
    assert third.headline()[1].startswith("Best of 3 judges")
    assert ("Same", "b and c gave the same verdict on every pair.") in third.points()


def test_what_changed_on_the_way_is_neither_the_same_nor_better():
    right = [[1] * 20 + [0] * 60, [0] * 20 + [1] * 60]
    words = words_of(right, ["a", "b"])
    assert not words.claims.same.any()
    assert not words.claims.beats.any()


@pytest.mark.parametrize(
    "people, low, begins",
    [
        (0.24, 0.2, "People agree no more than by chance (24 %; chance 25 %). a agrees"),
        (0.27, 0.2, "Nothing shows that people agree beyond chance (27 %; chance 25 %). a agrees"),
        (0.4, 0.3, "a agrees with people on 80 %"),
        (0.24, None, "a agrees with people on 80 %"),
    ],
)
def test_people_who_agree_no_more_than_by_chance_are_named_first(people, low, begins):
    about = {"people": people, "people_low": low, "chance": 0.25}
    assert headline([some(0.8), some(0.3)], ["a", "b"], **about).startswith(begins)


def test_an_answer_that_no_vote_can_equal_is_named():
    words = words_of([some(0.8), some(0.3)], ["a", "b"], impossible={"tie": {0: 0, 1: 12}})
    never = "No vote can be “tie” here, so that answer is never right: b (on 12 pairs)."
    assert never in words.notes()


def test_prompts_that_are_cut_are_counted():
    opened = [ItemOpened(n, n, n, 1 if n else 9, [0, 1]) for n in range(9)]
    voted = [VoteCast(20 + n, max(0, n - 8), 0) for n in range(17)]
    found = claims(enter([*opened, *voted], range(9)), np.zeros(2, bool), np.array([1.0, 0]))
    assert (found.cut, found.entered) == (1, 9)
    words = Words(["a", "b"], found, [0, 1], [1.0, 0.0], [1.0, 1.0], votes=17)
    assert (
        "1 prompt has more than 4 times the median of the votes on a prompt; "
        "evidence takes only so many of them." in words.notes()
    )


def test_the_headline_goes_by_groups_and_a_near_tie_asks_for_nothing():
    board = [some(0.8), some(0.78), some(0.75), some(0.4)], ["a", "b", "c", "d"]
    assert words_of(*board).headline()[0] == (
        "a, b and c cannot be told apart yet; all beat d (c by 35 points; evidence 456 : 1)."
    )
    # What is open between groups is asked for, not what it takes to tell equals apart.
    right = [some(0.85, 40), some(0.84, 40), some(0.65, 40), some(0.64, 40)]
    words = words_of(right, ["good-judge", "good-v2", "flaky-judge", "bad-judge"], unvoted=500)
    assert " ".join(words.headline()) == (
        "good-judge (85 %) and good-v2 (82 %) cannot be told apart yet; "
        "both lead flaky-judge and bad-judge (3.9 : 1 of 240 : 1). "
        "40 votes of 2 people on 40 prompts; at least 31 more votes, perhaps far more."
    )
    first = words_of(right[:1] + right[2:], ["a", "b", "c"], unvoted=500).headline()[0]
    assert first == (
        "a (85 %) leads b (65 %) and c (62 %) by 20 points, not settled (4.1 : 1 of 60 : 1)."
    )


def test_of_more_candidates_than_three_only_a_number_is_named():
    names = [f"vendor/judge-{n}" for n in range(8)]
    board = [some(0.9 - n / 50) for n in range(7)] + [some(0.1)], names
    assert headline(*board).startswith(
        "5 judges cannot be told apart yet; vendor/judge-0 leads vendor/judge-5 and vendor/judge-6 "
    )


def test_later_votes_can_turn_what_the_evidence_says():
    board = [some(0.9), some(0.3)], ["a", "b"]
    about = {"agreement": [0.5, 0.6]}
    assert headline(*board, **about).startswith("b (60 %) agrees most, but the evidence points")
    assert points(*board, **about)["Not settled"] == "The evidence on b and a points both ways."
    words = words_of(*board, **about)
    assert (words.claims.beats.any(), words.claims.best) == (False, None)


def test_evidence_may_point_both_ways():
    board = [[1] * 20 + [0] * 60, [0] * 20 + [1] * 60], ["a", "b"]
    assert headline(*board) == (
        "a was ahead until vote 29; the later votes speak against it. "
        "80 votes of 2 people on 80 prompts."
    )


def test_a_single_judge_stands_beside_the_floor_and_people():
    board = [some(0.9), some(0.3)], ["only", "random"]
    assert headline(*board, people=None) == (
        "only agrees with people on 90 %, random on 30 %: 60 points more "
        "(evidence over 1,000,000 : 1). It is the only judge: 60 votes of 2 people on 60 prompts."
    )
    assert points(*board)["Floor"] == "It beats the baselines."
    board = [[1] * 24, [1] * 20 + [0] * 4], ["a", "random"]
    assert headline(*board, unvoted=9).startswith(
        "a (100 %) leads random (83 %) by 17 points, not settled (6.2 : 1 of 20 : 1). "
    )
    assert points(*board)["Floor"] == "a leads random, not settled (6.2 : 1 of 20 : 1)."
    worse = headline([some(0.4), some(0.9)], ["a", "random"])
    assert worse.startswith("a agrees with people on 40 %, but is worse than random.")
    alone = headline([some(0.4)], ["a"])
    assert alone.startswith("a agrees with people on 40 %. It is the only judge: ")


def test_nobody_is_better_than_the_floor():
    right = [some(0.7), some(0.69), some(0.7), some(0.6)]
    assert points(right, ["a", "b", *FLOOR])["Floor"] == (
        "Nothing shows yet that a and b are better than longer-wins."
    )


def test_a_judge_that_is_far_ahead_of_a_constant_leads_it():
    """At 83 % against 0 and 24 % nobody "does not beat the baselines yet"."""
    right = [some(0.83, 12), some(0, 12), some(0.24, 12)]
    said = points(right, ["a", "longer-wins", "random"], unvoted=50)["Floor"]
    assert re.fullmatch(r"a leads random, not settled \([\d.]+ : 1 of 40 : 1\)\.", said)


def test_who_is_worse_than_a_baseline_is_named():
    board = [some(0.4), some(0.4), some(0.9), some(0.4)], ["a", "b", *FLOOR]
    assert points(*board)["Floor"] == ("a and b are worse than longer-wins.")
    claimed = words_of(*board).claims
    assert (claimed.beats_floor(), claimed.ranks()[2:]) == ([False, False, None, None], [None] * 2)


def test_before_anything_could_be_claimed_it_is_too_early():
    early = words_of([[1] * 3, [0] * 3], ["a", "b"], unvoted=50)
    assert early.headline() == ["Too early: 3 votes.", "The first claims need some 8."]
    assert early.points() == []
    # Votes that complete no prompt are as early, however many they are.
    words = words_of([[], []], ["a", "b"], agreement=[0.9, 0.5], unvoted=50, votes=17)
    assert words.headline()[1] == "The first claims need all votes on some 8 prompts."
    few = words_of([[], []], ["a", "b"], agreement=[0.9, 0.5], unvoted=6, votes=1)
    assert few.headline() == [
        "Too early: 1 vote.",
        "6 prompts are too few to tell judges apart: add prompts rather than pairs.",
    ]


@given(st.integers(1, 12), st.integers(0, 3), st.lists(st.integers(1, 4), min_size=1, max_size=60))
def test_before_the_first_claim_there_is_none(judges, floor, sizes):
    """One judge is right, and all others are wrong; small prompts enter first."""
    sizes = np.sort(sizes)
    verdicts = [0, *[1] * (judges + floor - 1)]
    is_baseline, agreement = np.arange(len(verdicts)) >= judges, np.array(verdicts) == 0

    def claimed(prompts):
        opened = [ItemOpened(n, n, n, size, verdicts) for n, size in enumerate(sizes)]
        places = np.repeat(np.arange(prompts), sizes[:prompts])
        voted = [VoteCast(len(sizes) + n, place, 0) for n, place in enumerate(places.tolist())]
        entered = enter([*opened, *voted], range(len(sizes)))
        found = claims(entered, is_baseline, agreement.astype(float))
        return bool(found.beats.any() or found.best is not None)

    first = first_claim(sizes, sizes, judges, floor)
    if first is None:
        assert not claimed(len(sizes))
    else:
        assert claimed(first.prompts)
        assert not claimed(first.prompts - 1)


def test_prompts_on_which_no_vote_is_wanted_say_nothing():
    entered = enter([ItemOpened(n, n, n, 0, [0, 1]) for n in range(9)], range(9))
    found = claims(entered, np.array([False, False]), np.array([np.nan, np.nan]))
    assert (found.entered, found.beats.any(), found.always.tolist()) == (9, False, [[0, 1]] * 2)


def test_verdicts_that_are_missing_are_named():
    words = words_of([some(0.9), some(0.3), some(0)], ["a", "b", "c"], coverage=[0.9, 0.41, 0])
    assert dict(words.points())["Unanswered"] == (
        "c answered nothing; b left 59 % and a left 10 % unanswered."
    )
    assert points([some(0.9), some(0.3)], ["a", "flaky"], coverage=[1, 0.89])["Unanswered"] == (
        "flaky left 11 % unanswered."
    )


def test_who_has_no_verdict_counts_nowhere():
    words = words_of([some(0.9), some(0.3), some(0)], ["a", "b", "ghost"], coverage=[1, 1, 0])
    assert words.headline()[1].startswith("Best of 2 judges: ")
    assert (words.claims.threshold, words.claims.best_threshold) == (40, 40)
    assert (words.claims.ranks(), words.claims.letters([0, 1, 2])) == (
        [(1, 1), (2, 2), None],
        ["a", "b", ""],
    )
    assert not words.claims.beats[2].any()
    assert not words.claims.beats[:, 2].any()
    said = headline([some(0.2, 5), some(0, 5)], ["a", "b"], coverage=[1, 0])
    assert said.startswith("a agrees with people on 20 %. It is the only judge")
    assert headline([some(0, 5)], ["a"], coverage=[0]) == (
        "No judge has a verdict on any pair that people voted on."
    )
    # Nor does a baseline without one make the floor.
    floor = words_of([some(0.9), some(0.3), some(0)], ["a", *FLOOR], coverage=[1, 1, 0]).claims
    assert (floor.beats_floor(), floor.floor_threshold) == ([True, None, None], 20)


def test_where_no_judge_was_asked_it_says_what_to_do():
    words = "No judge was asked yet. Add judges: they answer on the votes you have."
    assert headline([some(0.3), some(0.4)], FLOOR) == headline([], [], votes=9) == words


def test_points_lost_by_contradicting_itself():
    about = {"contradicting": {0: 0.9, 1: 4.4}}
    assert points([some(0.9), some(0.3)], ["a", "b"], **about)["Changes its mind"] == (
        "With the sides swapped the answer changes, which costs b 4 points."
    )


def test_what_is_withdrawn_is_counted_with_its_reason_and_named_further_below():
    gone = [(0, 1, "a judge joined"), (1, 0, "a verdict changed"), (0, None, "a judge joined")]
    words = words_of([some(0.9), some(0.3)], ["a", "b"], withdrawn=gone)
    assert dict(words.points())["Changed"] == (
        "A judge joined: 2 claims withdrawn; a verdict changed: 1 claim withdrawn."
    )
    assert words.notes()[0] == "No longer claimed: a beats b, b beats a and a is the best judge."
    over = words_of([some(0.9), some(0.3)], ["a", "random"], withdrawn=[(1, 0, "votes changed")])
    assert over.notes()[0] == "No longer claimed: a is worse than random."


def test_the_floor_is_counted_where_judges_are_many():
    names = [*(f"judge-{n}" for n in range(68)), *FLOOR]
    right = [some(0.9 - n / 150, 300) for n in range(68)]
    words = words_of([*right, some(0.5, 300), some(0.3, 300)], names)
    said = dict(words.points())["Floor"]
    assert re.match(r"\d+ of the 68 judges beat the baselines; \d+ judges lead longer-wins, ", said)
    assert max(len(text) for _, text in words.points()) < 200


@given(st.floats(1, 1e12))
def test_odds_are_never_rounded_up(evidence):
    text = odds(evidence)
    number = float(text.removeprefix("over ").removesuffix(" : 1").replace(",", ""))
    assert number <= evidence * (1 + 1e-8)
    assert number >= min(evidence, 1e6) * 0.9 - 0.1


LEADS = [
    *("Asked", "Unanswered", "Changed", "Floor", "Not settled", "Same", "Changes its mind"),
    *("Self-agreement", "People"),
]
SHARES = st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.5, 0.8, 0.9]))
# One word, several, and more than a sentence has room for.
NAMES = (
    "j{}",
    "vendor/j{} v2 (0613)",
    "The judge number {} of the second round, asked twice a day",
)
DESCRIPTIONS = st.sampled_from(
    ["", "a list of keywords", "Llama 3, fine-tuned. On our votes.", "a wording " * 19]
)


@given(
    skills=st.lists(st.floats(0.0, 1.0), max_size=9),
    baselines=st.integers(0, 2),
    prompts=st.one_of(st.integers(0, 60), st.just(12)),
    seed=st.integers(0, 99),
    description=DESCRIPTIONS,
    about=st.fixed_dictionaries(
        {
            "people": SHARES,
            "people_low": SHARES,
            "chance": SHARES,
            "left": st.integers(0, 50),
            "unvoted": st.integers(0, 40),
            "voters": st.integers(1, 3),
            "labels": st.booleans(),
            "is_tuning": st.booleans(),
            "part": st.sampled_from(
                ["", "prompts tagged cats", "only votes and verdicts for A or B"]
            ),
            "by_order": st.booleans(),
        }
    ),
)
def test_a_headline_is_short_and_points_are_few(
    skills, baselines, prompts, seed, description, about
):
    names = [*(NAMES[seed % 3].format(n) for n in range(len(skills))), *FLOOR[:baselines]]
    dice, number = np.random.default_rng(seed), len(names)
    chances = np.array([*skills, *[0.5] * baselines])
    right = dice.random((number, prompts)) < chances[:, None]
    if seed % 3 == 0:
        right[:] = right[:1]  # all alike
    if seed % 5 == 0:
        right[:1] = True  # a clear lead, and of those behind it a near tie
        right[1:3] = right[1:2]
    about |= {
        "coverage": dice.choice([0, 0.4, 0.9, 1], number).tolist(),
        "contradicting": dict(enumerate(dice.integers(0, 20, number).tolist())),
        "itself": dict(enumerate(dice.random(number).tolist())),
        "identical": [[0, 1]] if number > 1 and seed % 2 and len(skills) else (),
        "withdrawn": [(0, number - 1, "a judge joined"), (0, None, "a verdict changed")][:number],
        "impossible": {"tie": dict.fromkeys(range(number), 3)},
        "descriptions": {0: description, 1: "another"} if description else {},
    }
    words = words_of(right, names, **about)
    sentences, points = words.headline(), words.points()
    # Of odds a "1" stands alone.
    assert 1 <= len(sentences) <= 2
    assert sum(sentence.count(". ") for sentence in sentences) == 0
    stored = RunFindings.model_construct(words=" ".join(sentences), may_stop=words.may_stop)
    for is_at_work in (True, False):
        assert len(stored.words_to(is_at_work=is_at_work).split()) <= 40
    assert len(points) <= 3
    places = [LEADS.index(lead) for lead, _ in points]
    assert places == sorted(set(places))
    for text in [*sentences, *(text for _, text in points), *words.notes()]:
        assert text.endswith(".")
    assert not {text for _, text in points} & {*sentences}
    if words.may_stop:
        assert words.claims.best is not None


@given(
    st.lists(st.floats(0.05, 0.95), min_size=1, max_size=5), st.integers(1, 60), st.integers(0, 99)
)
def test_what_is_said_to_beat_is_what_claims_hold(skills, prompts, seed):
    names = [f"j{n}" for n in range(len(skills))]
    right = np.random.default_rng(seed).random((len(skills), prompts)) < np.array(skills)[:, None]
    words = words_of(right, names)
    said = " ".join(words.headline())
    for winner, victim in re.findall(r"(j\d) agrees with people on \d+ %, (j\d) on", said):
        assert words.claims.ahead[names.index(winner), names.index(victim)]
    assert ("Best of" in said) == (words.claims.best is not None)
