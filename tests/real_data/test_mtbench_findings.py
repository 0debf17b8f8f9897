"""MT-bench imported and computed as a worker does: the pages say what the metrics say."""

import pytest
from django.utils import timezone

from judge_eval.findings import cache
from judge_eval.findings.load import labels_of
from judge_eval.findings.model import WINNER
from judge_eval.models import Findings
from judge_eval.stats import AltTestScorer, MetricConfig, score
from tests.helpers.imports import import_run, run_of
from tests.makers import make_project
from tests.real_data.test_imports import DATA, MTBENCH, items_of

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.django_db,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not DATA.exists(), reason="not run: no ../shared/data"),
]


# By generator: items with both, rate by the judge and by people, how far apart, to the last digit.
PUBLISHED = {
    "alpaca-13b": (582, 0.2388, 0.2938, -0.0550, 0.0304),
    "claude-v1": (594, 0.7146, 0.6776, 0.0370, 0.0410),
    "gpt-3.5-turbo": (678, 0.6158, 0.6431, -0.0273, 0.0296),
    "gpt-4": (578, 0.8521, 0.7249, 0.1272, 0.0379),
    "llama-13b": (611, 0.1154, 0.1776, -0.0622, 0.0271),
    "vicuna-13b-v1.2": (585, 0.4615, 0.4735, -0.0120, 0.0352),
}


def test_the_pages_of_mtbench_say_what_its_score_files_say():
    run = run_of(import_run(make_project(), "MT-bench", items_of(*MTBENCH)))
    Findings.objects.get_or_create(run=run, part="")
    Findings.objects.filter(run=run).update(not_before=timezone.now())
    assert cache.compute(run.pk, "")
    data = Findings.objects.get(run=run, part="").data
    shown = next(judge for judge in data["alt_test"]["judges"] if not judge["is_baseline"])

    labels = labels_of(run)
    config = MetricConfig(AltTestScorer(), [WINNER], display_name="alt")
    said = {shown["id"]: labels.judges[shown["id"]]}
    [filed] = score([config], said, labels.humans)["alt"]
    assert shown["winning_rates"] == filed.scores["winning_rate"]
    assert shown["passes"] is filed.metadata["passes"] is False
    assert shown["advantage"] == filed.scores["advantage_probability"]
    assert (shown["tested"], shown["items"]) == (49, 949)
    assert round(shown["winning_rates"]["0.20"], 3) == 0.388
    assert data["alt_test"]["humans"] == 65

    judge = next(judge for judge in data["judges"] if judge["id"] == shown["id"])
    percents = [
        round(100 * share["value"], 1)
        for share in (
            data["among_people"]["pairs"],
            judge["agreement"],
            data["among_people"]["votes"],
            judge["beside_people"],
        )
    ]
    assert percents == [65.5, 66.2, 66.5, 66.0]
    words = "it agrees with people on 66 %, as people do among themselves (66 %)"
    assert words in data["words"]

    found = {of["name"]: of for of in data["generators"]}
    assert {name: published(of) for name, of in found.items()} == PUBLISHED
    of_judge = {name: of["judges"][0] for name, of in found.items()}
    assert {name for name, by in of_judge.items() if by["is_own_family"]} == {
        "gpt-4",
        "gpt-3.5-turbo",
    }
    # The judge has verdicts on 586 comparisons that nobody voted on.
    assert sum(by["rates"]["unvoted"] for by in of_judge.values()) == 2 * 586
    savings = [round(100 * by["rates"]["saving"], 1) for by in of_judge.values()]
    assert savings == [15.7, 9.4, 8.1, 3.3, 3.3, 11.9]


def published(of):
    rates = of["judges"][0]["rates"]
    error = rates["error"]
    reach = (error["high"] - error["low"]) / 2
    by_judge = of["people"]["value"] + error["value"]
    figures = (by_judge, of["people"]["value"], error["value"], reach)
    return (error["n"], *(round(figure, 4) for figure in figures))
