"""The page that pairs are voted on, and the ones that are fetched behind it."""

import json
import re
from uuid import uuid4

import pytest
from django.test import Client

from judge_eval.models import JudgeRating, Run
from tests.helpers.pages import ballots_in, text_of, token_of
from tests.makers import (
    entry_of,
    make_exposure,
    make_inference,
    make_queue,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.signed_form import read
from voting.models import Assignment, Entry, Item, Picture, Queue, Voter

pytestmark = pytest.mark.django_db


def page_of(run):
    return f"/vote/{run.queue_id}/"


def pairs_shown(response):
    return [read(token).item for token in dict.fromkeys(ballots_in(response))]


@pytest.mark.parametrize("client", [Client, user_client], ids=["stranger", "owner"])
@pytest.mark.parametrize("path", ["", "pairs", "mine"])
def test_only_a_voter_gets_pairs(client, path):
    run = make_run()
    response = client().get(page_of(run) + path)
    assert response.status_code == 403
    assert "You need an invite link" in text_of(response)


def test_a_voter_gets_pairs_with_their_ballots(settings):
    run = make_run(pairs=30)
    voter = make_voter(run)
    response = voter_client(voter).get(page_of(run))
    assert response.status_code == 200
    shown = pairs_shown(response)
    assert len(shown) == len(set(shown)) == settings.PAIRS_HELD
    assert {read(token).voter for token in ballots_in(response)} == {voter.pk}


def test_the_sides_are_where_the_ballot_says():
    run = make_run(pairs=6)
    voter = make_voter(run)
    for token in ballots_in(voter_client(voter).get(page_of(run))):
        ballot = read(token)
        pair = Item.objects.select_related("a", "b").get(pk=ballot.item)
        body = voter_client(voter).get(page_of(run)).content.decode()
        a, b = body.index(f"{pair.a.output}<"), body.index(f"{pair.b.output}<")
        assert (a < b) == (ballot.left == "A")


def test_the_rubric_and_the_buttons_of_the_ballot_are_there():
    run = make_run(ballot=["A", "B", "both_bad"])
    response = voter_client(make_voter(run)).get(page_of(run))
    assert run.queue.rubric.text in text_of(response)
    body = response.content.decode()
    offered = [
        p for p in ("left", "right", "tie", "both_bad") if f'name="choice" value="{p}"' in body
    ]
    assert offered == ["left", "right", "both_bad"]


def test_more_pairs_come_beside_those_the_page_has():
    run = make_run(pairs=20)
    client = voter_client(make_voter(run))
    first = pairs_shown(client.get(page_of(run)))
    have = ",".join(str(pk) for pk in first[:4])
    more = pairs_shown(client.get(f"{page_of(run)}pairs?have={have}"))
    assert len(more) == 2
    assert not set(more) & set(first[:4])


def test_a_full_page_gets_no_more():
    run = make_run(pairs=20)
    client = voter_client(make_voter(run))
    have = ",".join(str(pk) for pk in pairs_shown(client.get(page_of(run))))
    assert pairs_shown(client.get(f"{page_of(run)}pairs?have={have}")) == []


@pytest.mark.parametrize("have", ["nonsense", "1,2", "\x00"])
def test_a_list_that_is_none_is_a_bad_request(have):
    run = make_run()
    client = voter_client(make_voter(run))
    assert client.get(f"{page_of(run)}pairs", {"have": have}).status_code == 400


def test_a_vote_without_scripts_is_named_on_the_next_page():
    run = make_run(pairs=2)
    voter = make_voter(run)
    vote = make_vote(voter, pairs_of(run)[0])
    response = voter_client(voter).get(f"{page_of(run)}?voted={vote.uid}")
    assert f"/reveal/{vote.uid}/" in response.content.decode()
    assert voter_client(voter).get(f"{page_of(run)}?voted=x").status_code == 400


def test_a_vote_that_was_taken_back_is_not_said_to_be_recorded():
    """Without scripts: vote, undo, back, the same form once more."""
    run = make_run(pairs=3)
    voter, pair = make_voter(run), pairs_of(run)[2]
    client, ballot = voter_client(voter), token_of(voter, pair)
    for _ in range(2):
        answer = client.post(f"{page_of(run)}ballot", {"ballot": ballot, "choice": "left"})
        if not Entry.objects.filter(kind="retraction").exists():
            client.post(f"{page_of(run)}undo")
    page = client.get(answer.url)
    assert "was recorded" not in text_of(page)
    assert "taken back before" in text_of(page)
    assert pairs_shown(page)[0] == pair.pk
    assert read(ballots_in(page)[0]).uid != read(ballot).uid


@pytest.mark.parametrize("whose", ["nobody's", "another voter's", "another queue's"])
def test_only_ones_own_vote_here_is_said_to_be_recorded(whose):
    run = make_run(pairs=2)
    voter = make_voter(run)
    uid = {
        "nobody's": lambda: uuid4(),
        "another voter's": lambda: make_vote(make_voter(run), pairs_of(run)[0]).uid,
        "another queue's": lambda: make_vote(voter, pairs_of(make_run(voter.project))[0]).uid,
    }[whose]()
    page = voter_client(voter).get(f"{page_of(run)}?voted={uid}")
    assert page.status_code == 200
    assert "was recorded" not in text_of(page)


def test_without_scripts_who_has_seen_the_verdicts_is_told_before_voting_again():
    run = make_run(pairs=2)
    voter, pair = make_voter(run), pairs_of(run)[0]
    make_vote(voter, pair)
    client = voter_client(voter)
    blind = client.post(f"{page_of(run)}undo", follow=True)
    assert "You have seen what the judges said" not in text_of(blind)
    make_vote(voter, pair)
    make_exposure(voter, pair)
    seen = client.post(f"{page_of(run)}undo", follow=True)
    assert "You have seen what the judges said about the first pair here" in text_of(seen)


@pytest.mark.parametrize("is_sealed", [True, False])
@pytest.mark.parametrize("is_open", [True, False])
def test_votes_that_were_not_blind_are_not_said_to_count(is_sealed, is_open):
    run = make_run(pairs=3)
    voter, pairs = make_voter(run), pairs_of(run)
    make_exposure(voter, pairs[0])
    for pair in pairs:
        make_vote(voter, pair)
    if is_sealed:
        seal_all(run.queue.project)
    Queue.objects.update(is_open=is_open)
    text = end_of(voter_client(voter), run)
    assert "2 of your votes count in the ratings of the judges; 1 came after" in text
    assert "every one of them counts" not in text


@pytest.mark.parametrize("votes, words", [(1, "and it counts"), (2, "every one of them counts")])
def test_votes_that_all_count_are_said_to(votes, words):
    run = make_run(pairs=votes)
    voter = make_voter(run)
    for pair in pairs_of(run):
        make_vote(voter, pair)
    assert words in end_of(voter_client(voter), run)


def test_while_the_run_may_bring_more_pairs_the_page_does_not_say_done_and_looks_again():
    run = make_run()
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    Queue.objects.update(more_may_come=True)
    page = voter_client(voter).get(page_of(run))
    assert "Nothing left for you" not in text_of(page)
    assert "More pairs are being prepared" in text_of(page)
    assert 'hx-trigger="every 4s"' in page.content.decode()
    assert "at the moment" in text_of(voter_client(voter).get(f"{page_of(run)}mine"))


def test_a_queue_without_pairs_says_so_and_does_not_thank():
    queue = make_queue()
    voter = Voter.objects.create(project=queue.project)
    Run.objects.create(queue=queue, name="Failed", state=Run.State.FAILED)
    page = voter_client(voter).get(f"/vote/{queue.pk}/")
    assert "There is nothing to vote on" in text_of(page)
    assert "Nothing left for you" not in text_of(page)
    assert 'hx-trigger="every 4s"' not in page.content.decode()


def test_done_is_done_only_when_it_is_true():
    run = make_run(pairs=1)
    voter = make_voter(run)
    client = voter_client(voter)
    assert "Nothing left for you" not in end_of(client, run)
    make_vote(voter, pairs_of(run)[0])
    assert "Nothing left for you" in end_of(client, run)


def end_of(client, run):
    """The words behind the pairs, which are shown once no pair is left."""
    return text_of(client.get(page_of(run)))


def test_while_the_last_votes_are_counted_the_page_does_not_say_done_and_looks_again():
    run = make_run()
    make_vote(make_voter(run), pairs_of(run)[0])
    page = voter_client(make_voter(run)).get(page_of(run))
    assert pairs_shown(page) == []
    assert "Nothing left for you" not in text_of(page)
    assert "The last votes are being counted" in text_of(page)
    assert 'hx-trigger="every 4s"' in page.content.decode()


def test_a_page_is_told_which_pairs_are_somebody_elses_by_now():
    run = make_run(pairs=6)
    client = voter_client(make_voter(run))
    have = pairs_shown(client.get(page_of(run)))
    taken = pairs_shown(voter_client(make_voter(run)).get(page_of(run)))
    response = client.get(f"{page_of(run)}pairs?have={','.join(map(str, have))}")
    assert set(json.loads(response["HX-Trigger"])["gone"]["pairs"]) == set(map(str, taken[:3]))


def test_undo_is_off_before_the_first_vote():
    run = make_run(pairs=3)
    voter = make_voter(run)
    assert undo_buttons(voter, run) == {"disabled"}
    make_vote(voter, pairs_of(run)[0])
    assert undo_buttons(voter, run) == {""}


def undo_buttons(voter, run):
    body = voter_client(voter).get(page_of(run)).content.decode()
    return set(re.findall(r'form="undo" data-keys="u Backspace" ?(\w*)>', body))


def test_while_pairs_are_prepared_the_page_does_not_say_done():
    run = make_run(pairs=2)
    voter = make_voter(run)
    Item.objects.filter(pk=pairs_of(run)[1].pk).update(opened_at=None)
    make_vote(voter, pairs_of(run)[0])
    text = end_of(voter_client(voter), run)
    assert "Nothing left for you" not in text
    assert "being prepared" in text


def test_pairs_that_are_left_out_hold_nobody_up():
    run = make_run(pairs=2)
    voter = make_voter(run)
    Item.objects.filter(pk=pairs_of(run)[1].pk).update(
        opened_at=None, unusable="A could not be drawn: no picture"
    )
    make_vote(voter, pairs_of(run)[0])
    assert "Nothing left for you" in end_of(voter_client(voter), run)


def test_a_closed_queue_hands_out_nothing_and_says_so():
    run = make_run(pairs=3, is_open=False)
    response = voter_client(make_voter(run)).get(page_of(run))
    assert ballots_in(response) == []
    assert "Voting has closed" in text_of(response)
    assert not Assignment.objects.exists()


def test_progress_is_mine_and_that_of_the_run():
    run = make_run(pairs=4)
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    make_vote(make_voter(run), pairs_of(run)[1])
    seal_all(run.queue.project)
    text = text_of(voter_client(voter).get(page_of(run)))
    assert "1 of 3 voted by you" in text
    assert "2 of 4 have enough votes" in text


def test_my_votes_are_listed_as_they_were_seen():
    run = make_run(pairs=2)
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0], "both_bad")
    response = voter_client(voter).get(f"{page_of(run)}mine")
    assert response.status_code == 200
    assert "Both bad" in text_of(response)
    assert "in a moment" in text_of(response)


def test_a_vote_that_is_sealed_has_a_receipt():
    run = make_run(pairs=2)
    voter = make_voter(run)
    vote = make_vote(voter, pairs_of(run)[0])
    seal_all(run.queue.project)
    entry = entry_of(vote)
    receipt = f"{entry.seq}:{bytes(entry.hash).hex()}"
    assert receipt in text_of(voter_client(voter).get(f"{page_of(run)}mine"))


def test_text_is_rendered_and_hostile_text_is_shown_as_text():
    run = make_run()
    pair = pairs_of(run)[0]
    pair.a.output = "**bold** <script>alert(1)</script>"
    pair.a.save()
    body = voter_client(make_voter(run)).get(page_of(run)).content.decode()
    assert "<strong>bold</strong>" in body
    assert "<script>alert" not in body


def test_code_is_monospaced_and_escaped():
    run = make_run()
    pair = pairs_of(run)[0]
    pair.a = make_inference(run.queue.project, "<b>x</b> && y", kind="code", prompt="A question")
    pair.save()
    body = voter_client(make_voter(run)).get(page_of(run)).content.decode()
    plain = re.sub(r"</?span[^>]*>", "", body)
    assert "&lt;b&gt;x&lt;/b&gt; &amp;&amp; y" in plain


def test_a_drawing_that_failed_is_shown_as_such_with_its_reason():
    run = make_run()
    pair = pairs_of(run)[0]
    picture = Picture.objects.create(source_sha256="0" * 64, state="failed", error="it is <empty>")
    pair.a.kind, pair.a.picture, pair.a.output = "svg", picture, "<svg onload=alert(1)>"
    pair.a.save()
    response = voter_client(make_voter(run)).get(page_of(run))
    assert "Could not be drawn. it is <empty>" in text_of(response)
    assert "<svg onload" not in response.content.decode()


def test_a_queue_that_is_not_there_is_not_found():
    run = make_run()
    client = voter_client(make_voter(run))
    assert client.get(f"/vote/{run.pk}/").status_code == 404
    assert client.get("/vote/nonsense/").status_code == 404


@pytest.mark.parametrize("reveal", ["after_each", "at_end"])
def test_a_run_without_a_judge_to_reveal_goes_on_by_itself(reveal):
    run = make_run(pairs=2, judges=0, reveal=reveal)
    page = voter_client(make_voter(run)).get(f"/vote/{run.queue_id}/").content.decode()
    assert 'data-reveal="never"' in page
    assert "Auto-advance" not in page
    assert 'hx-swap="none"' in page


def test_a_judge_that_is_left_out_is_none_to_reveal():
    run = make_run(pairs=2, judges=1)
    client = voter_client(make_voter(run))
    assert 'data-reveal="after_each"' in client.get(f"/vote/{run.queue_id}/").content.decode()
    JudgeRating.objects.update(is_left_out=True)
    assert 'data-reveal="never"' in client.get(f"/vote/{run.queue_id}/").content.decode()
