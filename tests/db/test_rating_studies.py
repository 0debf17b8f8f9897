"""A study of ratings, from its import to its board: judges are ranked by the order of ratings."""

from collections import Counter

import pytest

from judge_eval.findings.model import RunFindings
from tests.helpers.imports import assert_whole, imported
from tests.helpers.run_findings import compute
from voting.models import Entry, Item

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
    assert keen.overall.trials == flat.overall.trials == 13 - found.unordered.alike
    assert found.words.startswith("keen ")
    # Eleven prompts of two answers, two couples, and one prompt that waits for another.
    units = found.unordered
    assert (units.units, units.of_one_item, units.not_whole) == (13, 1, 0)
    assert 1 <= units.alike <= 3


def test_couples_are_fixed_in_the_ledger():
    run = study()
    keys = Item.objects.filter(queue=run.queue_id, is_coupled=True).values_list(
        "prompt_key", flat=True
    )
    assert sorted(Counter(keys).values()) == [1, 2, 2]
    entries = Entry.objects.filter(queue=run.queue_id, kind="verdicts")
    told = {entry.item_id: entry.payload["prompt"] for entry in entries}
    assert told == dict(Item.objects.filter(queue=run.queue_id).values_list("pk", "prompt_key"))
    assert_whole(run.queue.project)
