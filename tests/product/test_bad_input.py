"""Input that makes no sense, sent to every address: it is refused in words, and nothing breaks."""

import pytest
from django.test import Client

from tests.helpers.every_page import EveryPage, read
from tests.helpers.pages import HTMX, text_of
from tests.makers import (
    key_client,
    make_invite,
    make_key,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
)
from voting.models import Entry
from voting.people.voters import invite_token

pytestmark = pytest.mark.django_db

BIG = "9" * 30
QUERIES = (
    f"page={BIG}&q=%00&part=%00&state=%00&project=x&sort=%00&voted=x&have=x&seen={BIG}",
    "page=-1&q=%ff%fe&part=generator:%00&again=%00&epsilon=nan&judge=%ff",
)
BODIES = {
    "NaN": b'{"name": NaN}',
    "deep": b"[" * 100_000,
    "a number of 5,000 digits": b'{"name": ' + b"9" * 5000 + b"}",
    "half a surrogate pair": b'{"name": "\\ud800", "winner": "\\ud800", "task_id": "\\ud800"}',
    "NUL": b'{"name": "\\u0000", "winner": "\\u0000", "task_id": "\\u0000"}',
    "no UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "nothing": b"",
    "a list": b"[]",
    "a key twice": b'{"name": "a", "name": "b"}',
}
PATHS = (
    *("/static/../humanjudge/settings.py", "/static/..%2f..%2fetc/passwd", "/static/%00"),
    *("/pictures/..%2f..%2fetc/passwd.png", "/%ff%fe", "/..%2f..%2fetc/passwd", "/join/%00/"),
    *("/r/%00/", f"/r/{'a' * 5000}/", "/r/../admin/", "/vote/x/", f"/runs/{BIG}/"),
)


@pytest.fixture(scope="module")
def every_page(module_db):
    return EveryPage()


def test_no_page_breaks_on_a_query_that_makes_no_sense(every_page):
    client = every_page.client
    client.raise_request_exception = False
    broken = [
        (name, query, answer.status_code)
        for name, address in every_page.addresses().items()
        if name != "healthz"
        for query, headers in zip(QUERIES, ({}, HTMX), strict=True)
        if (answer := read(client.get(f"{address}?{query}", headers=headers))).status_code >= 500
    ]
    assert broken == []


def test_nothing_posted_without_the_token_of_a_page_is_taken(every_page):
    client = Client(enforce_csrf_checks=True)
    client.cookies = every_page.client.cookies
    entries = Entry.objects.count()
    for name, address in every_page.addresses().items():
        if name.startswith(("api", "grandjury")):
            continue  # these take a key, and no cookie
        answer = client.post(address, {"confirmed": "yes", "name": "x"})
        assert answer.status_code in (301, 403, 404), (name, answer.status_code)
    assert Entry.objects.count() == entries


def operations():
    for where in ("/api/", "/api/v1/"):
        document = Client().get(f"{where}openapi.json").json()
        for path, methods in document["paths"].items():
            if "post" in methods:
                yield path


def test_no_body_breaks_the_api():
    run = make_run()
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    _, key = make_key("read", "vote", "verdicts", "manage", project=run.queue.project)
    client = key_client(key, raise_request_exception=False)
    paths = list(operations())
    assert len(paths) > 15
    for path in paths:
        address = path.replace("{run_id}", str(run.pk)).replace(
            "{item_id}", str(pairs_of(run)[0].pk)
        )
        for name, body in BODIES.items():
            answer = client.post(address, body, content_type="application/json")
            assert answer.status_code < 500, (path, name)
            assert "detail" in answer.json() or answer.status_code < 300, (path, name)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_leads_out_of_its_folder_leads_nowhere(path):
    answer = Client().get(path)
    assert answer.status_code == 404
    assert "root:" not in text_of(answer)


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", r"/\\evil.example", "javascript:alert(1)"]
)
def test_a_login_leads_to_no_other_site(wanted, django_user_model):
    django_user_model.objects.create_user("ada", password="a long enough password")
    data = {"username": "ada", "password": "a long enough password", "next": wanted}
    assert Client().post("/login/", data)["Location"] == "/"


def test_a_name_with_a_nul_is_refused_in_words():
    link = f"/join/{invite_token(make_invite(make_run()))}/"
    answer = Client().post(link, {"name": "a\0b"})
    assert answer.status_code in (200, 422)
    assert "Null characters are not allowed" in text_of(answer)
