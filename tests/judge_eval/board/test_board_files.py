"""What the pages of findings show, to take away: tables as CSV and JSON, charts as SVG."""

import csv
import io
import re
from xml.etree import ElementTree

import pytest

from judge_eval.models import Findings, Judge, JudgeRating
from tests.helpers.board_rows import make_studied_run
from tests.helpers.run_findings import compute, voted_run
from tests.makers import judges_of, make_run, user_client

pytestmark = pytest.mark.django_db

TABLES = ["board", "alt-test", "models"]
PICTURE, *CHARTS = ["agreement", "winning_rates", "model_ratings"]


@pytest.fixture(scope="module")
def run(module_db):
    return voted_run()


@pytest.fixture(scope="module")
def studied(module_db):
    return compute(make_studied_run()).run


def get(run, path, client=None):
    return (client or user_client()).get(f"/runs/{run.pk}/{path}")


def csv_of(response):
    assert response.status_code == 200
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def test_the_board_as_a_table(studied):
    found = Findings.objects.get(run=studied).data
    response = get(studied, "tables/board.csv")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="a-run-of-pairs-board.csv"'
    rows = csv_of(response)
    assert [(row["name"], row["kind"]) for row in rows] == [
        ("good", "judge"),
        ("weak", "judge"),
        ("always-first", "baseline"),
        ("people among themselves", "people"),
    ]
    good, judge = rows[0], found["judges"][0]
    assert float(good["agreement"]) == judge["agreement"]["value"] == 0.9
    assert (good["agreement_successes"], good["agreement_n"]) == ("72", "80")
    assert float(good["overall_agreement_low"]) == judge["overall"]["low"]
    assert float(good["bradley_terry_low"]) == judge["rating"]["low"]
    rating = JudgeRating.objects.get(judge__run=studied, judge__name="good")
    assert float(good["elo"]) == rating.elo
    assert rows[-1]["agreement"] == "1.0"
    assert rows[-1]["elo"] == ""


def test_the_same_as_json_with_what_it_is_as_of(studied):
    found = Findings.objects.get(run=studied)
    answer = get(studied, "tables/board.json").json()
    assert answer["as_of"]["seq"] == found.seq
    assert answer["rows"][0]["name"] == "good"
    assert answer["rows"][0]["coverage"] == 1.0
    names = [set(row) for row in answer["rows"]]
    assert all(row == names[0] for row in names)


def test_a_part_has_a_file_of_its_own_without_elo(studied):
    assert get(studied, "tables/board.csv?part=ballot:decided").status_code == 409
    compute(studied, "ballot:decided")
    response = get(studied, "tables/board.csv?part=ballot:decided")
    assert "a-run-of-pairs-ballot-decided-board.csv" in response["Content-Disposition"]
    assert {row["elo"] for row in csv_of(response)} == {""}


def test_the_alt_test_and_the_boards_of_models_as_tables(run):
    found = Findings.objects.get(run=run, part="").data
    rows = csv_of(get(run, "tables/alt-test.csv"))
    assert {row["people_tested"] for row in rows} == {"3"}
    for row, judge in zip(rows, found["alt_test"]["judges"], strict=True):
        assert row["name"] == judge["name"]
        assert float(row["winning_rate_0.20"]) == judge["winning_rates"]["0.20"]
        assert float(row["advantage"]) == judge["advantage"]
    for judge in found["alt_test"]["judges"]:
        judge["humans"] = judge["humans"][:2]  # of very many people only some are listed
    Findings.objects.filter(run=run).update(data=found)
    rows = csv_of(get(run, "tables/alt-test.csv"))
    assert {row["people_tested"] for row in rows} == {"3"}
    rows = csv_of(get(run, "tables/models.csv"))
    assert [row["board"] for row in rows[:2]] == ["people", "people"]
    ranks = {row["model"]: row["rank"] for row in rows[:2]}
    assert ranks == {"generator-0": "1", "generator-1": "2"}
    assert len(rows) == 2 * 4


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_run_without_votes_has_tables_too(table, form):
    run = make_run(pairs=1)
    assert get(run, f"tables/{table}.{form}").status_code == 409
    compute(run)
    assert get(run, f"tables/{table}.{form}").status_code == 200


def test_no_name_is_calculated_by_a_spreadsheet():
    run = make_studied_run(people=1, pairs=4)
    Judge.objects.filter(pk=judges_of(run)[0].pk).update(name="=1+1")
    compute(run)
    assert "'=1+1" in {row["name"] for row in csv_of(get(run, "tables/board.csv"))}


@pytest.mark.parametrize("path", ["tables/other.csv", "tables/board.xls", "charts/other.svg"])
def test_what_there_is_not(path):
    run = make_studied_run(people=1, pairs=4)
    compute(run)
    assert get(run, path).status_code == 404


def test_a_chart_is_a_file_that_does_nothing_but_be_drawn(run):
    Judge.objects.filter(run=run, name="near-judge").update(name="<script>alert(1)</script>")
    compute(run)
    for chart in (PICTURE, *CHARTS):
        response = get(run, f"charts/{chart}.svg")
        assert response.status_code == 200
        assert response["Content-Type"] == "image/svg+xml; charset=utf-8"
        name = f'attachment; filename="a-run-of-pairs-{chart}.svg"'
        assert response["Content-Disposition"] == name
        assert response["X-Content-Type-Options"] == "nosniff"
        policy = response["Content-Security-Policy"]
        assert policy.startswith("default-src 'none';")
        assert "sandbox" in policy
        assert "script-src" not in policy
        drawing = ElementTree.fromstring(response.content)
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        assert not [part for part in drawing.iter() if part.tag.endswith("script")]


@pytest.mark.slow
def test_every_page_leads_to_its_files(run):
    client = user_client()
    for tab, path, charts in (
        ("board", "", [PICTURE]),
        ("alt-test", "alt-test/", CHARTS[:1]),
        ("models", "models/", CHARTS[1:]),
    ):
        page = get(run, path, client).content.decode()
        links = re.findall(rf'href="(/runs/{run.pk}/(?:tables|charts)/[^"]+)"', page)
        names = [link.rpartition("/")[2] for link in links]
        tables = [tab, "corrected"] if tab == "models" else [tab]
        files = {f"{table}.{form}" for table in tables for form in ("csv", "json")}
        assert {*names} == files | {f"{chart}.svg" for chart in charts}
        assert {client.get(link).status_code for link in links} == {200}


def test_the_files_of_a_part_are_of_that_part(run):
    compute(run, "ballot:decided")
    page = get(run, "?part=ballot:decided").content.decode()
    assert f"/runs/{run.pk}/tables/board.csv?part=ballot%3Adecided" in page
    assert f"/runs/{run.pk}/charts/agreement.svg?part=ballot%3Adecided" in page
