"""What users of other tools brought: each file is read as its owner expects, or says why not."""

import json
from pathlib import Path

import pytest

from judge_eval.models import Judge, Verdict
from tests.helpers.run_findings import compute
from tests.makers import user_client
from tests.real_data.test_exchange_cases import imported
from voting.models import Entry

FIELD = Path(__file__).resolve().parents[3] / "shared" / "cases" / "field"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.django_db,
    pytest.mark.skipif(not FIELD.exists(), reason="not run: no ../shared/cases"),
]


@pytest.fixture
def mapped(tmp_path):
    """Import a file by a mapping."""

    def do(name, **config):
        path = tmp_path / "map.json"
        path.write_text(json.dumps(config))
        return imported(FIELD / name, mapping=path)

    return do


def votes_of(run):
    return Entry.objects.filter(queue=run.queue, kind=Entry.Kind.VOTE)


@pytest.mark.parametrize(
    "name, ends",
    [
        ("halves", ("1", "5")),
        ("likert7", ("1", "7")),
        ("score100", ("0", "100")),
        ("score100r", ("0", "100")),
    ],
)
def test_prism_numbers_of_people_are_ratings_on_the_scale_that_is_seen(name, ends):
    run, said = imported(FIELD / "02-prism" / f"nojudge-{name}.csv")
    assert run.queue.kind == "rating"
    assert (run.queue.ballot[0], run.queue.ballot[-1]) == ends
    assert f"ratings from {ends[0]} to {ends[1]}" in said
    assert compute(run).data["as_of"]["votes"] == votes_of(run).count()
    board = user_client().get(f"/runs/{run.pk}/")
    assert f"A rating from {ends[0]} to {ends[1]}" in board.content.decode()


def test_prism_utterances_are_mapped(mapped):
    about = {"item": "utterance_id", "prompt": "user_prompt", "output": "model_response"}
    about |= {"generator": "model_name", "voter": "user_id", "vote": "score"}
    run, _ = mapped("02-prism/utterances.jsonl", **about)
    assert (run.queue.kind, run.queue.ballot[-1]) == ("rating", "100")


def test_spellings_of_pass_and_flag_are_that():
    run, said = imported(FIELD / "13-spellings" / "labels.csv")
    assert run.queue.kind == "pass_flag"
    assert "Read as flag: fail" in said
    assert set(votes_of(run).values_list("choice", flat=True)) == {"pass", "flag"}
    verdicts = Verdict.objects.filter(judge__run=run, judge__provider=Judge.IMPORTED)
    assert not verdicts.filter(state="failed").exists()
