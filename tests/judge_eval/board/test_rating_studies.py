"""A study of ratings, from its import to its board: judges are ranked by the order of ratings."""

import json
from collections import Counter

import pytest
from django.test import Client

from humanjudge.cli.lines import result_lines
from judge_eval.board.model import RunFindings
from judge_eval.exports.export import export_run
from reports.report.bundle import verify
from reports.report.views.shares import make_share
from tests.helpers import oracles
from tests.helpers.bundles import empty_the_instance, numbers_of, restored
from tests.helpers.imports import added, assert_whole, errors_of, imported
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.helpers.run_rows import make_draft, make_provider
from tests.makers import key_client, make_key, user_client
from voting.models import Entry, Item, Voter

pytestmark = pytest.mark.django_db

# What ann rates the two answers to each of the first prompts; to the others there is one answer.
PAIRS = [(5, 3), (4, 5), (5, 4), (3, 5), (5, 5), (4, 2), (5, 3), (5, 4), (2, 5), (5, 1), (5, 4)]
ALONE = [5, 4, 5, 2, 5]


def study(**options):
    """The judge *flat* says 5 of nearly all, as people do; *keen* has their order, one lower."""
    answers = [
        (f"q{n}", f"q{n}.{m}", r) for n, both in enumerate(PAIRS) for m, r in enumerate(both)
    ]
    answers += [(f"alone{n}", f"alone{n}", rating) for n, rating in enumerate(ALONE)]
    records = []
    for prompt, name, rating in answers:
        about = {"item": name, "prompt": prompt, "output": f"Answer {name}", "generator": "ada"}
        records += [
            about,
            {"item": name, "judge": "flat", "verdict": 4 if name == "q2.0" else 5},
            {"item": name, "judge": "keen", "verdict": max(rating - 1, 1)},
            {"item": name, "voter": "ann", "vote": rating},
        ]
    return imported(*records, vote_kind="rating", **options)


def findings_of(run, part=""):
    found = RunFindings.read(compute(run, part).data)
    return found, {judge.name: judge for judge in found.judges}


def test_judges_of_ratings_are_ranked_by_the_order_of_ratings_and_not_by_equal_ones():
    found, judges = findings_of(study())
    flat, keen = judges["flat"], judges["keen"]
    assert flat.of_ratings.exact.value > keen.of_ratings.exact.value == 1 / 27
    assert (keen.overall.value, flat.overall.value) == (1, pytest.approx(0.5, abs=0.05))
    assert keen.overall.n == flat.overall.n == 13 - found.unordered.alike
    assert "By people's order, keen (100 %) leads flat (" in found.words
    # Eleven prompts of two answers, two couples, and one prompt that waits for another.
    units = found.unordered
    assert (units.units, units.of_one_item, units.not_whole) == (13, 1, 0)
    assert 1 <= units.alike <= 3


def test_couples_are_fixed_in_the_ledger():
    run = study()
    items = Item.objects.filter(queue=run.queue_id)
    keys = items.filter(is_coupled=True).values_list("prompt_key", flat=True)
    assert sorted(Counter(keys).values()) == [1, 2, 2]
    entries = Entry.objects.filter(queue=run.queue_id, kind="verdicts")
    told = {entry.item_id: entry.payload["prompt"] for entry in entries}
    assert told == dict(items.values_list("pk", "prompt_key"))
    assert_whole(run.queue.project)


def test_an_import_that_tells_more_of_a_closed_item_does_not_split_its_couple():
    names = ("first", "second")
    items = [{"item": name, "output": f"Answer {name}", "generator": "ada"} for name in names]
    run = imported(*items, vote_kind="rating", ballot=["1", "2", "3"])
    Item.objects.update(opened_at=None)
    told = [item | {"prompt": f"Question {item['item']}"} for item in items]
    assert errors_of(added(run, *told, {"item": "first", "voter": "ann", "vote": 3})) == []
    couple = list(run.queue.items.values_list("a__prompt", "prompt_key", "is_coupled"))
    assert {prompt for prompt, *_ in couple} == {"Question first", "Question second"}
    assert len({tuple(others) for _, *others in couple}) == 1
    assert_whole(run.queue.project)


def test_board_api_files_and_command_line_rank_by_the_order():
    run = study(baselines=True)
    compute(run)
    shown = text_of(user_client().get(f"/runs/{run.pk}/"))
    for words in (
        "By people's order, keen (100 %) leads flat (",
        "% in people's order",
        "Ratings have no ELO: a single rating is neither right nor wrong.",
        "Same rating",
        "1 prompt with one output cannot be compared yet.",
    ):
        assert words in shown
    assert "Row better than column" not in shown
    client = key_client(make_key("read")[1])
    results = client.get(f"/api/runs/{run.pk}/judge-eval/results").json()
    first, second, *floor = results["leaderboard"]
    assert [first["judge"], second["judge"]] == ["keen", "flat"]
    assert second["agree"] > first["agree"]
    assert {row["judge"] for row in floor} == {"always-3", "longer-higher", "random"}
    assert {row["elo"] for row in results["leaderboard"]} == {None}
    assert next(result_lines(results)).split("\t")[1] == "keen"
    answer = client.get(f"/api/runs/{run.pk}/findings").json()
    assert answer["rows"][0][:2] == ["keen", "100.0"]
    assert answer["words"] == RunFindings.read(answer).words
    table = json.loads(user_client().get(f"/runs/{run.pk}/tables/board.json").content)["rows"]
    assert [row["name"] for row in table[:2]] == ["keen", "flat"]
    assert table[0]["overall_agreement"] == 1 > table[1]["overall_agreement"]
    assert table[0]["exact_agreement"] < table[1]["exact_agreement"]
    assert {row["elo"] for row in table} == {None}
    always = next(row for row in table if row["name"] == "always-3")
    assert (always["overall_agreement"], always["overall_agreement_low"]) == (0.5, None)


def test_until_figures_are_computed_equal_ratings_rank_nobody():
    run = study()
    results = key_client(make_key("read")[1]).get(f"/api/runs/{run.pk}/judge-eval/results").json()
    assert {row["overall_agreement"] for row in results["leaderboard"]} == {None}


def test_the_board_says_where_spearman_puts_two_judges_the_other_way_round():
    """*steps* has the order of both answers to each prompt, and rates each prompt anew."""
    records = []
    for n, (low, high) in enumerate([(1, 2), (2, 3), (3, 4), (4, 5)] * 3):
        for m, rating in enumerate((low, high)):
            name = f"q{n}.{m}"
            about = {"item": name, "prompt": f"q{n}", "output": name, "generator": "ada"}
            alike = {"item": name, "judge": "alike", "verdict": low}
            steps = {"item": name, "judge": "steps", "verdict": 6 - high + m}
            records += [about, alike, steps, {"item": name, "voter": "ann", "vote": rating}]
    found, judges = findings_of(imported(*records, vote_kind="rating"))
    assert judges["steps"].overall.value > judges["alike"].overall.value
    people = [1, 2, 2, 3, 3, 4, 4, 5]
    rated = {"alike": [1, 1, 2, 2, 3, 3, 4, 4], "steps": [4, 5, 3, 4, 2, 3, 1, 2]}
    for name, ratings in rated.items():
        expected = oracles.stats.spearmanr(people, ratings).statistic
        assert judges[name].of_ratings.spearman == pytest.approx(expected)
    far = "By Spearman's rank correlation alike (0.92) stands above steps (-0.69)."
    assert [sentence for sentence in found.notes if "Spearman" in sentence] == [far]


def test_a_group_of_voters_has_the_order_of_its_own_ratings():
    run = study()
    Voter.objects.filter(project=run.queue.project, external_id="ann").update(group="nurses")
    found, _ = findings_of(run)
    [group] = found.groups
    of_group, of_all = ([judge.overall.value for judge in of.judges] for of in (group, found))
    assert of_group == of_all


def test_a_bundle_keeps_couples_and_figures():
    run = study(baselines=True)
    couples = set(run.queue.items.values_list("external_id", "prompt_key", "is_coupled"))
    before, lines = numbers_of(run), list(export_run(run))
    empty_the_instance()
    [back] = restored(lines)
    assert set(back.queue.items.values_list("external_id", "prompt_key", "is_coupled")) == couples
    assert numbers_of(back) == before
    assert_whole(back.queue.project)


def test_a_report_says_the_same_lists_the_same_order_and_its_bundle_verifies(tmp_path):
    run = study(baselines=True)
    compute(run)
    _, token = make_share(run.queue.project, run, None)
    shown = text_of(user_client().get(f"/r/{token}/"))
    assert "By people's order, keen (100 %) leads flat (" in shown
    assert "% in people's order" in shown
    told = json.loads(user_client().get(f"/r/{token}/report.json").content)
    assert told["runs"][0]["findings"]["unordered"]["units"] == 13
    table = user_client().get(f"/r/{token}/judges.csv").content.decode()
    assert table.index("keen") < table.index("flat")
    path, head = tmp_path / "bundle.zip", run.queue.project.ledger_head
    path.write_bytes(b"".join(Client().get(f"/r/{token}/bundle.zip").streaming_content))
    empty_the_instance()
    assert verify(path, head).report.head.hash == head


@pytest.mark.parametrize(
    "models, judges, prompts, said",
    [
        (["model-a"], ["judge-a", "judge-b"], 15, "7 prompts are too few to tell judges apart"),
        (["model-a"], ["judge-a", "judge-b"], 16, ""),
        (["model-a", "model-b"], ["judge-a", "judge-b"], 8, ""),
        # Against a judge that always gives the same rating a prompt brings half.
        (["model-a", "model-b"], ["judge-a", "random"], 8, "8 prompts are too few"),
    ],
)
def test_a_draft_counts_couples_and_what_a_prompt_can_bring_against_a_constant(
    models, judges, prompts, said
):
    make_provider()
    texts = [f"Question {n}" for n in range(prompts)]
    run = make_draft(items={"kind": "rating"}, models=models, judges=judges, prompts=texts)
    shown = text_of(user_client().get(f"/runs/{run.pk}/draft/"))
    assert ("too few to tell" in shown) == bool(said)
    assert said in shown


@pytest.mark.parametrize("is_graded", [True, False])
def test_graded_passes_and_flags_are_ranked_by_order_and_plain_ones_by_agreement(is_graded):
    """*soft* passes everything, with a score that rises as people's grades do."""
    records = []
    for n in range(12):
        for m, grade in enumerate((0.9, 0.4)):
            name = f"q{n}.{m}"
            vote = grade if is_graded else ("pass" if grade > 0.5 else "flag")
            score = {"score": grade / 2 + 0.5} if is_graded else {}
            records += [
                {"item": name, "prompt": f"q{n}", "output": name, "generator": "ada"},
                {"item": name, "judge": "soft", "verdict": "pass"} | score,
                {"item": name, "judge": "strict", "verdict": "flag"},
                {"item": name, "voter": "ann", "vote": vote},
            ]
    found, judges = findings_of(imported(*records))
    values = [judges[name].overall.value for name in ("soft", "strict")]
    assert values == ([1, 0.5] if is_graded else [0.5, 0.5])
    assert (found.unordered is not None) == is_graded
    assert ("By people's order" in found.words) == is_graded


@pytest.mark.parametrize("other", [0.25, 0.5])
def test_the_same_verdict_with_other_scores_is_not_the_same(other):
    records = []
    for n, (first, second) in enumerate(PAIRS):
        for m, grade in enumerate((first / 10, second / 10)):
            name = f"q{n}.{m}"
            records += [
                {"item": name, "prompt": f"q{n}", "output": name, "generator": "ada"},
                {"item": name, "judge": "one", "verdict": "pass", "score": grade / 2 + 0.5},
                {"item": name, "judge": "two", "verdict": "pass", "score": grade * other + 0.5},
                {"item": name, "voter": "ann", "vote": grade},
            ]
    found, _ = findings_of(imported(*records))
    are_same = "gave the same verdict on every" in " ".join([found.words, *found.more])
    assert are_same == (other == 0.5)
