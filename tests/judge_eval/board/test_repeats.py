"""Judges that are asked the same again say whether they agree with themselves, and nothing else."""

import json

import pytest
from django.urls import reverse

from judge_eval.board.views.findings import TABLES
from judge_eval.exports.files import FORMATS
from judge_eval.judging.verdicts import settle
from judge_eval.models import REPEATED, REPEATS_APART, Call, Judge, JudgeRating, Run, Verdict
from reports.report.make import report_of
from tests.helpers.run_findings import compute, voted_run
from tests.helpers.run_rows import make_calls, make_config
from tests.makers import key_client, make_key, restate, user_client
from voting.models import Entry

pytestmark = pytest.mark.django_db
# Of the moment; and whoever reads figures is one more who might vote.
LEFT_OUT = {"flips", "made_at", "computed_at", "head", "seq", "ledger_seq", "population"}
WHOLE = ("jsonl", "ledger")


@pytest.fixture
def run():
    """A run of which a judge was asked in both orders on items that people voted on."""
    run = voted_run(pairs=30, computed=False)
    judge = Judge.objects.get(run=run, name="near-judge")
    Judge.objects.filter(pk=judge.pk).update(provider="default", model="near")
    config = make_config(judges=[{"id": "near-judge", "provider": "default", "repeats": 3}])
    Run.objects.filter(pk=run.pk).update(config=config.as_dict())
    Verdict.objects.filter(judge__run=run, judge=judge).update(order="both", consistent=True)
    make_calls(run, cost_nano=1_000)
    Call.objects.filter(run=run).exclude(verdict__judge=judge).delete()
    for verdict in Verdict.objects.filter(judge=judge):
        verdict.calls.update(winner=verdict.winner)
    restate(run)
    return Run.objects.select_related("queue__project", "board").get(pk=run.pk)


def repeat(run):
    """Ask each question twice again: now it says this, then that, and it costs more."""
    again = []
    for place, call in enumerate(Call.objects.filter(run=run).order_by("pk")):
        for n in (1, 2):
            call.pk, call.sample, call.winner = None, n * REPEATS_APART, "AB"[(place + n) % 2]
            again.append(Call(**{f.attname: getattr(call, f.attname) for f in call._meta.fields}))
    Call.objects.bulk_create(again)
    settle(list(Verdict.objects.filter(judge__run=run).values_list("pk", flat=True)))
    restate(run)
    assert Call.objects.filter(REPEATED, run=run).count() == 120


def figures(run):
    """Whatever is computed of a run, by where it stands."""
    compute(run)
    client, run_pk = user_client(), run.pk
    key = key_client(make_key("read", "manage", "verdicts")[1])
    addresses = [reverse("run-table", args=[run_pk, name, "json"]) for name in TABLES]
    keyed = [f"/api/runs/{run_pk}/findings", f"/api/runs/{run_pk}/judge-eval/results"]
    keyed += [f"/api/projects/{run.queue.project_id}/quality"]
    exports = {form: list(FORMATS[form].pieces(run)) for form in FORMATS if form not in WHOLE}
    return {
        "elo": list(JudgeRating.objects.order_by("judge").values_list("judge", "elo", "agree")),
        "report": without(report_of(run.queue.project, run).model_dump(mode="json")),
        "project": without(report_of(run.queue.project, None).model_dump(mode="json")),
        "verdicts": list(Verdict.objects.order_by("pk").values()),
        "entries": list(Entry.objects.filter(kind="verdicts").values_list("payload", flat=True)),
        **{address: read(client.get(address)) for address in addresses},
        **{address: read(key.get(address)) for address in keyed},
        **exports,
    }


def read(answer):
    assert answer.status_code == 200
    text = answer.content.decode()
    return without(json.loads(text)) if "json" in answer["Content-Type"] else text


def without(found):
    """Leave out self-agreement, the point that names it, and the moment."""
    if isinstance(found, dict):
        own = {name for name in found if name.startswith("self_agreement")}
        return {name: without(found[name]) for name in found if name not in LEFT_OUT | own}
    if isinstance(found, list):
        return [without(each) for each in found if "Self-agreement" not in str(each)[:20]]
    return found


def test_no_figure_moves_by_a_digit_when_repeats_are_added(run):
    before = figures(run)
    repeat(run)
    after = figures(run)
    assert [name for name in before if before[name] != after[name]] == []
    [judge, *_] = compute(run).data["judges"]
    # Of each three answers two are alike.
    own = judge["self_agreement"]
    assert (own["comparisons"], own["value"]) == (30, pytest.approx(1 / 3))
