"""What holds for every answer of the product: a strict policy, and no page that needs less."""

import re

import pytest
from django.db import transaction
from django.test import Client

from tests.helpers.every_page import EveryPage
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
    "favicon": 301,
    "not found": 404,
    "healthz": 503,
    # Without an identity provider there are none; tests/db/test_openid.py has one.
    "provider-login": 404,
    "provider-callback": 404,
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


def read(response):
    """Read a file to its end, so that it is closed."""
    if response.streaming:
        for _ in response.streaming_content:
            pass
    return response


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


def test_no_page_needs_what_the_policy_forbids(answers):
    for (name, kind), answer in answers.items():
        is_file = "attachment" in answer.get("Content-Disposition", "")
        if is_file or "html" not in answer.get("Content-Type", ""):
            continue
        body = answer.content.decode()
        # A tag of a text that is shown is escaped: what is left are the page's own.
        tags = re.findall(r"<[a-zA-Z][^>]*>", body)
        inline = re.compile(r"""\s(style|on[a-z]+)\s*=|(href|src|action)\s*=\s*["']?javascript:""")
        assert [tag for tag in tags if inline.search(tag)] == [], (name, kind)
        assert "<style" not in body, (name, kind)
        for attributes, script in re.findall(r"<script([^>]*)>(.*?)</script>", body, re.DOTALL):
            is_data = 'type="application/json"' in attributes
            assert is_data or ("src=" in attributes and not script.strip()), (name, script[:80])
        elsewhere = re.findall(r'<(?:script|link|img|iframe|form)[^>]*="(?:https?:)?//[^"]*"', body)
        assert [tag for tag in elsewhere if "//testserver/" not in tag] == [], (name, kind)
