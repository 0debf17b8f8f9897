"""What a board says in words: sentences for real situations, and nothing that is not claimed."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_eval.stats.claims import claims, too_few
from judge_eval.stats.entering import Opened, Voted, enter
from judge_eval.stats.wording import Words, odds

FLOOR = ("longer-wins", "random")


def words_of(right, names, *, agreement=None, coverage=None, left=1000, prompts=None, **about):
    """Say it of judges that were right (1) or wrong (0) on one comparison per prompt.

    `right` has a row for each judge; what is no figure was not voted on.
    """
    right = np.array(right, dtype=bool).reshape(len(names), -1 if names else 0).T
    number = len(right)
    opened = [Opened(n, n, n, 1, [0 if yes else 1 for yes in right[n]]) for n in range(number)]
    entered = enter([*opened, *(Voted(number + n, n, 0) for n in range(number))], range(number))
    if agreement is None:
        agreement = right.mean(axis=0).tolist() if number else [None] * len(names)
    is_baseline = np.array([name in FLOOR for name in names], dtype=bool)
    values = np.array([np.nan if share is None else share for share in agreement])
    found = claims(entered, is_baseline, values, number if prompts is None else prompts, left)
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
    assert headline([[], []], ["a", "b"], prompts=50, votes=0) == (
        "There are no votes yet, so nothing can be said about the judges."
    )
    assert headline([], [], votes=0) == "No judge has given a verdict yet."


def test_too_few_prompts_are_named_before_anybody_votes():
    assert headline([[], []], ["a", "b"], prompts=6, votes=0).endswith(
        "6 prompts are too few to tell judges apart: add prompts rather than pairs."
    )
    assert too_few(5, judges=1, baselines=1) == (
        "5 prompts are too few to tell the judge from the floor: add prompts rather than pairs."
    )
    assert too_few(6, judges=1, baselines=2) is not None
    assert too_few(3, judges=1, baselines=0) is None


def test_the_best_judge_is_named_and_voting_may_stop():
    board = [some(0.8), some(0.3), some(0.3)], ["good", "flaky", "random"]
    said = headline(*board)
    assert said.startswith(
        "good is the best judge: it agrees with people on 80 %, as people do among themselves "
        "(80 %) and beats flaky (evidence "
    )
    assert said.endswith("You may stop voting. Only good beats the floor.")
    quiet = more(*board)
    assert "Evidence over random: " in quiet
    assert "Nothing shows yet that flaky is better than random (evidence 1 : 1 of 40 : 1)" in quiet


def test_a_lead_is_not_settled_and_what_would_settle_it_is_told():
    ahead = [1] * 12
    behind = [1] * 8 + [0] * 4
    said = headline([ahead, behind], ["good", "flaky"])
    assert said.startswith(
        "good leads flaky, not settled (evidence 6.2 : 1 of 40 : 1): "
        "some 9 more votes, if the difference stays what it looks like."
    )


@pytest.mark.parametrize(
    "left, end",
    [(9, "it looks like."), (8, "but only 8 votes are left."), (0, "but none is left.")],
)
def test_votes_that_are_left_bound_what_can_be_settled(left, end):
    [first, *_] = words_of([[1] * 12, [1] * 8 + [0] * 4], ["a", "b"], left=left).headline()
    assert first.endswith(end)


def test_equal_judges_cannot_be_told_apart_whatever_the_votes():
    said = headline([some(0.7), some(0.7)], ["a", "b"])
    assert said.startswith(
        "a and b cannot be told apart yet: more votes will not settle this as it stands."
    )


def test_several_may_be_the_best():
    words = words_of([some(0.8), some(0.78), some(0.75), some(0.1)], ["a", "b", "c", "d"])
    first, second, *_ = words.headline()
    assert first.startswith("Not settled: a, b or c may be the best judge; ")
    assert second.startswith("a agrees with people on 80 %")
    assert "and beats d (evidence " in second
    assert any(re.match(r"b beats d \(evidence ", sentence) for sentence in words.more())


def test_of_more_candidates_than_three_only_the_first_is_named():
    """What it takes to tell them apart, and whom the first one beats, stands below."""
    names = [f"vendor/judge-{n}" for n in range(8)]
    words = words_of([some(0.9 - n / 20) for n in range(7)] + [some(0.1)], names)
    assert " ".join(words.headline()) == (
        "Not settled: vendor/judge-0 agrees with people on 90 % (people among themselves: 80 %); "
        "5 others may be better."
    )
    outlook, beats, *_ = words.more()
    assert re.match(r"To tell which is best: some [\d,]+ more votes, if the differences", outlook)
    assert re.match(r"vendor/judge-0 beats 2 of the 7 other judges \(evidence ", beats)


def test_ahead_per_prompt_is_not_ahead_per_vote():
    right = [some(0.9), some(0.3)]
    assert headline(right, ["a", "b"], agreement=[0.5, 0.6]).startswith(
        "a and b: not settled, a is ahead per prompt, not per vote."
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
        "only is the only judge: it agrees with people on 90 %. It beats the floor."
    )


def test_nobody_is_better_than_the_floor():
    right = [some(0.4), some(0.4), some(0.7), some(0.6)]
    assert headline(right, ["a", "b", *FLOOR]).endswith("None beats the floor yet.")
    assert more(right, ["a", "b", *FLOOR]).startswith(
        "Nothing shows yet that any judge is better than longer-wins or random."
    )


def test_without_a_complete_prompt_it_is_too_early():
    words = words_of([[], []], ["a", "b"], agreement=[0.9, 0.5], prompts=50, votes=7, voters=1)
    assert words.headline()[:2] == [
        "Too early to say which is best: after 7 votes by 1 person no prompt has all its votes.",
        "So far a agrees with people on 90 % (people among themselves: 80 %).",
    ]


def test_prompts_on_which_no_vote_is_wanted_say_nothing():
    entered = enter([Opened(n, n, n, 0, [0, 1]) for n in range(9)], range(9))
    found = claims(entered, np.array([False, False]), np.array([np.nan, np.nan]), 9)
    assert (found.entered, found.beats.any(), found.always.tolist()) == (9, False, [[0, 1]] * 2)


def test_verdicts_that_are_missing_are_named():
    words = words_of([some(0.9), some(0.3), some(0)], ["a", "b", "c"], coverage=[0.9, 0.41, 0])
    assert "It has a verdict on only 90 % of what it was asked about." in words.headline()
    assert "c has no verdict on any pair that people voted on." in words.more()
    assert "Not all they were asked about has a verdict: b on 41 %." in words.more()


def test_who_has_no_verdict_is_no_rival():
    said = headline([some(0.2, 5), some(0, 5)], ["a", "b"], coverage=[1, 0])
    assert said.startswith("a is the only judge with verdicts: it agrees with people on 20 %")
    assert headline([some(0, 5)], ["a"], coverage=[0]) == (
        "No judge has a verdict on any pair that people voted on."
    )


def test_judges_that_agree_on_all_prompts_are_practically_the_same():
    words = words_of([some(0.7, 900), some(0.7, 900)], ["a", "b"])
    assert (
        "a and b are practically the same: they differ by no more than 10 points per prompt."
        in (words.more())
    )


def test_points_lost_by_contradicting_itself():
    words = words_of([some(0.9), some(0.3)], ["a", "b"], contradicting={0: 0.9, 1: 4.4})
    assert "By contradicting itself b loses 4 points." in words.more()


def test_what_is_withdrawn_is_named_with_its_reason():
    words = words_of([some(0.9), some(0.3)], ["a", "b"])
    assert words.withdrawn([(0, 1, "a judge joined")]) == [
        "Withdrawn: a beats b. The reason: a judge joined."
    ]


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
    assert re.search(r"Evidence over random: (at least|over) ", said)
    assert "Nothing shows yet that c is better than random" in said


@given(st.floats(1, 1e12))
def test_odds_are_never_rounded_up(evidence):
    text = odds(evidence)
    number = float(text.removeprefix("over ").removesuffix(" : 1").replace(",", ""))
    assert number <= evidence * (1 + 1e-8)
    assert number >= min(evidence, 1e6) * 0.9 - 0.1


@settings(max_examples=60, deadline=None)
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
