"""The recorded ELO cases of the PathScore judge evaluation."""

import json
from pathlib import Path

import pytest

from judge_eval.elo import Standings, agree_rate

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "pathscore_judge_elo.json"
# Its expected ratings follow the order in which the verdicts arrived. Here the run's order of
# judges decides, so the same facts must rate as in the case they were taken from.
OVERRULED = {"verdict_order_matters": "one_task_1v2_inplace"}

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not CASES.exists(), reason="not run: no ../shared/cases"),
]


def cases():
    return json.loads(CASES.read_text(encoding="utf-8")) if CASES.exists() else {}


def standings_of(case):
    standings = Standings()
    standings.grow(len(case["judges"]))
    for task in case["tasks"]:
        if task["status"] != "complete":
            continue
        said = {verdict["judge_model"]: verdict["winner"] for verdict in task["verdicts"]}
        standings.count(task["human_winner"], [said.get(judge) for judge in case["judges"]])
    return standings


@pytest.mark.parametrize("name", cases())
def test_ratings_and_counts_are_as_recorded(name):
    every = cases()
    case, expected = every[name], every[OVERRULED.get(name, name)]["output"]
    standings = standings_of(case)
    rated = dict(zip(case["judges"], standings.elo, strict=True))
    assert rated == {
        judge: pytest.approx(elo, abs=1e-9) for judge, elo in expected["raw"].items()
    }
    counted = {
        judge: (agree, disagree, agree_rate(agree, disagree))
        for judge, agree, disagree in zip(
            case["judges"], standings.agree, standings.disagree, strict=True
        )
    }
    assert counted == {
        row["judge"]: (row["agree"], row["disagree"], row["agree_rate"])
        for row in expected["leaderboard"]
    }


@pytest.mark.parametrize("name", cases())
def test_the_board_is_in_the_recorded_order(name):
    every = cases()
    case, expected = every[name], every[OVERRULED.get(name, name)]["output"]
    standings = standings_of(case)
    order = sorted(range(len(case["judges"])), key=lambda judge: -standings.elo[judge])
    board = [(case["judges"][judge], round(standings.elo[judge])) for judge in order]
    assert board == [(row["judge"], row["elo"]) for row in expected["leaderboard"]]


def test_the_case_of_another_verdict_order_is_overruled():
    """It holds the same facts in another order of verdicts, and swaps two judges for it."""
    every = cases()
    recorded = every["verdict_order_matters"]["output"]["raw"]
    assert recorded["J2"] > recorded["J3"]
    standings = standings_of(every["verdict_order_matters"])
    assert standings.elo[1] < standings.elo[2]
