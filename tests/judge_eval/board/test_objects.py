"""Whoever changes a run, a judge, an item or a verdict writes it into the ledger too."""

import pytest
from django.contrib.auth.models import User

from judge_eval.exports.export import export_run
from judge_eval.judging.baselines import names_for
from judge_eval.models import Judge, Run
from tests.helpers.bundles import empty_the_instance, restored
from tests.helpers.imports import assert_whole
from tests.judge_eval.judging.test_judging import make_new_run, work_on
from tests.makers import make_project, make_rubric, pairs_of, restate, seal_all, user_client
from voting.access.changes import rename
from voting.ledger import ledger
from voting.models import Entry, Inference, Project

pytestmark = pytest.mark.django_db

# Entries about the run and its judges, which are baselines.
FIRST = 1 + len(names_for("text"))


@pytest.fixture
def run():
    run = make_new_run()
    work_on(run)
    seal_all(run.queue.project)
    assert_whole(run.queue.project)
    return run


def objects_of(run):
    sealed = Entry.objects.filter(queue=run.queue_id, kind="object").order_by("pk")
    return [entry.payload["type"] for entry in sealed]


def test_a_run_and_its_judges_are_in_the_ledger_before_its_items(run):
    kinds = Entry.objects.filter(queue=run.queue_id).order_by("seq").values_list("kind", flat=True)
    assert list(kinds) == ["object"] * FIRST + ["verdicts"] * 3
    assert objects_of(run) == ["run"] + ["judge"] * (FIRST - 1)


def test_no_text_and_no_name_is_in_an_entry(run):
    said = "".join(ledger.export(run.queue.project))
    texts = [output.output for output in Inference.objects.all()]
    for text in (run.name, "longer-wins", "Question 0", "Which is better?", *texts):
        assert f'"{text}"' not in said
    assert run.salt not in said
    assert run.private_salt not in said


def test_a_project_that_is_renamed_is_a_new_entry_about_each_of_its_runs(run):
    rename(run.queue.project, "Another name", User.objects.create(username="owner"))
    seal_all(run.queue.project)
    assert objects_of(run)[FIRST:] == ["run"]
    assert_whole(run.queue.project)
    Project.objects.update(name="A third one")
    assert ledger.replay(run.queue.project, write=False)


def test_what_is_changed_in_the_admin_is_a_new_entry(run):
    client = user_client()
    User.objects.update(is_staff=True)
    other = make_rubric(run.queue.project, "Which is shorter?")
    queue = {"name": "Q", "rubric": other.pk, "ballot": ["A", "B"], "reveal": "never"}
    for path, fields in {
        f"judge_eval/run/{run.pk}": {"name": "Renamed"},
        f"voting/queue/{run.queue_id}": queue,
    }.items():
        assert client.post(f"/admin/{path}/change/", fields).status_code == 302, path
    seal_all(run.queue.project)
    assert Run.objects.get(pk=run.pk).name == "Renamed"
    assert objects_of(run)[FIRST:] == ["run", "run"]
    assert_whole(run.queue.project)


def test_a_bundle_brings_what_is_covered_into_a_project_of_another_name(run):
    recipe = {"type": "jury", "version": "1", "parts": [{"id": "m"}], "options": {"rounds": 2}}
    Judge.objects.filter(run=run, position=1).update(recipe=recipe)
    restate(run)
    lines = list(export_run(run))
    empty_the_instance()
    [back] = restored(lines, make_project("Another name"))
    assert_whole(back.queue.project)
    assert Judge.objects.get(run=back, position=1).recipe == recipe
    Judge.objects.filter(run=back, position=0).update(name="somebody else")
    [found] = ledger.replay(back.queue.project, write=False)
    assert str(found) == "judge somebody else: not as the last ledger entry about it has it"


def test_salts_of_runs_differ_and_go_with_their_runs(run):
    other = make_new_run()
    salts = {run.salt, run.private_salt, other.salt, other.private_salt}
    assert len(salts) == 4
    assert len(pairs_of(other)) == 3
