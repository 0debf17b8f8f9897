"""The board, the models and the draft of a run of single items."""

import json

import pytest

from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.helpers.run_rows import make_draft, make_provider
from tests.makers import (
    make_many_votes,
    make_single_run,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.models import Inference, Item

pytestmark = pytest.mark.django_db

NAMES = ["good-judge", "lazy-judge"]


def voted_run(kind="pass_flag", ballot=("pass", "flag"), **fields):
    """Two people say the second choice on every fourth item, and so does the first judge."""
    first, second = ballot[:2]
    right = [second if place % 4 == 0 else first for place in range(24)]
    says = [[choice, first] for choice in right]
    run = make_single_run(says, names=NAMES, kind=kind, ballot=ballot, votes_per_item=2, **fields)
    for place, item in enumerate(pairs_of(run)):
        Inference.objects.filter(pk=item.a_id).update(generator=f"model-{place % 2}")
    Item.objects.filter(queue=run.queue).update(votes_wanted=2)
    voters = [make_voter(run) for _ in range(2)]
    chosen = list(zip(pairs_of(run), right, strict=True))
    make_many_votes(run, [(voter, *vote) for voter in voters for vote in chosen])
    seal_all(run.queue.project)
    compute(run)
    return run


def page(run, path=""):
    response = user_client().get(f"/runs/{run.pk}/{path}")
    assert response.status_code == 200
    return response


def test_the_board_says_who_finds_the_flags():
    run = voted_run()
    shown = text_of(page(run))
    assert "good-judge (100 %) leads lazy-judge (" in shown
    for words in ("Sensitivity", "Specificity", "24 of 24 items"):
        assert words in shown
    for words in ("Consistency", "% alike in both orders", "Position bias", "pairs"):
        assert words not in shown
    assert "What good-judge said beside what people said" in page(run).content.decode()


def test_files_and_api_have_the_rates_of_flags():
    run = voted_run()
    answer = user_client().get(f"/runs/{run.pk}/tables/board.json")
    rows = {row["name"]: row for row in json.loads(answer.content)["rows"]}
    assert (rows["good-judge"]["sensitivity"], rows["good-judge"]["specificity"]) == (1.0, 1.0)
    assert (rows["lazy-judge"]["sensitivity"], rows["lazy-judge"]["specificity"]) == (0.0, 1.0)
    assert rows["lazy-judge"]["overall_agreement"] == 0.75
    assert rows["people among themselves"]["agreement"] == 1.0


def test_a_label_study_has_a_board_and_a_confusion_matrix_and_no_flags():
    shown = text_of(page(voted_run("category", ["warm", "A"])))
    assert "good-judge (100 %) leads lazy-judge (" in shown
    assert "What good-judge said beside what people said" in shown
    assert "% of flags" not in shown


def test_models_are_listed_by_pass_rate():
    shown = page(voted_run(), "models/")
    told = text_of(shown)
    assert told.index("model-1 12 100.0") < told.index("model-0 12 50.0")
    answer = user_client().get(f"/runs/{voted_run().pk}/tables/models.csv").content.decode()
    assert answer.startswith("board,board_name,model,outputs,pass_rate")


def test_a_part_of_single_items_is_of_a_model_and_never_of_sides():
    run = voted_run()
    compute(run, "generator:model-0")
    shown = text_of(page(run, "?part=generator:model-0"))
    assert "Only items by model-0: " in shown
    assert user_client().get(f"/runs/{run.pk}/?part=ballot:decided").status_code == 404
    assert "only votes and verdicts for A or B" not in text_of(page(run))


def test_the_alt_test_compares_what_was_said_of_single_items():
    assert "Alt-Test" in text_of(page(voted_run(), "alt-test/"))


def test_a_draft_says_what_is_asked_of_single_items():
    make_provider()
    items = {"kind": "category", "choices": ["warm", "dry"]}
    run = make_draft(items=items, models=["model-a"], judges=["judge-long", "most-frequent"])
    shown = text_of(page(run, "draft/"))
    for words in ("Items to vote on", "They may say: warm, dry", "always-warm", "1 vote per item"):
        assert words in shown
    assert "decide which one of these labels fits best" in shown
    assert "Output A" not in shown
