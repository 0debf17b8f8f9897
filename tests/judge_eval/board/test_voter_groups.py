"""Voters belong to groups by entries of the ledger; figures of a group are of its votes alone."""

import json
from datetime import timedelta
from io import BytesIO

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from judge_eval.board import cache
from judge_eval.board.cache import request_findings
from judge_eval.board.filters import Slice
from judge_eval.board.load import labels_of, outcomes_of
from judge_eval.exports.bundle import BundleError, read
from judge_eval.exports.export import export_run
from judge_eval.exports.rows import run_csv
from judge_eval.imports import import_jobs
from judge_eval.imports.formats import read as read_rows
from judge_eval.imports.import_jobs import SourceFile
from judge_eval.models import Board, Findings, Import, Run
from reports.models import Quality, Share
from reports.quality.groups import quality_of_groups
from reports.report.make import report_of
from reports.report.views.shared_report import report_html
from tests.helpers.bundles import empty_the_instance, restored
from tests.helpers.imports import (
    added,
    assert_whole,
    errors_of,
    import_run,
    imported,
    pair,
    run_of,
    vote,
)
from tests.helpers.imports import rows as json_rows
from tests.helpers.pages import text_of
from tests.makers import (
    make_invite,
    make_many_votes,
    make_passes,
    make_project,
    make_run,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.ledger import ledger
from voting.ledger.groups import groups_at, groups_entry
from voting.models import Entry, Project, Voter
from voting.people.voters import erase, join, put_into_group

pytestmark = pytest.mark.django_db


def join_by(run, **fields):
    known = fields.pop("known", None)
    voter = join(make_invite(run, **fields), "Ada", timezone.now(), known)
    seal_all(run.queue.project)
    voter.refresh_from_db()
    return voter


def is_as_replayed(project):
    return ledger.replay(project, write=False) == []


def group_run(pairs=12):
    """A run in which nurses say A and doctors B on all pairs; judges say A, and B."""
    run = make_run(pairs=pairs, votes_wanted=4, names=["says-a", "says-b"], baselines=())
    people = [make_voter(run, name=name) for name in ("n1", "n2", "d1", "d2")]
    said = dict(zip([p.pseudonym for p in people], ["nurses"] * 2 + ["doctors"] * 2, strict=True))
    ledger.record(groups_entry(run.queue.project_id, said))
    votes = [(p, i, "AABB"[n]) for n, p in enumerate(people) for i in pairs_of(run)]
    make_many_votes(run, votes)
    seal_all(run.queue.project)
    return run, people


def computed(run, part=""):
    Findings.objects.get_or_create(run=run, part=part)
    Findings.objects.filter(run=run).update(not_before=timezone.now())
    cache.compute(run.pk, part)
    return request_findings(run, part).findings


def test_who_joins_by_an_invite_belongs_to_its_group_from_the_first_one_on():
    run, other = make_run(), None
    voter = join_by(run, group="nurses")
    assert voter.group == "nurses"
    other = make_run(run.queue.project)
    assert join_by(other, group="doctors", known=voter).group == "nurses"
    late = join_by(run)
    assert late.group == ""
    assert join_by(other, group="doctors", known=late).group == "doctors"
    assert is_as_replayed(run.queue.project)


def test_two_invites_before_anything_is_sealed_leave_the_first_group():
    run = make_run()
    voter = join(make_invite(run, group="nurses"), "Ada", timezone.now())
    join(make_invite(make_run(run.queue.project), group="doctors"), "", timezone.now(), voter)
    seal_all(run.queue.project)
    voter.refresh_from_db()
    assert voter.group == "nurses"


def test_a_changed_group_is_an_entry_that_moves_the_boards_it_concerns_and_no_other():
    run, people = group_run(1)
    silent = make_run(run.queue.project)
    before = Board.objects.get(run=silent).seq
    lead = make_voter(run, name="lead")
    assert put_into_group(people[0], "doctors", lead)
    assert not put_into_group(people[0], "doctors", lead)
    seal_all(run.queue.project)
    entry = Entry.objects.filter(kind="parameters").latest("seq")
    assert entry.payload == {"groups": {people[0].pseudonym: "doctors"}}
    run.board.refresh_from_db()
    silent.board.refresh_from_db()
    assert (run.board.seq, silent.board.seq) == (entry.seq, before)
    assert is_as_replayed(run.queue.project)
    # What held before is told by the entries up to there.
    project = run.queue.project_id
    assert groups_at(project, entry.seq - 1)[people[0].pseudonym] == "nurses"
    part = Slice("group", "doctors")
    humans = [len(labels_of(run, part, up_to=seq).humans) for seq in (entry.seq - 1, entry.seq)]
    assert humans == [2, 3]


def test_a_group_that_was_set_behind_the_ledgers_back_is_found_and_corrected():
    run, [voter, *_] = group_run(1)
    Voter.objects.filter(pk=voter.pk).update(group="kings")
    [difference] = ledger.replay(run.queue.project, write=True)
    assert (difference.stored, difference.replayed) == ("kings", "nurses")
    assert is_as_replayed(run.queue.project)


def test_figures_of_a_group_are_of_its_votes_alone_and_side_by_side_they_are_the_same():
    run, _ = group_run()
    whole = computed(run)
    assert whole.parts.voter_groups == [("doctors", 2), ("nurses", 2)]
    assert [judge.overall.value for judge in whole.judges] == [0.5, 0.5]
    for name, shares in (("nurses", [1.0, 0.0]), ("doctors", [0.0, 1.0])):
        own = computed(run, f"group:{name}")
        assert (own.as_of.votes, own.as_of.people) == (24, 2)
        assert [judge.overall.value for judge in own.judges] == shares
        assert own.among_people.pairs.value == 1.0
        [beside] = [group for group in whole.groups if group.name == name]
        assert (beside.people, beside.votes, beside.why) == (2, 24, None)
        for of, judge in zip(beside.judges, own.judges, strict=True):
            assert (of.judge, of.overall) == (judge.id, judge.overall)


def test_evidence_of_a_group_waits_for_no_votes_of_other_groups():
    run, _ = group_run(24)
    computed(run)
    claims = computed(run, "group:nurses").claims
    assert (claims.entered, claims.beats[0][1], claims.votes_left) == (24, True, 0)


def test_a_group_with_few_votes_says_so_instead_of_a_number():
    run, _ = group_run(4)
    assert {group.why for group in computed(run).groups} == {"fewer than 10 votes"}


def test_an_erased_voters_group_stays_with_the_pseudonym_so_that_no_figure_changes():
    run, [voter, *_] = group_run()
    before = computed(run).groups
    erase(voter)
    seal_all(run.queue.project)
    voter.refresh_from_db()
    assert (voter.group, voter.name) == ("nurses", "")
    assert is_as_replayed(run.queue.project)
    assert computed(run).groups == before


def test_a_bundle_of_one_run_brings_the_groups_with_it():
    run, people = group_run()
    lines = "".join(f"{line}\n" for line in export_run(run))
    elsewhere = Project.objects.create(name="elsewhere")
    job = Import(is_local=True, project=elsewhere)
    sources = [SourceFile("bundle.jsonl", BytesIO(lines.encode()))]
    import_jobs.recognise(job, sources)
    import_jobs.submit(job, sources)
    done = import_jobs.run(import_jobs.claim(job.pk))
    assert done.state == Import.State.DONE, done.report
    named = {v.pseudonym: v.group for v in elsewhere.voters.all()}
    groups = ["nurses", "nurses", "doctors", "doctors"]
    assert named == {person.pseudonym: name for person, name in zip(people, groups, strict=True)}
    assert is_as_replayed(elsewhere)


def test_bundles_of_two_runs_bring_groups_and_erasures_once():
    first = make_run(pairs=2)
    second = make_run(first.queue.project, pairs=2)
    voter = make_voter(first)
    put_into_group(voter, "nurses", None)
    make_many_votes(second, [(voter, pairs_of(second)[0], "A")])
    erase(voter)
    seal_all(first.queue.project)
    files = [list(export_run(run)) for run in (first, second)]
    empty_the_instance()
    project = make_project()
    for lines in files:
        restored(lines, project)
    assert Entry.objects.filter(kind="erasure").count() == 1
    assert_whole(project)


@pytest.mark.parametrize("name", ["x" * 61, " x", "a\u202eb"])
def test_a_bundle_with_a_group_that_cannot_be_is_refused(name):
    run, _ = group_run(1)
    lines = [json.loads(line) for line in export_run(run)]
    for line in lines:
        if line.get("kind") == "parameters":
            line["payload"]["groups"] = dict.fromkeys(line["payload"]["groups"], name)
    text = "\n".join(map(json.dumps, lines)).encode()
    with pytest.raises(BundleError, match="group"):
        list(read(BytesIO(text)))


def test_a_report_sets_groups_side_by_side_and_says_where_votes_are_few():
    run, people = group_run()
    make_passes(run, [(f"Out {n}", n % 4 < 3) for n in range(12)], voter=people[0])
    make_passes(run, [("Out x", 1.0)], voter=people[2])
    computed(run)
    early = report_of(run.queue.project, None)
    assert {of.score for of in early.quality_of_groups} == {None}
    starts = "Not yet: its start value weighs over half."
    assert starts in report_html(Share(project=run.queue.project), early)
    # From here on the votes weigh more.
    Project.objects.update(created_at=timezone.now() - timedelta(hours=1))
    report = report_of(Project.objects.get(), None)
    items = {of.name: of for of in report.quality_of_groups if of.series == "items"}
    assert (items["nurses"].votes, items["nurses"].passes) == (12, 9)
    assert items["nurses"].score == pytest.approx(1, abs=0.01)
    assert items["doctors"].score is None
    html = report_html(Share(project=run.queue.project), report)
    assert html.count(">Groups of voters</h2>") == 2
    assert "fewer than 10 votes" in html
    assert "says-a 100" in html


def test_the_score_of_a_group_of_everybody_is_that_of_the_project():
    run = make_run()
    Project.objects.update(created_at=timezone.now() - timedelta(hours=1))
    run = Run.objects.get()
    voter = join_by(run, group="nurses")
    make_passes(run, [(f"Out {n}", n % 3 > 0) for n in range(12)], voter=voter)
    [of] = quality_of_groups(run.queue.project)
    quality = Quality.objects.get(project=run.queue.project, series="items")
    assert (of.votes, of.passes, of.score) == (quality.votes, quality.passes, quality.score)


def test_an_import_brings_the_groups_of_its_voters_and_the_table_of_a_run_keeps_them():
    rows = [
        pair(1),
        pair(2),
        vote(1, "ann", "A"),
        vote(2, "ann", "B", voter_group=" nurses "),
        vote(1, "ben", "A", voter_group="doctors"),
        vote(2, "cleo", "A"),
    ]
    run = imported(*rows)
    project = run.queue.project
    groups = dict(project.voters.values_list("external_id", "group"))
    assert groups == {"ann": "nurses", "ben": "doctors", "cleo": ""}
    assert_whole(project)
    text = "".join(run_csv(run)).encode()
    again = import_run(make_project(), "Again", read_rows(BytesIO(text), "run.csv"))
    assert again.errors == []
    kept = run_of(again).queue.project.voters.values_list("group", flat=True)
    assert sorted(kept) == ["", "doctors", "nurses"]


def test_a_voter_in_two_groups_is_a_fault_of_the_file():
    run = imported(pair(1), pair(2), vote(1, "ann", "A", voter_group="nurses"))
    report = added(run, vote(2, "ann", "B", voter_group="kings"))
    [error] = errors_of(report)
    assert "'kings', but ann is in the group 'nurses' here" in error
    two = [
        pair(1),
        pair(2),
        vote(1, "bo", "A", voter_group="x"),
        vote(2, "bo", "A", voter_group="y"),
    ]
    report = import_run(make_project(), "Two", json_rows(*two))
    assert "on another row" in errors_of(report)[0]


def test_the_board_offers_groups_as_parts_and_sets_them_side_by_side():
    run, _ = group_run()
    computed(run)
    page = user_client().get(f"/runs/{run.pk}/").content.decode()
    assert '<option value="group:nurses">nurses (2 voters)</option>' in page
    assert "Groups of voters" in page
    computed(run, "group:nurses")
    part = text_of(user_client().get(f"/runs/{run.pk}/", {"part": "group:nurses"}))
    assert "Only votes of the group nurses: " in part
    assert "As of 24 votes by 2 people on 12 of 12 pairs" in part
    unknown = user_client().get(f"/runs/{run.pk}/", {"part": "group:kings"})
    assert unknown.status_code == 404
    # The list of pairs is not of some votes.
    refused = user_client().get(f"/runs/{run.pk}/pairs/", {"part": "group:nurses"})
    assert refused.status_code == 400


def test_more_groups_cost_no_more_queries():
    counts = []
    for groups in (1, 9):
        run = make_run(pairs=2, votes_wanted=9)
        people = [make_voter(run) for _ in range(9)]
        said = {p.pseudonym: f"group {n % groups}" for n, p in enumerate(people)}
        ledger.record(groups_entry(run.queue.project_id, said))
        make_many_votes(run, [(p, i, "A") for p in people for i in pairs_of(run)])
        make_passes(run, [(f"{run.pk} {n}", 1.0) for n in range(2)], voter=people[0])
        with CaptureQueriesContext(connection) as queries:
            found = outcomes_of(Run.objects.select_related("queue").get(pk=run.pk))
            quality_of_groups(run.queue.project)
        assert len(found.groups) == groups
        counts.append(len(queries))
    assert counts[0] == counts[1]
