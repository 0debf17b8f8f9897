"""What waits for a curator by REST: listed page by page, decided on, reversed."""

import pytest

from reports.models import Review
from tests.makers import key_client, make_key
from tests.reports.review.test_review_pages import disputed
from voting.models import Entry

pytestmark = pytest.mark.django_db


def client_of(*scopes, **options):
    _, token = make_key(*(scopes or ("read", "manage")), **options)
    return key_client(token)


def decide(client, item, **said):
    return client.post(f"/api/review/{item.pk}/decisions", said, "application/json")


def test_the_list_goes_from_page_to_page():
    pairs, client, found, cursor = disputed(pairs=3), client_of(), [], 0
    while cursor is not None:
        page = client.get(f"/api/review?limit=2&cursor={cursor}").json()
        found += page["items"]
        cursor = page["next_cursor"]
    assert {row["item"] for row in found} == {str(pair.pk) for pair in pairs}
    assert {(row["is_divided"], row["waits"], row["votes"]) for row in found} == {(True, True, 3)}


def test_a_decision_is_made_refused_and_reversed():
    [pair] = disputed()
    client = client_of()
    made = decide(client, pair, action="exclude", why="Copied.")
    assert made.status_code == 201
    assert Entry.objects.get(kind="decision").comment == "Copied."
    assert client.get("/api/review").json()["items"] == []
    [row] = client.get("/api/review?state=decided").json()["items"]
    assert (row["decided"], row["after"]) == ("exclude", made.json()["id"])
    assert decide(client, pair, action="keep").status_code == 409
    assert decide(client, pair, action="reverse", after=row["after"]).status_code == 201
    assert decide(client, pair, action="reverse", after=row["after"]).status_code == 409
    assert Review.objects.get().waits


@pytest.mark.parametrize(
    "said",
    [
        {"action": "delete"},
        {"action": "note"},
        {"action": "reverse"},
        {"action": "another_round", "votes": 0},
    ],
)
def test_what_is_wrong_is_422(said):
    [pair] = disputed()
    assert decide(client_of(), pair, **said).status_code == 422
    assert not Entry.objects.filter(kind="decision").exists()
