"""The table of a run: what its rows hold, what nothing calculates, and that it comes in again."""

import csv
import io
import json

import pytest

from judge_eval.exports.rows import run_csv, run_rows
from judge_eval.imports.formats import read
from judge_eval.imports.import_report import ImportOptions
from judge_eval.models import Verdict
from tests.helpers.imports import errors_of, import_run, imported, pair, run_of, verdict, vote
from tests.makers import make_project, make_run, make_vote, make_voter, pairs_of, seal_all
from voting.models import Entry, Voter

pytestmark = pytest.mark.django_db

AT = "2026-03-04T05:06:07.000008Z"


def table(run):
    text = "".join(run_csv(run))
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def brought_back(lines, name, **options):
    source = io.BytesIO("".join(lines).encode())
    how = ImportOptions(**{"baselines": False} | options)
    report = import_run(make_project(), "Back", read(source, name), options=how)
    assert errors_of(report) == []
    return run_of(report)


def content_of(run):
    """What a table says: items with their texts, verdicts and votes, by the names of the source."""
    items = run.queue.items.values_list(
        "external_id", "a__prompt", "a__output", "b__output", "a__generator", "a__kind", "a__tags"
    )
    verdicts = Verdict.objects.filter(judge__run=run).values_list(
        *("judge__name", "item__external_id", "state", "winner", "consistent", "score_a"),
        *("feedback", "error", "labels", "cost_nano", "latency_ms"),
    )
    votes = Entry.objects.filter(kind="vote", queue=run.queue_id).values_list(
        *(
            "item__external_id",
            "choice",
            "value",
            "category",
            "comment",
            "left_side",
            "labels",
            "at",
        )
    )
    return [sorted(map(str, rows)) for rows in (items, verdicts, votes)]


def a_run_of_pairs():
    return imported(
        pair(1, tags=["short", "easy"], prompt='Say\r\n"hello", please'),
        pair(2, output_a="- a list", kind="code"),
        pair(3),
        {"pair": "p1", "judge": "x", "pick_ab": "A", "pick_ba": "A"},
        {"pair": "p2", "judge": "x", "pick_ab": "A", "pick_ba": "B"},
        verdict(1, "y", "B", score_a=3.5, feedback="Fuller.", cost_usd=0.000012345, latency_ms=8.5),
        {"pair": "p2", "judge": "y", "error": "no reply"},
        vote(1, "ann", "A", voted_at=AT, left_side="B", comment="shorter"),
        vote(1, "bob", "both_bad", voted_at=AT),
        vote(2, "ann", "tie", voted_at=AT, labels={"tone": "rude"}),
    )


def test_a_row_for_each_vote_and_verdict_with_its_item():
    rows = table(a_run_of_pairs())
    said = [(row["pair"], row["judge"], row["verdict"], row["vote"]) for row in rows]
    assert said == [
        ("p1", "x", "A", ""),
        ("p1", "y", "B", ""),
        ("p1", "", "", "A"),
        ("p1", "", "", "both_bad"),
        ("p2", "x", "tie", ""),
        ("p2", "y", "", ""),
        ("p2", "", "", "tie"),
        ("p3", "", "", ""),
    ]
    assert {row["prompt"] for row in rows[:4]} == {'Say\r\n"hello", please'}
    assert (rows[0]["tags"], rows[0]["consistent"]) == ("short;easy", "true")
    assert (rows[1]["cost_usd"], rows[5]["error"]) == ("1.2345e-05", "no reply")
    assert [row["labels.tone"] for row in rows if row["labels.tone"]] == ["rude"]
    assert {row["voter"] for row in rows} == {
        "",
        *Voter.objects.values_list("pseudonym", flat=True),
    }


def test_pairs_come_back_with_their_votes_and_verdicts():
    run = a_run_of_pairs()
    before = content_of(run)
    assert content_of(brought_back(run_rows(run), "run.jsonl")) == before
    # What a spreadsheet would take for a formula keeps the apostrophe before it.
    before[0] = [row.replace("'- a list'", '"\'- a list"') for row in before[0]]
    assert content_of(brought_back(run_csv(run), "run.csv")) == before


SAID = {
    "pass_flag": ["pass", "flag", 0.25],
    "category": ["spam", "no spam", "spam"],
    "rating": [4, 1, 5],
    "labels": [["x", "y"], [], ["y"]],
    "text": ["Too long, and it rambles on about nothing.", "Right; short.", "So so"],
}


@pytest.mark.parametrize("kind", SAID)
def test_single_items_come_back_with_their_votes_and_verdicts(kind):
    records = []
    for n in range(6):
        item = {"item": f"i{n}", "output": f"Answer {n}", "prompt": f"Q{n}", "model": "ada"}
        records.append(item | {"tags": ["easy"], "time": AT})
        for who in ("ann", "bob"):
            said = SAID[kind][(n + len(who)) % 3]
            records.append({"item": f"i{n}", "voter": who, "vote": said, "voted_at": AT})
        told = {"judge": "x", "verdict": SAID[kind][n // 2 % 3], "score": 0.5}
        records.append({"item": f"i{n}"} | (told if n else {"judge": "x", "error": "no reply"}))
    run = imported(*records, vote_kind=kind)
    before = content_of(run)
    # In a cell of CSV a set is a text, so it does not tell which labels there are.
    ballot = {"ballot": ["x", "y"]} if kind == "labels" else {}
    for lines, name in ((run_csv, "run.csv"), (run_rows, "run.jsonl")):
        back = brought_back(lines(run), name, vote_kind=kind, **ballot)
        assert content_of(back) == before
        assert back.queue.options == run.queue.options


def test_grades_by_criteria_come_back():
    criteria = [{"name": "safe", "gate": True, "weight": 1.0}, {"name": "short", "graded": True}]
    said = {"labels": {"safe": "pass", "short": 0.5}, "voted_at": AT}
    item = {"item": "i1", "output": "An answer"}
    run = imported(item, {"item": "i1", "voter": "ann", **said}, criteria=criteria)
    before = content_of(run)
    assert content_of(brought_back(run_rows(run), "run.jsonl", criteria=criteria)) == before
    [row] = table(run)
    assert (row["vote"], row["labels.short"]) == ("0.75", "0.5")


def test_no_cell_is_calculated_by_a_spreadsheet():
    begins = ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "  ="]
    cells = [f'{first}HYPERLINK("http://evil.example")' for first in begins]
    records = []
    for n, evil in enumerate(cells, start=1):
        records.append(pair(n, prompt=evil, output_a=evil, generator_a=evil))
        records.append(vote(n, "v", "A", comment=evil, labels={evil: evil}))
    run = imported(*records)
    for evil, row in zip(cells, table(run), strict=True):
        assert [row["output_a"], row["prompt"], row["comment"]] == [f"'{evil}"] * 3
        assert row[f"labels.{evil}"] == f"'{evil}"
    lines = [*map(json.loads, run_rows(run))]
    assert [line["output_a"] for line in lines if "output_a" in line] == cells
    assert [line["comment"] for line in lines if "comment" in line] == cells


def test_outputs_that_were_not_imported_stay_away():
    run = imported(vote(1, "ann", "A"))
    assert table(run)[0]["output_a"] == ""
    assert not brought_back(run_csv(run), "run.csv").queue.is_open


def test_only_votes_that_count_are_in_it_by_pseudonym():
    run = make_run(pairs=2)
    voter = make_voter(run, name="Zzz Name", external_id="zzz-mail@example.com")
    one, two = pairs_of(run)
    make_vote(voter, one)
    make_vote(voter, two)
    seal_all(run.queue.project)
    Entry.objects.filter(item=two, kind="vote").update(unblinded=True)
    [only] = [row for row in table(run) if row["voter"]]
    assert (only["pair"], only["voter"]) == (str(one.pk), Voter.objects.get().pseudonym)
    assert "zzz" not in "".join(run_csv(run)).lower()


def test_judges_of_one_name_are_told_apart():
    run = imported(pair(1), verdict(1, "x", "A"), verdict(1, "y", "B"))
    run.judges.filter(name="y").update(name="x")
    assert [row["judge"] for row in table(run)] == ["x", "x (2)"]
