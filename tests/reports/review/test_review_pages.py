"""The pages of curators: what waits, what one item shows, and what is decided there."""

import re

import pytest
from django.contrib.auth.models import User

from reports.models import Review
from reports.review.services import decide
from reports.review.views import count_waiting
from tests.helpers.pages import queries_of, text_of
from tests.makers import (
    key_client,
    make_key,
    make_many_votes,
    make_run,
    make_single_run,
    make_skip,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.assignment import ballot_for
from voting.ballot.services import flag
from voting.ballot.signed_form import issue
from voting.models import Entry, Item, Voter
from voting.people.voters import voter_of_user

pytestmark = pytest.mark.django_db


def disputed(pairs=1, **fields):
    """Return pairs of a run on which three people have voted three different things."""
    run = make_run(pairs=pairs, votes_wanted=3, **fields)
    voters = [make_voter(run, name=name) for name in ("Ann", "Ben", "Cid")]
    found = pairs_of(run)
    choices = zip(voters, ("A", "B", "tie"), strict=True)
    make_many_votes(run, [(v, pair, choice) for v, choice in choices for pair in found])
    seal_all(run.queue.project)
    return found


def page_of(item, query=""):
    return f"/review/{item.pk}/{query}"


def form_of(response):
    """Return the hidden fields with which the page decides."""
    found = re.findall(r'name="(after|uid)" value="([^"]*)"', response.content.decode())
    return dict(found)


def act(client, item, action, query="", **more):
    fields = form_of(client.get(page_of(item))) | {"action": action} | more
    return client.post(f"/review/{item.pk}/decide{query}", fields)


def curator(item, name="owner"):
    user, _ = User.objects.get_or_create(username=name)
    return voter_of_user(item.queue.project, user)


def listed(query=""):
    """Return the identifiers of the items on the list."""
    page = user_client().get(f"/review/{query}").content.decode()
    return set(re.findall(r'href="/review/([0-9a-f-]{36})/', page))


# --- the list -----------------------------------------------------------------------------------


def test_the_list_says_what_waits_and_why_and_a_badge_counts_it():
    pairs = disputed(pairs=2)
    flag(make_voter(pairs[0].queue.run), pairs[0].pk, "unsafe", "Not for children.")
    words = text_of(user_client().get("/review/"))
    assert "1 flag, the newest: unsafe" in words
    assert words.count("disputed: no choice has two thirds of 3 votes") == 2
    assert "Review 2 waiting" in words
    assert "Review 2 waiting" in text_of(user_client().get("/runs/"))


@pytest.mark.parametrize(
    "posted, reason",
    [
        ({"category": "unsafe"}, "1 flag, the newest: unsafe"),
        ({"category": "unsafe", "comment": "It is rude."}, "1 flag, the newest: unsafe"),
    ],
)
def test_one_flag_vote_with_a_reason_reaches_page_api_and_admin_of_curators(posted, reason):
    run = make_single_run(outputs=["A joke"], votes_per_item=9)
    [item] = run.queue.items.all()
    voter = make_voter(run)
    ballot = issue(ballot_for(voter, run.queue, item))
    vote = {"ballot": ballot, "choice": "flag"} | posted
    assert voter_client(voter).post(f"/vote/{run.queue_id}/ballot", vote).status_code == 302
    seal_all(run.queue.project)
    assert listed() == {str(item.pk)}
    assert listed("?category=unsafe") == listed()
    assert f"{reason} 1 of 9" in text_of(user_client().get("/review/"))
    _, token = make_key("read", "manage")
    [row] = key_client(token).get("/api/review").json()["items"]
    assert (row["item"], row["waits"], row["flags"]) == (str(item.pk), True, 1)
    staff = user_client()
    User.objects.update(is_staff=True)
    admin = staff.get("/admin/reports/review/").content.decode()
    assert f"/review/{item.pk}/" in admin


def test_nothing_waits():
    words = text_of(user_client().get("/review/"))
    assert "Nothing waits for a curator here." in words
    assert "waiting Admin" not in words


def test_what_is_shown_is_chosen():
    pairs, others = disputed(pairs=2), disputed()
    flag(make_voter(pairs[0].queue.run), pairs[0].pk, "unsafe", "")
    decide(others[0], "keep", curator(others[0]), "", after=None)
    Review.objects.filter(item=pairs[1]).update(variance=0.2)
    Review.objects.filter(item=pairs[0]).update(since="2020-01-01T00:00Z")
    shown = {
        "": {pairs[0], pairs[1]},
        "?state=decided": {others[0]},
        "?state=all": {*pairs, *others},
        f"?project={pairs[0].queue.project_id}": set(pairs),
        f"?project={others[0].queue.project_id}": set(),
        "?category=unsafe": {pairs[0]},
        "?age=24": {pairs[0]},
        "?variance=0.1": {pairs[1]},
        "?kind=comparison": set(pairs),
        "?kind=pass_flag": set(),
    }
    for query, expected in shown.items():
        assert listed(query) == {str(pair.pk) for pair in expected}, query


def test_flags_of_voters_and_flag_votes_are_found_by_any_of_their_categories():
    pair, run = disputed()[0], make_single_run([["pass"]], votes_per_item=9)
    for voter, category in (("Ann", "unsafe"), ("Ben", "format")):
        flag(make_voter(pair.queue.run, name=voter), pair.pk, category, "")
    [item] = pairs_of(run)
    for name, category in (("Ann", "unsafe"), ("Ben", ""), ("Cid", "format")):
        vote = make_vote(make_voter(run, name=name), item, "flag" if category else "pass")
        said = {"category": category, "value": 0 if category else 1_000_000}
        Entry.objects.filter(uid=vote.uid).update(**said)
    seal_all(run.queue.project)
    for category, found in {"unsafe": {pair, item}, "format": {pair, item}, "other": set()}.items():
        assert listed(f"?category={category}") == {str(one.pk) for one in found}


@pytest.mark.parametrize("query", ["state=odd", "project=nobody", "variance=9", "age=soon"])
def test_a_filter_that_is_none_is_named(query):
    response = user_client().get(f"/review/?{query}")
    assert response.status_code == 400
    assert query.partition("=")[0] in text_of(response)


def test_the_pages_cost_the_same_whatever_waits():
    disputed()
    few = queries_of(user_client(), "/review/")
    pairs = disputed(pairs=60)
    assert queries_of(user_client(), "/review/") == few <= 12
    alone = queries_of(user_client(), page_of(disputed()[0]))
    assert queries_of(user_client(), page_of(pairs[30])) == alone


def test_many_are_decided_at_once():
    pairs = disputed(pairs=3)
    keys = [f"{pair.pk}:" for pair in pairs[:2]]
    given = {"item": keys, "action": "exclude", "why": "Copied."}
    response = user_client().post("/review/decide?state=waits", given, follow=True)
    assert "2 items excluded." in text_of(response)
    assert response.redirect_chain[-1][0] == "/review/?state=waits"
    assert set(Entry.objects.filter(kind="decision").values_list("item", "comment")) == {
        (pair.pk, "Copied.") for pair in pairs[:2]
    }
    assert Review.objects.get(waits=True).item == pairs[2]


def test_of_many_those_that_somebody_else_has_decided_are_named():
    pairs = disputed(pairs=2)
    decide(pairs[0], "keep", curator(pairs[0], "other"), "", after=None)
    keys = [f"{pair.pk}:" for pair in pairs]
    response = user_client().post("/review/decide", {"item": keys, "action": "exclude"})
    assert response.status_code == 409
    words = text_of(response)
    assert "1 item excluded. 1 item left as they were" in words
    assert "Item 1 of Queue" in words


@pytest.mark.parametrize(
    "given, status",
    [
        ({"action": "keep"}, 422),
        ({"action": "delete", "item": ["x"]}, 422),
        ({"action": "note", "item": ["x"]}, 422),
        ({"action": "keep", "item": ["x"]}, 400),
    ],
)
def test_a_bad_choice_of_many_changes_nothing(given, status):
    assert user_client().post("/review/decide", given).status_code == status
    assert not Entry.objects.filter(kind="decision").exists()


# --- one item -----------------------------------------------------------------------------------


def test_an_item_shows_outputs_votes_comments_flags_and_verdicts():
    [pair] = disputed()
    Entry.objects.filter(voter__name="Ann").update(comment="Both are fine.")
    flag(Voter.objects.get(name="Ben"), pair.pk, "format", "Too wide.")
    words = text_of(user_client().get(page_of(pair)))
    for part in ("Answer 0", "Answer 1", "Ann", "Both are fine.", "format", "Too wide."):
        assert part in words
    assert "judge-0 has its reasons." in words
    # A vote and a verdict name the output as its heading does, and who wrote it.
    assert "Ann Output A (generator-0)" in words
    assert "judge-0 Output A (generator-0)" in words


@pytest.mark.parametrize(
    "action, said", [("keep", "Kept"), ("exclude", "Excluded"), ("another_round", "Another round")]
)
def test_a_decision_leads_to_the_next_item_and_is_shown_with_who_and_why(action, said):
    first, second = disputed(pairs=2)
    client = user_client()
    response = act(client, first, action, why="Read it twice.")
    assert response.url == page_of(second)
    kept = "sent into another round" if action == "another_round" else said.lower()
    assert f"Item 1: {kept}." in text_of(client.get(response.url))
    words = text_of(client.get(page_of(first)))
    assert said in words
    assert "by owner" in words
    assert "Read it twice." in words
    assert act(client, second, action).url == "/review/"


def test_filters_stay_from_item_to_item():
    first, second = disputed(pairs=2)
    page = user_client().get(page_of(first, "?kind=comparison")).content.decode()
    assert f"{page_of(second)}?kind=comparison" in page
    response = act(user_client(), first, "keep", query="?kind=comparison")
    assert response.url == f"{page_of(second)}?kind=comparison"


def test_a_decision_is_reversed_on_the_page():
    [pair] = disputed()
    client = user_client()
    act(client, pair, "exclude")
    [decision] = Entry.objects.filter(kind="decision")
    response = client.post(f"/review/decisions/{decision.uid}/reverse", follow=True)
    assert "reversed. It is now waiting." in text_of(response)
    assert Review.objects.get().waits
    again = client.post(f"/review/decisions/{decision.uid}/reverse")
    assert again.status_code == 409
    assert "owner: Reversed" in text_of(again)


def test_who_comes_second_is_told_what_was_decided_and_loses_no_word():
    [pair] = disputed()
    late = form_of(user_client("late").get(page_of(pair)))
    act(user_client("first"), pair, "keep", why="It is fine.")
    fields = late | {"action": "exclude", "why": "It is not."}
    response = user_client("late").post(f"/review/{pair.pk}/decide", fields)
    assert response.status_code == 409
    words = text_of(response)
    assert "first: Kept" in words
    assert "It is not." in words
    assert [entry.payload["action"] for entry in Entry.objects.filter(kind="decision")] == ["keep"]


def test_the_same_form_twice_decides_once():
    [pair] = disputed()
    client = user_client()
    fields = form_of(client.get(page_of(pair))) | {"action": "keep"}
    for _ in range(2):
        assert client.post(f"/review/{pair.pk}/decide", fields).status_code == 302
    assert Entry.objects.filter(kind="decision").count() == 1


def test_a_note_stays_on_the_page_and_an_empty_one_is_none():
    [pair] = disputed()
    client = user_client()
    assert act(client, pair, "note", why="Ask Ann.").url == page_of(pair)
    response = act(client, pair, "note", why=" ")
    assert response.status_code == 422
    assert "Write the note first." in text_of(response)
    assert Review.objects.get().waits


@pytest.mark.parametrize("votes", ["0", "1001", "many"])
def test_another_round_of_no_votes_is_refused(votes):
    [pair] = disputed()
    response = act(user_client(), pair, "another_round", votes=votes, why="More.")
    assert response.status_code == 422
    assert "More." in text_of(response)


def test_an_item_that_is_not_open_takes_no_decision():
    [pair] = disputed()
    Item.objects.update(opened_at=None, unusable="A could not be drawn.")
    response = act(user_client(), pair, "keep")
    assert response.status_code == 409
    assert "could not be drawn" in text_of(response)


def test_who_could_still_vote_on_it_sees_nothing_of_it():
    pair, _ = disputed(pairs=2)
    Item.objects.update(votes_wanted=9)
    voter = curator(pair)
    make_skip(voter, pair)  # it was handed out
    client = user_client()
    # It was handed one item of the run, and could be handed the other: that they are here at all
    # would tell that they divide people.
    assert client.get("/review/").context["page"].paginator.count == 0
    assert count_waiting(client.get("/review/").wsgi_request) == ""
    assert "waiting for a decision" not in text_of(client.get("/"))
    key = key_client(make_key("read", "manage", user=User.objects.get(username="owner"))[1])
    told = {"items": [], "next_cursor": None}
    assert key.get("/api/review?limit=1").json() == told
    assert client.get(page_of(pair)).status_code == 403
    assert client.post(f"/review/{pair.pk}/decide", {"action": "keep"}).status_code == 403
    many = client.post("/review/decide", {"action": "keep", "item": [f"{pair.pk}:"]})
    assert many.status_code == 409
    assert not Entry.objects.filter(kind="decision").exists()
    make_vote(voter, pair)
    assert client.get(page_of(pair)).status_code == 200
    assert client.get("/review/").context["page"].paginator.count == 1


def test_what_a_curator_has_seen_is_not_blind_any_more():
    [pair] = disputed()
    Item.objects.update(votes_wanted=9)
    user_client().get(page_of(pair))
    make_vote(curator(pair), pair)
    seal_all(pair.queue.project)
    assert Entry.objects.get(kind="vote", voter__name="owner").unblinded


def test_unknown_items_and_decisions_are_404():
    nobody = "00000000-0000-0000-0000-000000000000"
    client = user_client()
    assert client.get(f"/review/{nobody}/").status_code == 404
    assert client.post(f"/review/{nobody}/decide", {"action": "keep"}).status_code == 404
    assert client.post(f"/review/decisions/{nobody}/reverse").status_code == 404


# --- the admin ----------------------------------------------------------------------------------


def post_in_admin(client, action, reviews, **more):
    chosen = {"action": action, "_selected_action": [review.pk for review in reviews]}
    return client.post("/admin/reports/review/", chosen | more, follow=True)


@pytest.mark.parametrize(
    "action, decided",
    [("keep_them", "keep"), ("exclude_them", "exclude"), ("ask_again", "another_round")],
)
def test_staff_decide_in_the_admin_once_they_confirm(action, decided):
    pairs = disputed(pairs=2)
    User.objects.create(username="root", is_staff=True, is_superuser=True)
    client = user_client("root")
    listed = client.get("/admin/reports/review/?waits__exact=1").content.decode()
    assert all(page_of(pair) in listed for pair in pairs)
    reviews = list(Review.objects.all())
    asked = post_in_admin(client, action, reviews)
    assert "can be reversed" in text_of(asked)
    assert not Entry.objects.filter(kind="decision").exists()
    assert ": 2." in text_of(post_in_admin(client, action, reviews, confirmed="yes"))
    made = Entry.objects.filter(kind="decision")
    assert {(entry.item_id, entry.payload["action"]) for entry in made} == {
        (pair.pk, decided) for pair in pairs
    }
    assert not Review.objects.filter(waits=True).exists()


def test_staff_send_back_in_the_admin_to_a_voter_with_words():
    """What that voter did not vote on is said, and is in no count."""
    first, second = disputed(pairs=2)
    stranger = Voter.objects.create(project=first.queue.project, name="Stranger")
    User.objects.create(username="root", is_staff=True, is_superuser=True)
    client, reviews = user_client("root"), list(Review.objects.all())
    voter = Entry.objects.filter(kind="vote", item=first).earliest("pk").voter
    Entry.objects.filter(kind="vote", item=second, voter=voter).update(voter=stranger)
    asked = post_in_admin(client, "send_back", reviews)
    assert "What the voter reads" in text_of(asked)
    assert f'value="{voter.pk}"' in asked.content.decode()
    form = {"confirmed": "yes", "voter": voter.pk}
    assert "This field is required." in text_of(post_in_admin(client, "send_back", reviews, **form))
    assert not Entry.objects.filter(kind="decision").exists()
    said = text_of(post_in_admin(client, "send_back", reviews, why="Count again.", **form))
    assert "Sent back: 1." in said
    assert "It goes back only to who voted on it" in said
    [made] = Entry.objects.filter(kind="decision")
    assert (made.item, made.voter, made.comment) == (first, voter, "Count again.")
