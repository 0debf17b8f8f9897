"""POST …/vote: the stored A and B, once, and an answer that says what stands."""

import pytest
from django.utils import timezone

from judge_eval.board.api import limit
from judge_eval.models import Checkpoint
from tests.makers import key_client, make_key, make_run, make_vote, make_voter, pairs_of, seal_all
from voting.ballot.services import undo_last_vote
from voting.models import ApiKey, Entry, Item, Queue, Voter

pytestmark = pytest.mark.django_db


def voting_key(**options):
    return key_client(make_key("vote", **options)[1])


def post(client, run, task, winner="A", **more):
    body = {"task_id": str(getattr(task, "pk", task)), "winner": winner, **more}
    url = f"/api/runs/{run.pk}/judge-eval/vote"
    return client.post(url, body, content_type="application/json")


def votes():
    return Entry.objects.filter(kind="vote")


@pytest.mark.parametrize("winner", ["A", "B", "tie", "both_bad"])
def test_a_vote_is_on_the_stored_sides(winner):
    run = make_run()
    pair = pairs_of(run)[0]
    response = post(voting_key(), run, pair, winner)
    vote = votes().get()
    assert response.status_code == 200
    assert response.json() == {
        "ok": True,
        "task_id": str(pair.pk),
        "vote_id": str(vote.uid),
        "winner": winner,
        "repeated": False,
    }
    assert (vote.choice, vote.left_side, vote.item) == (winner, "", pair)
    assert vote.rubric == run.queue.rubric


def test_the_vote_is_that_of_the_key():
    run = make_run(votes_wanted=2)
    row, token = make_key("vote")
    post(key_client(token), run, pairs_of(run)[0])
    post(voting_key(), run, pairs_of(run)[0])
    assert Voter.objects.get(api_key=row) == votes().order_by("id").first().voter
    assert votes().count() == 2


def test_the_same_choice_again_is_the_first_answer():
    run = make_run()
    client = voting_key()
    first, second = (post(client, run, pairs_of(run)[0]).json() for _ in range(2))
    assert second == first | {"repeated": True}
    assert votes().count() == 1


def test_another_choice_is_a_conflict_that_says_what_stands():
    run = make_run()
    client = voting_key()
    post(client, run, pairs_of(run)[0], "A")
    response = post(client, run, pairs_of(run)[0], "B")
    assert response.status_code == 409
    assert "A is recorded" in response.json()["detail"]
    assert votes().get().choice == "A"


def test_after_an_undo_the_pair_can_be_voted_on_again():
    run = make_run()
    client = voting_key()
    post(client, run, pairs_of(run)[0], "A")
    undo_last_vote(Voter.objects.get(), run.queue)
    assert post(client, run, pairs_of(run)[0], "B").json()["winner"] == "B"


@pytest.mark.parametrize("winner", ["C", "a", "", "left", "A ", "both bad", "null"])
def test_a_wrong_winner_is_told_the_right_ones(winner):
    run = make_run(ballot=["A", "B", "both_bad"])
    response = post(voting_key(), run, pairs_of(run)[0], winner)
    assert response.status_code == 422
    assert "A, B, both_bad" in response.json()["detail"]
    assert not votes().exists()


def test_a_tie_only_where_the_ballot_has_it():
    run = make_run(ballot=["A", "B", "both_bad"])
    assert post(voting_key(), run, pairs_of(run)[0], "tie").status_code == 422


def test_eight_characters_of_run_and_task_are_enough():
    run = make_run()
    pair = pairs_of(run)[0]
    url = f"/api/runs/{str(run.pk)[:8]}/judge-eval/vote"
    body = {"task_id": str(pair.pk)[:8], "winner": "A"}
    response = voting_key().post(url, body, content_type="application/json")
    assert response.json()["task_id"] == str(pair.pk)


@pytest.mark.parametrize("task", ["0" * 8, "nonsense", "", "1234567", "🐦" * 8])
def test_a_task_that_is_not_there(task):
    run = make_run()
    response = post(voting_key(), run, task)
    assert response.status_code == 404
    assert "this run has no task" in response.json()["detail"]


def test_a_beginning_of_two_tasks_is_ambiguous():
    run = make_run()
    pair = pairs_of(run)[0]
    for position, last in ((5, "1"), (6, "2")):
        pk = f"abcdef01-0000-4000-8000-00000000000{last}"
        Item.objects.create(
            pk=pk,
            queue=run.queue,
            position=position,
            prompt_key=pair.prompt_key,
            turn=pair.turn,
            a=pair.a,
            b=pair.b,
            opened_at=pair.opened_at,
        )
    response = post(voting_key(), run, "abcdef01")
    assert response.status_code == 409
    assert "give more characters" in response.json()["detail"]
    assert post(voting_key(), run, "abcdef01-0000-4000-8000-000000000001").status_code == 200


@pytest.mark.parametrize(
    "fields, words",
    [({"opened_at": None}, "not open"), ({"opened_at": None, "unusable": "A failed"}, "A failed")],
)
def test_a_task_that_is_not_open_takes_no_vote(fields, words):
    run = make_run()
    Item.objects.filter(queue=run.queue).update(**fields)
    response = post(voting_key(), run, pairs_of(run)[0])
    assert response.status_code == 409
    assert words in response.json()["detail"]
    assert not votes().exists()


def test_a_closed_queue_takes_no_vote():
    run = make_run(is_open=False)
    response = post(voting_key(), run, pairs_of(run)[0])
    assert response.status_code == 409
    assert "Voting has closed" in response.json()["detail"]


@pytest.mark.parametrize("digits", [8, 36])
def test_a_repeat_after_closing_is_answered_as_the_first_time(digits):
    run = make_run()
    key, pair = voting_key(), pairs_of(run)[0]
    first = post(key, run, pair, "B").json()
    Queue.objects.update(is_open=False)
    again = post(key, run, str(pair.pk)[:digits], "B")
    assert again.status_code == 200
    assert (again.json()["vote_id"], again.json()["repeated"]) == (first["vote_id"], True)


@pytest.mark.parametrize("has_voted", [False, True])
def test_a_key_of_another_project_finds_no_run_and_votes_nowhere(has_voted):
    run, other = make_run(pairs=2), make_run()
    first, second = pairs_of(run)
    row, token = make_key("vote")
    client = key_client(token)
    if has_voted:
        assert post(client, run, first).status_code == 200
    ApiKey.objects.filter(pk=row.pk).update(project=other.queue.project)
    assert post(client, run, second).status_code == 404
    assert votes().count() == has_voted


def test_a_task_of_another_run_is_not_found_however_it_is_written():
    run, other = make_run(pairs=2), make_run()
    key = voting_key()
    assert post(key, run, pairs_of(run)[0]).status_code == 200
    [stranger] = pairs_of(other)
    for task in (str(stranger.pk), stranger.pk.hex, str(stranger.pk)[:8]):
        assert post(key, run, task).status_code == 404


def test_a_pair_with_enough_votes_still_takes_one():
    run = make_run()
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    assert post(voting_key(), run, pairs_of(run)[0]).status_code == 200


def test_a_flood_is_slowed_down(monkeypatch):
    monkeypatch.setattr(limit, "burst", 0)
    monkeypatch.setattr(limit, "per_second", 0.001)
    run = make_run()
    response = post(voting_key(), run, pairs_of(run)[0])
    assert response.status_code == 429
    assert "was not recorded" in response.json()["detail"]
    assert not votes().exists()


def test_votes_of_a_script_rate_judges_like_any_other():
    run = make_run()
    vote = post(voting_key(), run, pairs_of(run)[0], "A").json()
    seal_all(run.queue.project)
    entry = Entry.objects.get(uid=vote["vote_id"])
    assert Checkpoint.objects.get(seq=entry.seq).standings["elo"] == [1016.0, 984.0]
    assert pairs_of(run)[0].votes == 1


def keen_key(run, **options):
    """A key that has voted before, on the first pair, with its row."""
    row, token = make_key("vote", **options)
    client = key_client(token)
    assert post(client, run, pairs_of(run)[0]).status_code == 200
    return row, client


@pytest.mark.parametrize(
    "change, status",
    [
        (lambda row: ApiKey.objects.update(revoked_at=timezone.now()), 401),
        (lambda row: ApiKey.objects.update(expires_at=timezone.now()), 401),
        (lambda row: ApiKey.objects.update(scopes=["read"]), 403),
        (lambda row: Voter.objects.update(blocked_at=timezone.now()), 409),
        (lambda row: Queue.objects.update(is_open=False), 409),
        (lambda row: Queue.objects.update(is_simulated=True), 409),
        (lambda row: Queue.objects.update(ballot=["B", "tie"]), 422),
        (lambda row: Item.objects.update(opened_at=None), 409),
    ],
    ids=["revoked", "expired", "scope", "blocked", "closed", "simulated", "ballot", "pair"],
)
def test_what_has_changed_since_a_keys_first_vote_holds_at_once(change, status):
    run = make_run(pairs=2)
    row, client = keen_key(run)
    change(row)
    assert post(client, run, pairs_of(run)[1]).status_code == status
    assert votes().count() == 1


def test_a_later_vote_of_a_key_is_as_complete_as_its_first():
    run = make_run(pairs=2)
    row, client = keen_key(run, project=run.queue.project)
    pair = pairs_of(run)[1]
    response = post(client, run, pair, "both_bad")
    vote = votes().get(uid=response.json()["vote_id"])
    assert response.json() == {
        "ok": True,
        "task_id": str(pair.pk),
        "vote_id": str(vote.uid),
        "winner": "both_bad",
        "repeated": False,
    }
    assert (vote.choice, vote.left_side, vote.item) == ("both_bad", "", pair)
    assert (vote.voter, vote.rubric) == (Voter.objects.get(api_key=row), run.queue.rubric)
    assert (vote.queue, vote.project) == (run.queue, run.queue.project)
    assert (vote.elapsed_ms, vote.simulated, vote.seq) == (None, False, None)


@pytest.mark.parametrize("winner", ["\x00", "'", '"A"', "%", 'A"', "[]"])
def test_a_later_vote_for_nonsense_is_told_the_right_ones(winner):
    run = make_run(pairs=2)
    _, client = keen_key(run)
    assert post(client, run, pairs_of(run)[1], winner).status_code == 422
    assert votes().count() == 1
