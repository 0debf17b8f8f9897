"""Prompts of one item are coupled as they open, and a couple is handed to one voter."""

from collections import Counter
from functools import partial

import pytest
from django.utils import timezone

from judge_eval.board.agreement import agreement_of
from judge_eval.board.filters import Slice
from judge_eval.board.load import outcomes_of
from judge_eval.judging.verdicts import open_those_final
from judge_eval.models import Verdict
from tests.helpers.concurrent_calls import together
from tests.helpers.scene import assert_sound
from tests.makers import (
    make_item,
    make_judges,
    make_many_entries,
    make_single_run,
    make_verdict,
    make_vote,
    make_voter,
    seal_all,
)
from voting.ballot.assignment import next_pairs
from voting.items.order import prompt_order
from voting.models import Assignment, Entry, Inference, Item

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def make_study(prompts, *, votes=1):
    """Return a run with one item of each prompt, each with a verdict, none of them open yet."""
    run = make_single_run(outputs=[], kind="rating", ballot=list("12345"), votes_per_item=votes)
    [judge] = make_judges(run, ["keen"], baselines=())
    items = [make_item(run.queue, f"To {p}", prompt=p, is_open=False) for p in prompts]
    Verdict.objects.bulk_create(make_verdict(judge, item, "4") for item in items)
    return run, items


def opened(run, items):
    open_those_final([item.pk for item in items])
    seal_all(run.queue.project)
    return dict(Item.objects.filter(queue=run.queue).values_list("pk", "prompt_key"))


def in_keyed_order(run, items):
    return sorted(items, key=lambda item: prompt_order(run.queue_id, item.prompt_key))


def test_what_opens_together_is_coupled_in_the_keyed_order_and_an_odd_one_waits():
    run, items = make_study([f"Question {n}" for n in range(5)])
    a, b, c, d, e = in_keyed_order(run, items)
    keys = opened(run, items)
    assert [keys[item.pk] for item in (a, b, c, d, e)] == [
        own.prompt_key for own in (a, a, c, c, e)
    ]
    late = make_item(run.queue, "To a late one", prompt="Late", is_open=False)
    Verdict.objects.create(judge=run.judges.get(), item=late, state="done", winner="2")
    assert opened(run, [late])[late.pk] == e.prompt_key
    told = Entry.objects.filter(kind="verdicts").values_list("item", "payload__prompt")
    assert dict(told) == keys | {late.pk: e.prompt_key}
    assert_sound(run.queue.project)


def test_prompts_of_several_items_are_no_part_of_couples():
    run, items = make_study(["both", "both", "alone", "one more"])
    keys = opened(run, items)
    assert sorted(Counter(keys.values()).values()) == [2, 2]
    assert keys[items[0].pk] == keys[items[1].pk] == items[0].prompt_key
    assert not Item.objects.filter(pk__in=[items[0].pk, items[1].pk], is_coupled=True).exists()


def test_a_couple_stays_when_a_verdict_changes():
    run, items = make_study(["one", "two"])
    keys = opened(run, items)
    Verdict.objects.update(winner="1")
    open_those_final([item.pk for item in items], amend=True)
    assert dict(Item.objects.values_list("pk", "prompt_key")) == keys
    assert set(Entry.objects.values_list("payload__prompt", flat=True)) == {*keys.values()}


def test_other_kinds_have_no_couples():
    run, items = make_study(["one", "two"])
    run.queue.kind, run.queue.ballot = "category", list("12345")
    run.queue.save()
    assert set(opened(run, items).values()) == {item.prompt_key for item in items}


def test_graded_passes_and_flags_have_couples_and_their_scores_in_the_ledger():
    run, items = make_study(["one", "two"])
    run.queue.kind, run.queue.ballot = "pass_flag", ["pass", "flag"]
    run.queue.options = {"graded": True}
    run.queue.save()
    Verdict.objects.update(winner="pass", score_a=0.75)
    assert len(set(opened(run, items).values())) == 1
    said = Entry.objects.filter(kind="verdicts").values_list("payload", flat=True)
    assert [each["verdicts"][0]["score"] for each in said] == [750_000] * 2
    voter = make_voter(run)
    about = {"queue": run.queue, "voter": voter, "rubric": run.queue.rubric, "at": timezone.now()}
    values = [("pass", 900_000), ("flag", 200_000)]
    rows = [
        about | {"item": item, "choice": choice, "value": value}
        for item, (choice, value) in zip(items, values, strict=True)
    ]
    make_many_entries(run, "vote", rows)
    seal_all(run.queue.project)
    history = outcomes_of(run).history
    assert sorted(history.grades) == [0.2, 0.9]
    assert list(history.verdict_grades.values()) == [[0.75]] * 2


def test_one_alone_is_no_evidence_until_the_second_opens():
    run, (one, other) = make_study(["one", "two"])
    opened(run, [one])
    make_vote(make_voter(run), one, "3")
    seal_all(run.queue.project)
    entered = agreement_of(outcomes_of(run)).entered
    assert (entered.prompts, entered.planned.tolist()) == ((), [])
    opened(run, [other])
    make_vote(make_voter(run), other, "5")
    seal_all(run.queue.project)
    entered = agreement_of(outcomes_of(run)).entered
    assert (len(entered.prompts), entered.all_votes, entered.planned.tolist()) == (1, 2, [1])


def test_a_part_has_both_items_of_a_couple_or_none():
    run, items = make_study([f"Question {n}" for n in range(6)])
    opened(run, items)
    a, b, c, d, e, f = in_keyed_order(run, items)
    Inference.objects.filter(pk__in=[item.a_id for item in (a, b, c)]).update(
        tags=["short"], generator="ada"
    )
    assert set(Slice("tag", "short").pairs(run)) == {a, b}
    assert set(Slice("generator", "ada").pairs(run)) == {a, b}
    assert set(Slice("generator", "generator").pairs(run)) == {e, f}
    assert set(Slice().pairs(run)) == {a, b, c, d, e, f}


def page_of(voter, run, held, have=()):
    new, _ = next_pairs(voter, run.queue, list(have), held, timezone.now())
    return [*have, *(item.pk for item in new)]


@pytest.mark.parametrize("held", [3, 5, 8])
def test_a_page_holds_whole_couples_one_item_after_the_other_and_nobody_else_gets_half(held):
    run, items = make_study([f"Question {n}" for n in range(16)])
    keys = opened(run, items)
    first, second = make_voter(run), make_voter(run)
    page = page_of(first, run, held)
    assert len(page) == held + held % 2
    assert [keys[pk] for pk in page[::2]] == [keys[pk] for pk in page[1::2]]
    leased = Assignment.objects.filter(voter=first, leased_until__gt=timezone.now())
    of_first = Counter(keys[pk] for pk in leased.values_list("item", flat=True))
    assert of_first == {keys[page[0]]: 2, keys[page[2]]: 2}
    assert not {keys[pk] for pk in page_of(second, run, held)} & of_first.keys()
    make_vote(first, Item.objects.get(pk=page[0]), "3")
    page_of(first, run, held, page[1:])
    assert page[1] in leased.values_list("item", flat=True)
    assert page[1] not in page_of(second, run, 20)


def test_items_that_open_one_by_one_are_coupled_as_they_come():
    run, items = make_study([f"Question {n}" for n in range(5)])
    for item in items:
        keys = opened(run, [item])
    own = [item.prompt_key for item in items]
    assert [keys[item.pk] for item in items] == [own[0], own[0], own[2], own[2], own[4]]


@pytest.mark.django_db(transaction=True)
def test_who_opens_items_at_the_same_moment_couples_none_twice():
    run, items = make_study([f"Question {n}" for n in range(9)])
    open_those_final([items[0].pk])
    found = together(*[partial(open_those_final, [item.pk]) for item in items[1:]])
    assert found == [None] * 8
    keys = Counter(Item.objects.filter(queue=run.queue).values_list("prompt_key", flat=True))
    assert sorted(keys.values()) == [1, 2, 2, 2, 2]
