"""The recorded composites and figures of votes, by those of this project."""

import json
from pathlib import Path

import pytest

from reports.composite.compute import composite_of_item
from reports.grandjury import analysis

NUMBERS = Path(__file__).resolve().parents[4] / "shared" / "cases" / "seed_numbers.json"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not NUMBERS.exists(), reason="not run: no ../shared/cases"),
]


def test_composites_are_as_recorded():
    cases = json.loads(NUMBERS.read_text(encoding="utf-8"))["composite"]
    assert len(cases) >= 5
    for case in cases:
        found = composite_of_item(case["scores"], case["weights"], case["gates"])
        value, reason = case["out"]
        assert (found.value, found.reason) == (pytest.approx(value, abs=1e-9), reason)


def test_figures_of_votes_are_as_recorded():
    case = json.loads(NUMBERS.read_text(encoding="utf-8"))["grandjury_server_recorded"]
    votes, voters, items = case["data"], case["voter_list"], [1, 2, 3, 4]
    found = {
        "histogram(duration_minutes=120,gross=true)": analysis.histogram(votes, 120),
        "completeness(inference_ids=[1,2,3,4],gross=false)": analysis.completeness(
            votes, voters, items
        ),
        "completeness(gross=true)": analysis.completeness(votes, voters, gross=True),
        "population-confidence(inference_ids=[1,2,3,4])": analysis.population_confidence(
            votes, voters, items
        ),
        "population-confidence()": analysis.population_confidence(votes, voters),
        "majority-good(true,0.5)": analysis.majority_good(votes),
        "majority-good(true,0.3)": analysis.majority_good(votes, threshold=0.3),
        "votes-distribution()": analysis.votes_distribution(votes),
        "votes-distribution(inference_ids=[1])": analysis.votes_distribution(votes, [1]),
    }
    assert {name: case[name] for name in found} == found
