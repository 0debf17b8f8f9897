"""Parts of a run on its board: chosen from a form, computed when asked for."""

from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from judge_eval.board import cache
from judge_eval.models import Findings
from tests.helpers.board_rows import (
    board_of,
    cells_of,
    make_studied_run,
    refresh_of,
    vote_all,
    words_in,
)
from tests.helpers.pages import HTMX, text_of
from tests.helpers.run_findings import compute
from tests.makers import make_run, pairs_of, user_client
from voting.models import Inference

pytestmark = pytest.mark.django_db

ODD = "old & <new>?"
ODD_IN_ADDRESS = "tag:old%20%26%20%3Cnew%3E%3F"


@pytest.fixture(scope="module")
def run(module_db):
    """Half of the prompts are about animals, every fourth has an odd tag."""
    run = make_studied_run()
    for place, pair in enumerate(pairs_of(run)):
        tags = ["animals"] * (place % 2) + [ODD] * (place % 4 == 0)
        Inference.objects.filter(pk__in=[pair.a_id, pair.b_id]).update(tags=tags)
    compute(run)
    return run


def get(run, part="", **options):
    return user_client().get(board_of(run, part), **options)


def test_the_form_lists_the_parts(run):
    response = get(run)
    form = words_in(response, '<form method="get"', "</form>")
    assert '<option value="tag:animals">animals (20)</option>' in form
    assert '<option value="generator:generator-0">' in form
    assert '<option value="ballot:decided">' in form
    assert '<option value="tag:old &amp; &lt;new&gt;?">' in form
    assert "selected" not in form


def test_a_part_is_computed_when_it_is_asked_for(run):
    response = get(run, "tag:animals")
    assert response.status_code == 200
    assert "The figures of this part are being computed." in text_of(response)
    assert Findings.objects.get(run=run, part="tag:animals").data is None
    assert "tag%3Aanimals" in refresh_of(response)
    compute(run, "tag:animals")
    seen = response.context["seen"]
    fresh = user_client().get(f"{board_of(run, 'tag:animals')}&seen={seen}", headers=HTMX)
    assert fresh.status_code == 200
    assert cells_of(fresh, "good")["agreement"].title.startswith("32 of 40 votes")


def test_a_part_shows_its_own_figures_and_no_elo(run):
    compute(run, "tag:animals")
    response = get(run, "tag:animals")
    text = text_of(response)
    assert "Only prompts tagged animals: " in text
    assert "ELO, prices and times are those of the whole run." in text
    good = cells_of(response, "good")
    assert "elo" not in good
    assert good.keys().isdisjoint({"cost", "correct", "seconds"})
    assert good["rank"].main.startswith("1")
    assert "Rating after each vote" not in text
    assert "As of 40 votes by 2 people on 20 of 40 pairs, ledger entry" in text
    assert '<option value="tag:animals" selected>' in response.content.decode()


def test_a_part_says_when_the_ledger_has_gone_on(run):
    compute(run, "tag:animals")
    vote_all(run, 1, places=[0])
    text = text_of(get(run, "tag:animals"))
    assert "The ledger has newer entries; updating." in text
    assert "came since" not in text


def test_the_order_of_a_part_is_by_its_own_rating(run):
    compute(run, "tag:animals")
    rows = get(run, "tag:animals").context["table"].rows
    assert [row.name for row in rows] == ["good", "weak", rows[2].name, "always-first"]


@pytest.mark.parametrize("part", ["generator:generator-1", "ballot:decided", ODD_IN_ADDRESS])
def test_every_kind_of_part(run, part):
    response = get(run, part)
    assert response.status_code == 200
    compute(run, str(response.context["part"]))
    response = get(run, part)
    assert "being computed" not in text_of(response).split("How to read this")[0]
    live = refresh_of(response)
    assert parse_qs(urlsplit(live).query)["part"] == [unquote(part)]
    assert user_client().get(live, headers=HTMX).status_code == 204


def test_an_empty_part_is_the_whole(run):
    response = user_client().get(f"{board_of(run)}?part=")
    assert response.status_code == 200
    assert "elo" in cells_of(response, "good")


@pytest.mark.parametrize("part", ["tag:plants", "generator:nobody", "tag:%00", "tag:Animals"])
@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_part_that_is_not_there(run, part, headers):
    response = get(run, part, headers=headers)
    assert response.status_code == 404
    assert "this run has no" in text_of(response).lower()
    assert Findings.objects.filter(run=run).count() == 1


@pytest.mark.parametrize("part", ["colour:red", "tag", "tag:", "ballot:other", "tag:" + "x" * 400])
def test_what_is_no_part_at_all(run, part):
    response = get(run, part)
    assert response.status_code == 400
    assert "tag:…, generator:…, group:… or ballot:decided" in text_of(response)
    assert Findings.objects.filter(run=run).count() == 1


def test_too_many_parts_are_refused(run, monkeypatch):
    monkeypatch.setattr(cache, "MOST_PARTS", 1)
    assert get(run, "tag:animals").status_code == 429
    assert get(run).status_code == 200


def test_before_the_run_is_computed_no_part_is_kept():
    """Which parts there are is not known yet, so nobody can fill the table with made-up ones."""
    run = make_run(pairs=2)
    response = get(run, "tag:made-up")
    assert response.status_code == 200
    assert "The figures of this part are being computed." in text_of(response)
    assert [found.part for found in Findings.objects.filter(run=run)] == [""]
    compute(run)
    seen = response.context["seen"]
    url = f"{board_of(run, 'tag:made-up')}&seen={seen}"
    assert user_client().get(url, headers=HTMX).status_code == 404


def test_a_part_without_votes_says_so():
    run = make_run(pairs=2)
    compute(run)
    compute(run, "generator:generator-0")
    text = text_of(get(run, "generator:generator-0"))
    assert "There are no votes yet" in text


def test_the_form_comes_when_parts_become_known():
    run = make_studied_run(people=1, pairs=4)
    client = user_client()
    page = client.get(board_of(run))
    assert b"<select" not in page.content
    compute(run)
    url = refresh_of(page)
    fresh = client.get(url, headers=HTMX)
    assert b'id="parts" hx-swap-oob="true"' in fresh.content
    compute(run)
    again = client.get(refresh_of(fresh), headers=HTMX)
    assert again.status_code == 200
    assert b'id="parts"' not in again.content
