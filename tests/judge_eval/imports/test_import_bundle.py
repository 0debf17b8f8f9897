"""Bundles that were changed, cut, or made by somebody else; and where their numbers are taken."""

import io
import json
import re
from datetime import datetime
from functools import cache

import pytest

from judge_eval.exports.bundle import is_bundle
from judge_eval.exports.export import export_project, export_run
from judge_eval.models import Judge, Run, Verdict
from judge_eval.runs import lifecycle
from judge_eval.workshop import services
from judge_eval.workshop.findings import look_at_held_out
from tests.helpers.bundles import (
    as_file,
    changed,
    empty_the_instance,
    facts_of,
    numbers_of,
    restore,
    restored,
    rows_of_everything,
)
from tests.helpers.imports import added, assert_whole, imported, pair, verdict, vote
from tests.helpers.run_findings import compute
from tests.helpers.run_rows import make_draft, make_provider
from tests.judge_eval.exports.test_export_round_trip import make_eventful_run
from tests.makers import (
    elos_of,
    judges_of,
    make_many_entries,
    make_project,
    make_rubric,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    restate,
    seal_all,
)
from voting.ballot import tuning
from voting.ballot.services import flag
from voting.curating.services import change_for_all
from voting.ledger import ledger
from voting.ledger.decisions import Rules, votes_required_in
from voting.models import Entry, Item, Picture, Queue, Voter, VoterPrompt
from voting.people.voters import erase

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def exported(run=None):
    """The lines of a run that is not here any more."""
    if run is None:
        return list(eventful())
    lines = list(export_run(run))
    empty_the_instance()
    return lines


@cache
def eventful():
    return exported(make_eventful_run())


def refused(lines, project=None):
    """Import what is wrong; return what is said of it, and see that nothing of it is there."""
    before = rows_of_everything()
    report = restore(as_file(lines), "run.jsonl", project)
    assert report.runs == []
    assert rows_of_everything() == before
    [error] = report.errors
    assert error.file == "run.jsonl"
    return str(error).partition(": ")[2]


def test_a_bundle_is_known_by_its_first_line():
    lines = exported()
    assert is_bundle(as_file(lines))
    assert not is_bundle(as_file(lines[1:]))
    assert not is_bundle(io.BytesIO(b""))
    assert not is_bundle(io.BytesIO(b"pair,vote\n1,A\n"))


# --- files that are not as they were ------------------------------------------------------------


@pytest.mark.parametrize("keep", [1, 5, -1])
def test_a_file_that_was_cut_is_refused(keep):
    lines = exported()[:keep]
    assert refused(lines) == "the file was cut: its last line must be of type 'end'"


def test_a_line_that_was_taken_out_is_missed():
    lines = exported()
    del lines[-2]
    assert refused(lines) == f"lines: {len(lines)}, but there are {len(lines) - 1}"


def test_a_line_behind_the_end_is_refused():
    lines = exported()
    assert refused([*lines, lines[3]]) == "type: 'judge' cannot stand here"


def test_a_second_header_is_refused():
    lines = exported()
    assert refused([lines[0], *lines]) == "type: 'header' cannot stand here"


@pytest.mark.parametrize(
    "fields",
    [
        {"choice": "tie"},
        {"at": "2020-01-01T00:00:00Z"},
        {"left_side": ""},
        {"reputation": 5},
        {"unblinded": True},
        {"hash": "0" * 64},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_changed_vote_is_not_what_its_hash_was_made_of(fields):
    found = refused(changed(exported(), "vote", 1, **fields))
    assert found.startswith("hash: entry ")
    assert "is not the one it was made of" in found


def test_a_changed_verdict_of_the_ledger_is_not_what_its_hash_was_made_of():
    lines = exported()
    payload = next(json.loads(line)["payload"] for line in lines if '"entry"' in line)
    payload["verdicts"][0]["winner"] = "tie"
    assert refused(changed(lines, "entry", payload=payload)).startswith("hash: entry 1 is not")


def test_a_row_behind_the_ledger_is_refused():
    lines = exported()
    lines[-1:-1] = [next(line for line in lines if '"type":"flag"' in line)]
    assert refused(lines) == "type: 'flag' cannot stand here"


def test_votes_in_another_order_are_refused():
    lines = exported()
    places = [n for n, line in enumerate(lines) if json.loads(line)["type"] == "vote"]
    lines[places[0]], lines[places[1]] = lines[places[1]], lines[places[0]]
    assert "stands behind" in refused(lines)


def test_a_vote_that_was_left_out_changes_the_numbers_behind_it():
    lines = exported(imported(pair(1), vote(1, "ann", "A"), vote(1, "bob", "B")))
    del lines[next(n for n, line in enumerate(lines) if json.loads(line)["type"] == "vote")]
    lines[-1] = json.dumps({"type": "end", "lines": len(lines) - 1})
    report = restore(as_file(lines), "run.jsonl")
    # It may be one run of several, so it is taken; but it is told that the ledger is another one.
    assert report.notes[0].startswith("The entries have new numbers")


# --- files that were never right ----------------------------------------------------------------

NOWHERE = "00000000-0000-4000-8000-000000000000"
WRONG = {
    "choice: 'left' is no vote on its item": ("vote", {"choice": "left"}),
    "seq: Input should be a valid integer": ("vote", {"seq": "1"}),
    "at: Input should have timezone info": ("vote", {"at": "2026-01-01T00:00:00"}),
    "more: Extra inputs are not permitted": ("vote", {"more": 1}),
    f"comparison: {NOWHERE} does not stand": ("vote", {"comparison": NOWHERE}),
    "voter: somebody does not stand before it in the file": ("vote", {"voter": "somebody"}),
    "rubric: other v1 does not stand before it in the file": (
        "vote",
        {"rubric": {"name": "other", "version": 1}},
    ),
    "comment_sha256: is not the hash of what was said": ("vote", {"comment": "hello"}),
    f"a: {NOWHERE} does not stand before it in the file": ("comparison", {"a": NOWHERE}),
    f"run: {NOWHERE} does not stand before it in the file": ("comparison", {"run": NOWHERE}),
    f"judge: {NOWHERE} does not stand before it in the file": ("verdict", {"judge": NOWHERE}),
    f"comparison: {NOWHERE} does not stand before it in the file": (
        "verdict",
        {"comparison": NOWHERE},
    ),
    f"id: the header names no run {NOWHERE}": ("run", {"id": NOWHERE}),
    "payload: is not what verdicts are written as": ("entry", {"payload": {"verdicts": 7}}),
    "payload: Value error, a ledger entry holds no float: 0.5": ("entry", {"payload": {"a": 0.5}}),
    "runs: the places of the items of run RUN have gaps": ("comparison", {"position": 9}),
    "payload: judge judge-2 has no such place in this run": ("judge", {"position": 7}),
    "payload: 'left' is no verdict": ("entry", {"payload": "left"}),
    "payload: names no prompt, or no number of": ("entry", {"payload": "unclaimed"}),
    "Value error, a vote is a choice or an answer on an item": ("vote", {"choice": ""}),
    "Value error, verdicts are on a pair": ("entry", {"comparison": None}),
    "Value error, it says nothing": ("entry", {"payload": None}),
    f"target: {NOWHERE} does not stand before it": ("entry", {"target": NOWHERE}),
}


@pytest.mark.parametrize("why", WRONG)
def test_what_cannot_be_is_refused_with_its_line_and_field(why):
    kind, fields = WRONG[why]
    lines = exported()
    run = json.loads(lines[0])["runs"][0]
    number = 2 if kind == "judge" else 0
    if fields == {"payload": "left"}:
        payload = next(json.loads(line)["payload"] for line in lines if '"entry"' in line)
        payload["verdicts"][0]["winner"] = "left"
        fields = {"payload": payload}
    if fields == {"payload": "unclaimed"}:
        payload = next(json.loads(line)["payload"] for line in lines if '"entry"' in line)
        fields = {"payload": payload | {"votes_wanted": "1"}}
    assert refused(changed(lines, kind, number, **fields)).startswith(why.replace("RUN", run))


def test_changed_votes_wanted_name_the_items_of_their_run_as_they_are_numbered_here():
    run = imported(pair(1))
    [item] = pairs_of(run)
    rules = Rules(votes_per_item=4, overlap_share=0.0, overlap_votes=5)
    change_for_all(run.queue, rules, make_voter(run))
    seal_all(run.queue.project)
    lines = list(export_run(run))
    [back] = restored(lines, make_project("Another"))
    told = Entry.objects.filter(queue=back.queue_id, kind="parameters").latest("seq")
    assert votes_required_in(told.payload) == {back.queue.items.get().pk: 4}
    assert back.queue.items.get().pk != item.pk
    place = next(n for n, line in enumerate(lines) if '"votes_wanted":{' in line)
    lines[place] = lines[place].replace(str(item.pk), NOWHERE)
    empty_the_instance()
    assert refused(lines) == "payload: the run has no such item"


@pytest.mark.parametrize(
    "line, why",
    [
        ("{", "Invalid JSON: EOF while parsing"),
        ("[]", "Input should be an object"),
        ('{"type":"invite"}', "Input tag 'invite' found using 'type' does not match"),
        ('{"type":"end","lines":"\\u0000"}', "holds a NUL character"),
        ('{"type":"end","lines":NaN}', "lines: Input should be a valid integer"),
    ],
)
def test_a_line_that_is_no_record_is_refused(line, why):
    lines = exported()
    lines[4] = line
    assert refused(lines).startswith(why)


def test_a_backslash_before_u0000_is_not_that_character():
    run = imported(pair(1, prompt="a\\u0000b"))
    [back] = restored(exported(run))
    assert pairs_of(back)[0].a.prompt == "a\\u0000b"


def test_what_the_database_refuses_is_told_with_its_lines():
    lines = exported()
    found = refused(changed(lines, "verdict", state="done", winner="", error=""))
    assert "cannot be stored" in found


@pytest.mark.parametrize("many", [1, 500])
@pytest.mark.parametrize("what, why", [("id", "is here already"), ("voter", "has voted on this")])
def test_one_vote_is_not_two_however_far_apart(what, why, many, monkeypatch):
    monkeypatch.setattr("judge_eval.imports.import_scratch.MOST_ROWS", many)
    lines = exported(imported(pair(1), vote(1, "ann", "A"), vote(1, "bob", "B")))
    first = next(json.loads(line) for line in lines if '"type":"vote"' in line)
    assert why in refused(changed(lines, "vote", 1, **{what: first[what]}))


def test_a_bundle_that_is_wrong_at_its_end_changes_nothing_of_a_project_that_shares_its_rows():
    first = make_eventful_run()
    project = first.queue.project
    other = make_rubric(project, "Which one is true?")
    second = make_run(project, pairs=3, rubric=other)
    shared = pairs_of(first)[0].a
    Item.objects.filter(pk=pairs_of(second)[0].pk).update(a=shared)
    restate(second)
    known, stranger = Voter.objects.order_by("created_at").first(), make_voter(second)
    for voter in (known, stranger):
        make_vote(voter, pairs_of(second)[1])
    flag(stranger, pairs_of(second)[1].pk, "unsafe", "")
    seal_all(project)
    alone, lines = list(export_run(first)), list(export_run(second))
    empty_the_instance()
    [back] = restored(alone)
    wrong = changed(lines, "vote", -1, comment="never said")
    assert refused(wrong, back.queue.project) == "comment_sha256: is not the hash of what was said"
    # Right to its end, it comes.
    assert len(restored(lines, back.queue.project)) == 1
    assert_whole(back.queue.project)


def test_a_retraction_of_somebody_elses_vote_is_refused():
    lines = exported()
    voters = [json.loads(line)["pseudonym"] for line in lines if '"voter","ps' in line]
    retraction = next(json.loads(line) for line in lines if '"retraction"' in line)
    [other] = set(voters) - {retraction["voter"]}
    place = [json.loads(line).get("kind") for line in lines if '"entry"' in line].index(
        "retraction"
    )
    assert (
        refused(changed(lines, "entry", place, voter=other)) == "target: is no vote of this voter"
    )


def test_another_version_of_the_format_is_refused():
    lines = exported()
    found = refused(changed(lines, "header", version=2))
    assert found.startswith("version: Input should be 1")


# --- where numbers are taken --------------------------------------------------------------------


def test_the_same_bundle_again_changes_nothing():
    lines = exported()
    [back] = restored(lines)
    before = facts_of(back), numbers_of(back)
    report = restore(as_file(lines), "run.jsonl")
    assert (report.runs, report.changed, report.failures) == ([back.pk], False, 0)
    assert report.notes == ["It is here already; nothing was changed."]
    assert (facts_of(back), numbers_of(back)) == before


def test_beside_its_original_a_bundle_is_a_copy_with_numbers_of_its_own():
    run = make_eventful_run()
    lines, other = list(export_run(run)), make_project("Another project")
    [copy] = restored(lines, other)
    assert copy.queue.project == other
    assert facts_of(copy) == facts_of(run)
    mine, theirs = ({pk for pks in numbers_of(each)["pairs"] for pk in pks} for each in (copy, run))
    assert not mine & theirs
    assert copy.pk != run.pk
    assert_whole(other)
    # The copy is found again, too.
    assert restore(as_file(lines), "run.jsonl", other).runs == [copy.pk]
    assert Run.objects.count() == 2


def test_runs_of_one_project_come_back_one_by_one_and_share_their_voters():
    first = make_eventful_run()
    second = make_run(first.queue.project, pairs=2)
    voter = Voter.objects.order_by("created_at").first()
    make_vote(voter, pairs_of(second)[0])
    seal_all(first.queue.project)
    facts = [facts_of(first), facts_of(second)]
    bundles = [list(export_run(first)), list(export_run(second))]
    empty_the_instance()
    back = [restored(lines)[0] for lines in bundles]
    assert [facts_of(run) for run in back] == facts
    assert back[0].queue.project == back[1].queue.project
    assert Voter.objects.count() == 2
    assert_whole(back[0].queue.project)


def test_a_bundle_of_which_only_some_runs_are_here_is_refused():
    first = make_run()
    make_run(first.queue.project)
    alone, whole = list(export_run(first)), list(export_project(first.queue.project))
    empty_the_instance()
    restored(alone)
    report = restore(as_file(whole), "project.jsonl")
    assert str(report.errors[0]) == (
        f"project.jsonl:1: runs: run {first.pk} is here already, others are not"
    )


def test_a_rubric_of_the_same_version_with_another_text_is_a_new_version():
    lines = exported()
    project = make_project()
    VoterPrompt.objects.create(project=project, text="Something else", version=1)
    [back] = restored(lines, project)
    assert (back.queue.rubric.version, back.queue.rubric.text) == (2, "Which answer helps more?")
    assert_whole(project)


# --- what a run goes on with --------------------------------------------------------------------


def test_a_run_that_was_at_work_goes_on_without_its_models():
    run = make_run(pairs=2, judges=2)
    first, second = pairs_of(run)
    about = {"item": second, "judge__position": 1}
    Verdict.objects.filter(**about).update(state="waiting", winner="", feedback="")
    restate(run)
    Item.objects.filter(pk=second.pk).update(opened_at=None)
    Run.objects.update(state="judging", config={"models": ["m"]}, budget_nano=5, spent_nano=3)
    [back] = restored(exported(run))
    assert (back.state, back.config) == ("voting", None)
    assert (back.budget_nano, back.spent_nano) == (5, 3)
    closed = Item.objects.get(pk=second.pk)
    assert closed.unusable == "no verdict had come when the run was exported"
    assert not Verdict.objects.filter(state="waiting").exists()
    assert Item.objects.get(pk=first.pk).unusable == ""
    assert_whole(back.queue.project)


def test_a_draft_comes_back_with_its_config_and_can_be_started():
    draft = make_draft(judges=["judge-long", "random"])
    make_run(draft.queue.project)
    config = draft.config
    judges = list(draft.judges.values_list("position", "name", "fingerprint"))
    lines = list(export_project(draft.queue.project))
    empty_the_instance()
    back = next(run for run in restored(lines) if run.pk == draft.pk)
    assert (back.state, back.config) == ("draft", config)
    assert list(back.judges.values_list("position", "name", "fingerprint")) == judges
    make_provider()
    assert lifecycle.start(back.pk).state == "generating"


@pytest.mark.parametrize("config, why", [(None, "config: "), ({"name": "x"}, "config: models: is")])
def test_a_draft_without_a_config_that_can_be_started_is_refused(config, why):
    lines = exported(make_draft())
    assert refused(changed(lines, "run", config=config)).startswith(why)


def test_drawings_are_drawn_again_before_anybody_votes_on_them():
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>'
    run = imported(
        pair(1, kind="svg", output_a=svg, output_b=svg.replace("9z", "8z")), vote(1, "ann", "A")
    )
    Picture.objects.update(state="done", png_sha256="0" * 64)
    added(run, open_for_voting=True)
    Run.objects.update(state="voting")
    Item.objects.update(opened_at=datetime.fromisoformat("2026-01-01T00:00:00Z"))
    [back] = restored(exported(run))
    assert back.state == "judging"
    assert Picture.objects.filter(state="waiting").count() == 2
    assert Item.objects.get().opened_at is None
    assert_whole(back.queue.project)


def test_an_imported_run_is_not_shared_and_asks_nobody():
    run = make_run(shared=True)
    [back] = restored(exported(run))
    assert back.is_shared is False


def test_pretend_votes_come_back_as_pretend_votes():
    run = make_run(pairs=3, says=[["A", "B"], ["B", "A"], ["A", None]])
    Queue.objects.filter(pk=run.queue_id).update(is_simulated=True)
    run.queue.refresh_from_db()
    voter = make_voter(run)
    common = {"voter": voter, "rubric": run.queue.rubric, "simulated": True}
    make_many_entries(
        run, "vote", [common | {"item": each, "choice": "A"} for each in pairs_of(run)]
    )
    seal_all(run.queue.project)
    before = facts_of(run)
    assert before["counts"][0] == 3
    [back] = restored(exported(run))
    assert facts_of(back) == before
    assert back.queue.is_simulated
    assert_whole(back.queue.project)


def test_an_imported_run_comes_back_as_it_is():
    run = imported(
        pair(1, tags=["x"], prompt_id="q"),
        {"pair": "p2"},
        verdict(1, "j", "tie", consistent=False, labels={"sure": 0.1}),
        {"pair": "p2", "judge": "j", "error": "it refused"},
        verdict(2, "k", "B", score_a=0.1, score_b=9.7),
        vote(1, "ann", "A", comment="short", labels={"c": 1.25, "tags": ["a", "b"], "ok": True}),
        vote(2, "bob", "B", left_side="B"),
        vote(2, "ann", "tie"),
    )
    before, numbers = facts_of(run), numbers_of(run)
    [back] = restored(exported(run))
    assert (facts_of(back), numbers_of(back)) == (before, numbers)
    # It goes on as an imported run: its pairs are known by their names.
    report = added(back, pair(1), vote(1, "eve", "B"))
    assert (report.errors, report.already["pairs"]) == ([], 1)
    assert_whole(back.queue.project)


def test_erased_people_stay_erased():
    run = imported(pair(1), vote(1, "ann", "A", comment="Ann was here", labels={"c": "Ann"}))
    project = run.queue.project
    erase(Voter.objects.get())
    seal_all(project)
    lines = list(export_project(project))
    assert "Ann" not in "\n".join(lines)
    head = project.ledger_head
    empty_the_instance()
    [back] = restored(lines)
    assert back.queue.project.ledger_head == head
    stored = Entry.objects.get(kind="vote")
    assert (stored.comment, stored.salt, stored.labels) == ("", "", None)
    assert_whole(back.queue.project)


def test_ratings_do_not_depend_on_where_the_entries_stand_in_the_project():
    run = make_eventful_run()
    elos, lines = elos_of(run), list(export_run(run))
    empty_the_instance()
    busy = make_project("Busy")
    make_run(busy, pairs=3)
    [back] = restored(lines, busy)
    assert elos_of(back) == elos
    assert Entry.objects.filter(project=busy, queue=back.queue_id).order_by("seq")[0].seq == 4
    stated = [json.loads(line)["id"] for line in lines if '"type":"judge"' in line]
    assert [str(judge.pk) for judge in judges_of(back)] == stated


# --- halves ---------------------------------------------------------------------------------------


def halves_of(run):
    items = run.queue.items.order_by("position")
    state = (run.queue.is_tuning, run.queue.held_out_from, tuning.looks_at(run.queue))
    tuned = run.judges.order_by("position").values_list("is_tuned", flat=True)
    return state, list(items.values_list("is_held_out", flat=True)), list(tuned)


def make_tuned_run():
    run = make_run(pairs=8)
    voter = make_voter(run)
    for pair_ in pairs_of(run):
        make_vote(voter, pair_)
    seal_all(run.queue.project)
    services.open_for_tuning(run)
    judge = judges_of(run)[1]
    Judge.objects.filter(pk=judge.pk).update(is_tuned=True)
    restate(run)
    run.refresh_from_db()
    look_at_held_out(run, judge)
    services.end(run)
    seal_all(run.queue.project)
    return Run.objects.select_related("queue__project").get(pk=run.pk)


def test_halves_come_along_and_verification_knows_them():
    run = make_tuned_run()
    before, findings = halves_of(run), compute(run).data
    assert sorted(before[1]) == [False] * 4 + [True] * 4
    assert len(before[0][2]) == 1
    lines = exported(run)
    [run] = restored(lines)
    assert halves_of(run) == before
    assert compute(run).data == findings
    assert_whole(run.queue.project)
    # Halves that are not as the ledger says are found.
    Item.objects.filter(queue=run.queue, position=0).update(is_held_out=not before[1][0])
    [wrong] = ledger.replay(run.queue.project, write=True)
    assert "half of prompt" in str(wrong)
    assert halves_of(run) == before


def test_other_halves_than_the_ledgers_are_refused():
    lines = exported(make_tuned_run())
    opened = next(n for n, line in enumerate(lines) if '"opened"' in line)
    lines[opened] = re.sub(r'("held_out_from":) ?-?\d+', r"\1 7", lines[opened])
    assert "hash" in refused(lines)
