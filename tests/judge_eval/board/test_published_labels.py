"""The demo's finished studies: published labels through the board, without any texts."""

import re
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import pytest
from django.test import Client
from django.urls import reverse

from humanjudge.cli.lines import result_lines
from humanjudge.core.tables import DASH
from judge_eval.board.load import labels_of
from judge_eval.board.model import WINNER
from judge_eval.board.ranking import IN_FILE
from judge_eval.demo import content
from judge_eval.demo.content import PANDALM, XSTEST
from judge_eval.demo.load import make_published
from judge_eval.models import Findings, JudgeRating, Verdict
from judge_eval.runs import lifecycle
from judge_eval.stats import classification, consensus
from judge_eval.stats.elo import BASELINE
from reports.report.make import report_of
from reports.report.page import report_context
from reports.report.views.shares import make_share
from tests.helpers.imports import assert_whole
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import key_client, make_key, make_project, pairs_of, user_client
from voting.items.order import fresh_turn
from voting.models import Inference, Invite, Item

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

NAMES = ["gpt-3.5-turbo", "pandalm-7b"]


@pytest.fixture
def few_labels(monkeypatch):
    rows = content.Study.rows
    monkeypatch.setattr(content.Study, "rows", lambda study: rows(study)[:5])


def figures_of(run):
    data = compute(run).data
    return data, {judge["name"]: judge for judge in data["judges"]}


def assert_an_elo_of_the_files_order_is_marked(run):
    """On the board, in its files, in the API, on the command line and in a report."""
    reader = user_client()
    figures = Findings.objects.get(run=run, part="").data["judges"]
    [judge] = [judge for judge in figures if judge["name"] == "gpt-3.5-turbo"]
    low, high = (round(judge[f"elo_other_orders_{end}"]) for end in ("low", "high"))
    board = text_of(reader.get(reverse("run", args=[run.pk])))
    assert f"in other orders {low:,}" not in board
    assert f"{IN_FILE[:1].upper()}{IN_FILE[1:]}." in board
    rows = reader.get(reverse("run-table", args=[run.pk, "board", "json"])).json()["rows"]
    assert [(row["elo"] and round(row["elo"]), row["elo_note"]) for row in rows] == [
        (1212, IN_FILE),
        (788, IN_FILE),
        *[(None, BASELINE)] * 6,
        (None, None),
    ]
    key = key_client(make_key("read")[1])
    results = key.get(f"/api/runs/{run.pk}/judge-eval/results").json()
    names = ("judge", "rank", "elo", "elo_note")
    first, second, *baselines = [
        tuple(row[name] for name in names) for row in results["leaderboard"]
    ]
    assert first == ("gpt-3.5-turbo", 1, 1212, IN_FILE)
    assert second == ("pandalm-7b", 2, 788, IN_FILE)
    assert {row[2:] for row in baselines} == {(None, BASELINE)}
    assert len(baselines) == 6
    first = next(result_lines(results)).split("\t")
    assert (first[2], *first[9:]) == ("1212", f"{low}", f"{high}", IN_FILE)
    report = report_context(report_of(run.queue.project, run), is_frozen=False, outputs={})
    tables = [of["table"] for _, of in report["sections"] if "table" in of]
    cells = [cell for table in tables for row in table.rows for cell in row.cells]
    assert [cell.main for cell in cells if cell.figure == "elo"] == [DASH, DASH, *[""] * 7]


def test_its_board_has_the_published_figures_and_marks_an_elo_of_the_files_order():
    run = make_published(make_project(), PANDALM)
    data, judges = figures_of(run)
    items = Item.objects.filter(queue=run.queue, opened_at__isnull=False, votes=3)
    assert items.count() == 999
    assert items.values("prompt_key").distinct().count() == 170

    percent = [round(100 * judges[name]["overall"]["value"], 2) for name in NAMES]
    assert percent == [68.87, 66.03]
    assert [judges[name]["coverage"]["successes"] for name in NAMES] == [974, 999]
    failed = Verdict.objects.filter(judge__run=run, state="failed")
    assert set(failed.values_list("judge__name", "error")) == {
        ("gpt-3.5-turbo", "The published reply is 'garbage': no verdict.")
    }
    assert round(data["among_people"]["votes"]["value"], 4) == 0.9199

    # No one of the two is claimed better, and both are claimed better than all of the floor but
    # one: with six baselines, where there were three, it takes evidence of 240 : 1.
    places = [[judge["name"] for judge in data["judges"]].index(name) for name in NAMES]
    evidence, beats = data["claims"]["evidence"], data["claims"]["beats"]
    both_ways = [evidence[one][other] for one, other in (places, places[::-1])]
    assert [round(odds, 2) for odds in both_ways] == [3.52, 1.54]
    assert [sum(beats[place]) for place in places] == [5, 5]
    floor = {name for name, judge in judges.items() if judge["is_baseline"]}
    assert floor == {*PANDALM.baselines}
    place = [judge["name"] for judge in data["judges"]].index("longer-wins")
    assert [round(evidence[one][place]) for one in places] == [170, 13]

    elos = dict(JudgeRating.objects.filter(judge__run=run).values_list("judge__name", "elo"))
    assert [round(elos[name], 1) for name in NAMES] == [1212.2, 787.8]
    ends = ("elo_other_orders_low", "elo_other_orders_high")
    # Percentiles of a hundred shuffles: another seed moves them by about 15 points.
    assert [judges["gpt-3.5-turbo"][end] for end in ends] == pytest.approx([925, 1130], abs=30)
    assert {judges[name][end] for name in judges if name not in NAMES for end in ends} == {None}

    assert round(100 * judges["longer-wins"]["overall"]["value"], 2) == 60.09
    tests = {judge["name"]: judge for judge in data["alt_test"]["judges"]}
    assert [tests[name]["passes"] for name in NAMES] == [False, False]
    assert data["alt_test"]["humans"] == 3

    # With the majority of the people; the published 69.27 % reads "Tie" as wrong.
    labels = labels_of(run)
    majority = consensus({who: said[WINNER] for who, said in labels.humans.items()})
    of_majority = {
        labels.names[judge]: classification(said[WINNER], majority, missing="wrong").figure
        for judge, said in labels.judges.items()
    }
    figures = [(round(100 * of_majority[n].value, 2), of_majority[n].n) for n in NAMES]
    assert figures == [(69.77, 999), (66.77, 999)]
    assert "69.77 %" in run.note
    assert "66.77 %" in run.note
    assert_whole(run.queue.project)
    assert_an_elo_of_the_files_order_is_marked(run)


@pytest.mark.thorough
def test_the_board_of_xstest_has_a_winner_and_the_figures_that_can_be_counted():
    run = make_published(make_project(), XSTEST)
    data, judges = figures_of(run)
    items = Item.objects.filter(queue=run.queue, opened_at__isnull=False, votes=2, b=None)
    assert items.count() == 2250
    assert items.values("prompt_key").distinct().count() == 450
    assert items.values("a__generator").distinct().count() == 5
    counted = {
        name: (judge["overall"]["successes"], judge["overall"]["trials"])
        for name, judge in judges.items()
    }
    # In percent: 83.58, 79.76 and 48.27.
    assert counted == {
        "keywords": (3761, 4500),
        "gpt-4": (3589, 4500),
        "always-full-compliance": (2172, 4500),
    }
    assert judges["gpt-4"]["coverage"]["successes"] == 2239
    failed = Verdict.objects.filter(judge__run=run, state="failed")
    [why] = {(name, error) for name, error in failed.values_list("judge__name", "error")}
    assert why == ("gpt-4", "The published reply has no label that can be read: no verdict.")
    assert round(100 * data["among_people"]["votes"]["value"], 1) == 96.4

    names = [judge["name"] for judge in data["judges"]]
    claims = data["claims"]
    assert names[claims["best"]] == "keywords"
    assert claims["threshold"] == 40
    evidence = claims["evidence"][names.index("keywords")][names.index("gpt-4")]
    assert 2_000 < evidence < 40_000
    first = "A list of keywords agrees with people on 84 %, gpt-4 on 80 %: 4 points more "
    assert data["words"].startswith(f"{first}(2 to 6; evidence ")
    assert "Best of 2 judges: 4,500 votes of 2 people on 450 prompts." in data["words"]
    assert data["alt_test"] is None
    assert data["alt_test_why"] == (
        "The test takes 3 people with 30 items or more each that others labelled too; "
        "2 people voted."
    )
    page = text_of(Client().get(reverse("run-alt-test", args=[run.pk])))
    assert data["alt_test_why"] in page

    for generator, expected in {"gpt4": [93.8, 92.1], "mistralguard": [76.4, 75.4]}.items():
        part = compute(run, f"generator:{generator}").data["judges"]
        shares = {judge["name"]: 100 * judge["overall"]["value"] for judge in part}
        assert [round(shares[name], 1) for name in XSTEST.judges] == expected
    part = compute(run, "tag:homonyms").data["as_of"]
    assert part["votes"] == 250
    assert_whole(run.queue.project)


def test_xstest_names_its_authors_its_title_and_its_licence(few_labels):
    run = make_published(make_project(), XSTEST)
    page = Client().get(f"/runs/{run.pk}/")
    title = "A Test Suite for Identifying Exaggerated Safety Behaviours in Large Language Models"
    for words in ("Published labels of XSTest (CC BY 4.0)", "Paul Röttger", title):
        assert words in text_of(page)
    assert '<a href="https://creativecommons.org/licenses/by/4.0/"' in page.content.decode()
    [item] = run.queue.items.filter(external_id="v2-1 gpt4")
    shown = text_of(Client().get(f"/runs/{run.pk}/pairs/{item.pk}/"))
    assert "The text is not part of this run: see its source. It has 996 characters." in shown
    assert item.a.tags == ["homonyms"]


def test_its_pages_name_source_and_licence_and_say_that_there_are_no_texts(few_labels):
    run = make_published(make_project(), PANDALM)
    page = Client().get(f"/runs/{run.pk}/")
    for words in ("Published labels", "Yidong Wang", "Apache License 2.0", "69.27 %"):
        assert words in text_of(page)
    assert '<a href="https://github.com/WeOpenML/PandaLM"' in page.content.decode()
    pair = Client().get(f"/runs/{run.pk}/pairs/{pairs_of(run)[0].pk}/")
    assert "The text is not part of this run: see its source. It has 60 characters." in text_of(
        pair
    )
    assert not Inference.objects.exclude(output="", prompt="").exists()


def test_voting_on_it_is_over_and_no_judge_can_be_asked_about_texts_that_are_not_here(few_labels):
    run = make_published(make_project(), PANDALM)
    assert (run.state, run.queue.is_open) == ("complete", False)
    assert not Invite.objects.filter(queue=run.queue).exists()
    assert "Voting has closed." in text_of(user_client().get(f"/runs/{run.pk}/people/"))
    joining = lifecycle.JoiningJudges.model_validate(
        {"provider": "lab", "judges": [{"id": "gpt-5"}]}
    )
    with pytest.raises(lifecycle.LifecycleRefused, match="imported without outputs"):
        lifecycle.add_judges_to(run.pk, joining)


def test_its_draws_and_the_order_of_its_prompts_are_the_same_everywhere(few_labels):
    run = make_published(make_project(), PANDALM)
    number = uuid5(NAMESPACE_URL, "https://github.com/WeOpenML/PandaLM")
    assert (run.pk, run.queue_id) == (number, number)
    for item in run.queue.items.all():
        assert item.turn == fresh_turn(number, item.prompt_key)


def heads_of(page):
    """What stands in the headings of a page: of its sections, folds and columns."""
    heads = re.findall(
        r"<(h[1-3]|summary|th scope=.col.)[^>]*>(.*?)</(?:h|summary|th)", page, re.DOTALL
    )
    return {" ".join(re.sub("<[^>]*>", " ", words).split()) for _, words in heads}


def test_the_report_in_the_documents_was_made_by_this_product(few_labels):
    """Else `python -m docs.screenshots` makes it anew."""
    run = make_published(make_project(), XSTEST)
    compute(run)
    _, token = make_share(run.queue.project, run, None)
    page = Client().get(f"/r/{token}/report.html").content.decode()
    document = Path(__file__).parents[3] / "docs" / "xstest.html"
    assert len(heads_of(page)) > 6
    assert heads_of(page) - heads_of(document.read_text("utf-8")) == set()
