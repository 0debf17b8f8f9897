"""Every file of another tool becomes a run, and so does a whole project of MetaEvaluator."""

from pathlib import Path

import pytest
from django.core.management import call_command

from judge_eval.models import Import, Run, Verdict
from tests.helpers.imports import assert_whole, votes_of
from tests.helpers.run_findings import compute
from tests.makers import seal_all, user_client
from voting.models import Item

pytestmark = pytest.mark.django_db
FILES = Path(__file__).parents[2] / "data" / "exchange"
# Scores that say nothing of the outputs that they are about come with the traces.
ALONE = sorted(path for path in FILES.iterdir() if path.is_file())


def imported(*paths, **options):
    call_command("import_run", *map(str, paths), project="Field", **options)
    job = Import.objects.latest("requested_at")
    assert job.state == "done", job.report
    assert job.report["errors"] == []
    return Run.objects.get(pk=job.run_id)


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.name)
def test_a_file_of_the_field_becomes_a_run(path):
    run = imported(path)
    assert Item.objects.filter(queue=run.queue).exists()
    assert_whole(run.queue.project)


def test_scores_find_their_traces():
    run = imported(FILES / "langfuse_scores.csv", FILES / "langfuse_traces.json")
    assert Item.objects.filter(queue=run.queue).count() == 2
    [vote] = votes_of(run)
    assert (vote.item.a.output, vote.choice) == ("In Italy.", "pass")


def test_a_project_of_metaevaluator_is_one_import_and_its_gaps_keep_the_rest():
    run = imported(*sorted((FILES / "metaevaluator").iterdir()))
    assert Item.objects.filter(queue=run.queue).count() == 3
    assert {"haiku", "judge_own", "nano"} <= {*run.judges.values_list("name", flat=True)}
    votes = votes_of(run)
    assert {vote.voter.external_id for vote in votes} == {"person_1", "person_2", "annotator_3"}
    gap = next(vote for vote in votes if vote.item.external_id == "s3")
    assert (gap.choice, gap.labels) == ("", {"explanation": "I do not know."})
    partial = Verdict.objects.get(judge__name="haiku", item__external_id="s2")
    assert (partial.state, partial.labels) == ("failed", {"explanation": "Unclear."})
    assert "no answer to 'rejection'" in partial.error
    assert run.queue.kind == "category"
    assert_whole(run.queue.project)
    seal_all(run.queue.project)
    # The two votes without an answer to what is asked are kept, and no figure counts them.
    assert (len(votes), compute(run).data["as_of"]["votes"]) == (7, 5)
    client = user_client()
    for page in ("", "alt-test/", "people/", "pairs/"):
        assert client.get(f"/runs/{run.pk}/{page}").status_code == 200


@pytest.mark.parametrize("name", ["helpsteer2.jsonl", "kto.jsonl", "labelstudio_pairwise.json"])
def test_whom_a_reader_names_is_somebody_else_in_another_run(name):
    runs = [imported(FILES / name, name=each) for each in ("One", "Two")]
    first, second = ({vote.voter.external_id for vote in votes_of(run)} for run in runs)
    made_up = {who for who in first if who.endswith(f"({runs[0].pk.hex[:8]})")}
    assert made_up
    assert not made_up & second
    # In the same run they are the same.
    call_command("import_run", str(FILES / name), run=str(runs[0].pk))
    assert {vote.voter.external_id for vote in votes_of(runs[0])} == first
