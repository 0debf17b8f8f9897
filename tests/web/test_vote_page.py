"""The page that pairs are voted on, and the ones that are fetched behind it."""

import pytest
from django.test import Client

from tests.makers import (
    make_inference,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from tests.web.pages import ballots_in, text_of
from voting.ballots import read
from voting.models import Assignment, Comparison, Picture

pytestmark = pytest.mark.django_db


def page_of(run):
    return f"/vote/{run.queue_id}/"


def pairs_shown(response):
    return [read(token).comparison for token in dict.fromkeys(ballots_in(response))]


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
    assert len(shown) == len(set(shown)) == settings.PAIRS_AHEAD
    assert {read(token).voter for token in ballots_in(response)} == {voter.pk}


def test_the_sides_are_where_the_ballot_says():
    run = make_run(pairs=6)
    voter = make_voter(run)
    for token in ballots_in(voter_client(voter).get(page_of(run))):
        ballot = read(token)
        pair = Comparison.objects.select_related("a", "b").get(pk=ballot.comparison)
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
    assert len(more) == 6
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


def test_while_others_hold_the_last_pair_the_page_does_not_say_done():
    run = make_run()
    voter_client(make_voter(run)).get(page_of(run))
    text = end_of(voter_client(make_voter(run)), run)
    assert "Nothing left for you" not in text
    assert "with other voters" in text


def test_while_pairs_are_prepared_the_page_does_not_say_done():
    run = make_run(pairs=2)
    voter = make_voter(run)
    Comparison.objects.filter(pk=pairs_of(run)[1].pk).update(opened_at=None)
    make_vote(voter, pairs_of(run)[0])
    text = end_of(voter_client(voter), run)
    assert "Nothing left for you" not in text
    assert "being prepared" in text


def test_pairs_that_are_left_out_hold_nobody_up():
    run = make_run(pairs=2)
    voter = make_voter(run)
    Comparison.objects.filter(pk=pairs_of(run)[1].pk).update(
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
    assert "both bad" in text_of(response)


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
    assert "&lt;b&gt;x&lt;/b&gt; &amp;&amp; y" in body


def test_a_drawing_that_failed_is_shown_as_such_with_its_reason():
    run = make_run()
    pair = pairs_of(run)[0]
    picture = Picture.objects.create(source_sha256="0" * 64, state="failed", error="it is <empty>")
    pair.a.kind, pair.a.picture, pair.a.output = "svg", picture, "<svg onload=alert(1)>"
    pair.a.save()
    response = voter_client(make_voter(run)).get(page_of(run))
    assert "Could not be drawn. it is <empty>" in text_of(response)
    assert "<svg onload" not in response.content.decode()


@pytest.mark.parametrize("path", ["", "pairs", "mine"])
def test_pages_of_pairs_are_only_read_and_never_kept(path):
    run = make_run()
    client = voter_client(make_voter(run))
    assert client.post(page_of(run) + path).status_code == 405
    assert "no-store" in client.get(page_of(run) + path)["Cache-Control"]


def test_a_queue_that_is_not_there_is_not_found():
    run = make_run()
    client = voter_client(make_voter(run))
    assert client.get(f"/vote/{run.pk}/").status_code == 404
    assert client.get("/vote/nonsense/").status_code == 404
