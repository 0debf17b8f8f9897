"""What users of other tools brought: each file is read as its owner expects, or says why not."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from judge_eval.models import Judge, Verdict
from tests.helpers.run_findings import compute
from tests.judge_eval.imports.test_exchange_cases import imported
from tests.makers import user_client
from voting.models import Entry, Voter

FIELD = Path(__file__).resolve().parents[4] / "shared" / "cases" / "field"

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


def test_traces_of_mlflow_bring_people_and_judges():
    run, _ = imported(FIELD / "03-mlflow" / "traces.json")
    people = set(votes_of(run).values_list("voter__external_id", flat=True))
    assert people == {"ann@example.org", "bob@example.org"}
    assert (run.queue.items.count(), votes_of(run).count()) == (6, 12)
    judges = Judge.objects.filter(run=run, provider=Judge.IMPORTED)
    assert [judge.name for judge in judges] == ["openai:/judge-small"]


@pytest.mark.parametrize(
    "name, prompt",
    [
        ("06-braintrust/experiment.jsonl", "input.question"),
        ("10-ragas/result.csv", "user_input"),
        ("02-prism/utterances.jsonl", "user_prompt"),
        ("37-page-proposes/fresh.jsonl", "inputs.query"),
    ],
)
def test_records_of_other_tools_are_refused_with_a_mapping(name, prompt):
    lines = StringIO()
    with pytest.raises(CommandError, match="nothing was imported"):
        call_command("import_run", str(FIELD / name), project="Cases", stdout=lines, stderr=lines)
    assert f'"prompt": "{prompt}"' in lines.getvalue()


def test_what_a_person_accepted_of_a_ragas_metric_is_their_vote():
    run, _ = imported(FIELD / "10-ragas/annotated.json")
    votes = list(votes_of(run).order_by("item__position").values_list("choice", flat=True))
    assert votes == ["flag", "flag", "pass", "flag", "pass", "pass"]
    assert [judge.name for judge in run.judges.exclude(provider="baseline")] == ["aspect critic"]


def test_a_braintrust_experiment_is_read_by_what_was_proposed(mapped):
    run, _ = mapped(
        "06-braintrust/experiment.jsonl",
        item="id",
        prompt="input.question",
        output="output",
        voter={"value": "reviewer"},
        vote='scores."Human review"',
        judges={"Factuality": {"column": "scores.Factuality", "threshold": 1}},
    )
    assert votes_of(run).count() == 6
    assert not run.queue.items.filter(a__prompt="").exists()


def test_own_rows_come_back_with_one_judge_and_the_same_people():
    rows = [FIELD / "31-merge" / f"rows{name}.jsonl" for name in "AB"]
    run, said = imported(*rows)
    names = list(run.judges.values_list("name", flat=True))
    assert len(names) == len({*names})
    assert [judge.name for judge in run.judges.filter(provider=Judge.IMPORTED)] == ["j1"]
    assert "always-first is a baseline" in said
    people = {vote.voter for vote in votes_of(run)}
    assert len(people) == 2
    # Where these people are, their pseudonyms are theirs.
    for number, voter in enumerate(people):
        Voter.objects.filter(pk=voter.pk).update(
            pseudonym=voter.external_id, external_id=f"p{number}"
        )
    again, _ = imported(*rows)
    assert {vote.voter_id for vote in votes_of(again)} == {voter.pk for voter in people}


def test_a_study_grows_and_what_contradicts_it_is_refused():
    folder = FIELD / "30-grow"
    run, _ = imported(folder / "first.csv")
    grown, said = imported(folder / "more.csv", run=str(run.pk))
    assert grown == run
    assert "pairs: 4 new" in said
    for name in ("fixed.csv", "rejudged.csv"):
        with pytest.raises(CommandError, match="nothing was imported"):
            imported(folder / name, run=str(run.pk))


def test_rare_flags_are_read_with_their_judges():
    run, _ = imported(FIELD / "12-imbalanced" / "labels.csv")
    figures = {judge["name"]: judge for judge in compute(run).data["judges"]}
    assert {"nods", "strict", "catcher"} <= figures.keys()
    assert votes_of(run).filter(choice="flag").count() == 20


def test_judges_without_orders_stand_beside_the_floor():
    run, _ = imported(FIELD / "36-coin-floor" / "votes.csv")
    names = run.judges.filter(provider=Judge.IMPORTED).values_list("name", flat=True)
    assert set(names) == {"coin", "always-left-copy", "shorter"}
