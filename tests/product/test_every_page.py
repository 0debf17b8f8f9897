"""What holds for every answer of the product: a strict policy, and no page that needs less."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from django.db import transaction
from django.test import Client
from django.utils.html import escape

from tests.helpers.every_page import HOSTILE, EveryPage, read
from tests.helpers.pages import HTMX

pytestmark = pytest.mark.django_db

POLICY = {
    "default-src": "'none'",
    **dict.fromkeys(("script-src", "style-src", "img-src", "connect-src", "font-src"), "'self'"),
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
# A drawing or a report that is downloaded: it may load nothing at all, from nowhere.
INERT = {"default-src": "'none'", "style-src": "'unsafe-inline'", "sandbox": ""}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# Whatever answers a GET with something else than 200, or 405 where there is only a form to post.
ANSWERS = {
    "admin-login": 302,
    # What they showed stands on other pages now.
    "make-invite": 301,
    "run-export": 301,
    "run-quality": 301,
    "favicon": 301,
    "not found": 404,
    "healthz": 503,
    # Without an identity provider there are none; tests/voting/access/test_openid.py has one.
    "provider-login": 404,
    "provider-callback": 404,
}
# Everything else may show votes, verdicts or keys, and no cache keeps it.
MAY_BE_KEPT = {
    *("picture", "thumbnail", "metrics", "planner", "runs", "admin password"),
    *("api docs", "api document", "grandjury docs", "grandjury document"),
}


@pytest.fixture(scope="module")
def answers(django_db_setup, django_db_blocker):
    """What every page answers its readers: in a browser, through htmx, and without a login."""
    with django_db_blocker.unblock(), transaction.atomic():
        world = EveryPage()
        readers = {"page": (world.client, {}), "fragment": (world.client, HTMX)}
        readers["stranger"] = (Client(), {})
        yield {
            (name, kind): read(client.get(address, headers=headers))
            for name, address in world.addresses().items()
            for kind, (client, headers) in readers.items()
        }
        transaction.set_rollback(True)


def policy_of(response):
    parts = (part.strip().partition(" ") for part in response["Content-Security-Policy"].split(";"))
    return {name: value for name, _, value in parts if name}


def test_every_page_answers_or_takes_only_what_is_posted(answers):
    wrong = {
        name: answer.status_code
        for (name, kind), answer in answers.items()
        if kind == "page" and answer.status_code not in (ANSWERS.get(name, 200), 405)
    }
    assert wrong == {}
    assert len({name for name, _ in answers}) > 80


def test_every_answer_has_the_strict_policy_and_the_other_headers(answers):
    for (name, kind), answer in answers.items():
        policy = policy_of(answer)
        is_file = policy == INERT and "attachment" in answer["Content-Disposition"]
        assert policy == POLICY or is_file, (name, kind, policy)
        for header, value in HEADERS.items():
            assert answer.get(header) == value, (name, kind, header)


def test_what_readers_are_shown_is_kept_by_no_cache(answers):
    kept = {
        name
        for (name, kind), answer in answers.items()
        if answer.status_code == 200 and "no-store" not in answer.get("Cache-Control", "")
        if kind != "stranger"
    }
    assert kept == MAY_BE_KEPT


class Forbidden(HTMLParser):
    """What of a page the policy would not let through, and a browser would not do."""

    def __init__(self, body):
        super().__init__()
        self.found, self._in_script = [], False
        self.feed(body)
        self.close()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self._in_script = tag == "script" and values.get("type") != "application/json"
        links = [values.get(name) or "" for name in ("href", "src", "action", "srcset")]
        is_loaded = tag in ("script", "link", "img", "iframe", "form", "source")
        if (
            tag in ("style", "iframe", "object", "embed", "base")
            or any(name == "style" or name.startswith("on") for name in values)
            or any(link.strip().lower().startswith(("javascript:", "data:")) for link in links)
            or (is_loaded and any(is_elsewhere(link) for link in links))
            or (self._in_script and "src" not in values)
        ):
            self.found.append(self.get_starttag_text())

    def handle_data(self, data):
        if self._in_script and data.strip():
            self.found.append(data)
        self._in_script = False


def is_elsewhere(link):
    return urlsplit(link).netloc not in ("", "testserver")


def test_no_page_needs_what_the_policy_forbids_whatever_things_are_called(answers):
    named = 0
    for (name, kind), answer in answers.items():
        is_file = "attachment" in answer.get("Content-Disposition", "")
        if is_file or "html" not in answer.get("Content-Type", ""):
            continue
        body = answer.content.decode()
        assert Forbidden(body).found == [], (name, kind)
        named += escape(HOSTILE) in body
    assert named > 30


def test_the_search_itself_finds_what_is_forbidden():
    inline = "<style>", "<p onclick=x>", "<p style='x'>", "<a href=' JavaScript:x'>", "<iframe>"
    elsewhere = "<script src=//evil.example/x>", "<img src='https://evil.example/x'>"
    for each in (
        *inline,
        *elsewhere,
        "<script>alert(1)</script>",
        "<script src=/x>alert(1)</script>",
    ):
        assert Forbidden(each).found, each
    assert Forbidden("<p title='<img src=x onerror=x>'><script src=/x></script>").found == []
