"""The table of a run: what it holds, what nothing calculates, and that it makes the same board."""

import csv
import io
import json

import pytest

from judge_eval.exchange.export_files import run_csv
from judge_eval.exchange.formats import read
from judge_eval.exchange.import_report import ImportOptions
from judge_eval.models import JudgeRating, Run, Verdict
from tests.both.test_export_round_trip import make_eventful_run
from tests.helpers.bundles import empty_the_instance, findings_of
from tests.helpers.imports import errors_of, import_run, imported, pair, run_of, verdict, vote
from tests.makers import make_project, make_run, make_vote, make_voter, pairs_of, seal_all
from voting.models import Entry, Voter

pytestmark = pytest.mark.django_db

JUDGES = {"names": ["x", "random", "longer-wins"], "baselines": ["random", "longer-wins"]}
AT = "2026-03-04T05:06:07.000008Z"
# Numbers of rows stay where they were made.
HERE = {"id", "judge", "by"}


def table(run):
    return list(csv.DictReader(io.StringIO("".join(run_csv(run)), newline="")))


def brought_back(lines, project=None, **options):
    source = io.BytesIO("".join(lines).encode())
    report = import_run(
        project or make_project("Elsewhere"),
        "Back",
        read(source, "run.csv"),
        options=ImportOptions(**options),
    )
    assert errors_of(report) == []
    back = run_of(report)
    seal_all(back.queue.project)
    return back


def without(data, names):
    if isinstance(data, dict):
        return {key: without(value, names) for key, value in data.items() if key not in names}
    return [without(each, names) for each in data] if isinstance(data, list) else data


def board_of(run):
    """What the board shows of judges: every figure, and the ratings to the last digit."""
    # Votes that come back do so by import, whatever they did before.
    figures = without(findings_of(run), HERE | {"as_of", "disputed", "is_of_file"})
    ratings = JudgeRating.objects.filter(judge__run=run).order_by("judge__position")
    return figures, list(ratings.values_list("judge__name", "judge__provider", "elo", "agree"))


def same_but_for_providers(board):
    figures, ratings = board
    return figures, [(name, kind == "baseline", *rest) for name, kind, *rest in ratings]


def test_a_run_of_pairs_comes_back_with_its_board():
    run = make_eventful_run(**JUDGES)
    before, lines = same_but_for_providers(board_of(run)), list(run_csv(run))
    empty_the_instance()
    back = brought_back(lines)
    assert same_but_for_providers(board_of(back)) == before
    assert back.pk == run.pk


def test_both_orders_ties_that_are_wrong_and_names_that_are_shared_come_back():
    run = imported(
        *(record for n in (1, 2) for record in (pair(n), vote(n, "ann", "AB"[n % 2], voted_at=AT))),
        {"pair": "p1", "judge": "x", "pick_ab": "A", "pick_ba": "B"},
        {"pair": "p2", "judge": "x", "pick_ab": "A", "pick_ba": "A"},
        verdict(1, "y", "B", score_a=3.5, consistent=True, feedback="Fuller.", labels={"c": 2}),
        {"pair": "p2", "judge": "y", "error": "no reply"},
        inconsistent="wrong",
        baselines=True,
    )
    run.judges.filter(name="y").update(name="x")
    seal_all(run.queue.project)
    columns = [
        *("item__external_id", "state", "winner", "consistent", "picks", "first_picks"),
        *("score_a", "feedback", "error", "labels"),
    ]

    def verdicts(of):
        found = Verdict.objects.filter(judge__run=of).order_by("judge__position", "item__position")
        return list(found.values_list("judge__provider", *columns))

    before, figures, lines = verdicts(run), board_of(run), list(run_csv(run))
    empty_the_instance()
    back = brought_back(lines)
    assert verdicts(back) == before
    judges = list(back.judges.order_by("position").values_list("name", flat=True))
    names = {"name", "words", "more"}
    assert judges == ["x", "x (2)", "always-first", "random", "longer-wins"]
    assert without(board_of(back)[0], names) == without(figures[0], names)


SAID = {
    "pass_flag": ["pass", "flag", 0.25],
    "category": ["spam", "no spam", "spam"],
    "rating": [4, 1, 5],
    "labels": [["x", "y"], [], ["y"]],
    "text": ["Too long, and it rambles on about nothing.", "=1+1", "- a list"],
}


@pytest.mark.parametrize("kind", SAID)
def test_a_run_of_single_items_comes_back_with_its_board(kind):
    records = []
    for n in range(12):
        item = {"item": f"i{n}", "output": f"Answer {n}", "prompt": f"Q{n}", "model": "ada"}
        records.append(item | {"metadata": {"n": n}, "tags": ["a;b"], "time": AT})
        for who in ("ann", "bob"):
            said = SAID[kind][(n + len(who)) % 3]
            about = {"voted_at": AT, "comment": "'so'", "labels": {"sure": n / 2}}
            records.append({"item": f"i{n}", "voter": who, "vote": said} | about)
        told = {"judge": "x", "verdict": SAID[kind][n // 2 % 3], "score": 0.5}
        records.append({"item": f"i{n}"} | (told if n else {"judge": "x", "error": "no reply"}))
    run = imported(*records, vote_kind=kind, baselines=kind != "text")
    seal_all(run.queue.project)
    before, lines = board_of(run), list(run_csv(run))
    votes = list(Entry.objects.filter(kind="vote").order_by("seq").values(*VOTE))
    empty_the_instance()
    back = brought_back(lines)
    assert board_of(back) == before
    assert list(Entry.objects.filter(kind="vote").order_by("seq").values(*VOTE)) == votes
    assert back.queue.options == run.queue.options
    output = pairs_of(back)[1].a
    assert (output.tags, output.metadata["n"]) == (["a;b"], 1)
    assert list(run_csv(back))[2:14] == lines[2:14]


def test_costs_criteria_and_votes_wanted_come_back():
    criteria = [
        {"name": "safe", "graded": False, "weight": 1.0, "gate": True},
        {"name": "short", "graded": True, "weight": 3.0, "gate": False},
    ]

    def said(n, who, safe, short):
        return {"item": f"i{n}", **who, "labels": {"safe": safe, "short": short}}

    costs = {"cost_usd": 0.000012345, "latency_ms": 812.25}
    run = imported(
        *({"item": f"i{n}", "output": f"Answer {n}"} for n in range(3)),
        {"item": "i3", "output": "Answer 3", "votes_wanted": 5},
        *(said(n, {"voter": "ann", "voted_at": AT}, "pass", 1 - n / 8) for n in range(4)),
        *(said(n, {"voter": "bob", "voted_at": AT}, "flag", 1) for n in range(2)),
        *(said(n, {"judge": "x"} | costs, "pass", 0.5) for n in range(3)),
        {"item": "i3", "judge": "x", "error": "no reply", "cost_usd": 1, "unpriced": 2},
        votes_per_pair=2,
        criteria=criteria,
        extra_votes=3,
        baselines=True,
    )
    seal_all(run.queue.project)
    assert run.queue.options == {"criteria": criteria, "extra_votes": 3}
    columns = ("votes", "votes_wanted", "extra_votes")
    wanted = list(run.queue.items.order_by("position").values_list(*columns))
    assert [row[1:] for row in wanted] == [(3, 1), (3, 1), (2, 0), (5, 0)]
    before, lines = board_of(run), list(run_csv(run))
    costs = [(row["cost_usd"], row["unpriced"], row["latency_ms"]) for row in table(run)[5:9]]
    assert costs == [*[("0.000012345", "0", "812.25")] * 3, ("1", "2", "")]
    empty_the_instance()
    back = brought_back(lines)
    assert board_of(back) == before
    assert (back.queue.options, back.queue.votes_per_item) == (run.queue.options, 2)
    assert list(back.queue.items.order_by("position").values_list(*columns)) == wanted
    rows = [{**row, "voter": ""} for row in csv.DictReader(io.StringIO("".join(lines)))]
    assert [{**row, "voter": ""} for row in table(back)] == rows


VOTE = ("item__external_id", "choice", "value", "category", "comment", "labels", "at")


def test_into_the_same_place_it_is_another_run():
    run = make_run(pairs=2, judges=3, **JUDGES)
    back = brought_back(run_csv(run))
    assert back.pk != run.pk
    assert Run.objects.count() == 2


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "'", "  ="])
def test_no_cell_is_calculated_by_a_spreadsheet_and_every_text_comes_back(first):
    evil = f'{first}HYPERLINK("http://evil.example")'
    said = {"prompt": evil, "output_a": evil, "output_b": "", "generator_a": evil}
    run = imported(pair(1, **said), vote(1, "v", "A", comment=evil))
    _, item, ballot = table(run)
    assert [item["output_a"], item["prompt"], ballot["comment"]] == [f"'{evil}"] * 3
    assert item["output_b"] == "'"
    [back] = pairs_of(brought_back(run_csv(run)))
    assert (back.a.output, back.a.prompt, back.b.output) == (evil, evil, "")


def test_outputs_that_were_not_imported_stay_away():
    run = imported(vote(1, "ann", "A"))
    assert table(run)[1]["output_a"] == ""
    assert not brought_back(run_csv(run)).queue.is_open


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


@pytest.mark.parametrize(
    "change, said",
    [
        ({"baselines": ["gpt-9"], "judges": ["gpt-9"]}, "no baseline is called 'gpt-9'"),
        ({"options": {"epsilon": 7}}, "epsilon: must be less than 1"),
        ({"queue": "no number"}, "queue: "),
        ({"more": 1}, "more: unknown"),
    ],
)
def test_what_it_says_of_the_run_is_checked(change, said):
    header, first, *rest = run_csv(make_run())
    [[cell, *others]] = csv.reader([first])
    about = io.StringIO()
    csv.writer(about).writerow([json.dumps(json.loads(cell) | change), *others])
    source = io.BytesIO("".join([header, about.getvalue(), *rest]).encode())
    report = import_run(make_project("Elsewhere"), "Back", read(source, "run.csv"))
    assert any(said in error for error in errors_of(report)), errors_of(report)
    assert Run.every.count() == 1
