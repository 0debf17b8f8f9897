"""What people and judges said in a run, as the metrics read it."""

import pytest

from judge_eval.board.filters import Slice
from judge_eval.board.load import labels_of
from judge_eval.models import Judge
from tests.helpers.imports import imported, pair, verdict, vote
from tests.makers import make_exposure, make_run, make_vote, make_voter, pairs_of, seal_all
from voting.ballot.services import undo_last_vote
from voting.models import Inference, Item, Voter

pytestmark = pytest.mark.django_db


def named(run, labels):
    """Labels by the names that the rows of an import gave."""
    pairs = dict(Item.objects.filter(queue=run.queue_id).values_list("pk", "external_id"))
    voters = dict(Voter.objects.values_list("pseudonym", "external_id"))
    by_id = {str(pk): name for pk, name in pairs.items()}
    names = labels.names | voters
    return [
        {
            names[who]: {
                task: {by_id[item]: label for item, label in said.items()}
                for task, said in tasks.items()
            }
            for who, tasks in people.items()
        }
        for people in (labels.humans, labels.judges)
    ]


def test_every_task_of_everybody():
    run = imported(
        pair(1),
        pair(2),
        vote(1, "ann", "A", labels={"stars": 4, "why": "shorter"}),
        vote(2, "ann", "tie"),
        vote(1, "ben", "both_bad", labels={"tags": ["x", "y"]}),
        verdict(1, "gpt", "B", labels={"stars": 2}),
        verdict(2, "gpt", None, error="no answer came"),
        verdict(1, "llama", "A"),
    )
    labels = labels_of(run)
    humans, judges = named(run, labels)
    assert humans == {
        "ann": {"winner": {"p1": "A", "p2": "tie"}, "stars": {"p1": 4}, "why": {"p1": "shorter"}},
        "ben": {"winner": {"p1": "both_bad"}, "tags": {"p1": ["x", "y"]}},
    }
    # A verdict that failed is a missing label of each task; one that nobody gave is not there.
    missing = {"tags": {"p2": None}, "why": {"p2": None}}
    assert judges == {
        "gpt": {"winner": {"p1": "B", "p2": None}, "stars": {"p1": 2, "p2": None}} | missing,
        "llama": {"winner": {"p1": "A"}},
    }
    assert labels.tasks == ("winner", "stars", "tags", "why")
    assert list(labels.judges) == [str(judge.pk) for judge in Judge.objects.order_by("position")]


def test_only_votes_that_count():
    run = make_run(pairs=3)
    first, second, third = pairs_of(run)
    blind, seer, late = make_voter(run), make_voter(run), make_voter(run)
    make_vote(blind, first, "A")
    make_vote(blind, second, "B")
    undo_last_vote(blind, run.queue)
    make_exposure(seer, first)
    make_vote(seer, first, "B")
    seal_all(run.queue.project)
    make_vote(late, third, "tie")
    assert labels_of(run).humans == {blind.pseudonym: {"winner": {str(first.pk): "A"}}}


def test_a_slice_and_an_earlier_ledger():
    run = make_run(pairs=2)
    first, second = pairs_of(run)
    voter = make_voter(run)
    make_vote(voter, first, "A")
    seal_all(run.queue.project)
    head = run.queue.project.head_seq
    make_vote(voter, second, "B")
    seal_all(run.queue.project)
    assert list(labels_of(run, up_to=head).humans[voter.pseudonym]["winner"]) == [str(first.pk)]
    Inference.objects.filter(pk__in=[second.a_id, second.b_id]).update(tags=["x"], generator="only")
    for part in (Slice("tag", "x"), Slice("generator", "only")):
        sliced = labels_of(run, part)
        assert sliced.humans == {voter.pseudonym: {"winner": {str(second.pk): "B"}}}
        assert {key for said in sliced.judges.values() for key in said["winner"]} == {
            str(second.pk)
        }


def test_sides_alone():
    run = make_run(pairs=2, says=[["A", "tie"], [None, "B"]])
    voter = make_voter(run)
    for each, choice in zip(pairs_of(run), ["B", "tie"], strict=True):
        make_vote(voter, each, choice)
    seal_all(run.queue.project)
    first, second = (str(each.pk) for each in pairs_of(run))
    sides = labels_of(run, Slice("ballot", "decided"))
    assert sides.humans == {voter.pseudonym: {"winner": {first: "B"}}}
    assert list(sides.judges.values()) == [
        {"winner": {first: "A", second: None}},
        {"winner": {second: "B"}},
    ]


@pytest.mark.parametrize("pairs", [1, 8])
def test_three_queries_whatever_the_size(pairs, django_assert_num_queries):
    run = make_run(pairs=pairs, judges=pairs + 1)
    for each in pairs_of(run):
        make_vote(make_voter(run), each)
    seal_all(run.queue.project)
    with django_assert_num_queries(3):
        labels_of(run)
