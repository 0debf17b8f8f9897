"""GET …/results: PathScore's leaderboard, with the intervals beside it."""

import pytest

from judge_eval.models import JudgeRating
from judge_eval.stats.elo import ALONE, BASELINE
from tests.helpers.board_rows import make_studied_run, vote_all
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    judges_of,
    key_client,
    make_key,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)

pytestmark = pytest.mark.django_db


def intervals_of(answer):
    return [(row["agree_low"], row["agree_high"]) for row in answer["leaderboard"]]


def results_of(run):
    client = key_client(make_key("read")[1])
    response = client.get(f"/api/runs/{run.pk}/judge-eval/results")
    assert response.status_code == 200
    return response.json()


def test_before_any_vote():
    run = make_run(pairs=2, names=["wise", "wrong"])
    answer = results_of(run)
    assert [
        {name: row[name] for name in ("judge", "elo", "agree", "disagree", "total", "agree_rate")}
        for row in answer["leaderboard"]
    ] == [
        {"judge": name, "elo": 1000, "agree": 0, "disagree": 0, "total": 0, "agree_rate": None}
        for name in ("wise", "wrong")
    ]
    assert (answer["total"], answer["done"], answer["pending"]) == (2, 0, 2)


def test_after_a_vote():
    run = make_run(pairs=2, says=[["A", "B", "B"], ["A", None, "B"]])
    make_vote(make_voter(run), pairs_of(run)[0], "A")
    seal_all(run.queue.project)
    answer = results_of(run)
    first, second, third = answer["leaderboard"]
    assert [row["judge"] for row in (first, second, third)] == ["judge-0", "judge-1", "judge-2"]
    assert [row["elo"] for row in (first, second, third)] == [1031, 984, 985]
    assert [row["rank"] for row in (first, second, third)] == [1, 2, 2], "both were wrong"
    assert first["elo_exact"] == pytest.approx(1031.263693206478, abs=1e-9)
    assert (first["agree"], first["disagree"], first["total"], first["agree_rate"]) == (
        1,
        0,
        1,
        100.0,
    )
    assert (first["agree_low"], first["agree_high"]) == (None, None), "one vote is too few"
    assert (first["coverage"], second["coverage"]) == (100.0, 50.0)
    assert first["judge_id"] == str(judges_of(run)[0].pk)
    assert first["baseline"] is True
    assert (answer["done"], answer["pending"], answer["votes"]) == (1, 1, 1)
    assert answer["ledger_seq"] == run.queue.project.head_seq


def overall_of(answer):
    return {row["judge"]: row["overall_agreement"] for row in answer["leaderboard"]}


def test_judges_are_listed_by_overall_agreement_from_the_first_vote_on():
    """A failed verdict counts against a judge, and no ELO lifts it."""
    says = [["B", "A", "A"], ["B", None, "A"], ["A", None, "A"]]
    run = make_run(pairs=3, says=says, names=["wrong", "silent", "wise"])
    voter = make_voter(run)
    for pair in pairs_of(run)[:2]:
        make_vote(voter, pair, "A")
    seal_all(run.queue.project)
    JudgeRating.objects.filter(judge__name="wrong").update(elo=1900)
    answer = results_of(run)
    assert overall_of(answer) == {"wise": 100.0, "silent": 50.0, "wrong": 0.0}
    assert [row["judge"] for row in answer["leaderboard"]] == ["wise", "silent", "wrong"]
    assert [row["rank"] for row in answer["leaderboard"]] == [1, 2, 3]
    assert answer["overall_as_of"] == {
        "votes": 2,
        "ledger_seq": answer["ledger_seq"],
        "newer": 0,
        "computed": False,
    }
    compute(run)
    found = results_of(run)
    assert overall_of(found) == overall_of(answer)
    assert found["overall_as_of"] == answer["overall_as_of"] | {"computed": True}


def voted_on(*says, **options):
    run = make_run(says=list(says), **options)
    voter = make_voter(run)
    for pair in pairs_of(run):
        make_vote(voter, pair, "A")
    seal_all(run.queue.project)
    return run


def listed(run, *names):
    return [tuple(row[name] for name in names) for row in results_of(run)["leaderboard"]]


@pytest.mark.parametrize("is_computed", [False, True])
def test_baselines_come_behind_the_judges_and_have_no_elo(is_computed):
    names = ["floor", "weak", "good"]
    run = voted_on(["A", "B", "A"], ["A", "B", "B"], names=names, baselines=["floor"])
    if is_computed:
        compute(run)
    assert listed(run, "judge", "rank", "elo", "elo_exact", "elo_note", "overall_agreement") == [
        ("good", 1, 1016, 1016.0, "", 50.0),
        ("weak", 2, 984, 984.0, "", 0.0),
        ("floor", 3, None, None, BASELINE, 100.0),
    ]


def test_baselines_without_a_judge_play_among_themselves():
    assert listed(voted_on(["A", "B"]), "elo", "elo_note") == [(1016, ""), (984, "")]


@pytest.mark.parametrize("says", [["A"], ["A", "B"]], ids=["alone", "beside the floor"])
def test_a_judge_that_is_alone_has_no_elo_and_it_is_said_why(says):
    run = voted_on(says, names=["single", "floor"][: len(says)], baselines=["floor"])
    compute(run)
    assert listed(run, "judge", "elo", "elo_note")[0] == ("single", None, ALONE)
    board = user_client().get(f"/runs/{run.pk}/")
    assert f"{ALONE[:1].upper()}{ALONE[1:]}." in text_of(board)
    assert board.context["graph"] is None, "there is no curve of a judge that plays no game"


@pytest.mark.parametrize("votes", [1, 2])
def test_at_one_or_two_votes_no_elo_is_more_or_less_by_nothing(votes):
    run = voted_on(*[["A", "B"]] * votes, baselines=())
    compute(run)
    lows = [low for [low] in listed(run, "elo_other_orders_low")]
    assert lows == ([None, None] if votes == 1 else [pytest.approx(e) for [e] in elos(run)])
    board = text_of(user_client().get(f"/runs/{run.pk}/"))
    assert "±" not in board.split("Methods")[0]
    assert ("the same in other orders" in board) == (votes == 2)


def elos(run):
    return listed(run, "elo_exact")


def test_it_is_said_as_of_which_vote_overall_agreement_is():
    run = make_studied_run(people=1)
    compute(run)
    known = results_of(run)
    first = known["leaderboard"][0]
    assert first["overall_low"] <= first["overall_agreement"] <= first["overall_high"]
    assert 0 < first["elo_other_orders_low"] < first["elo_other_orders_high"]
    vote_all(run, 1, places=[0, 1])
    answer = results_of(run)
    assert overall_of(answer) == overall_of(known)
    assert answer["votes"] == answer["overall_as_of"]["votes"] + 2
    assert answer["overall_as_of"]["newer"] == 2


def test_findings_of_before_the_first_vote_do_not_hide_it():
    run = make_studied_run(people=0)
    compute(run)
    vote_all(run, 1)
    answer = results_of(run)
    assert overall_of(answer)["good"] == 90.0
    assert answer["overall_as_of"]["computed"] is False


def test_equal_ratings_share_a_rank():
    rows = results_of(make_run(judges=3))["leaderboard"]
    assert [row["rank"] for row in rows] == [1, 1, 1]


def test_intervals_of_several_votes_on_a_pair_are_those_of_the_findings():
    run = make_studied_run(people=2)
    assert set(intervals_of(results_of(run))) == {(None, None)}
    found = compute(run).data["judges"]
    answer = results_of(run)
    for row in answer["leaderboard"]:
        [share] = [judge["agreement"] for judge in found if judge["id"] == row["judge_id"]]
        assert share["method"] == "prompts"
        assert row["agree_low"] == pytest.approx(100 * share["low"], abs=1e-9)
        assert row["agree_high"] == pytest.approx(100 * share["high"], abs=1e-9)
        assert row["agree_low"] <= row["agree_rate"] <= row["agree_high"]


def test_an_interval_is_never_of_other_votes_than_its_agreement():
    run = make_studied_run(people=2)
    compute(run)
    vote_all(run, 1, places=[0, 1])
    assert set(intervals_of(results_of(run))) == {(None, None)}


def test_with_one_vote_for_each_pair_there_is_an_interval_at_once():
    run = make_studied_run(people=1)
    before = intervals_of(results_of(run))
    compute(run)
    assert None not in before[0]
    assert intervals_of(results_of(run)) == [pytest.approx(bounds) for bounds in before]


def test_ranks_and_letters_are_those_of_claims():
    run = make_run(pairs=8, says=[["A", "B", "B"]] * 8, baselines=["judge-2"])
    voter = make_voter(run)
    for item in pairs_of(run):
        make_vote(voter, item, "A")
    seal_all(run.queue.project)
    names = ("rank_low", "rank_high", "ties", "beats_floor")
    unknown = [[row[name] for name in names] for row in results_of(run)["leaderboard"]]
    assert unknown == [[None] * 4] * 3, "nothing is claimed before it was computed"
    compute(run)
    assert [[row[name] for name in names] for row in results_of(run)["leaderboard"]] == [
        [1, 1, "a", True],
        [2, 2, "b", False],
        [None, None, "", None],
    ]
