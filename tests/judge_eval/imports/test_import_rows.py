"""Rows become a run: its pairs, judges, verdicts and votes, and a board that follows from them."""

import io
from datetime import UTC, datetime
from itertools import count

import pytest
from django.utils import timezone

from judge_eval.imports.formats import read
from judge_eval.imports.import_read import MOST_JUDGES
from judge_eval.imports.import_report import MOST_LISTED, ImportOptions, ImportRefused, RowsWrong
from judge_eval.imports.row_models import JudgeOrder, LeftOut
from judge_eval.models import Judge, Run, RunEvent, Verdict
from judge_eval.runs.services import imported_fingerprint
from judge_eval.runs.state import complete_voted_runs
from tests.helpers.imports import (
    added,
    assert_whole,
    errors_of,
    import_into,
    import_items,
    import_run,
    imported,
    pair,
    rows,
    run_of,
    verdict,
    vote,
    votes_of,
)
from tests.helpers.reference import assert_as_expected
from tests.helpers.run_findings import compute
from tests.makers import (
    counts_of,
    elos_of,
    judges_of,
    key_client,
    make_key,
    make_project,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ballot.assignment import next_pairs
from voting.ballot.queries import queue_counts
from voting.ledger import chain, ledger
from voting.models import Entry, Inference, Item, Project, Queue, Voter

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def refused(*records, project=None, **options):
    """Import records of which some are wrong; return what the report says of them."""
    report = import_run(
        project or make_project(), "Wrong", rows(*records), options=ImportOptions(**options)
    )
    assert report.runs == []
    assert not report.changed
    return errors_of(report)


def test_a_pair_becomes_two_outputs_and_a_comparison():
    record = pair(7, tags=["logo"], prompt_id="q7", kind="code", external_id="row-7")
    run = imported(record, votes_per_pair=3)
    [stored] = Item.objects.filter(queue=run.queue_id).select_related("a", "b")
    assert (stored.external_id, stored.position, stored.votes_wanted) == ("p7", 0, 3)
    assert stored.opened_at is not None
    for output, generator in ((stored.a, "ada"), (stored.b, "bob")):
        assert (output.prompt, output.output) == ("Question 7", f"Answer 7 of {generator}")
        assert (output.generator, output.kind, output.tags) == (generator, "code", ["logo"])
        assert output.metadata == {"prompt_id": "q7"}


def test_a_run_that_is_complete_in_its_outputs_is_open_for_voting():
    run = imported(pair(1), pair(2), name="Two", reveal="never", rubric="Which?")
    assert (run.name, run.state) == ("Two", Run.State.VOTING)
    assert (run.queue.is_open, run.queue.reveal, run.queue.rubric.text) == (True, "never", "Which?")
    assert not run.is_shared
    assert RunEvent.objects.filter(run=run, kind="imported").exists()


def test_what_is_asked_suits_the_kind_of_the_outputs():
    assert "drawing" in imported(pair(output_a="<svg/>", kind="svg")).queue.rubric.text
    assert "code" in imported(pair(kind="code")).queue.rubric.text
    assert "answer" in imported(pair()).queue.rubric.text
    assert "code" in imported(pair(), kind="code").queue.rubric.text


def test_judges_stand_in_the_order_in_which_they_are_met():
    run = imported(
        verdict(1, "zoe", "A"), verdict(1, "adam", "B"), verdict(2, "zoe", "A"), source="here"
    )
    assert [(j.name, j.position, j.provider, j.model) for j in judges_of(run)] == [
        ("zoe", 0, "imported", "zoe"),
        ("adam", 1, "imported", "adam"),
    ]
    assert judges_of(run)[0].fingerprint == imported_fingerprint("zoe", "here")
    assert imported_fingerprint("zoe", "here") != imported_fingerprint("zoe", "there")


def test_the_source_may_state_the_order_of_judges():
    items = [JudgeOrder("run.json", ("adam", "zoe", "eve")), *rows(verdict(1, "zoe", "A"))]
    run = run_of(import_run(make_project(), "Ordered", items))
    assert [judge.name for judge in judges_of(run)] == ["adam", "zoe", "eve"]


def test_an_order_of_judges_that_comes_too_late_is_told():
    items = [*rows(verdict(1, "zoe", "A"), verdict(1, "adam", "A"))]
    late = JudgeOrder("b.json", ("adam", "zoe"))
    report = import_run(make_project(), "Ordered", [*items, late])
    assert [judge.name for judge in judges_of(run_of(report))] == ["zoe", "adam"]
    assert "b.json: the judges are in another order here; the first order is kept." in report.notes


@pytest.mark.parametrize(
    "name, why",
    [
        ("a\0b", "the name of a judge holds a NUL character"),
        ("x" * 201, "the name of a judge longer than 200 characters"),
        (" ", "a judge has no name"),
    ],
)
def test_an_order_of_judges_must_be_of_names(name, why):
    items = [JudgeOrder("run.json", (name, "zoe")), *rows(verdict(1, "zoe", "A"))]
    report = import_run(make_project(), "Ordered", items)
    assert errors_of(report) == [f"run.json: judges: {why}"]


def test_a_verdict_is_stored_with_all_it_says():
    run = imported(
        verdict(1, "j", "A", score_a=7.5, score_b=2, feedback="clear", labels={"x": [1.5][0]}),
        verdict(2, "j", "tie", consistent=False),
        verdict(3, "j", "B", consistent=True),
        {"pair": "p4", "judge": "j", "error": "it refused", "feedback": "I cannot"},
    )
    said = Verdict.objects.filter(judge__run=run).order_by("item__position")
    fields = ("state", "winner", "order", "consistent", "score_a", "score_b", "feedback", "error")
    assert list(said.values_list(*fields)) == [
        ("done", "A", "AB", None, 7.5, 2.0, "clear", ""),
        ("done", "tie", "both", False, None, None, "", ""),
        ("done", "B", "both", True, None, None, "", ""),
        ("failed", "", "AB", None, None, None, "I cannot", "it refused"),
    ]
    assert said[0].labels == {"x": 1.5}
    assert counts_of(run) == [(0, 0, 3, 4)]


def test_the_ledger_holds_one_entry_of_verdicts_for_each_pair_before_the_votes():
    run = imported(
        vote(1, "ann", "A"),
        verdict(1, "x", "A"),
        verdict(2, "x", "B"),
        verdict(1, "y", "B"),
        vote(2, "ann", "B"),
    )
    entries = Entry.objects.filter(project=run.queue.project).order_by("seq")
    assert list(entries.values_list("seq", "kind", "item__external_id")) == [
        # The run and its judges.
        *((seq, "object", None) for seq in (1, 2, 3)),
        (4, "verdicts", "p1"),
        (5, "verdicts", "p2"),
        (6, "parameters", None),
        (7, "vote", "p1"),
        (8, "vote", "p2"),
        (9, "parameters", None),
    ]
    assert [v["winner"] for v in entries[3].payload["verdicts"]] == ["A", "B"]
    assert_whole(run.queue.project)
    assert_as_expected(run)


def test_a_vote_is_stored_with_all_it_says():
    at = "2026-03-04T05:06:07.000008+01:00"
    run = imported(
        vote(1, "ann", "B", voted_at=at, left_side="B", comment="shorter", labels={"c": 0.5})
    )
    [stored] = votes_of(run)
    assert stored.at == datetime(2026, 3, 4, 4, 6, 7, 8, UTC)
    assert (stored.choice, stored.left_side, stored.comment) == ("B", "B", "shorter")
    assert stored.comment_sha256 == chain.salted_hash(stored.salt, "shorter")
    assert (stored.labels, len(stored.salt)) == ({"c": 0.5}, 32)
    assert stored.payload == {"labels_sha256": ledger.labels_sha256(stored.salt, {"c": 0.5})}
    assert (stored.rubric_id, stored.reputation) == (run.queue.rubric_id, 1_000_000)
    assert not any((stored.unblinded, stored.simulated, stored.retracted))
    assert stored.voter.external_id == "ann"
    assert_whole(run.queue.project)


def test_a_vote_that_says_little_has_no_salt():
    [stored] = votes_of(imported(vote(1, "ann", "A")))
    assert (stored.salt, stored.comment_sha256, stored.payload, stored.labels) == (
        "",
        "",
        None,
        None,
    )


def test_votes_keep_the_order_of_the_source_whatever_their_times():
    times = ["2026-03-03T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"]
    run = imported(
        *[verdict(n, judge, w) for n in range(3) for judge, w in (("x", "A"), ("y", "B"))],
        *[vote(n, "ann", "AB"[n % 2], voted_at=at) for n, at in enumerate(times)],
    )
    assert [stored.item.external_id for stored in votes_of(run)] == ["p0", "p1", "p2"]
    assert elos_of(run)[0] > elos_of(run)[1]
    assert_as_expected(run)
    assert_whole(run.queue.project)


def test_voters_belong_to_the_project_and_are_found_again():
    project = make_project()
    first = imported(vote(1, "ann", "A"), vote(1, "bob", "A"), project=project)
    second = imported(vote(1, "ann", "B"), project=project)
    assert Voter.objects.filter(project=project).count() == 2
    assert votes_of(first)[0].voter == votes_of(second)[0].voter
    elsewhere = imported(vote(1, "ann", "B"))
    assert votes_of(elsewhere)[0].voter != votes_of(first)[0].voter
    assert_whole(project)


@pytest.mark.parametrize(
    "records, ballot",
    [
        ([pair()], ["A", "B", "both_bad"]),
        ([vote(1, "ann", "tie")], ["A", "B", "tie", "both_bad"]),
        ([verdict(1, "j", "tie")], ["A", "B", "tie", "both_bad"]),
    ],
)
def test_the_ballot_holds_the_choices_that_occur(records, ballot):
    assert imported(*records).queue.ballot == ballot


def test_a_stated_ballot_is_kept_and_votes_must_fit_it():
    run = imported(vote(1, "ann", "A"), verdict(1, "j", "tie"), ballot=["B", "A"])
    assert run.queue.ballot == ["A", "B"]
    assert refused(vote(1, "ann", "tie"), ballot=["A", "B"]) == [
        "rows.jsonl:1: vote: 'tie' is not on the ballot: A, B"
    ]


# --- pairs put together -------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True])
def test_what_rows_say_of_one_pair_is_put_together(turned):
    records = [
        verdict(1, "j", "A"),
        pair(1, kind="code", tags=["x"]),
        vote(1, "ann", "A", prompt_id="q1"),
    ]
    run = imported(*(reversed(records) if turned else records))
    [stored] = Item.objects.select_related("a", "b")
    assert (stored.a.output, stored.b.output) == ("Answer 1 of ada", "Answer 1 of bob")
    assert (stored.a.kind, stored.a.tags, stored.a.metadata) == ("code", ["x"], {"prompt_id": "q1"})
    assert (run.queue.is_open, run.state) == (True, "voting")
    assert Inference.objects.count() == 2


@pytest.mark.parametrize("rows_at_once", [1, 2, 500])
def test_it_does_not_matter_where_a_chunk_ends(monkeypatch, rows_at_once):
    monkeypatch.setattr("judge_eval.imports.import_scratch.MOST_ROWS", rows_at_once)
    records = [
        verdict(1, "j", "A"),
        vote(2, "ann", "B"),
        pair(1),
        vote(1, "ann", "A"),
        pair(2),
        verdict(2, "j", "B"),
        vote(1, "ann", "A"),
    ]
    report = import_run(make_project(), "Chunks", rows(*records))
    assert report.new == {"pairs": 2, "judges": 1, "verdicts": 2, "voters": 1, "votes": 2}
    assert (report.already["votes"], report.already["pairs"], report.filled) == (1, 0, 0)
    assert run_of(report).queue.is_open
    assert_whole(run_of(report).queue.project)


def test_rows_that_contradict_each_other_are_errors_that_name_both():
    assert refused(
        pair(1, kind="text"),
        pair(1, output_a="Another answer"),
        pair(1, generator_b="eve"),
        pair(1, kind="svg"),
        vote(1, "ann", "A"),
        vote(1, "ann", "B"),
        verdict(1, "j", "A", score_a=3),
        verdict(1, "j", "A", score_a=4),
        verdict(1, "j", "B"),
        {"pair": "p1", "judge": "j", "error": "it refused"},
    ) == [
        "rows.jsonl:2: output_a: 'Another answer', but pair 'p1' has 'Answer 1 of ada'",
        "rows.jsonl:3: generator_b: 'eve', but pair 'p1' has 'bob'",
        "rows.jsonl:4: kind: 'svg', but pair 'p1' has 'text'",
        "rows.jsonl:8: score_a: 4.0, but j said 3.0 on pair 'p1' before",
        "rows.jsonl:9: verdict: 'B', but j said 'A' on pair 'p1' before",
        "rows.jsonl:10: verdict: 'failed', but j said 'A' on pair 'p1' before",
        "rows.jsonl:6: vote: 'B', but ann said 'A' on pair 'p1' before",
    ]


# --- all or nothing -----------------------------------------------------------------------------


def everything():
    models = (Project, Queue, Run, Judge, Verdict, Item, Inference, Voter, Entry)
    return [model.objects.count() for model in models]


def test_one_wrong_row_and_nothing_is_written():
    project = make_project()
    before = everything()
    found = refused(pair(1), vote(1, "ann", "left"), verdict(1, "j", "A"), project=project)
    assert found == ["rows.jsonl:2: vote: 'left' is not one of A, B, tie, both_bad"]
    project.refresh_from_db()
    assert (everything(), project.head_seq) == (before, 0)


def test_the_good_rows_are_imported_where_that_is_asked_for():
    records = [pair(1), vote(1, "ann", "left"), vote(1, "bob", "B"), pair(1, prompt="Why?")]
    report = import_run(
        make_project(), "Some", rows(*records), options=ImportOptions(skip_errors=True)
    )
    assert errors_of(report) == [
        "rows.jsonl:2: vote: 'left' is not one of A, B, tie, both_bad",
        "rows.jsonl:4: prompt: 'Why?', but pair 'p1' has 'Question 1'",
    ]
    assert +report.new == {"pairs": 1, "voters": 1, "votes": 1}
    assert_whole(run_of(report).queue.project)


def test_what_is_fatal_stands_first_however_many_errors_there_are():
    lines = [b"pair,voter,vote", *[b"1,ann,left"] * (MOST_LISTED + 5), b'1,"ann,A']
    items = read(io.BytesIO(b"\n".join(lines)), "v.csv")
    skip = ImportOptions(skip_errors=True)
    report = import_run(make_project(), "Wrong", items, options=skip)
    assert (len(report.errors), report.more_errors) == (MOST_LISTED, 6)
    assert report.errors[0].why.startswith("not CSV: ")


def test_reading_stops_after_a_hundred_errors():
    read_so_far = []

    def records():
        for n in count():
            read_so_far.append(n)
            yield from rows(vote(n, "ann", "left"))

    with pytest.raises(RowsWrong) as refused:
        import_items(records(), project=make_project(), name="Wrong")
    assert (refused.value.report.failures, len(read_so_far)) == (100, 100)
    assert str(refused.value) == "100 errors, where reading stopped; nothing was imported"


def test_where_errors_are_skipped_a_thousand_are_listed_and_the_others_counted():
    records = [pair(1), *[vote(n, "ann", "left") for n in range(MOST_LISTED + 5)]]
    options = ImportOptions(skip_errors=True)
    report = import_run(make_project(), "Wrong", rows(*records), options=options)
    assert (len(report.errors), report.more_errors, report.failures) == (1000, 5, 1005)
    assert report.run_id


def test_what_a_source_leaves_out_is_listed():
    items = [*rows(pair(1)), LeftOut("old.json", 9, "it was stated before")]
    report = import_run(make_project(), "Left", items)
    assert report.left_out == [LeftOut("old.json", 9, "it was stated before")]
    assert report.run_id


def test_a_run_is_made_of_pairs_or_of_single_items_and_the_first_row_decides():
    mixed = [*rows(pair(1)), *rows({"item": "i1", "output": "x"}), *rows({"item": "i2"})]
    report = import_run(make_project(), "Mixed", mixed)
    assert errors_of(report) == ["rows.jsonl:1: a single item; this run is made of pairs"]
    assert report.run_id is None


def test_a_source_that_names_no_pair_is_an_error():
    assert refused() == ["no row names a pair"]


def test_a_source_of_which_nothing_is_right_makes_no_run():
    assert refused(vote(1, "ann", "left"), skip_errors=True) == [
        "rows.jsonl:1: vote: 'left' is not one of A, B, tie, both_bad"
    ]
    assert not Run.objects.exists()


def test_what_cannot_be_stored_is_replaced_and_counted():
    given = vote(1, "ann", "A", labels={"a\0b": "x"}, comment="half \ud83d")
    report = import_run(make_project(), "votes", rows(given))
    assert Entry.objects.get(kind="vote").labels == {"a\ufffdb": "x"}
    assert "rows.jsonl: 2 characters that cannot be stored became \ufffd" in report.notes


def test_a_column_of_names_is_not_taken_for_judges():
    found = refused(*[verdict(n, f"judge-{n}", "A") for n in range(MOST_JUDGES + 2)])
    assert found == [
        f"rows.jsonl:{n}: judge: more than 200 judges in one run: is this the right column?"
        for n in (201, 202)
    ]


# --- pairs without outputs ----------------------------------------------------------------------


def test_pairs_without_outputs_are_complete_and_closed():
    records = rows(vote(1, "ann", "A"), verdict(2, "j", "A"))
    how = ImportOptions(baselines=False)
    report = import_run(make_project(), "No texts", records, options=how)
    run = run_of(report)
    assert (run.state, run.queue.is_open) == ("complete", False)
    assert report.notes == ["Voting is closed: 2 pairs have no outputs that could be shown."]
    assert all(found.opened_at for found in pairs_of(run))


def test_a_run_without_outputs_says_so_until_they_come():
    run = imported(vote(1, "ann", "A"), {"pair": "p2"})
    assert run.note == "Its pairs came without their outputs, so nobody can vote on them here."
    import_into(run.pk, rows(pair(1), pair(2)))
    run.refresh_from_db()
    assert (run.state, run.note) == ("voting", "")


def test_what_was_imported_is_told_in_numbers_of_one_and_of_many():
    run = imported(pair(1), pair(2), verdict(1, "j", "A"))
    event = RunEvent.objects.get(run=run, kind="imported")
    assert event.text == "Imported: 2 pairs, 1 verdict, 0 votes."


def test_nobody_is_asked_about_a_pair_without_outputs_and_all_about_the_others():
    pairs = rows(pair(1), *(vote(n, "ann", "A") for n in (1, 2)), pair(3))
    how = ImportOptions(votes_per_pair=2)
    report = import_run(make_project(), "Some texts", pairs, options=how)
    run, others = run_of(report), {"p1", "p3"}
    assert (run.state, run.queue.is_open) == ("voting", True)
    note = "Nobody is asked about some: 1 pair has no outputs that could be shown."
    assert note in report.notes
    new, _ = next_pairs(make_voter(run), run.queue, [], 9, timezone.now())
    assert {item.external_id for item in new} == others
    refused = key_client(make_key("read", "vote")[1]).post(
        f"/api/runs/{run.pk}/judge-eval/vote",
        {"task_id": str(run.queue.items.get(external_id="p2").pk), "winner": "A"},
        content_type="application/json",
    )
    assert refused.status_code == 409
    assert refused.json()["detail"] == "the outputs of this task are not here"
    # Its vote counts in figures, and nothing waits for another one.
    assert compute(run).data["as_of"]["voted"] == 2
    for name in ("Ben", "Cleo"):
        for item in run.queue.items.filter(external_id__in=others):
            make_vote(make_voter(run, name=name), item)
    seal_all(run.queue.project)
    assert queue_counts(run.queue) == (2, 2, 0)
    complete_voted_runs([run.pk])
    assert Run.objects.get(pk=run.pk).state == "complete"
    # Once they are here, it is asked about as the others are.
    import_into(run.pk, rows(pair(2)))
    assert queue_counts(run.queue) == (2, 3, 0)


def test_an_output_that_is_empty_is_one():
    run = imported(pair(1, output_a=""))
    assert (run.queue.is_open, Item.objects.get().a.output) == (True, "")


def test_voting_cannot_be_asked_for_where_outputs_lack():
    before = everything()
    with pytest.raises(ImportRefused, match="1 pair has no outputs"):
        import_run(
            Project.objects.create(name="P"),
            "Open",
            rows({"pair": "p1"}),
            options=ImportOptions(open_for_voting=True),
        )
    assert everything() == [before[0] + 1, *before[1:]]


def test_how_many_votes_a_pair_wants_may_be_said_once_for_all():
    run = imported(
        pair(1, votes_wanted=3),
        {"pair": "p1", "votes_wanted": 5},
        pair(2),
        *(vote(n, who, "A") for n in (1, 2) for who in ("ann", "bob", "cem", "dan")),
        votes_per_pair=2,
    )
    assert [item.votes_wanted for item in pairs_of(run)] == [3, 4]
    # Of a pair that is here already it says nothing.
    assert added(run, {"pair": "p1", "votes_wanted": 9}).filled == 0
    assert [item.votes_wanted for item in pairs_of(run)] == [3, 4]
    report = added(run, pair(3, votes_wanted=1.5), verdict(1, "x", "A", cost_usd=-1))
    assert errors_of(report) == [
        "rows.jsonl:1: votes_wanted: 1.5 is not a whole number",
        "rows.jsonl:2: cost_usd: -1 is not within 0..10000",
    ]
    [left_out] = added(run, {"pair": "p1", "cost_usd": 1}).left_out
    assert left_out.why == "a judge without a verdict"


def test_namesakes_in_different_files_may_be_different_people():
    files = [rows(pair(1), vote(1, "ann", "A"), name=name) for name in ("x.jsonl", "y.jsonl")]
    options = ImportOptions(separate_voters=True)
    import_run(make_project(), "Two", [*files[0], *files[1]], options=options)
    names = Voter.objects.exclude(external_id="").values_list("external_id", flat=True)
    assert sorted(names) == ["x: ann", "y: ann"]
