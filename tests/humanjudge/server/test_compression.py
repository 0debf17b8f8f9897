"""Pages are compressed where no other site could learn a secret from their length."""

import gzip

import pytest
from django.test import Client

from tests.makers import key_client, make_key, make_run, make_voter, user_client, voter_client

pytestmark = pytest.mark.django_db

GZIP = {"Accept-Encoding": "gzip, deflate"}
HTMX = {"HX-Request": "true"}


def encoding_of(response):
    return response.headers.get("Content-Encoding")


def test_the_voting_page_is_compressed_and_is_the_same():
    run = make_run(pairs=8)
    client = voter_client(make_voter(run))
    plain = client.get(f"/vote/{run.queue_id}/")
    packed = client.get(f"/vote/{run.queue_id}/", headers=GZIP)
    assert (encoding_of(plain), encoding_of(packed)) == (None, "gzip")
    assert "Accept-Encoding" in packed["Vary"]
    assert len(packed.content) < len(plain.content) / 3
    text = gzip.decompress(packed.content).decode()
    assert text.count("<form") == plain.content.decode().count("<form")


def test_a_page_that_repeats_what_its_address_says_is_not():
    client = user_client()
    make_run()
    for address in ("/runs/?cursor=x", "/login/?next=/runs/guess", "/admin/voting/apikey/?q=guess"):
        response = client.get(address, headers=GZIP)
        assert encoding_of(response) is None, address


def test_what_htmx_asks_for_is_compressed_with_a_query_too():
    run = make_run(pairs=8)
    client, address = voter_client(make_voter(run)), f"/vote/{run.queue_id}/pairs?have="
    assert encoding_of(client.get(address, headers=GZIP)) is None
    assert encoding_of(client.get(address, headers=GZIP | HTMX)) == "gzip"


def test_answers_to_forms_errors_short_pages_and_the_api_are_not():
    run = make_run(pairs=8)
    client, script = Client(), key_client(make_key("read")[1])
    data = {"username": "x" * 2000, "password": "y"}
    answers = {
        "form": client.post("/login/", data, headers=GZIP),
        "error": client.get("/nowhere/", headers=GZIP),
        "API": script.get(f"/api/runs/{run.pk}/judge-eval/pending", headers=GZIP),
        "file": client.get("/favicon.ico", headers=GZIP),
    }
    assert {name: encoding_of(answer) for name, answer in answers.items()} == dict.fromkeys(answers)
