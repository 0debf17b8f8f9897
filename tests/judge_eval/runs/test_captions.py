"""The question of a run and what its judges are, in one line: wherever they come in and out."""

import json

import pytest
from django.urls import reverse

from judge_eval.exports.export import export_run
from judge_eval.exports.rows import run_csv, run_rows
from judge_eval.judging.config.run_config import ConfigInvalid, parse
from judge_eval.models import Judge, Run
from judge_eval.runs import lifecycle
from judge_eval.runs.forms import form_values
from reports.report.files import card_svg
from reports.report.make import report_of
from tests.helpers.bundles import empty_the_instance, restored
from tests.helpers.imports import (
    added,
    assert_whole,
    import_run,
    imported,
    pair,
    rows,
    verdict,
    vote,
)
from tests.helpers.run_findings import compute
from tests.makers import key_client, make_key, make_project, seal_all, user_client

pytestmark = pytest.mark.django_db
QUESTION, KEYWORDS = "Did the model refuse?", "a list of keywords"
CONFIG = {
    "name": "R",
    "question": QUESTION,
    "kind": "text",
    "models": ["m", "n"],
    "judges": [{"id": "strict", "description": KEYWORDS}, "random"],
    "prompts": ["a"],
}
RECORDS = (
    pair(1, run_question=QUESTION),
    pair(2),
    verdict(1, "keywords", "A", judge_description=KEYWORDS),
    verdict(2, "keywords", "B"),
    vote(1, "ann", "A"),
    vote(2, "ann", "A"),
)


def captions(run):
    described = run.judges.exclude(description="").values_list("name", "description")
    return Run.objects.get(pk=run.pk).question, dict(described)


@pytest.fixture
def run():
    run = imported(*RECORDS, baselines=False)
    seal_all(run.queue.project)
    return run


def test_a_config_brings_them_and_a_description_makes_no_other_judge():
    run = lifecycle.create(make_project(), parse(CONFIG))
    assert captions(run) == (QUESTION, {"strict": KEYWORDS})
    without = {**CONFIG, "judges": ["strict", "random"]}
    other = lifecycle.create(make_project(), parse(without))
    assert len({*Judge.objects.filter(name="strict").values_list("fingerprint", flat=True)}) == 1
    assert captions(other)[1] == {}
    assert lifecycle.copied_config(run).question == QUESTION


def test_the_form_says_both(admin_user):
    values = form_values(parse(CONFIG), admin_user)
    assert values["question"] == QUESTION
    assert values["judges"] == f"strict: {KEYWORDS}"


@pytest.mark.parametrize("bad", ["x" * 201, "two\nlines"])
def test_they_are_one_line(bad):
    for changes in ({"question": bad}, {"judges": [{"id": "j", "description": bad}]}):
        with pytest.raises(ConfigInvalid):
            parse(CONFIG | changes)


def test_columns_and_options_of_an_import_bring_them(run):
    assert captions(run) == (QUESTION, {"keywords": KEYWORDS})
    records = [
        {k: v for k, v in it.items() if k not in ("run_question", "judge_description")}
        for it in RECORDS
    ]
    options = {"question": QUESTION, "descriptions": {"keywords": KEYWORDS}}
    other = imported(*records, name="Other", **options)
    assert captions(other) == (QUESTION, {"keywords": KEYWORDS})
    assert_whole(other.queue.project)


def test_what_contradicts_is_an_error():
    records = (pair(1, run_question="A?"), pair(2, run_question="B?"), vote(1, "ann", "A"))
    report = import_run(make_project(), "R", rows(*records))
    assert [(e.row, e.field, e.why) for e in report.errors] == [
        (2, "run_question", "'B?', but 'A?' on another row")
    ]


def test_a_later_import_says_what_was_not_said(run):
    Run.objects.update(question="")
    other = imported(pair(1), vote(1, "ann", "A"), name="Other")
    seal_all(other.queue.project)
    added(other, pair(1), question=QUESTION)
    seal_all(other.queue.project)
    assert captions(other)[0] == QUESTION
    assert_whole(other.queue.project)


def test_rows_carry_them_once_and_come_in_again(run):
    lines = [json.loads(line) for line in run_rows(run)]
    assert [it["run_question"] for it in lines if "run_question" in it] == [QUESTION]
    assert [it["judge_description"] for it in lines if "judge_description" in it] == [KEYWORDS]
    assert "run_question" in next(run_csv(run))
    back = imported(*lines, name="Back", baselines=False)
    assert captions(back) == captions(run)


def test_a_table_of_a_run_without_them_has_no_column():
    run = imported(pair(1), vote(1, "ann", "A"))
    assert "run_question" not in next(run_csv(run))


def test_a_bundle_carries_them_under_the_same_head(run):
    lines = list(export_run(run))
    head = run.queue.project.ledger_head
    empty_the_instance()
    restored(lines)
    back = Run.objects.get()
    assert captions(back) == (QUESTION, {"keywords": KEYWORDS})
    assert back.queue.project.ledger_head == head


def test_pages_report_and_card_show_them(run):
    compute(run)
    client = user_client()
    board = client.get(reverse("run", args=[run.pk])).content.decode()
    assert QUESTION in board
    assert KEYWORDS in board
    assert QUESTION in client.get(reverse("home")).content.decode()
    report = report_of(run.queue.project, run)
    assert report.runs[0].question == QUESTION
    assert report.runs[0].findings.judges[0].description == KEYWORDS
    assert QUESTION in card_svg(report)


def test_rest_tells_them(run):
    _, token = make_key("read", project=run.queue.project)
    said = key_client(token).get(f"/api/runs/{run.pk}").json()
    assert said["question"] == QUESTION
    assert said["judges"][0]["description"] == KEYWORDS
