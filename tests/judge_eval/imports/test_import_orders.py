"""Verdicts of both orders come in with their picks, and by the rule of their source."""

from itertools import combinations

import pytest

from humanjudge.core.validation import ConfigInvalid
from judge_eval.imports.import_report import ImportOptions
from judge_eval.models import Verdict
from judge_eval.runs.api_access import project_for
from tests.helpers.imports import (
    added,
    assert_whole,
    errors_of,
    import_run,
    imported,
    pair,
    rows,
    verdict,
    vote,
)
from tests.makers import make_project
from voting.models import ApiKey, Inference, Item, Project, prompt_key

pytestmark = pytest.mark.django_db


def picks(number, ab, ba, **fields):
    return {"pair": f"p{number}", "judge": "gpt", "pick_ab": ab, "pick_ba": ba} | fields


def said(run):
    verdicts = Verdict.objects.filter(judge__run=run).order_by("item__position")
    return list(verdicts.values_list("winner", "consistent", "picks", "first_picks", "order"))


def test_picks_of_both_orders_make_the_verdict():
    run = imported(picks(1, "A", "A"), picks(2, "A", "B"), picks(3, "tie", "B"))
    assert said(run) == [
        ("A", True, ["A", "B"], 1, "both"),
        ("tie", False, ["A", "A"], 2, "both"),
        ("tie", False, ["tie", "A"], 1, "both"),
    ]
    assert_whole(run.queue.project)


def test_a_source_may_decide_by_the_order_that_chose_a_side():
    records = [picks(1, "tie", "B"), picks(2, "A", "B"), picks(3, "both_bad", "tie")]
    run = imported(*records, vote(1, "ann", "B"), inconsistent="decided")
    assert [(winner, consistent) for winner, consistent, *_ in said(run)] == [
        ("B", False),
        ("tie", False),
        ("tie", False),
    ]
    stated = imported(verdict(1, "gpt", "A", consistent=False), inconsistent="decided", name="Two")
    assert said(stated)[0][:2] == ("A", False)


def test_a_verdict_that_is_not_what_its_orders_make_is_an_error():
    wrong = [
        picks(1, "A", "B", verdict="A"),
        verdict(2, "gpt", "B", consistent=False),
    ]
    report = import_run(make_project(), "Wrong", rows(*wrong), options=ImportOptions())
    assert errors_of(report) == [
        "rows.jsonl:1: verdict: A, but its picks in both orders make it tie",
        "rows.jsonl:2: verdict: two orders that disagree are a tie, not B",
    ]


def test_the_same_picks_again_change_nothing_and_others_are_an_error():
    project = make_project()
    run = imported(picks(1, "A", "A"), project=project)
    assert not added(run, picks(1, "A", "A")).changed
    [error] = errors_of(added(run, picks(1, "B", "B")))
    assert "verdict: 'B', but gpt said 'A'" in error


def test_a_cluster_names_the_prompt_of_its_pairs():
    records = [
        pair(1, cluster="fox", prompt_id="q1"),
        pair(2, cluster="fox"),
        pair(3, prompt_id="q3"),
        pair(4),
    ]
    run = imported(*records)
    keys = Item.objects.filter(queue=run.queue).order_by("position")
    assert list(keys.values_list("prompt_key", flat=True)) == [
        "fox",
        "fox",
        "q3",
        prompt_key("Question 4"),
    ]


def test_judges_as_columns_join_in_their_order():
    records = [pair(n) | {"verdict.gpt": "A", "verdict.eve": "B"} for n in (1, 2)]
    run = imported(*records)
    judged = Verdict.objects.filter(judge__run=run).order_by("judge__position", "pk")
    assert list(judged.values_list("judge__name", "winner")) == [
        *[("gpt", "A")] * 2,
        *[("eve", "B")] * 2,
    ]


def test_pairs_of_59_models_are_taken_whole():
    models = [f"model-{n:02}" for n in range(59)]
    met = [
        {"pair": f"{a}-{b}", "prompt": "Why?", "generator_a": a, "generator_b": b}
        | {"voter": "ann", "vote": "A"}
        for a, b in combinations(models, 2)
    ]
    run = imported(*met)
    assert Item.objects.filter(queue=run.queue).count() == 59 * 58 // 2
    made = Inference.objects.filter(project=run.queue.project).values("generator").distinct()
    assert made.count() == 59


def test_a_project_that_is_not_there_yet_is_made_for_a_key_of_all():
    everywhere = ApiKey(name="all", scopes=["manage"])
    here = ApiKey(name="one", scopes=["manage"], project=make_project())
    made = project_for(everywhere, "New", may_be_new=True)
    assert (made.name, Project.objects.get(name="New")) == ("New", made)
    assert project_for(everywhere, "New", may_be_new=True) == made
    for key, asks in ((everywhere, {}), (here, {"may_be_new": True})):
        with pytest.raises(ConfigInvalid, match=r"there is no .Other., but"):
            project_for(key, "Other", **asks)
