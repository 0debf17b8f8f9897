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
