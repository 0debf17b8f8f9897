"""The recorded cases of the PathScore judge evaluation, voted on and sealed as in a real run."""

import json
from pathlib import Path

import pytest

from judge_eval.runs.queries import board
from judge_eval.stats.elo import Standings, split
from tests.makers import elos_of, make_run, make_vote, make_voter, pairs_of, seal_all

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "pathscore_judge_elo.json"
# Its expected ratings follow the order in which the verdicts arrived. Here the run's order of
# judges decides, so the same facts must rate as in the case they were taken from.
OVERRULED = {"verdict_order_matters": "one_task_1v2_inplace"}

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not CASES.exists(), reason="not run: no ../shared/cases"),
]


def cases():
    return json.loads(CASES.read_text(encoding="utf-8")) if CASES.exists() else {}


def facts_of(case):
    """Return what was chosen and what each judge said, in the run's order of judges."""
    for task in case["tasks"]:
        if task["status"] == "complete":
            said = {verdict["judge_model"]: verdict["winner"] for verdict in task["verdicts"]}
            yield task["human_winner"], [said.get(judge) for judge in case["judges"]]


@pytest.mark.parametrize("name", cases())
def test_ratings_are_as_recorded(name):
    every = cases()
    case, expected = every[name], every[OVERRULED.get(name, name)]["output"]["raw"]
    standings = Standings()
    standings.grow(len(case["judges"]))
    for choice, said in facts_of(case):
        standings.apply(*split(choice, said), judges=len(said))
    assert standings.elo == pytest.approx([expected[judge] for judge in case["judges"]], abs=1e-9)


@pytest.mark.django_db
@pytest.mark.parametrize("name", cases())
def test_the_board_of_a_run_with_these_votes_is_as_recorded(name):
    every = cases()
    case, expected = every[name], every[OVERRULED.get(name, name)]["output"]
    facts = list(facts_of(case))
    unvoted = [None] * len(case["judges"])
    run = make_run(says=[*(said for _, said in facts), unvoted], names=case["judges"])
    voter = make_voter(run)
    for item, (choice, _) in zip(pairs_of(run), facts, strict=False):
        make_vote(voter, item, choice)
    seal_all(run.queue.project)
    raw = [expected["raw"][judge] for judge in case["judges"]]
    assert elos_of(run) == pytest.approx(raw, abs=1e-9)
    assert {
        row.judge.name: {
            "judge": row.judge.name,
            "elo": round(row.elo),
            "agree": row.agree,
            "disagree": row.disagree,
            "total": row.total,
            "agree_rate": row.agree_rate,
        }
        for row in board(run).rows
    } == {row["judge"]: row for row in expected["leaderboard"]}


def test_the_case_of_another_verdict_order_is_overruled():
    """It holds the same facts in another order of verdicts, and swaps two judges for it."""
    every = cases()
    overruled, kept = every["verdict_order_matters"], every["one_task_1v2_inplace"]
    assert list(facts_of(overruled)) == list(facts_of(kept))
    assert overruled["output"]["raw"]["J2"] == kept["output"]["raw"]["J3"]
