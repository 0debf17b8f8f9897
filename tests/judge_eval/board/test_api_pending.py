"""GET …/pending: PathScore's shape, verdicts only by scope, pages by cursor."""

import json

import pytest

from tests.makers import (
    entry_of,
    key_client,
    make_key,
    make_picture,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.models import Entry, Exposure, Item, Voter

pytestmark = pytest.mark.django_db


def url_of(run):
    return f"/api/runs/{run.pk}/judge-eval/pending"


def reader(*scopes):
    return key_client(make_key("read", *scopes)[1])


def test_the_shape():
    run = make_run(pairs=2)
    answer = reader().get(url_of(run)).json()
    pair = in_turn(run)[0]
    assert (answer["total"], answer["done"], answer["pending"]) == (2, 0, 2)
    assert answer["tasks"][0] == {
        "id": str(pair.pk),
        "gen_a_id": str(pair.a_id),
        "gen_b_id": str(pair.b_id),
        "prompt_text": pair.a.prompt,
        "kind": "text",
        "text_a": pair.a.output,
        "text_b": pair.b.output,
    }


def test_drawings_are_given_as_they_were_written():
    run = make_run()
    pair = pairs_of(run)[0]
    make_picture("red", inferences=[pair.a])
    make_picture("blue", inferences=[pair.b])
    [task] = reader().get(url_of(run)).json()["tasks"]
    assert "<!--red-->" in task["svg_a"]
    assert "<!--blue-->" in task["svg_b"]
    assert not {"text_a", "text_b"} & set(task)


def test_verdicts_are_a_json_string_for_keys_with_the_scope():
    run = make_run(says=[["A", None]], names=["wise", "silent"])
    pair = pairs_of(run)[0]
    pair.verdicts.filter(judge__name="wise").update(score_a=8.5, score_b=3)
    [task] = reader("verdicts").get(url_of(run)).json()["tasks"]
    assert json.loads(task["verdicts"]) == [
        {
            "judge_model": "wise",
            "winner": "A",
            "score_a": 8.5,
            "score_b": 3.0,
            "feedback": "wise has its reasons.",
        },
        {"judge_model": "silent", "winner": None, "error": "no answer came"},
    ]


def test_without_the_scope_there_are_no_verdicts_and_nothing_is_seen():
    run = make_run()
    [task] = reader("vote").get(url_of(run)).json()["tasks"]
    assert "verdicts" not in task
    assert not Exposure.objects.exists()


def test_seeing_verdicts_is_kept_and_the_vote_after_it_does_not_count_for_the_judges():
    run = make_run()
    client = reader("verdicts", "vote")
    client.get(url_of(run))
    exposure = Exposure.objects.get()
    assert exposure.item == pairs_of(run)[0]
    assert exposure.voter.api_key is not None
    url = f"/api/runs/{run.pk}/judge-eval/vote"
    body = {"task_id": str(pairs_of(run)[0].pk), "winner": "A"}
    assert client.post(url, body, content_type="application/json").status_code == 200
    seal_all(run.queue.project)
    assert Entry.objects.get(kind="vote").unblinded
    results = client.get(f"/api/runs/{run.pk}/judge-eval/results").json()
    assert (results["votes"], results["unblinded"]) == (0, 1)
    assert reader().get(url_of(run)).json()["pending"] == 1


def test_only_the_tasks_that_were_given_are_seen():
    run = make_run(pairs=3)
    reader("verdicts").get(f"{url_of(run)}?limit=2")
    assert Exposure.objects.count() == 2


def test_done_counts_pairs_with_enough_votes():
    run = make_run(pairs=3, votes_wanted=2)
    for _ in range(2):
        make_vote(make_voter(run), pairs_of(run)[0])
    make_vote(make_voter(run), pairs_of(run)[1])
    seal_all(run.queue.project)
    answer = reader().get(url_of(run)).json()
    assert (answer["total"], answer["done"], answer["pending"]) == (3, 1, 2)
    assert len(answer["tasks"]) == 2


def test_what_the_key_has_voted_on_is_not_pending_for_it():
    run = make_run(pairs=2, votes_wanted=5)
    client = reader("vote")
    url = f"/api/runs/{run.pk}/judge-eval/vote"
    body = {"task_id": str(pairs_of(run)[0].pk), "winner": "A"}
    client.post(url, body, content_type="application/json")
    seal_all(run.queue.project)
    ids = [task["id"] for task in client.get(url_of(run)).json()["tasks"]]
    assert ids == [str(pairs_of(run)[1].pk)]
    assert len(reader().get(url_of(run)).json()["tasks"]) == 2


def test_pairs_that_are_not_open_are_not_pending():
    run = make_run(pairs=3)
    _, closed, unusable = pairs_of(run)
    Item.objects.filter(pk=closed.pk).update(opened_at=None)
    Item.objects.filter(pk=unusable.pk).update(opened_at=None, unusable="A failed")
    answer = reader().get(url_of(run)).json()
    assert [task["id"] for task in answer["tasks"]] == [str(pairs_of(run)[0].pk)]
    assert (answer["total"], answer["pending"]) == (2, 1)


def test_a_cursor_leads_through_all_of_them_once():
    run = make_run(pairs=7)
    client, seen, cursor = reader(), [], -1
    while cursor is not None:
        answer = client.get(f"{url_of(run)}?limit=3&cursor={cursor}").json()
        seen += [task["id"] for task in answer["tasks"]]
        cursor = answer.get("next_cursor")
    assert seen == [str(pair.pk) for pair in in_turn(run)]


def in_turn(run):
    """The pairs of a run as the voting page hands them out, but for the shuffle of each voter."""
    return sorted(pairs_of(run), key=lambda pair: pair.turn)


def test_a_cursor_stays_true_while_people_vote():
    run = make_run(pairs=4)
    client, pairs = reader(), in_turn(run)
    cursor = client.get(f"{url_of(run)}?limit=2").json()["next_cursor"]
    make_vote(make_voter(run), pairs[0])
    seal_all(run.queue.project)
    answer = client.get(f"{url_of(run)}?limit=2&cursor={cursor}").json()
    assert [task["id"] for task in answer["tasks"]] == [str(pair.pk) for pair in pairs[2:]]


def test_prompts_that_were_begun_come_first():
    run = make_run(pairs=3, votes_wanted=2)
    last = in_turn(run)[-1]
    make_vote(make_voter(run), last)
    seal_all(run.queue.project)
    [task, *_] = reader().get(url_of(run)).json()["tasks"]
    assert task["id"] == str(last.pk)


@pytest.mark.parametrize("limit", ["0", "-1", "201", "x", "1.5", ""])
def test_a_strange_limit_is_refused(limit):
    response = reader().get(f"{url_of(make_run())}?limit={limit}")
    assert response.status_code == 422
    assert "limit" in response.content.decode()


@pytest.mark.parametrize("cursor", ["-5", "0", "99", str(2**40), str(10**30)])
def test_any_number_is_a_cursor(cursor):
    assert reader().get(f"{url_of(make_run())}?cursor={cursor}").status_code == 200


def test_a_key_is_one_voter_however_often_it_asks():
    run = make_run()
    client = reader()
    for _ in range(3):
        client.get(url_of(run))
    assert Voter.objects.count() == 1


def test_a_vote_that_is_not_sealed_yet_is_out_of_the_list_at_once(monkeypatch):
    monkeypatch.setattr("judge_eval.runs.api_access.OWN_VOTES_SECONDS", 0)
    run = make_run()
    client = reader("vote")
    url = f"/api/runs/{run.pk}/judge-eval/vote"
    body = {"task_id": str(pairs_of(run)[0].pk), "winner": "A"}
    vote = client.post(url, body, content_type="application/json").json()
    assert Entry.objects.get(uid=vote["vote_id"]).seq is None
    assert client.get(url_of(run)).json()["tasks"] == []


def test_votes_of_people_are_not_in_the_answer():
    run = make_run(votes_wanted=3)
    voter = make_voter(run, name="Ada")
    vote = make_vote(voter, pairs_of(run)[0], "both_bad")
    seal_all(run.queue.project)
    body = reader("verdicts").get(url_of(run)).content.decode()
    for word in (
        "both_bad",
        "Ada",
        voter.pseudonym,
        str(vote.uid),
        bytes(entry_of(vote).hash).hex(),
    ):
        assert word not in body
