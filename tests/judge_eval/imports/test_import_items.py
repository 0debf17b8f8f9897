"""Rows about single items become a run: what is asked, its votes and verdicts, and its ledger."""

import json
from datetime import UTC, datetime
from io import BytesIO

import pytest

from judge_eval.exports.export import export_run
from judge_eval.imports.formats import read
from judge_eval.imports.import_report import ImportOptions
from judge_eval.models import Run, Verdict
from tests.helpers.bundles import (
    as_file,
    changed,
    empty_the_instance,
    facts_of,
    numbers_of,
    restore,
    restored,
)
from tests.helpers.imports import (
    added,
    assert_whole,
    errors_of,
    import_into,
    import_run,
    imported,
    rows,
    run_of,
    votes_of,
)
from tests.helpers.run_findings import compute
from tests.makers import make_project, seal_all
from voting.ballot.services import undo_last_vote
from voting.items.kinds import Options
from voting.models import Entry, Item, Queue

pytestmark = pytest.mark.django_db


def item(number=1, **fields):
    about = {"prompt": f"Question {number}", "output": f"Answer {number}", "generator": "ada"}
    return {"item": f"i{number}"} | about | fields


def vote(number, voter, given, **fields):
    return {"item": f"i{number}", "voter": voter, "vote": given} | fields


def verdict(number, judge, given, **fields):
    return {"item": f"i{number}", "judge": judge, "verdict": given} | fields


def refused(*records, **options):
    report = import_run(make_project(), "Wrong", rows(*records), options=ImportOptions(**options))
    assert report.runs == []
    return errors_of(report)


def test_an_item_is_one_output_with_what_is_known_of_it():
    at = "2026-11-21T10:00:00Z"
    record = item(7, tags=["x"], time=at, metadata={"latency": 3}, kind="code", cluster="doc")
    run = imported(record, item(8))
    first, second = Item.objects.filter(queue=run.queue).select_related("a").order_by("position")
    assert (first.external_id, first.b, first.prompt_key) == ("i7", None, "doc")
    output = first.a
    assert (output.prompt, output.output) == ("Question 7", "Answer 7")
    assert (output.generator, output.kind, output.tags) == ("ada", "code", ["x"])
    assert output.metadata == {"latency": 3, "cluster": "doc"}
    assert output.created_at == datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert second.prompt_key == str(second.pk)
    assert (run.state, run.queue.is_open, run.queue.kind) == ("voting", True, "pass_flag")


PASS_FLAG = ["pass", "flag"]
KINDS = [
    ("pass_flag", PASS_FLAG, ("pass", "flag"), [("pass", 1_000_000, None), ("flag", 0, None)]),
    ("pass_flag", PASS_FLAG, (0.8, "0.25"), [("pass", 800_000, None), ("flag", 250_000, None)]),
    ("category", ["no", "yes"], ("yes", "no"), [("yes", None, "yes"), ("no", None, "no")]),
    ("rating", ["1", "2", "3", "4", "5"], (4, "2"), [("4", None, 4), ("2", None, 2)]),
    ("labels", ["a", "b"], (["b", "a"], []), [("a;b", None, ["a", "b"]), ("none", None, [])]),
    ("text", [], ("x" * 70, "Good."), [("", None, "x" * 70), ("", None, "Good.")]),
]


@pytest.mark.parametrize("kind, ballot, given, stored", KINDS)
def test_what_is_asked_follows_from_the_answers(kind, ballot, given, stored):
    first, second = given
    run = imported(item(1), vote(1, "ann", first), vote(1, "bob", second), verdict(1, "j", first))
    assert (run.queue.kind, run.queue.ballot) == (kind, ballot)
    said = [(v.choice, v.value, v.labels and v.labels["label"]) for v in votes_of(run)]
    assert said == stored
    told = Verdict.objects.get(judge__run=run)
    assert (told.winner, told.labels) == (stored[0][0] or "x" * 70, votes_of(run)[0].labels)
    assert Options.model_validate(run.queue.options).graded == (0.8 in given)
    assert_whole(run.queue.project)


def test_what_is_asked_may_be_stated_and_answers_must_fit_it():
    records = item(1), vote(1, "ann", "good"), vote(1, "bob", "bad;ugly")
    run = imported(*records, vote_kind="labels", ballot=["good", "bad", "ugly"], task="looks")
    assert (run.queue.kind, run.queue.ballot) == ("labels", ["good", "bad", "ugly"])
    assert [v.labels for v in votes_of(run)] == [{"looks": ["good"]}, {"looks": ["bad", "ugly"]}]
    assert refused(*records, vote_kind="rating") == [
        "rows.jsonl:2: vote: 'good' is not a number",
        "rows.jsonl:3: vote: 'bad;ugly' is not a number",
    ]
    assert refused(*records, vote_kind="labels", ballot=["good", "bad"]) == [
        "rows.jsonl:3: vote: 'ugly' is not on the ballot: good, bad"
    ]


STUDY = [
    record
    for n, choice in enumerate(["yes", "no", "yes", "no"], start=1)
    for record in (item(n), vote(n, "ann", choice), verdict(n, "good", choice))
]


ODD_REPLIES = [
    "As an AI model I cannot decide whether this " + "one complies, " * 30,
    "perhaps",
    ["yes", "no"],
    "",
]


# Each reply stands before the people's rows or behind them; thoroughly it does both.
@pytest.mark.parametrize(
    "reply, is_first",
    [
        pytest.param(reply, is_first, marks=[] if is_first == place % 2 else pytest.mark.thorough)
        for place, reply in enumerate(ODD_REPLIES)
        for is_first in (True, False)
    ],
)
def test_the_kind_is_decided_by_people_and_a_reply_outside_it_has_failed(reply, is_first):
    odd = [verdict(n, "odd", reply) for n in (1, 2)]
    if reply == "":
        odd = [{"item": f"i{n}", "judge": "odd", "error": "no reply"} for n in (1, 2)]
    report = import_run(make_project(), "Study", rows(*(odd + STUDY if is_first else STUDY + odd)))
    run = run_of(report)
    assert (run.queue.kind, run.queue.ballot) == ("category", ["no", "yes"])
    known = {judge.name for judge in run.judges.all()}
    assert known == {"good", "odd", "always-no", "always-yes", "random"}
    failed = Verdict.objects.filter(judge__name="odd", judge__run=run)
    assert {(each.state, each.winner, each.labels) for each in failed} == {("failed", "", None)}
    note = "2 of 6 verdicts are none of: no, yes. They count as failed."
    assert (note in report.notes) == (reply != "")
    figures = {judge["name"]: judge for judge in compute(run).data["judges"]}
    assert figures["good"]["overall"]["value"] == 1
    # A judge without one verdict on what was voted on is silent: no figure tells of it.
    assert figures["odd"]["overall"]["value"] is None
    assert figures["odd"]["coverage"]["value"] == 0
    assert_whole(run.queue.project)


def test_a_stated_kind_holds_over_a_reply_of_a_judge_and_names_it():
    run = imported(item(1), verdict(1, "j", "odd"), vote_kind="pass_flag")
    assert run.queue.kind == "pass_flag"
    [failed] = Verdict.objects.filter(judge__name="j")
    assert (failed.state, failed.error) == ("failed", "'odd' is none of: pass, flag")


def test_verdicts_that_join_a_run_are_held_to_its_choices():
    run = imported(*STUDY)
    report = added(run, verdict(1, "late", "yes"), verdict(2, "late", "maybe"))
    assert report.errors == []
    assert "1 of 6 verdicts are none of: no, yes. They count as failed." in report.notes
    late = Verdict.objects.filter(judge__name="late").order_by("item__position")
    assert [each.winner for each in late] == ["yes", ""]
    again = added(run, verdict(1, "late", "yes"), verdict(2, "late", "maybe"))
    assert (again.errors, again.new.total()) == ([], 0)
    assert_whole(run.queue.project)


def test_without_people_the_judges_tell_what_may_be_answered():
    records = [item(1), item(2), verdict(1, "j", "yes"), verdict(2, "j", "no")]
    [why] = refused(*records)
    assert "say vote_kind, for instance category" in why
    run = imported(*records, vote_kind="category")
    assert (run.queue.kind, run.queue.ballot) == ("category", ["no", "yes"])
    assert not Verdict.objects.filter(state="failed").exists()


def test_one_of_several_tasks_is_asked_and_the_others_are_labels():
    said = {"labels": {"toxic": "no", "stars": 4}}
    records = [item(1), {"item": "i1", "voter": "ann"} | said, {"item": "i1", "judge": "j"} | said]
    run = imported(*records)
    [first] = votes_of(run)
    assert (run.queue.kind, run.queue.options, first.choice) == (
        "category",
        {"task": "toxic"},
        "no",
    )
    assert first.labels == Verdict.objects.get(judge__run=run).labels == said["labels"]
    other = imported(*records, task="stars", name="Stars")
    [vote_] = votes_of(other)
    assert (other.queue.kind, vote_.choice, vote_.labels) == ("rating", "4", said["labels"])
    assert refused(*records, task="starz") == ["no row answers 'starz', which is asked"]


def test_a_flag_has_a_category_and_a_run_knows_those_that_occur():
    flags = [vote(n, "ann", "flag", category=c) for n, c in enumerate(["unsafe", "too long"], 1)]
    run = imported(item(1), item(2), *flags)
    assert [v.category for v in votes_of(run)] == ["unsafe", "too long"]
    categories = Options.model_validate(run.queue.options).flag_categories
    assert categories == (*Options().flag_categories, "too long")
    report = added(run, vote(1, "bob", "flag", category="unsave"))
    known = "incorrect, unsafe, off-topic, format, other, too long"
    assert errors_of(report) == [
        f"rows.jsonl:1: category: 'unsave' is not one of {known}; did you mean 'unsafe'?"
    ]


def test_scores_and_failures_of_judges():
    run = imported(
        item(1),
        item(2),
        vote(1, "ann", "pass"),
        verdict(1, "j", "pass", score=0.9, feedback="Good."),
        {"item": "i1", "judge": "k", "score": 0.3},
        {"item": "i2", "judge": "j", "error": "refused"},
        graded=True,
    )
    told = Verdict.objects.filter(judge__run=run).order_by("item__position", "judge__position")
    said = [(v.judge.name, v.state, v.winner, v.score_a, v.feedback, v.error) for v in told]
    assert said == [
        ("j", "done", "pass", 0.9, "Good.", ""),
        ("k", "done", "flag", 0.3, "", ""),
        ("j", "failed", "", None, "", "refused"),
    ]
    assert_whole(run.queue.project)


def test_a_run_is_added_to_and_the_same_again_changes_nothing():
    first = [item(1), vote(1, "ann", "yes"), vote(1, "bob", "no")]
    run = imported(*first)
    more = [item(2), vote(2, "ann", "no"), verdict(1, "j", "yes"), vote(1, "cem", "yes")]
    report = added(run, *more)
    assert +report.new == {"items": 1, "judges": 1, "verdicts": 1, "voters": 1, "votes": 2}
    again = added(run, *first, *more)
    assert not again.changed
    assert +again.already == {"items": 2, "verdicts": 1, "votes": 4}
    assert [v.choice for v in votes_of(run)] == ["yes", "no", "no", "yes"]
    wrong = [
        vote(1, "ann", "no"),
        vote(1, "dan", "maybe"),
        item(1, output="Another"),
        verdict(1, "j", "no"),
    ]
    assert errors_of(added(run, *wrong)) == [
        "rows.jsonl:2: vote: 'maybe' is not on the ballot: no, yes",
        "rows.jsonl:3: output: 'Another', but item 'i1' has 'Answer 1'",
        "rows.jsonl:4: verdict: 'no', but j said 'yes' on item 'i1' before",
        "rows.jsonl:1: vote: 'no', but ann said 'yes' on item 'i1' before",
    ]
    assert_whole(run.queue.project)


def test_items_without_outputs_cannot_be_voted_on_until_they_come():
    report = import_run(make_project(), "No texts", rows(vote(1, "ann", "yes"), {"item": "i2"}))
    run = run_of(report)
    assert report.notes == ["Voting is closed: 2 items have no outputs that could be shown."]
    assert (run.state, run.queue.is_open) == ("complete", False)
    assert run.note == "Its items came without their outputs, so nobody can vote on them here."
    added(run, item(1), item(2), open_for_voting=True)
    run.refresh_from_db()
    run.queue.refresh_from_db()
    assert (run.state, run.queue.is_open, run.note) == ("voting", True, "")


@pytest.mark.parametrize(
    "records, errors",
    [
        (
            [item(1, metadata={"cluster": "x"})],
            ["1: metadata.cluster: is a reserved name"],
        ),
        (
            [{"prompt": None, "voter": "a", "vote": 1, "output": None}],
            ["1: item: missing, and neither"],
        ),
        ([vote(1, "a", "x"), vote(1, "a", "y")], ["2: vote: 'y', but a said 'x' on item 'i1'"]),
    ],
)
def test_what_is_wrong_is_named_by_row_and_column(records, errors):
    found = refused(*records)
    for text, error in zip(found, errors, strict=True):
        assert text.startswith(f"rows.jsonl:{error}")


def test_an_import_may_settle_the_epsilon_of_the_alt_test():
    assert imported(item(1)).epsilon == 0.2
    assert imported(item(1), epsilon=0.15, name="Skilled").epsilon == 0.15


@pytest.mark.parametrize("kind, ballot, given, stored", KINDS)
def test_a_run_of_every_kind_goes_out_and_comes_in_again(kind, ballot, given, stored):
    run = imported(
        item(1, metadata={"latency": 3}),
        item(2),
        *(vote(n, "ann", answer, comment="so") for n, answer in enumerate(given, start=1)),
        *(verdict(n, "j", answer) for n, answer in enumerate(given, start=1)),
        vote(1, "bob", given[1], labels={"sure": "yes"}),
        {"item": "i2", "judge": "k", "error": "refused"},
        epsilon=0.1,
    )
    before, numbers = facts_of(run), numbers_of(run)
    assert before["queue"]["kind"] == kind
    lines = list(export_run(run))
    empty_the_instance()
    [back] = restored(lines)
    assert (facts_of(back), numbers_of(back)) == (before, numbers)
    assert_whole(back.queue.project)


def test_votes_that_a_dispute_added_are_told_apart_from_those_that_were_asked_for():
    run = imported(item(1), item(2), votes_per_pair=2)
    Queue.objects.filter(pk=run.queue_id).update(options={"extra_votes": 3})
    added(run, vote(1, "ann", "pass"), vote(1, "bob", "flag"), vote(2, "ann", "pass"))
    before, lines = facts_of(run), list(export_run(run))
    stated = [record for line in lines if (record := json.loads(line))["type"] == "comparison"]
    assert [record["votes_wanted"] for record in stated] == [2, 2]
    empty_the_instance()
    [back] = restored(lines)
    assert facts_of(back) == before
    wanted = back.queue.items.order_by("position").values_list("votes_wanted", "extra_votes")
    assert list(wanted) == [(3, 1), (2, 0)]
    # One of two disputing votes is taken back: what a dispute added goes with it.
    undo_last_vote(Entry.objects.get(choice="flag").voter, back.queue)
    seal_all(back.queue.project)
    assert list(wanted.all()) == [(2, 0), (2, 0)]
    assert_whole(back.queue.project)


@pytest.mark.parametrize(
    "record, fields, why",
    [
        ("vote", {"choice": "maybe"}, "only what passes or is flagged has a value"),
        ("vote", {"choice": "A", "value": None}, "'A' is no vote on its item"),
        ("entry", {"payload": None}, "it says nothing"),
        ("run", {"ballot": ["pass", "maybe"]}, "no ballot of the kind pass_flag: pass, maybe"),
        ("run", {"options": {"tusk": "x"}}, "Extra inputs are not permitted"),
    ],
)
def test_a_bundle_of_items_that_was_changed_is_refused(record, fields, why):
    run = imported(item(1), vote(1, "ann", "pass"), verdict(1, "j", "flag"))
    lines = changed(list(export_run(run)), record, **fields)
    empty_the_instance()
    report = restore(as_file(lines), "run.jsonl")
    assert why in errors_of(report)[0]
    assert not Run.objects.exists()


def test_of_several_criteria_a_vote_is_made_as_on_the_page():
    run = imported(item(1))
    criteria = [
        {"name": "safe", "gate": True, "weight": 0.0},
        {"name": "funny", "graded": True, "weight": 0.6},
        {"name": "short", "graded": True, "weight": 0.4},
    ]
    Queue.objects.filter(pk=run.queue_id).update(options={"criteria": criteria})
    grades = {"labels": {"safe": "pass", "funny": 0.9, "short": "0.7"}}
    unsafe = {"labels": {"safe": "flag", "funny": 1, "short": 1}}
    who = [{"item": "i1", "voter": "ann"} | grades, {"item": "i1", "voter": "bob"} | unsafe]
    added(run, *who, {"item": "i1", "judge": "j"} | grades)
    good, bad = votes_of(run)
    assert (good.choice, good.value) == ("pass", 820_000)
    assert good.labels == {"safe": 1.0, "funny": 0.9, "short": 0.7}
    assert (bad.choice, bad.value) == ("flag", 0)
    assert Verdict.objects.get(judge__run=run, judge__name="j").winner == "pass"
    wrong = {"item": "i1", "voter": "cem", "labels": {"safe": "maybe", "funny": 1}}
    assert errors_of(added(run, wrong, wrong | {"labels": {"safe": 1, "funny": 1}})) == [
        "rows.jsonl:1: labels.safe: 'maybe' is neither pass, flag nor a number within 0..1",
        "rows.jsonl:2: labels: no answer to 'short', which is a criterion",
    ]


def test_files_of_metaevaluator_are_one_run():
    header = b"original_id,rejection,explanation\n"
    files = {
        "annotator_1.csv": b"s1,rejection,It refuses.\ns2,not rejection,\n",
        "annotator_2.csv": b"s1,rejection,\ns2,rejection,Half.\n",
        "judge_haiku_results.csv": b"s1,rejection,Refused.\ns2,not rejection,It helps.\n",
    }
    items = [row for name, text in files.items() for row in read(BytesIO(header + text), name)]
    run = run_of(import_run(make_project(), "Rejection", items))
    assert (run.queue.kind, run.queue.ballot) == ("category", ["not rejection", "rejection"])
    assert (run.queue.options, run.state) == ({"task": "rejection"}, "complete")
    said = [(v.voter.external_id, v.item.external_id, v.choice) for v in votes_of(run)]
    assert said == [
        ("annotator_1", "s1", "rejection"),
        ("annotator_1", "s2", "not rejection"),
        ("annotator_2", "s1", "rejection"),
        ("annotator_2", "s2", "rejection"),
    ]
    assert votes_of(run)[0].labels == {"rejection": "rejection", "explanation": "It refuses."}
    told = Verdict.objects.get(judge__name="judge_haiku", item__external_id="s2")
    assert told.winner == "not rejection"
    floor = run.judges.filter(provider="baseline").values_list("name", flat=True)
    assert set(floor) == {"always-rejection", "always-not rejection", "random"}
    assert told.labels == {"rejection": "not rejection", "explanation": "It helps."}
    assert_whole(run.queue.project)


def shares(judge, *values):
    return [verdict(n, judge, value) for n, value in enumerate(values, 1)]


def test_graded_verdicts_rank_judges_by_their_scores_and_are_never_cut():
    items = [{"item": f"i{n}", "prompt": "p", "output": f"o{n}"} for n in range(1, 5)]
    people = [vote(n, "ann", share) for n, share in enumerate((0, 0.3, 0.6, 1), 1)]
    close, coarse = shares("close", 0.81, 0.82, 0.83, 0.84), shares("coarse", 1, 1, 1, 1)
    run = imported(*items, *people, *close, *coarse)
    told = Verdict.objects.filter(judge__name="close").order_by("score_a")
    assert [one.score_a for one in told] == [0.81, 0.82, 0.83, 0.84]
    figures = {judge["name"]: judge for judge in compute(run).data["judges"]}
    assert figures["close"]["overall"]["value"] == 1
    assert figures["coarse"]["overall"]["value"] == 0.5


def test_empty_cells_of_a_judge_that_answers_most_have_failed():
    wide = [
        {
            "item": f"i{n}",
            "output": "x",
            "vote.ann": "pass",
            "verdict.most": most,
            "verdict.few": few,
        }
        for n, most, few in ((1, "pass", None), (2, "pass", "flag"), (3, "", None))
    ]
    report = import_run(make_project(), "Study", rows(*wide))
    run = run_of(report)
    told = Verdict.objects.filter(judge__run=run, judge__provider="imported")
    failed = told.filter(state="failed").values_list("judge__name", "item__external_id", "error")
    assert list(failed) == [("most", "i3", "its cell is empty")]
    assert told.filter(judge__name="few").count() == 1
    assert report.new["verdicts"] == told.count() == 4
    few, most = (note for note in report.notes if "cells" in note)
    assert few.startswith("2 of few's 3 cells are empty: counted as not asked. The option")
    assert most.startswith("1 of most's 3 cells are empty: counted as not answered. The option")
    # The same file again adds nothing, and either may be said.
    again = import_into(run.pk, rows(*wide))
    assert not again.changed
    assert not any(imported(*wide, empty_cells="not_asked").judges.filter(verdicts__state="failed"))
    both = imported(*wide, empty_cells="failed")
    assert Verdict.objects.filter(judge__run=both, state="failed").count() == 3
    assert_whole(run.queue.project)


def test_a_judge_that_was_asked_about_fewer_items_is_never_the_best():
    """What it was asked about may be easier; every sentence about it says which items those are."""
    numbers = range(60)
    answers = ["pass" if n % 2 else "flag" for n in numbers]
    run = imported(
        *(item(n) for n in numbers),
        *(vote(n, who, answers[n]) for n in numbers for who in ("ann", "ben")),
        *(verdict(n, "picky", answers[n]) for n in numbers[:25]),
        *(verdict(n, "steady", answers[n] if n % 3 else "pass") for n in numbers),
    )
    data = compute(run).data
    figures = {judge["name"]: judge for judge in data["judges"]}
    assert figures["picky"]["overall"]["value"] == 1
    assert data["claims"]["best"] is None
    told = f"{data['words']} {' '.join(data['more'])}"
    assert "picky was asked about 25 of 60 items" in told
    assert "Best of 2" not in told
