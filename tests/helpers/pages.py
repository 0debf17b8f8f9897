"""Small words for the tests of pages: ballots as a page holds them, and what a page costs."""

import html
import re

from django.db import connection
from django.test.utils import CaptureQueriesContext

from voting.ballot.assignment import ballot_for
from voting.ballot.signed_form import issue

HTMX = {"HX-Request": "true"}


def token_of(voter, pair):
    return issue(ballot_for(voter, pair.queue, pair))


def position(voter, pair, choice):
    """Where the voter would press to choose A or B."""
    left = ballot_for(voter, pair.queue, pair).left
    return "left" if choice == left else "right"


def post_vote(client, voter, pair, choice="left", **more):
    data = {"ballot": token_of(voter, pair), "choice": choice, **more}
    return client.post(f"/vote/{pair.queue_id}/ballot", data, headers=HTMX)


def text_of(response):
    """The words of a page, as they are read."""
    page = re.sub(r"<(script|style).*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def ballots_in(response):
    return re.findall(r'name="ballot" value="([^"]+)"', response.content.decode())


def queries_of(client, url, **options):
    with CaptureQueriesContext(connection) as queries:
        response = client.get(url, **options)
    assert response.status_code == 200, response.status_code
    return len(queries)
