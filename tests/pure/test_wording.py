"""What a board says in words: sentences for real situations, and nothing that is not claimed."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.claims import claims, first_claim, too_few
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
    about = {"votes": number, "people": 0.8} | about
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
    assert found.headline()[0] == "No winner: these 49 votes do not separate north and south."
    assert dict(found.points())["Not settled"] == (
        "The evidence on north and south points both ways."
    )


def test_the_best_judge_is_named_and_voting_may_stop():
    board = [some(0.8), some(0.3), some(0.3)], ["good", "flaky", "random"]
    assert headline(*board) == (
        "good is the best judge: it agrees with people on 80 %, as people do among themselves "
        "(80 %) and beats flaky (evidence over 1,000,000 : 1). You may stop voting."
    )
    assert points(*board) == {"Floor": "Only good beats the baselines."}


def test_a_judge_that_beats_another_by_little_is_not_said_to_be_the_same():
    a, b = some(0.84, 3000), some(0.80, 3000)
    words = words_of([a, b], ["a", "b"])
    assert words.claims.beats[0, 1]
    assert words.claims.same[0, 1]
    assert "and beats b by less than 10 points (evidence " in " ".join(words.headline())
    assert "Same" not in dict(words.points())
    # Beside a third that is far behind, they only differ.
    words = words_of([a, b, some(0.3, 3000)], ["a", "b", "c"])
    assert "and beats b and c (evidence " in " ".join(words.headline())
    assert dict(words.points())["Same"] == (
        "a and b differ by less than 10 points of agreement per vote."
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
    names = ["good", "bad", "longer-wins"]
    assert words_of(right, names).claims.best is None
    assert headline(right, names) == (
        "good agrees most, but is not yet shown to beat longer-wins; it takes at least 110 more "
        "votes. good agrees with people on 62 % (people among themselves: 80 %)."
    )
    assert points(right, names) == {
        "Floor": "No judge beats the baselines, and bad is worse than longer-wins.",
        "Not settled": "good is not yet shown to beat longer-wins (1.5 : 1; needs 40 : 1).",
    }
    # Without the floor it is the best judge, and its rank says nothing else.
    assert words_of(right[:2], ["good", "bad"]).claims.best == 0


def test_a_part_of_a_run_is_named_and_nobody_may_stop():
    [only] = words_of([some(0.8), some(0.3)], ["good", "flaky"], part="votes of cats").headline()
    assert only.startswith("Only votes of cats: good is the best judge: ")


def test_a_lead_is_not_settled_and_how_many_votes_it_takes_is_a_range():
    board = [[1] * 24, [1] * 18 + [0] * 6], ["good", "flaky"]
    assert words_of(*board).headline() == [
        "No winner: these 24 votes do not separate the two; it takes some 3 to 170 more.",
        "good agrees with people on 100 % (people among themselves: 80 %).",
    ]
    assert points(*board) == {
        "Not settled": "good is not yet shown to beat flaky (18 : 1; needs 40 : 1)."
    }
    open_end = words_of([[1] * 36, [1] * 32 + [0] * 4], ["good", "flaky"], left=9)
    assert open_end.headline()[0].endswith("; it takes at least 12 more.")
    assert dict(open_end.points())["Not settled"] == (
        "good is not yet shown to beat flaky (6.2 : 1; needs 40 : 1); "
        "only 9 more votes are planned: raise the votes wanted."
    )


def test_before_20_prompts_no_number_of_votes_is_told():
    ahead, behind = [1] * 12, [1] * 8 + [0] * 4
    assert headline([ahead, behind], ["good", "flaky"]).startswith(
        "No winner: these 12 votes do not separate the two; too early to say how many more."
    )


def test_where_prompts_are_too_few_no_votes_are_asked_for():
    words = words_of([[1] * 7, [1] * 3 + [0] * 4], ["good", "flaky"])
    assert words.headline()[0] == "No winner: these 7 votes do not separate the two."
    assert dict(words.points())["Not settled"] == (
        "7 prompts are too few to tell judges apart: add prompts rather than pairs."
    )


@pytest.mark.parametrize(
    "left, end",
    [
        (3, "(18 : 1; needs 40 : 1)."),
        (2, "; only 2 more votes are planned: raise the votes wanted."),
        (1, "; only 1 more vote is planned: raise the votes wanted."),
        (0, "; no more votes are planned: raise the votes wanted."),
    ],
)
def test_votes_that_are_planned_bound_what_can_be_settled(left, end):
    board = [[1] * 24, [1] * 18 + [0] * 6], ["a", "b"]
    assert points(*board, left=left)["Not settled"].endswith(end)


def test_equals_are_named_in_the_headline_and_cost_no_votes():
    words = words_of([some(0.7, 90), some(0.7, 90)], ["a", "b"], identical=[[0, 1]])
    assert words.headline()[0] == "a and b gave the same verdict on every pair."
    practically = words_of([some(0.7, 90), some(0.7, 90)], ["a", "b"], left=0)
    alike = "a and b are practically the same: they differ by less than 10 points of agreement"
    assert practically.headline()[0] == f"{alike} per vote."
    for found in (words, practically):
        assert "votes" not in " ".join(found.headline())
        assert found.points() == []
    # Of a single judge, too, that says what a baseline does.
    copy = words_of([some(0.7), some(0.7)], ["only", "random"], identical=[[0, 1]])
    assert copy.headline() == [
        "only is the only judge: it agrees with people on 70 % (people among themselves: 80 %).",
        "It does not beat the baselines yet.",
    ]
    assert copy.points() == [("Same", "only and random gave the same verdict on every pair.")]
    # Copies of which neither may be the best are named below.
    third = words_of([some(0.9, 90), *[some(0.2, 90)] * 2], [*"abc"], identical=[[1, 2]])
    assert third.headline()[0].startswith("a is the best judge")
    assert ("Same", "b and c gave the same verdict on every pair.") in third.points()


def test_what_changed_on_the_way_is_neither_the_same_nor_better():
    right = [[1] * 20 + [0] * 60, [0] * 20 + [1] * 60]
    words = words_of(right, ["a", "b"])
    assert not words.claims.same.any()
    assert not words.claims.beats.any()


@pytest.mark.parametrize(
    "people, low, begins",
    [
        (0.24, 0.2, "People agree no more than by chance (24 %; chance 25 %). a is the best"),
        (0.27, 0.2, "Nothing shows that people agree beyond chance (27 %; chance 25 %). a is"),
        (0.4, 0.3, "a is the best judge"),
        (0.24, None, "a is the best judge"),
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
    opened = [Opened(n, n, n, 1 if n else 9, [0, 1]) for n in range(9)]
    voted = [Voted(20 + n, max(0, n - 8), 0) for n in range(17)]
    found = claims(enter([*opened, *voted], range(9)), np.zeros(2, bool), np.array([1.0, 0]))
    assert (found.cut, found.entered) == (1, 9)
    words = Words(["a", "b"], found, [0, 1], [1.0, 0.0], [1.0, 1.0], votes=17)
    assert (
        "1 prompt has more than 4 times the median of the votes on a prompt; "
        "evidence takes only so many of them." in words.notes()
    )


def test_several_may_be_the_best():
    board = [some(0.8), some(0.78), some(0.75), some(0.1)], ["a", "b", "c", "d"]
    assert headline(*board) == (
        "No winner: these 60 votes do not separate a, b and c; it takes at least 130 more. "
        "a agrees with people on 80 %, as people do among themselves (80 %)."
    )
    assert points(*board)["Not settled"] == (
        "a is not yet shown to beat b or c (1.5 : 1; needs 80 : 1)."
    )


def test_of_more_candidates_than_three_only_the_first_is_named():
    names = [f"vendor/judge-{n}" for n in range(8)]
    board = [some(0.9 - n / 20) for n in range(7)] + [some(0.1)], names
    assert headline(*board).startswith(
        "No winner: these 60 votes do not separate vendor/judge-0 from 4 others; it takes at least"
    )
    assert "is not yet shown to beat 4 others (" in points(*board)["Not settled"]


def test_later_votes_can_turn_what_the_evidence_says():
    board = [some(0.9), some(0.3)], ["a", "b"]
    about = {"agreement": [0.5, 0.6]}
    assert points(*board, **about)["Not settled"] == "The evidence on b and a points both ways."
    words = words_of(*board, **about)
    assert (words.claims.beats.any(), words.claims.best) == (False, None)


def test_evidence_may_point_both_ways():
    board = [[1] * 20 + [0] * 60, [0] * 20 + [1] * 60], ["a", "b"]
    assert points(*board)["Not settled"] == "The evidence on b and a points both ways."
    assert "it takes" not in headline(*board)


def test_a_single_judge_stands_beside_the_floor_and_people():
    board = [some(0.9), some(0.3)], ["only", "random"]
    assert headline(*board, people=None) == (
        "only is the only judge: it agrees with people on 90 %. It beats the baselines."
    )
    assert points(*board) == {}
    board = [[1] * 24, [1] * 20 + [0] * 4], ["a", "random"]
    assert headline(*board).endswith("It does not beat the baselines yet.")
    assert points(*board)["Not settled"] == (
        "a is not yet shown to beat random (6.2 : 1; needs 20 : 1); it takes at least 5 more votes."
    )
    assert headline([some(0.4), some(0.9)], ["a", "random"]).endswith("It is worse than random.")


def test_nobody_is_better_than_the_floor():
    right = [some(0.7), some(0.69), some(0.7), some(0.6)]
    assert points(right, ["a", "b", *FLOOR])["Floor"] == "No judge beats the baselines yet."


def test_who_is_worse_than_a_baseline_is_named():
    board = [some(0.4), some(0.4), some(0.9), some(0.4)], ["a", "b", *FLOOR]
    assert points(*board)["Floor"] == (
        "No judge beats the baselines, and a and b are worse than longer-wins."
    )
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
        opened = [Opened(n, n, n, size, verdicts) for n, size in enumerate(sizes)]
        places = np.repeat(np.arange(prompts), sizes[:prompts])
        voted = [Voted(len(sizes) + n, place, 0) for n, place in enumerate(places.tolist())]
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
    entered = enter([Opened(n, n, n, 0, [0, 1]) for n in range(9)], range(9))
    found = claims(entered, np.array([False, False]), np.array([np.nan, np.nan]))
    assert (found.entered, found.beats.any(), found.always.tolist()) == (9, False, [[0, 1]] * 2)


def test_verdicts_that_are_missing_are_named():
    words = words_of([some(0.9), some(0.3), some(0)], ["a", "b", "c"], coverage=[0.9, 0.41, 0])
    assert dict(words.points())["Unanswered"] == (
        "c has no verdict on any pair that people voted on; b left 59 % and a left 10 % unanswered."
    )
    assert points([some(0.9), some(0.3)], ["a", "flaky"], coverage=[1, 0.89])["Unanswered"] == (
        "flaky left 11 % unanswered."
    )


def test_who_has_no_verdict_is_no_rival():
    said = headline([some(0.2, 5), some(0, 5)], ["a", "b"], coverage=[1, 0])
    assert said.startswith("a is the only judge with verdicts: it agrees with people on 20 %")
    assert headline([some(0, 5)], ["a"], coverage=[0]) == (
        "No judge has a verdict on any pair that people voted on."
    )


def test_who_is_ahead_of_all_that_answered_is_not_yet_the_best():
    """A judge that joined late has no verdict on what was voted on, so nothing is shown of it."""
    asked = words_of([some(0.9), some(0.3), some(0.89)], ["a", "b", "late"], coverage=[1, 1, 0])
    [only] = asked.headline()
    assert only.startswith("a is ahead of all judges with verdicts: it agrees with people on 90 %")


def test_where_no_judge_was_asked_it_says_what_to_do():
    words = "No judge was asked yet. Add judges: they answer on the votes you have."
    assert headline([some(0.3), some(0.4)], FLOOR) == headline([], [], votes=9) == words


def test_points_lost_by_contradicting_itself():
    about = {"contradicting": {0: 0.9, 1: 4.4}}
    assert points([some(0.9), some(0.3)], ["a", "b"], **about) == {
        "Lost to contradiction": "Contradicting itself costs b 4 points."
    }


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
    assert re.fullmatch(r"\d+ of the 68 judges beat the baselines\.", dict(words.points())["Floor"])
    assert max(len(text) for _, text in words.points()) < 200


@given(st.floats(1, 1e12))
def test_odds_are_never_rounded_up(evidence):
    text = odds(evidence)
    number = float(text.removeprefix("over ").removesuffix(" : 1").replace(",", ""))
    assert number <= evidence * (1 + 1e-8)
    assert number >= min(evidence, 1e6) * 0.9 - 0.1


LEADS = ["Unanswered", "Changed", "Floor", "Not settled", "Same", "Lost to contradiction"]
SHARES = st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.5, 0.8, 0.9]))


@given(
    skills=st.lists(st.floats(0.0, 1.0), max_size=9),
    baselines=st.integers(0, 2),
    prompts=st.integers(0, 60),
    seed=st.integers(0, 99),
    about=st.fixed_dictionaries(
        {
            "people": SHARES,
            "people_low": SHARES,
            "chance": SHARES,
            "left": st.integers(0, 50),
            "unvoted": st.integers(0, 40),
            "part": st.sampled_from(
                ["", "prompts tagged cats", "only votes and verdicts for A or B"]
            ),
            "agrees": st.sampled_from(["agrees with people on", "agrees with people's order on"]),
        }
    ),
)
def test_a_headline_is_short_and_points_are_few(skills, baselines, prompts, seed, about):
    names = [*(f"vendor/j{n}" for n in range(len(skills))), *FLOOR[:baselines]]
    dice, number = np.random.default_rng(seed), len(names)
    chances = np.array([*skills, *[0.5] * baselines])
    right = dice.random((number, prompts)) < chances[:, None]
    if seed % 3 == 0:
        right[:] = right[:1]  # all alike
    about |= {
        "coverage": dice.choice([0, 0.4, 0.9, 1], number).tolist(),
        "contradicting": dict(enumerate(dice.integers(0, 20, number).tolist())),
        "identical": [[0, 1]] if number > 1 and seed % 2 and len(skills) else (),
        "withdrawn": [(0, number - 1, "a judge joined"), (0, None, "a verdict changed")][:number],
        "impossible": {"tie": dict.fromkeys(range(number), 3)},
    }
    words = words_of(right, names, **about)
    sentences, points = words.headline(), words.points()
    # Of odds a "1" stands alone.
    assert 1 <= len(sentences) <= 2
    assert sum(sentence.count(". ") for sentence in sentences) == 0
    assert len(" ".join(sentences).split()) <= 40
    assert len(points) <= 3
    places = [LEADS.index(lead) for lead, _ in points]
    assert places == sorted(set(places))
    for text in [*sentences, *(text for _, text in points), *words.notes()]:
        assert text.endswith(".")
    assert not {text for _, text in points} & {*sentences}
    if "You may stop voting." in sentences:
        assert words.claims.best is not None


@given(
    st.lists(st.floats(0.05, 0.95), min_size=1, max_size=5), st.integers(1, 60), st.integers(0, 99)
)
def test_what_is_said_to_beat_is_what_claims_hold(skills, prompts, seed):
    names = [f"j{n}" for n in range(len(skills))]
    right = np.random.default_rng(seed).random((len(skills), prompts)) < np.array(skills)[:, None]
    words = words_of(right, names)
    said = " ".join(words.headline())
    for winner, victims in re.findall(r"(j\d) is the[^.]*? beats (all \d other|[j\d, and]+)", said):
        others = re.findall(r"j\d", victims) or [n for n in names if n != winner]
        for victim in others:
            assert words.claims.beats[names.index(winner), names.index(victim)]
    assert ("You may stop voting." in said) == (words.claims.best is not None)
