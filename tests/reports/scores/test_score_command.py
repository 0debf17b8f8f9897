"""Figures of a run as files: `manage.py score`, as it is typed."""

from copy import deepcopy
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from judge_eval.stats import SCORERS
from tests.helpers.scores import (
    ACCURACY,
    VERDICTS,
    VOTES,
    MoreAs,
    files_in,
    page_of,
    read_csv,
    read_json,
    scored,
    voted_run,
)
from tests.makers import (
    make_run,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.models import Voter

SHARED = Path(__file__).resolve().parents[4] / "shared"
EXACT = 1e-9

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _scorers(monkeypatch):
    monkeypatch.setitem(SCORERS, "more_as", MoreAs)


@pytest.fixture(scope="module")
def made_once(module_db):
    return voted_run()


@pytest.fixture
def run(made_once):
    return deepcopy(made_once)


# --- the files ----------------------------------------------------------------------------------


def test_the_figures_are_those_worked_out_by_hand(run, tmp_path):
    out = tmp_path / "out"
    scored(run, out, [{"scorer": "classification"}])
    assert read_csv(out) == [
        {"judge_id": "gpt", ACCURACY: str((3 / 4 + 2 / 4 + 2 / 4) / 3)},
        {"judge_id": "llama", ACCURACY: str((3 / 3 + 2 / 3 + 2 / 3) / 3)},
    ]
    found = read_json(out / "scores" / "classification_accuracy" / ACCURACY / "llama_result.json")
    assert found["scores"] == {"accuracy": pytest.approx(7 / 9, abs=EXACT)}
    assert found["counts"] == {"accuracy": 9}
    figure = found["figures"]["accuracy"]
    assert figure["n"] == 9
    low, high = figure["interval"]
    assert low < 7 / 9 < high
    [gap] = figure["left_out"]
    assert (gap["what"], gap["count"]) == ("labels", 3)
    assert gap["why"] == "the judge gave that item no label"
    assert found["scorer_name"] == "classification_accuracy"
    assert (found["task_name"], found["task_strategy"]) == ("winner", "single")
    assert found["annotator_aggregation"] == "individual_average"
    assert found["judge_id"] == "llama"
    assert found["metadata"]["ground_truth_method"] == "individual_human_comparison"
    people = dict(Voter.objects.values_list("external_id", "pseudonym"))
    by_human = {name: found["by_human"][people[name]]["value"] for name in VOTES}
    assert by_human == pytest.approx({"ann": 1, "ben": 2 / 3, "cem": 2 / 3}, abs=EXACT)


@pytest.mark.parametrize("by_config", [True, False], ids=["in the config", "as an option"])
def test_a_part_of_a_run(tmp_path, by_config):
    out, metrics = tmp_path / "out", [{"scorer": "classification"}]
    if by_config:
        scored(voted_run(), out, metrics, part="ballot:decided")
    else:
        scored(voted_run(), out, metrics, "--part", "ballot:decided")
    folder = out / "scores" / "classification_accuracy" / ACCURACY
    counts = {
        name: read_json(folder / f"{name}_result.json")["counts"]["accuracy"] for name in VERDICTS
    }
    # Three people chose a side on three pairs; the other judge failed on one of these.
    assert counts == {"gpt": 9, "llama": 6}
    assert read_json(out / "report.json")["part"] == "only votes and verdicts for A or B"
    assert "only votes and verdicts for A or B" in (out / "scores" / "score_report.html").read_text(
        "utf-8"
    )


def test_a_part_that_cannot_be(run, tmp_path):
    with pytest.raises(CommandError, match="part: tag:…, generator:…, group:… or ballot:decided"):
        scored(run, tmp_path / "out", [{"scorer": "classification"}], part="x")


def test_the_folders_are_called_as_meta_evaluator_calls_them(run, tmp_path):
    out = tmp_path / "out"
    config = [
        {"scorer": "classification", "task_names": ["rejection"]},
        {"scorer": "classification", "options": {"metric": "f1", "average": "macro"}},
        {
            "scorer": "cohen_kappa",
            "task_names": ["winner", "rejection"],
            "task_strategy": "multitask",
        },
        {"scorer": "text_similarity", "task_names": ["rejection"], "display_name": "how alike"},
    ]
    scored(run, out, config, has_charts=True)
    both = "cohens_kappa_2tasks_7330f83b_multitask"
    charts = {
        "classification_accuracy/classification_accuracy_1tasks_22e76eaf_single": "accuracy_scores",
        "classification_f1/classification_f1_1tasks_978f6f60_single": "f1_scores",
        f"cohens_kappa/{both}": "cohens_kappa_scores",
        "text_similarity/how alike": "text_similarity_scores",
    }
    results = {f"scores/{f}/{judge}_result.json" for f in charts for judge in VERDICTS}
    reports = {"scores/score_report.csv", "scores/score_report.html", "report.json"}
    reports |= {
        f"scores/{f}/{name}.{kind}" for f, name in charts.items() for kind in ("png", "svg")
    }
    found = set(files_in(out))
    assert results | reports <= found
    assert {file for file in found if file.endswith(".json")} == results | {"report.json"}
    multi = read_json(out / "scores" / "cohens_kappa" / both / "gpt_result.json")
    assert multi["task_name"] == "winner, rejection"
    assert set(multi["by_task"]) == {"winner", "rejection"}


def test_the_time_the_ledger_and_what_was_not_counted(run, tmp_path):
    out = tmp_path / "out"
    scored(run, out, [{"scorer": "classification"}])
    about = read_json(out / "report.json")
    project = run.queue.project
    project.refresh_from_db()
    assert about["run"] == {"id": str(run.pk), "name": "A study"}
    assert about["ledger"] == {"seq": project.head_seq, "head": project.ledger_head}
    assert about["labels"] == {"people": 3, "votes": 12, "pairs": 4}
    assert about["not_counted"] == ["1 verdict of llama failed"]
    result = out / "scores" / "classification_accuracy" / ACCURACY / "gpt_result.json"
    assert read_json(result)["timestamp"] == about["made_at"]
    texts = page_of(out).texts
    for text in (
        "A study: how well the judges agree with people",
        project.ledger_head,
        str(run.pk),
    ):
        assert text in texts
    assert "12 by 3 people on 4 pairs (all pairs)" in texts
    not_counted = texts.index("verdict of llama")
    assert texts[not_counted - 1 : not_counted + 2] == ["1", "verdict of llama", "failed"]
    assert "3 labels: the judge gave that item no label" in texts


def test_votes_that_do_not_count_are_told(tmp_path):
    run = make_run(pairs=2)
    first, second = pairs_of(run)
    make_vote(make_voter(run), first)
    seal_all(run.queue.project)
    make_vote(make_voter(run), second)
    out = tmp_path / "out"
    scored(run, out)
    assert read_json(out / "report.json")["not_counted"] == [
        "1 vote was not yet sealed when this was made"
    ]


def test_what_is_scored_where_nobody_said_what(run, tmp_path):
    out = tmp_path / "out"
    printed = scored(run, out)
    assert sorted(path.name for path in (out / "scores").iterdir()) == [
        "alt_test",
        "classification_accuracy",
        "cohens_kappa",
        "krippendorff_alpha",
        "score_report.csv",
        "score_report.html",
    ]
    [row, _] = read_csv(out)
    assert list(row) == [
        "judge_id",
        "classification_accuracy_1tasks_978f6f60_single",
        "cohens_kappa_1tasks_978f6f60_single",
        "alt_test_1tasks_978f6f60_single_winning_rate",
        "alt_test_1tasks_978f6f60_single_advantage_prob",
        "krippendorff_alpha_1tasks_978f6f60_single",
        "krippendorff_alpha_1tasks_978f6f60_single_with_judge",
    ]
    assert (row[list(row)[3]], row[list(row)[4]]) == ("", "")
    assert "gpt                      0.583 [" in printed
    assert "they have fewer than 30 items to test on" in " ".join(page_of(out).texts)


def test_people_stand_beneath_the_judges_and_their_alpha_is_told_once(run, tmp_path):
    out = tmp_path / "out"
    printed = scored(run, out, has_charts=True)
    assert printed.count("people among themselves") == 2
    assert "Krippendorff's alpha, winner: krippendorff_alpha_1tasks_978f6f60_single" in printed
    page = page_of(out)
    heads = [attrs["title"] for tag, attrs in page.tags if tag == "th" and "title" in attrs]
    alpha = [head for head in heads if "krippendorff" in head]
    assert [head.endswith("_with_judge") for head in alpha] == [True]
    assert page.texts.count("Krippendorff's alpha, winner") == 1, "the heading of its section"
    assert "people among themselves" in page.texts
    [drawn] = out.glob("scores/krippendorff_alpha/*/krippendorff_alpha_scores.svg")
    drawing = drawn.read_text("utf-8")
    assert drawing.count("people among themselves") >= 1, "its bar"
    assert "gpt" not in drawing


def test_notes_that_hold_for_all_judges_are_said_once(run, tmp_path):
    out = tmp_path / "out"
    metric = {"scorer": "cohen_kappa", "annotator_aggregation": "majority_vote"}
    scored(run, out, [metric])
    texts = page_of(out).texts
    assert len([text for text in texts if "which their consensus hides" in text]) == 1
    assert "all judges" in texts


def test_a_run_without_votes_has_reasons_instead_of_figures(tmp_path):
    out = tmp_path / "out"
    assert "\u2013" in scored(make_run(), out)
    assert [set(row.values()) for row in read_csv(out)] == [{"judge-0", ""}, {"judge-1", ""}]
    assert "no person labelled this task" in page_of(out).texts


@pytest.mark.real_data
@pytest.mark.skipif(not (SHARED / "cases").exists(), reason="not run: no ../shared/data")
def test_the_alt_test_is_as_recorded(tmp_path):
    case = read_json(SHARED / "cases" / "alttest_1_30x3.json")
    items = list(case["input"]["judge"])
    votes = {name: [said[item] for item in items] for name, said in case["input"]["humans"].items()}
    run = voted_run({"j": [case["input"]["judge"][item] for item in items]}, votes)
    out = tmp_path / "out"
    scored(run, out, [{"scorer": "alt_test", "options": {"epsilon": 0.2}}])
    expected = case["output"]["default"]
    name = "alt_test_1tasks_978f6f60_single"
    found = read_json(out / "scores" / "alt_test" / name / "j_result.json")
    assert list(found["scores"]["winning_rate"]) == [f"{n * 0.05:.2f}" for n in range(7)]
    assert found["scores"]["winning_rate"] == pytest.approx(
        expected["scores"]["winning_rate"], abs=EXACT
    )
    advantage = expected["scores"]["advantage_probability"]
    assert found["scores"]["advantage_probability"] == pytest.approx(advantage, abs=EXACT)
    metadata = dict(found["metadata"])
    people = dict(Voter.objects.values_list("pseudonym", "external_id"))
    advantages = metadata.pop("human_advantage_probabilities")
    against = {people[who]: both for who, both in advantages.items()}
    recorded = dict(expected["metadata"])
    for human, both in recorded.pop("human_advantage_probabilities").items():
        assert against[human] == pytest.approx(both, abs=EXACT)
    assert recorded.items() <= metadata.items()
    [row] = read_csv(out)
    assert float(row[f"{name}_winning_rate"]) == pytest.approx(2 / 3, abs=EXACT)
    assert float(row[f"{name}_advantage_prob"]) == pytest.approx(advantage, abs=EXACT)


# --- one's own scorers --------------------------------------------------------------------------


def test_a_scorer_of_one_s_own_is_in_every_report(tmp_path):
    out = tmp_path / "out"
    # On four pairs the people wrote 6 times A; on the last three, all that llama judged, 3 times.
    run = voted_run({"gpt": ("A", "A", "A", "B"), "llama": (None, "B", "B", "tie")})
    printed = scored(run, out, [{"scorer": "classification"}, {"scorer": "more_as"}])
    name = "more_as_1tasks_978f6f60_single"
    gpt, llama = (float(row[name]) for row in read_csv(out))
    assert (gpt, llama) == ((9 - 6) / 12, (0 - 3) / 9)
    folder = out / "scores" / "more_as" / name
    assert read_json(folder / "gpt_result.json")["scores"] == {"more_as": 0.25}
    assert (folder / "all_judges.txt").read_text() == f"gpt=0.25 llama={-1 / 3}"
    assert f"(2) More as, winner: {name}" in printed
    assert "0.250 n=12 *" in printed
    page = page_of(out)
    assert page.texts.count("More as, winner") == 2
    assert page.texts.count(name) == 1
    about = "more_as of the task winner; single; the mean over people; nearest to 0 is best. "
    assert f"{about}In the files:" in page.texts


def test_the_best_value_is_marked_on_the_page_and_in_the_terminal(run, tmp_path):
    out = tmp_path / "out"
    printed = scored(run, out, [{"scorer": "classification"}])
    lines = [(line.split()[0], line.endswith("*")) for line in printed.splitlines()[1:3]]
    assert lines == [("llama", True), ("gpt", False)]
    page = page_of(out)
    marked = [
        attrs
        for tag, attrs in page.tags
        if tag == "td" and "best" in attrs.get("class", "").split()
    ]
    assert [float(attrs["data-sort"]) for attrs in marked] == [pytest.approx(7 / 9)]


def test_the_page_holds_every_chart_with_words_for_it(run, tmp_path):
    out = tmp_path / "out"
    scored(run, out, [{"scorer": "classification"}, {"scorer": "more_as"}], has_charts=True)
    page = page_of(out)
    drawings = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(drawings) == 2
    assert any("llama 0.78" in attrs["alt"] for attrs in drawings)
    assert all(attrs["src"].startswith("data:image/svg+xml;base64,") for attrs in drawings)
    dark = [attrs["media"] for tag, attrs in page.tags if tag == "source"]
    assert dark == 2 * ["screen and (prefers-color-scheme: dark)"]
    assert sorted(path.name for path in out.glob("scores/*/*/*_scores.*")) == [
        "accuracy_scores.png",
        "accuracy_scores.svg",
        "more_as_scores.png",
        "more_as_scores.svg",
    ]


def test_a_style_sheet_restyles_the_charts(tmp_path):
    run, path, sheet = voted_run(), tmp_path / "metrics.yaml", tmp_path / "house.mplstyle"
    sheet.write_text('figure.facecolor: "#fedcba"')
    path.write_text("metrics: [classification]\nstyle: house.mplstyle\n")
    scored(run, tmp_path / "named", None, "--config", str(path), has_charts=True)
    scored(run, tmp_path / "given", ["classification"], "--style", str(sheet), has_charts=True)
    for out in ("named", "given"):
        [drawn] = (tmp_path / out).rglob("accuracy_scores.svg")
        assert "#fedcba" in drawn.read_text()
    sheet.write_text("animation.ffmpeg_path: /bin/sh")
    with pytest.raises(CommandError, match=r"style: line 1: animation\.ffmpeg_path: this"):
        scored(run, tmp_path / "none", None, "--style", str(sheet), has_charts=True)


def test_a_scorer_named_by_its_path(run, tmp_path):
    (tmp_path / "scorers_by_path.py").write_text(
        "from judge_eval.stats import ClassificationScorer\n"
        "class Mine(ClassificationScorer):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.scorer_name = 'mine'\n"
    )
    out = tmp_path / "out"
    scored(run, out, [{"scorer": "scorers_by_path.Mine"}])
    assert "mine_1tasks_978f6f60_single" in read_csv(out)[0]


def test_ratings_are_in_an_order_so_their_alpha_is_ordinal_unless_another_is_asked_for(tmp_path):
    run = make_single_run([["1"], ["3"], ["5"]], kind="rating", ballot=list("12345"))
    for ratings in ("135", "244"):
        voter = make_voter(run)
        for item, rating in zip(pairs_of(run), ratings, strict=True):
            make_vote(voter, item, rating)
    seal_all(run.queue.project)
    alpha = {"scorer": "krippendorff_alpha"}
    figures = {}
    for number, metrics in enumerate([None, [alpha], [alpha | {"options": {"level": "nominal"}}]]):
        out = tmp_path / str(number)
        scored(run, out, metrics) if metrics else scored(run, out)
        for path in (out / "scores").glob("krippendorff_alpha*/*/*.json"):
            found = read_json(path)
            figures[number] = (found["scorer_name"], found["scores"]["krippendorff_alpha"])
    assert [name for name, _ in figures.values()] == [
        "krippendorff_alpha_ordinal",
        "krippendorff_alpha_ordinal",
        "krippendorff_alpha",
    ]
    assert figures[0][1] > 0.5 > figures[2][1]
