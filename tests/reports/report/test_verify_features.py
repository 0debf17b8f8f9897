"""A bundle of a project with every feature at once verifies: nobody is accused falsely."""

import json

import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.utils import timezone

from judge_eval.board.model import RunFindings
from judge_eval.models import (
    REPEATS_APART,
    Call,
    DisagreementTag,
    Findings,
    Judge,
    Run,
    Verdict,
)
from judge_eval.runs import lifecycle
from judge_eval.workshop import services
from reports.composite import sources
from reports.models import Share
from reports.report.bundle import NotVerified, verify
from tests.helpers.bundles import empty_the_instance
from tests.helpers.run_findings import compute, voted_run
from tests.helpers.run_rows import make_calls, make_config
from tests.makers import (
    change_verdicts,
    make_inference,
    make_item,
    make_judges,
    make_many_entries,
    make_picture,
    make_single_run,
    make_verdict,
    make_vote,
    make_voter,
    pairs_of,
    restate,
    seal_all,
)
from tests.reports.report.test_forged_bundles import changed_and_not_found, rows_not_covered
from tests.reports.report.test_verify import bundle_behind, link_of, members_of, zipped
from voting.ballot.services import flag, undo_last_vote
from voting.ledger import ledger
from voting.models import Flag, Inference, Item, Project
from voting.people.voters import erase, put_into_group

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made_once(module_db):
    cache.clear()
    run = voted_run(pairs=30)
    project = run.queue.project
    people_and_what_they_said(run)
    outputs_of_each_kind(run)
    judges_that_repeat_themselves(run)
    claims_that_hold_no_longer(run)
    judges_that_were_tuned(project)
    what_no_entry_is_about(run)
    single_items(run)
    composite = {
        "weights": {"near": {"weight": 1, "reason": "It knows best."}},
        "sources": {"near": {"from": "judge_wins", "judge": "near-judge"}},
    }
    sources.store(run, sources.read_config(run, composite))
    Project.objects.filter(pk=project.pk).update(
        model_families={"generator-0": "house", "near": "house"}
    )
    seal_all(project)
    for each in Run.objects.exclude(state="draft"):
        compute(each)
    assert ledger.replay(project, write=False) == []
    return Run.objects.select_related("queue__project").get(pk=run.pk)


def people_and_what_they_said(run):
    """Groups, answers to further tasks, a person who was erased, a flag, a vote taken back."""
    voters, rows = [make_voter(run) for _ in range(5)], []
    for place, voter in enumerate(voters):
        put_into_group(voter, ("day", "night")[place % 2], voter)
        for n, item in enumerate(pairs_of(run)):
            said = {"why": "It is right.", "tone": ("warm", "cold")[(place * n) % 5 == 1]}
            row = {"voter": voter, "item": item, "choice": "A", "left_side": "A", "labels": said}
            rows.append(row | {"rubric": run.queue.rubric} | ledger.hidden("", said))
    make_many_entries(run, "vote", rows)
    seal_all(run.queue.project)
    undo_last_vote(voters[0], run.queue)
    flag(voters[1], pairs_of(run)[2].pk, Flag.Category.UNSAFE, "It is not safe.")
    erase(voters[4])
    Verdict.objects.filter(judge__run=run).update(labels={"tone": "warm"})
    restate(run)


def outputs_of_each_kind(run):
    """Tags, drawings, and a conversation; tags of disagreements."""
    Inference.objects.filter(prompt="Question 1").update(tags=["hard"])
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    Inference.objects.filter(prompt="Question 2").update(prompt=json.dumps(turns))
    make_picture(inferences=pairs_of(run)[3].pair)
    verdict = Verdict.objects.filter(judge__run=run).first()
    DisagreementTag.objects.create(verdict=verdict, tag="both_fine", rubric=run.queue.rubric)


def judges_that_repeat_themselves(run):
    """Asked the same again, and watched for drift."""
    judge = Judge.objects.get(run=run, name="near-judge")
    Judge.objects.filter(pk=judge.pk).update(provider="default", model="near")
    config = make_config(judges=[{"id": "near-judge", "provider": "default", "repeats": 2}])
    Run.objects.filter(pk=run.pk).update(config=config.as_dict(), anchors_a_day=4)
    run.refresh_from_db()
    make_calls(run, cost_nano=1_000)
    Call.objects.exclude(verdict__judge=judge).delete()
    Call.objects.update(state="done", winner="A")
    for place, call in enumerate(list(Call.objects.filter(run=run))):
        fields = {f.attname: getattr(call, f.attname) for f in call._meta.fields}
        again = {"id": None, "sample": REPEATS_APART, "winner": "AB"[place % 2]}
        Call.objects.create(**fields | again)
    restate(run)
    compute(run)


def claims_that_hold_no_longer(run):
    for item in pairs_of(run):
        change_verdicts(item, ["B", "B", "A"])
    restate(run)
    compute(run)


def single_items(run):
    other = make_single_run([["pass", "flag"]] * 6, project=run.queue.project)
    voter = make_voter(other)
    for place, item in enumerate(pairs_of(other)):
        make_vote(voter, item, ("pass", "flag")[place % 2])
    restate(other)


def judges_that_were_tuned(project):
    """Another run, whose judge joined while one half was held out; it is archived since."""
    run = voted_run(pairs=12, project=project)
    services.open_for_tuning(run)
    [judge] = make_judges(run, ["variant"], first=3, baselines=())
    Judge.objects.filter(pk=judge.pk).update(is_tuned=True)
    judge.refresh_from_db()
    Verdict.objects.bulk_create(make_verdict(judge, item, "A") for item in pairs_of(run))
    restate(run)
    services.end(run)
    Run.objects.filter(pk=run.pk).update(archived_at=timezone.now())


def what_no_entry_is_about(run):
    """A draft, and an item that is not open, on which one judge has answered already."""
    lifecycle.create(run.queue.project, make_config())
    other = make_inference(run.queue.project, "Another")
    closed = make_item(run.queue, make_inference(run.queue.project), b=other, is_open=False)
    judges = list(run.judges.order_by("position"))
    make_verdict(judges[0], closed, "A").save()
    Verdict.objects.create(judge=judges[1], item=closed)


@pytest.fixture
def study(made_once):
    cache.clear()
    return Run.objects.select_related("queue__project").get(pk=made_once.pk)


def test_the_scene_has_every_feature(study):
    findings = RunFindings.read(Findings.objects.get(run=study, part="").data)
    assert findings.claims.withdrawn
    assert findings.judges[0].self_agreement.value is not None
    assert findings.judges[0].flips
    assert [group.name for group in findings.groups] == ["day", "night", ""]
    assert findings.further_alt_tests
    assert Judge.objects.filter(is_tuned=True).exists()
    assert Item.objects.filter(opened_at=None).exists()
    assert {test.is_own_family for of in findings.generators for test in of.judges} != {None}


@pytest.mark.thorough
def test_any_value_of_it_that_is_changed_is_found_or_listed(study, tmp_path):
    path, head = tmp_path / "bundle.zip", study.queue.project.ledger_head
    members = members_of(bundle_behind(link_of(study)))
    not_found = changed_and_not_found(path, members, head)
    assert not_found <= rows_not_covered(not_found)


def test_a_reason_that_no_claim_ever_has_is_found(study, tmp_path):
    path, head = tmp_path / "bundle.zip", study.queue.project.ledger_head
    members = members_of(bundle_behind(link_of(study)))
    text = members["report.json"].decode()
    [gone, *_] = json.loads(text)["runs"][0]["findings"]["claims"]["withdrawn"]
    members["report.json"] = text.replace(gone["why"], "NIST found fraud").encode()
    zipped(members, path)
    empty_the_instance()
    with pytest.raises(NotVerified, match="the report says"):
        verify(path, head)


def test_stored_figures_are_what_the_ledger_says(study, capsys):
    link_of(study, is_frozen=True)
    call_command("replay", "--check", "--chain")
    row = Findings.objects.get(run=study, part="")
    row.data["judges"][0]["overall"]["value"] += 0.1
    row.save()
    share = Share.objects.get(frozen__isnull=False)
    share.frozen["runs"][0]["findings"]["judges"][1]["overall"]["value"] += 0.1
    share.save()
    with pytest.raises(CommandError, match="2 values are not what the ledger says"):
        call_command("replay", "--check")
    said = capsys.readouterr().out
    assert f"judges[0].overall.value of {study.name} (all pairs): stored" in said
    assert f"frozen report {share.prefix}…: CommandError: NOT verified: runs[0]" in said
    share.frozen["head"]["hash"] = "0" * 64
    share.save()
    with pytest.raises(CommandError, match="2 values are not what the ledger says"):
        call_command("replay", "--check")


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("of_project", [False, True])
def test_a_bundle_of_every_feature_verifies(study, tmp_path, of_project, is_frozen):
    path, head = tmp_path / "bundle.zip", study.queue.project.ledger_head
    path.write_bytes(bundle_behind(link_of(study, of_project=of_project, is_frozen=is_frozen)))
    empty_the_instance()
    verified = verify(path, head)
    assert verified.unchecked == []
    assert [gap for gap in verified.gaps if "not open" in gap]
    left_out = [gap for gap in verified.gaps if gap.endswith("which the report leaves out")]
    assert len(left_out) == of_project
