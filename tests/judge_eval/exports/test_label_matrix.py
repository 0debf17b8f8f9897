"""All labels of a run as one matrix: what is in its cells, that it comes back, and how it reads."""

import csv
import io
import math

import pandas
import pyarrow.parquet
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge_eval.exports.rows import labels_csv, labels_parquet
from judge_eval.imports import parquet
from judge_eval.imports.formats import read
from judge_eval.imports.import_report import ImportOptions
from judge_eval.stats import krippendorff_alpha
from tests.helpers.imports import errors_of, import_run, imported, pair, run_of, verdict, vote
from tests.makers import (
    key_client,
    make_key,
    make_many_votes,
    make_project,
    make_run,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.models import Voter

pytestmark = pytest.mark.django_db


def matrix(run):
    return list(csv.reader(io.StringIO("".join(labels_csv(run)), newline="")))


def study():
    return imported(
        *(pair(n) for n in (1, 2, 3)),
        verdict(1, "x", "A"),
        verdict(2, "x", "tie"),
        {"pair": "p3", "judge": "x", "error": "no answer"},
        vote(1, "ann", "A"),
        vote(2, "ann", "B"),
        vote(2, "ben", "both_bad"),
    )


def test_a_row_for_each_item_and_a_column_for_each_person_and_judge():
    run = study()
    who = dict(Voter.objects.values_list("external_id", "pseudonym"))
    heads, *rows = matrix(run)
    assert heads == ["pair", *(f"vote.{p}" for p in sorted(who.values())), "verdict.x"]
    cells = [dict(zip(heads, row, strict=True)) for row in rows]
    ann, ben = f"vote.{who['ann']}", f"vote.{who['ben']}"
    assert [(c["pair"], c[ann], c[ben], c["verdict.x"]) for c in cells] == [
        ("p1", "A", "", "A"),
        ("p2", "B", "both_bad", "tie"),
        ("p3", "", "", ""),
    ]
    assert "ann" not in str(heads)


def test_it_is_imported_again_with_the_same_labels():
    run = study()
    text = "".join(labels_csv(run)).encode()
    items, alone = read(io.BytesIO(text), "labels.csv"), ImportOptions(baselines=False)
    report = import_run(make_project("Elsewhere"), "Back", items, options=alone)
    assert errors_of(report) == []
    back = run_of(report)
    _, *before = matrix(run)
    heads, *after = matrix(back)
    assert (min(heads), len(after)) == ("pair", 3)
    assert [sorted(row) for row in after] == [sorted(row) for row in before]


def test_labels_are_those_that_alpha_is_computed_from():
    run = make_run(pairs=6, votes_wanted=2, baselines=())
    people = [make_voter(run), make_voter(run)]
    said = [(people[0], "ABABAB"), (people[1], "ABABBB")]
    votes = [(p, i, c[n]) for p, c in said for n, i in enumerate(pairs_of(run))]
    make_many_votes(run, votes)
    seal_all(run.queue.project)
    heads, *rows = matrix(run)
    humans = {
        head: {row[0]: row[n] for row in rows}
        for n, head in enumerate(heads)
        if head.startswith("vote.")
    }
    # Two coders, one of six units differs: alpha by Krippendorff's own formula.
    assert krippendorff_alpha(humans).value == pytest.approx(1 - (11 * 2) / (2 * 5 * 7), abs=1e-9)


def test_the_queries_do_not_grow_with_the_rows():
    counts = []
    for size in (2, 40):
        run = make_run(pairs=size)
        voters = Voter.objects.bulk_create(Voter(project=run.queue.project) for _ in range(size))
        make_many_votes(run, [(voters[n], each, "A") for n, each in enumerate(pairs_of(run))])
        seal_all(run.queue.project)
        with CaptureQueriesContext(connection) as queries:
            matrix(run)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_api_gives_it_away_as_a_file():
    run = study()
    client = key_client(make_key("manage")[1])
    answer = client.get(f"/api/runs/{run.pk}/export", {"format": "labels"})
    assert answer.headers["Content-Disposition"].endswith('-labels.csv"')
    assert b"".join(answer.streaming_content).decode() == "".join(labels_csv(run))


# --- Parquet --------------------------------------------------------------------------------------


def items(kind, *answers, **options):
    """A run of single items: of each, ann's vote and the verdict of a judge."""
    records = [
        {"item": f"i{n}", "output": f"Answer {n}"} | said
        for n, (vote, verdict) in enumerate(answers)
        for said in ({"voter": "ann", "vote": vote}, {"judge": "x", "verdict": verdict})
    ]
    return imported(*records, vote_kind=kind, **options)


@pytest.mark.parametrize(
    "make, cells",
    [
        (study, {"A", "B", "tie", "both_bad"}),
        (lambda: items("category", ("spam", "ham"), ("ham", "ham")), {"spam", "ham"}),
        (lambda: items("text", ("fine", "too long")), {"fine", "too long"}),
        (lambda: items("pass_flag", ("pass", "flag")), {"pass", "flag"}),
        (lambda: items("rating", (4, 5), (2, "1")), {1.0, 2.0, 4.0, 5.0}),
        (lambda: items("pass_flag", (0.8, "pass"), (0.25, "flag")), {0.8, 0.25, 1.0, 0.0}),
        (lambda: items("labels", (["x", "y"], ["x"]), ([], [])), {("x", "y"), ("x",), ()}),
    ],
    ids=["pairs", "category", "text", "pass_flag", "rating", "grades", "labels"],
)
def test_parquet_has_the_cells_of_the_csv_by_their_types(make, cells):
    run = make()
    frame = pandas.read_parquet(io.BytesIO(b"".join(labels_parquet(run))))
    heads, *rows = matrix(run)
    assert list(frame) == heads
    assert frame[heads[0]].tolist() == [row[0] for row in rows]
    seen = set()
    for head in heads[1:]:
        column = [row[heads.index(head)] for row in rows]
        for value, text in zip(frame[head].tolist(), column, strict=True):
            if value is None or (isinstance(value, float) and math.isnan(value)):
                assert text == ""
            elif isinstance(value, float):
                assert value == {"pass": 1, "flag": 0}.get(text) or value == float(text)
                seen.add(value)
            elif isinstance(value, str):
                assert value == text
                seen.add(value)
            else:
                assert list(value) == [word for word in text.split(";") if word]
                seen.add(tuple(value))
    assert seen == cells


def test_parquet_goes_out_a_group_of_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(parquet, "_CELLS", 1)
    monkeypatch.setattr(parquet, "_LEAST_ROWS", 2)
    taken = []
    rows = ([str(n), "A"] for n in range(5) if taken.append(n) is None)
    pieces = parquet.parquet_file(["pair", "verdict.x"], str, rows)
    first = next(pieces)
    assert (first[:4], taken) == (b"PAR1", [0, 1])
    file = pyarrow.parquet.ParquetFile(io.BytesIO(first + b"".join(pieces)))
    assert (file.num_row_groups, file.read()["pair"].to_pylist()) == (3, list("01234"))


def test_parquet_without_rows_has_its_columns():
    file = b"".join(parquet.parquet_file(["item", "vote.ann"], list, []))
    frame = pandas.read_parquet(io.BytesIO(file))
    assert (list(frame), len(frame)) == (["item", "vote.ann"], 0)


def test_parquet_is_imported_again_too():
    run = study()
    file = io.BytesIO(b"".join(labels_parquet(run)))
    report = import_run(make_project("Elsewhere"), "Back", read(file, "labels.parquet"))
    assert errors_of(report) == []
    # The cell of the verdict that failed is empty, and has failed here too.
    assert (report.new["votes"], report.new["verdicts"]) == (3, 3)
