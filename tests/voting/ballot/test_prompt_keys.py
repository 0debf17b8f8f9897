"""Every pair tells which prompt it is of, wherever it came from."""

import pytest

from judge_eval.runs.services import create_run
from tests.helpers.imports import added, imported, pair, vote
from tests.judge_eval.runs.test_create_run import spec
from tests.makers import make_project
from voting.models import Item, prompt_key

pytestmark = pytest.mark.django_db


def keys_of(run):
    pairs = Item.objects.filter(queue=run.queue).order_by("position")
    return list(pairs.values_list("prompt_key", flat=True))


def test_pairs_of_one_prompt_of_a_run_share_its_key():
    run = create_run(make_project(), **spec(number=2, generators=3))
    expected = [prompt_key(text) for text in ("Question 0", "Question 1") for _ in range(3)]
    assert sorted(keys_of(run)) == sorted(expected)


def test_an_import_names_its_prompts_by_number_or_by_text():
    run = imported(pair(1, prompt_id="q7"), pair(2, prompt="Why?"), pair(3, prompt="Why?"))
    assert keys_of(run) == ["q7", prompt_key("Why?"), prompt_key("Why?")]


def test_nothing_is_known_of_prompts_that_nobody_told():
    run = imported(vote(1, "ann", "A"), vote(2, "ann", "A"))
    [one, two] = keys_of(run)
    assert one != two


def test_a_prompt_that_is_told_later_in_a_file_counts_and_one_after_the_opening_does_not():
    votes = vote(1, "ann", "A"), vote(2, "ann", "A")
    run = imported(*votes, {"pair": "p1", "prompt_id": "q1"})
    before = keys_of(run)
    assert before[0] == "q1"
    added(run, {"pair": "p2", "prompt_id": "q2"})
    assert keys_of(run) == before
