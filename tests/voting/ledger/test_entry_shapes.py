"""Every kind of entry is written, sealed and verified; the database refuses the misshapen."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests.makers import (
    entry_of,
    make_item,
    make_project,
    make_queue,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ledger import chain, ledger
from voting.models import Entry, Exposure, Inference, Item, Queue, Voter, VoterPrompt

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def a_scene():
    run = make_run()
    project = run.queue.project
    queue = make_queue(project, kind="pass_flag", ballot=["pass", "flag"])
    return {
        "run": run,
        "voter": make_voter(run),
        "pair": pairs_of(run)[0],
        "item": make_item(queue),
        "rubric": run.queue.rubric,
        "project": project,
    }


def write(scene, kind, **fields):
    fields.setdefault("at", timezone.now())
    return Entry.objects.create(project=scene["project"], kind=kind, **fields)


def item_vote(scene, **fields):
    item = scene["item"]
    given = {"voter": scene["voter"], "item": item, "queue": item.queue, "choice": "pass"}
    return write(scene, "vote", **(given | {"rubric": scene["rubric"]} | fields))


def pair_vote(scene, **fields):
    given = {"voter": scene["voter"], "item": scene["pair"], "rubric": scene["rubric"]}
    return write(scene, "vote", **(given | {"choice": "A"} | fields))


def sealed(scene, entry):
    """Seal, verify, and return what the hash of the entry covers."""
    seal_all(scene["project"])
    assert chain.verify(ledger.export(scene["project"]), scene["project"].ledger_head)
    assert ledger.replay(scene["project"], write=False) == []
    return ledger.content(Entry.objects.get(pk=entry.pk))


@pytest.mark.parametrize(
    "value, category", [(1_000_000, ""), (0, "off-topic"), (333_333, "")], ids=str
)
def test_a_vote_on_an_item(value, category):
    scene = a_scene()
    content = sealed(scene, item_vote(scene, value=value, category=category, elapsed_ms=400))
    assert content["item"] == str(scene["item"].pk)
    assert (content["value"], content["category"]) == (value, category or None)
    assert content["choice"] == "pass"
    assert content.keys().isdisjoint({"comparison", "left"})


def test_a_vote_on_an_item_can_be_retracted_and_cast_again():
    scene = a_scene()
    vote = item_vote(scene, value=0, category="unsafe")
    seal_all(scene["project"])
    vote.retracted = True
    vote.save(update_fields=["retracted"])
    about = {"voter": scene["voter"], "item": scene["item"], "queue": vote.queue}
    retraction = write(scene, "retraction", target=vote, **about)
    item_vote(scene, value=1_000_000)
    assert sealed(scene, retraction)["target"] == str(vote.uid)
    vote.refresh_from_db()
    assert vote.retracted_seq == vote.seq + 1


def test_a_comment_on_an_item_is_hashed():
    scene = a_scene()
    digest = chain.salted_hash("salt", "It is wrong")
    vote = item_vote(scene, value=0, comment="It is wrong", salt="salt", comment_sha256=digest)
    assert sealed(scene, vote)["comment"] == digest


@pytest.mark.parametrize(
    "kind, payload",
    [
        ("decision", {"action": "exclude", "note": "5f" * 32}),
        ("parameters", {"decay": 10_000, "unit": "second", "reputations": {"ab12": 1_500_000}}),
        ("erasure", {"voter": "ab12"}),
    ],
)
def test_what_a_curator_or_an_admin_says(kind, payload):
    scene = a_scene()
    assert sealed(scene, write(scene, kind, payload=payload))["payload"] == payload


def test_a_decision_about_one_entry_names_it():
    scene = a_scene()
    vote = make_vote(scene["voter"], scene["pair"])
    decision = write(
        scene,
        "decision",
        payload={"action": "exclude"},
        target=entry_of(vote),
        at=timezone.now() + timedelta(milliseconds=1),
    )
    assert sealed(scene, decision)["target"] == str(vote.uid)


@pytest.mark.parametrize(
    "changed",
    [
        {"voter": None},
        {"rubric": None},
        {"value": 1_000_001},
        {"value": -1},
        {"choice": "relevant"},
        {"choice": "", "value": None},
        {"item": None},
    ],
    ids=str,
)
def test_a_misshapen_vote_on_an_item_is_refused(changed):
    with pytest.raises(IntegrityError):
        item_vote(a_scene(), **({"value": 0} | changed))


@pytest.mark.parametrize(
    "changed",
    [{"voter": None}, {"rubric": None}, {"choice": ""}, {"value": 1}, {"item": None}],
    ids=str,
)
def test_a_misshapen_vote_on_a_pair_is_refused(changed):
    with pytest.raises(IntegrityError):
        pair_vote(a_scene(), **changed)


def test_a_free_text_is_a_vote_by_what_its_hash_says():
    scene = a_scene()
    queue = make_queue(scene["project"], kind="text", ballot=[])
    given = {"item": make_item(queue), "queue": queue, "choice": ""}
    labels = {"labels": {"why": "It is short"}, "payload": {"labels_sha256": "5f" * 32}}
    content = sealed(scene, item_vote(scene, **given, **labels))
    assert (content["choice"], content["labels"], content["value"]) == ("", "5f" * 32, None)


def test_a_kind_that_nobody_knows_is_refused():
    with pytest.raises(IntegrityError):
        write(a_scene(), "rumour", payload={})


@pytest.mark.parametrize("kind", ["verdicts", "decision", "parameters", "erasure", "retraction"])
def test_an_entry_that_says_nothing_is_refused(kind):
    scene = a_scene()
    with pytest.raises(IntegrityError):
        write(scene, kind, item=scene["pair"], voter=scene["voter"])


def test_verdicts_on_nothing_are_refused():
    with pytest.raises(IntegrityError):
        write(a_scene(), "verdicts", payload={"verdicts": []})


def test_a_retraction_by_nobody_is_refused():
    scene = a_scene()
    with pytest.raises(IntegrityError):
        write(scene, "retraction", target=pair_vote(scene))


def refused_second(make, *arguments, **fields):
    make(*arguments, **fields)
    with pytest.raises(IntegrityError), transaction.atomic():
        make(*arguments, **fields)


def test_two_standing_votes_of_one_voter_on_one_thing_are_refused():
    scene = a_scene()
    refused_second(pair_vote, scene)
    refused_second(item_vote, scene, value=0)


def test_retracted_votes_do_not_count_as_standing():
    scene = a_scene()
    pair_vote(scene, retracted=True)
    pair_vote(scene, retracted=True)
    pair_vote(scene)


def test_a_vote_is_retracted_once():
    scene = a_scene()
    vote = pair_vote(scene, retracted=True)
    refused_second(write, scene, "retraction", voter=scene["voter"], target=vote)


def test_two_entries_of_one_number_are_refused():
    scene = a_scene()
    sealed_as = {"seq": 50, "hash": b"x" * 32, "payload": {}}
    refused_second(write, scene, "decision", **sealed_as)
    other = a_scene()
    write(other, "decision", **sealed_as)


def test_an_entry_is_sealed_whole_or_not_at_all():
    scene = a_scene()
    for half in ({"seq": 50}, {"hash": b"x" * 32}, {"seq": 0, "hash": b"x" * 32}):
        with pytest.raises(IntegrityError), transaction.atomic():
            write(scene, "decision", payload={}, **half)


def test_what_else_the_database_refuses():
    scene = a_scene()
    queue, pair, voter = scene["run"].queue, scene["pair"], scene["voter"]

    def compare(queue, **fields):
        known = {"a": pair.a, "b": pair.b, "prompt_key": "x", "turn": 1}
        Item.objects.create(queue=queue, **known | fields)

    refused = [
        lambda: compare(queue, position=8, b=pair.a),
        lambda: compare(queue, position=0),
        lambda: compare(queue, position=8, prompt_key=""),
        lambda: Voter.objects.create(project=scene["project"], pseudonym=voter.pseudonym),
        lambda: Voter.objects.create(project=scene["project"], reputation=0),
        lambda: VoterPrompt.objects.create(project=scene["project"], text="again"),
        lambda: Queue.objects.filter(pk=queue.pk).update(overlap_share=1.5),
        lambda: Queue.objects.filter(pk=queue.pk).update(votes_per_item=0),
        lambda: Exposure.objects.bulk_create(
            [Exposure(voter=voter, item=pair, seen_at=timezone.now())] * 2
        ),
    ]
    for attempt in refused:
        with pytest.raises(IntegrityError), transaction.atomic():
            attempt()


def test_pseudonyms_may_be_the_same_in_two_projects():
    one, other = make_project(), make_project()
    Voter.objects.create(project=one, pseudonym="ab12")
    Voter.objects.create(project=other, pseudonym="ab12")
    assert Inference.objects.count() == 0
