"""What a board says in words: sentences for real situations, and nothing that is not claimed."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.claims import claims, too_few
from judge_eval.stats.evidence_order import Opened, Voted, enter
from judge_eval.stats.wording import Words, odds

FLOOR = ("longer-wins", "random")


def words_of(right, names, *, agreement=None, coverage=None, left=1000, unvoted=0, **about):
    """Say it of judges that were right (1) or wrong (0) on one comparison per prompt.

    `right` has a row for each judge; so many further prompts are open and not voted on.
    """
    right = np.array(right, dtype=bool).reshape(len(names), -1 if names else 0).T
    number, every = len(right), len(right) + unvoted
    verdicts = [[0 if yes else 1 for yes in row] for row in right] + [[0] * len(names)] * unvoted
    opened = [Opened(n, n, n, 1, verdicts[n]) for n in range(every)]
    entered = enter([*opened, *(Voted(every + n, n, 0) for n in range(number))], range(every))
    if agreement is None:
        agreement = right.mean(axis=0).tolist() if number else [None] * len(names)
    is_baseline = np.array([name in FLOOR for name in names], dtype=bool)
    values = np.array([np.nan if share is None else share for share in agreement])
    found = claims(entered, is_baseline, values, left)
    order = sorted(range(len(names)), key=lambda n: -(agreement[n] or 0))
    about = {"votes": number, "voters": 3, "people": 0.8} | about
    return Words(names, found, order, agreement, coverage or [1.0] * len(names), **about)


def some(share, of=60):
    """Right on a share of so many, spread evenly."""
    return [int((n + 1) * share + 1e-9) > int(n * share + 1e-9) for n in range(of)]


def headline(*arguments, **options):
    return " ".join(words_of(*arguments, **options).headline())


def more(*arguments, **options):
    return " ".join(words_of(*arguments, **options).more())


def test_before_a_vote_nothing_is_said():
    assert headline([[], []], ["a", "b"], unvoted=50, votes=0) == (
        "There are no votes yet, so nothing can be said about the judges."
    )
    assert headline([], [], votes=0) == "No judge has given a verdict yet."


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
    assert found.headline()[0].startswith("north beats south (evidence ")


def test_the_best_judge_is_named_and_voting_may_stop():
    board = [some(0.8), some(0.3), some(0.3)], ["good", "flaky", "random"]
    said = headline(*board)
    assert said.startswith(
        "good is the best judge: it agrees with people on 80 %, as people do among themselves "
        "(80 %) and beats flaky (evidence "
    )
    assert said.endswith("You may stop voting. Only good beats the baselines.")
    assert more(*board).startswith(
        "good beats random (evidence over 1,000,000 : 1). "
        "Nothing shows yet that flaky is better than random."
    )


def test_a_best_judge_needs_less_evidence_than_to_beat_every_other():
    """Of three, 60 : 1 over each of the others, against 120 : 1."""
    board = [[1] * 9 + some(0.5), [0] * 9 + some(0.5), [0] * 9 + some(0.5)], ["a", "b", "c"]
    words = words_of(*board)
    assert (words.claims.best, words.claims.beats.any()) == (0, False)
    said = " ".join(words.headline())
    assert "and is ahead of b and c (evidence at least 102 : 1). You may stop voting." in said
    assert words.claims.ranks() == [(1, 1), (2, 3), (2, 3)]
    assert words.claims.letters([0, 1, 2]) == ["a", "b", "b"]


def test_a_best_judge_beats_the_baselines():
    right = [[1] * 20 + some(0.5), [0] * 20 + some(0.5), [1] * 18 + [0, 1] + some(0.5)]
    words = words_of(right, ["good", "bad", "longer-wins"])
    assert words.claims.best is None
    assert " ".join(words.headline()).startswith(
        "good agrees most, but nothing shows that it is better than longer-wins. good agrees with "
        "people on 62 % (people among themselves: 80 %) and beats bad (evidence "
    )
    assert "You may stop voting." not in words.headline()
    # Without the floor it is the best judge, and its rank says nothing else.
    assert words_of(right[:2], ["good", "bad"]).claims.best == 0


def test_a_part_of_a_run_is_named_and_nobody_may_stop():
    words = words_of([some(0.8), some(0.3)], ["good", "flaky"], part="prompts tagged cats")
    first, second, *rest = words.headline()
    assert first == "Only a part: prompts tagged cats."
    assert second.startswith("good is the best judge: ")
    assert "You may stop voting." not in rest


def test_a_lead_is_not_settled_and_how_many_votes_it_takes_is_a_range():
    first = words_of([[1] * 24, [1] * 18 + [0] * 6], ["good", "flaky"]).headline()[0]
    assert first == (
        "good leads flaky, not settled (evidence 18 : 1 of 40 : 1): some 3 to 170 more votes."
    )
    open_end = words_of([[1] * 36, [1] * 32 + [0] * 4], ["good", "flaky"], left=9)
    assert open_end.headline()[0] == (
        "good leads flaky, not settled (evidence 6.2 : 1 of 40 : 1): "
        "at least 12 more votes, perhaps far more, and only 9 are planned: raise the votes wanted."
    )


def test_before_20_prompts_no_number_of_votes_is_told():
    ahead, behind = [1] * 12, [1] * 8 + [0] * 4
    assert headline([ahead, behind], ["good", "flaky"]).startswith(
        "good leads flaky, not settled (evidence 6.2 : 1 of 40 : 1): "
        "too early to say how many more votes."
    )


def test_where_prompts_are_too_few_no_votes_are_asked_for():
    first, *_, last = words_of([[1] * 7, [1] * 3 + [0] * 4], ["good", "flaky"]).headline()
    assert first == "good leads flaky, not settled (evidence 6.2 : 1 of 40 : 1)."
    assert last == "7 prompts are too few to tell judges apart: add prompts rather than pairs."


@pytest.mark.parametrize(
    "left, end",
    [
        (3, "some 3 to 170 more votes."),
        (2, "more votes, and only 2 are planned: raise the votes wanted."),
        (1, "more votes, and only 1 is planned: raise the votes wanted."),
        (0, "more votes, and none is planned: raise the votes wanted."),
    ],
)
def test_votes_that_are_planned_bound_what_can_be_settled(left, end):
    [first, *_] = words_of([[1] * 24, [1] * 18 + [0] * 6], ["a", "b"], left=left).headline()
    assert first.endswith(end)


def test_the_hint_to_raise_the_votes_wanted_is_given_once():
    right = [[1] * 40, [1] * 34 + [0] * 6, [1] * 33 + [0] * 7, [1] * 30 + [0] * 10]
    words = words_of(right, ["a", "b", "c", "longer-wins"], left=0)
    sentences = [*words.headline(), *words.more()]
    assert sum("some " in s or "at least " in s for s in sentences) > 2
    assert " ".join(sentences).count("none is planned: raise the votes wanted") == 1


def test_equals_are_named_in_the_headline_and_cost_no_votes():
    words = words_of([some(0.7, 90), some(0.7, 90)], ["a", "b"], identical=[[0, 1]])
    assert words.headline()[0] == "a and b gave the same verdict on every pair."
    practically = words_of([some(0.7, 90), some(0.7, 90)], ["a", "b"])
    assert practically.headline()[0] == (
        "a and b are practically the same: "
        "they differ by less than 10 points of agreement per vote."
    )
    for found in (words, practically):
        assert "more votes" not in " ".join([*found.headline(), *found.more()])
    # Of a single judge, too, that says what a baseline does.
    copy = words_of([some(0.7), some(0.7)], ["only", "random"], identical=[[0, 1]])
    assert copy.headline()[:2] == [
        "only and random gave the same verdict on every pair.",
        "only is the only judge: it agrees with people on 70 % (people among themselves: 80 %).",
    ]
    # Copies of which neither may be the best are named below.
    third = words_of([some(0.9, 90), *[some(0.2, 90)] * 2], [*"abc"], identical=[[1, 2]])
    assert third.headline()[0].startswith("a is the best judge")
    assert "b and c gave the same verdict on every pair." in third.more()


def test_what_changed_on_the_way_is_neither_the_same_nor_better():
    right = [[1] * 20 + [0] * 60, [0] * 20 + [1] * 60]
    words = words_of(right, ["a", "b"])
    assert not words.claims.same.any()
    assert not words.claims.beats.any()


@pytest.mark.parametrize(
    "people, low, begins",
    [
        (0.24, 0.2, "People agree with each other no more than by chance (24 %, by chance 25 %)."),
        (0.27, 0.2, "Nothing shows yet that people agree more than by chance (27 %, by chance "),
        (0.4, 0.3, "a is the best judge"),
        (0.24, None, "a is the best judge"),
    ],
)
def test_people_who_agree_no_more_than_by_chance_are_named_first(people, low, begins):
    about = {"people": people, "people_low": low, "chance": 0.25}
    assert headline([some(0.8), some(0.3)], ["a", "b"], **about).startswith(begins)


def test_an_answer_that_no_vote_can_equal_is_named():
    words = words_of([some(0.8), some(0.3)], ["a", "b"], impossible={"tie": {0: 0, 1: 12}})
    assert (
        "No vote can be “tie” here, so that answer is never right: b (on 12 pairs)." in words.more()
    )


def test_prompts_that_are_cut_are_counted():
    opened = [Opened(n, n, n, 1 if n else 9, [0, 1]) for n in range(9)]
    voted = [Voted(20 + n, max(0, n - 8), 0) for n in range(17)]
    found = claims(enter([*opened, *voted], range(9)), np.zeros(2, bool), np.array([1.0, 0]))
    assert (found.cut, found.entered) == (1, 9)
    words = Words(["a", "b"], found, [0, 1], [1.0, 0.0], [1.0, 1.0], votes=17, voters=2)
    assert (
        "1 prompt has more than 4 times the median of the votes on a prompt; "
        "evidence takes only so many of them." in words.more()
    )


def test_several_may_be_the_best():
    words = words_of([some(0.8), some(0.78), some(0.75), some(0.1)], ["a", "b", "c", "d"])
    first, second, *_ = words.headline()
    assert first.startswith("Not settled: a, b or c may be the best judge; ")
    assert second.startswith("a agrees with people on 80 %")
    assert "and beats d (evidence " in second
    assert any(re.match(r"b beats d \(evidence ", sentence) for sentence in words.more())


def test_those_that_cannot_be_told_apart_have_one_forecast():
    board = [some(0.95, 90), some(0.3, 90), some(0.28, 90), some(0.27, 90)]
    said = more(board, ["best", "x", "y", "z"])
    assert "x, y and z cannot be told apart yet: at least " in said


def test_of_more_candidates_than_three_only_the_first_is_named():
    """What it takes to tell them apart, and whom the first one beats, stands below."""
    names = [f"vendor/judge-{n}" for n in range(8)]
    words = words_of([some(0.9 - n / 20) for n in range(7)] + [some(0.1)], names)
    assert " ".join(words.headline()).startswith(
        "Not settled: 4 others may be better than vendor/judge-0. vendor/judge-0 agrees with "
        "people on 90 % (people among themselves: 80 %) and beats 2 of the 7 other judges (evidence"
    )
    assert re.match(r"To tell which is best: at least [\d,]+ more votes, perhaps", words.more()[0])


def test_later_votes_can_turn_what_the_evidence_says():
    right = [some(0.9), some(0.3)]
    assert headline(right, ["a", "b"], agreement=[0.5, 0.6]).startswith(
        "b and a: not settled, the evidence points both ways."
    )
    words = words_of(right, ["a", "b"], agreement=[0.5, 0.6])
    assert (words.claims.beats.any(), words.claims.best) == (False, None)


def test_evidence_may_point_both_ways():
    right = [[1] * 20 + [0] * 60, [0] * 20 + [1] * 60]
    assert headline(right, ["a", "b"]).startswith(
        "b and a: not settled, the evidence points both ways."
    )


def test_a_single_judge_stands_beside_the_floor_and_people():
    assert headline([some(0.9), some(0.3)], ["only", "random"], people=None) == (
        "only is the only judge: it agrees with people on 90 %. It beats the baselines."
    )


def test_nobody_is_better_than_the_floor():
    right = [some(0.7), some(0.69), some(0.7), some(0.6)]
    assert headline(right, ["a", "b", *FLOOR]).endswith("No judge beats the baselines yet.")
    assert more(right, ["a", "b", *FLOOR]).startswith(
        "Nothing shows yet that any judge is better than longer-wins or random."
    )
    assert headline([right[0], right[2]], ["a", "random"]).endswith(
        "It does not beat the baselines yet."
    )


def test_who_is_worse_than_a_baseline_is_named():
    right = [some(0.4), some(0.4), some(0.9), some(0.4)]
    said = headline(right, ["a", "b", *FLOOR])
    assert said.endswith("No judge beats the baselines, and a and b are worse than longer-wins.")
    assert more(right, ["a", "b", *FLOOR]).startswith(
        "a and b are worse than longer-wins (evidence over 1,000,000 : 1). "
        "Nothing shows yet that any judge is better than random."
    )
    claimed = words_of(right, ["a", "b", *FLOOR]).claims
    assert (claimed.beats_floor(), claimed.ranks()[2:]) == ([False, False, None, None], [None] * 2)


def test_who_leads_a_baseline_is_named_with_what_it_takes():
    right = [[1] * 24, [1] * 20 + [0] * 4, [1] * 10 + [0] * 14]
    assert more(right[:2], ["a", "random"]).startswith(
        "a leads random, not settled (6.2 : 1 of 20 : 1): at least 5 more votes, perhaps"
    )
    assert more(right, ["a", *FLOOR]).startswith(
        "a leads longer-wins, not settled (6.2 : 1 of 40 : 1): at least 9 more votes, "
    )
    assert "a beats random (evidence " in more(right, ["a", *FLOOR])


def test_without_a_complete_prompt_it_is_too_early():
    words = words_of([[], []], ["a", "b"], agreement=[0.9, 0.5], unvoted=50, votes=7, voters=1)
    assert words.headline()[:2] == [
        "Too early to say which is best: 7 votes by 1 person.",
        "So far a agrees with people on 90 % (people among themselves: 80 %).",
    ]


def test_prompts_on_which_no_vote_is_wanted_say_nothing():
    entered = enter([Opened(n, n, n, 0, [0, 1]) for n in range(9)], range(9))
    found = claims(entered, np.array([False, False]), np.array([np.nan, np.nan]))
    assert (found.entered, found.beats.any(), found.always.tolist()) == (9, False, [[0, 1]] * 2)


def test_verdicts_that_are_missing_are_named():
    words = words_of([some(0.9), some(0.3), some(0)], ["a", "b", "c"], coverage=[0.9, 0.41, 0])
    assert "a left 10 % unanswered." in words.headline()
    assert "c has no verdict on any pair that people voted on." in words.more()
    assert "b left 59 % unanswered." in words.more()


def test_who_has_no_verdict_is_no_rival():
    said = headline([some(0.2, 5), some(0, 5)], ["a", "b"], coverage=[1, 0])
    assert said.startswith("a is the only judge with verdicts: it agrees with people on 20 %")
    assert headline([some(0, 5)], ["a"], coverage=[0]) == (
        "No judge has a verdict on any pair that people voted on."
    )


def test_points_lost_by_contradicting_itself():
    words = words_of([some(0.9), some(0.3)], ["a", "b"], contradicting={0: 0.9, 1: 4.4})
    assert "Contradicting itself costs b 4 points." in words.more()


def test_what_is_withdrawn_is_named_with_its_reason():
    words = words_of([some(0.9), some(0.3)], ["a", "b"])
    gone = [(0, 1, "a judge joined"), (1, 0, "a verdict changed"), (0, None, "a judge joined")]
    assert words.withdrawn(gone) == [
        "Withdrawn: a judge joined. No longer claimed: a beats b and a is the best judge.",
        "Withdrawn: a verdict changed. No longer claimed: b beats a.",
    ]
    over = words_of([some(0.9), some(0.3)], ["a", "random"])
    assert over.withdrawn([(1, 0, "votes changed")])[0].endswith(": a is worse than random.")


def test_sixty_eight_judges_are_said_in_short():
    names = [*(f"judge-{n}" for n in range(68)), *FLOOR]
    right = [some(0.9 - n / 150, 300) for n in range(68)]
    words = words_of([*right, some(0.5, 300), some(0.3, 300)], names)
    said = [*words.headline(), *words.more()]
    assert max(map(len, said)) < 260
    assert len(said) < 16
    assert re.search(r"beats \d+ of the 67 other judges", " ".join(said))
    assert any(" of 2,278 pairs of judges are told apart." in sentence for sentence in said)


def test_the_floor_is_told_of_every_judge():
    said = more([some(0.9), some(0.85), some(0.4), some(0.35)], ["a", "b", "c", "random"])
    assert re.search(r"a and b beat random \(evidence (at least|over) ", said)
    assert "Nothing shows yet that c is better than random" in said


@given(st.floats(1, 1e12))
def test_odds_are_never_rounded_up(evidence):
    text = odds(evidence)
    number = float(text.removeprefix("over ").removesuffix(" : 1").replace(",", ""))
    assert number <= evidence * (1 + 1e-8)
    assert number >= min(evidence, 1e6) * 0.9 - 0.1


@given(
    st.lists(st.floats(0.05, 0.95), min_size=1, max_size=5),
    st.integers(1, 60),
    st.integers(0, 99),
)
def test_what_is_said_to_beat_is_what_claims_hold(skills, prompts, seed):
    names = [f"j{n}" for n in range(len(skills))]
    right = np.random.default_rng(seed).random((len(skills), prompts)) < np.array(skills)[:, None]
    words = words_of(right, names)
    said = " ".join([*words.headline(), *words.more()])
    for winner, victims in re.findall(r"(j\d)[^.]*? beats (all \d other judges|[j\d, and]+)", said):
        others = re.findall(r"j\d", victims) or [n for n in names if n != winner]
        for victim in others:
            assert words.claims.beats[names.index(winner), names.index(victim)]
    assert ("You may stop voting." in said) == (words.claims.best is not None)
