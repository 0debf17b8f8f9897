"""Imported drawings are rendered here before anybody votes on them."""

import pytest

from judge_eval.models import Run
from judge_eval.runs import state
from tests.helpers.imports import (
    added,
    assert_whole,
    imported,
    pair,
    run_of,
    verdict,
    vote,
    votes_of,
)
from tests.helpers.reference import assert_as_expected
from tests.makers import pairs_of, seal_all
from voting.models import Item, Picture
from voting.pictures.store import render_picture, source_address

pytestmark = pytest.mark.django_db

RED, BLUE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
    f'<path fill="{colour}" d="M0 0h9v9z"/></svg>'
    for colour in ("red", "blue")
)


def drawings(number=1, a=RED, b=BLUE, **fields):
    return pair(number, kind="svg", output_a=a, output_b=b, **fields)


def render_all(run):
    for picture in Picture.objects.filter(state="waiting"):
        render_picture(picture.pk)
    state.advance(run.pk)
    run.refresh_from_db()


def test_drawings_wait_for_their_pictures():
    run = imported(drawings(), verdict(1, "x", "A"), verdict(1, "y", "B"), vote(1, "ann", "A"))
    assert (run.state, run.queue.is_open) == ("judging", True)
    [stored] = pairs_of(run)
    assert stored.opened_at is None
    assert [stored.a.picture.source_sha256, stored.b.picture.source_sha256] == [
        source_address(RED),
        source_address(BLUE),
    ]
    # The votes count at once: they were cast on pictures that were drawn elsewhere.
    assert_as_expected(run)
    render_all(run)
    seal_all(run.queue.project)
    stored.refresh_from_db()
    assert (run.state, stored.opened_at is None) == ("voting", False)
    assert len(votes_of(run)) == 1
    assert_as_expected(run)
    assert_whole(run.queue.project)


def test_a_drawing_that_is_here_already_is_not_drawn_again():
    first = imported(drawings())
    render_all(first)
    second = imported(drawings(2, a=BLUE, b=RED))
    assert Picture.objects.count() == 2
    assert (second.state, pairs_of(second)[0].opened_at is None) == ("voting", False)


def test_a_drawing_that_cannot_be_drawn_closes_its_pair_alone():
    run = imported(drawings(1), drawings(2, b="<svg"))
    render_all(run)
    first, second = pairs_of(run)
    assert (run.state, first.unusable) == ("voting", "")
    assert second.unusable.startswith("B could not be drawn")


def test_drawings_that_come_later_are_drawn_then():
    run = imported({"pair": "p1", "kind": "svg", "voter": "ann", "vote": "A"})
    assert run.state == Run.State.COMPLETE
    report = added(run, drawings(), open_for_voting=True)
    run = run_of(report)
    assert (run.state, run.queue.is_open) == ("judging", True)
    render_all(run)
    assert run.state == "voting"


def test_pairs_that_are_open_stay_open_while_others_are_drawn():
    run = imported(drawings())
    render_all(run)
    opened = Item.objects.get().opened_at
    report = added(run, drawings(2, a=BLUE.replace("blue", "green")))
    run = run_of(report)
    assert run.state == "judging"
    first, second = pairs_of(run)
    assert (first.opened_at, second.opened_at) == (opened, None)
    render_all(run)
    assert run.state == "voting"


def bare(svg):
    return svg.replace(' xmlns="http://www.w3.org/2000/svg"', "")


def test_a_drawing_without_xmlns_is_given_it_as_one_that_is_generated_here_and_it_is_noted():
    prolog = '<?xml version="1.0"?>\n'
    run = imported(drawings(a=prolog + bare(RED)), verdict(1, "x", "A"))
    [stored] = pairs_of(run)
    assert (stored.a.output, stored.b.output) == (prolog + RED, BLUE)
    assert stored.a.metadata == {"changes": ["added xmlns"]}
    assert stored.b.metadata == {}
    render_all(run)
    assert [pair.unusable for pair in pairs_of(run)] == [""]


def test_the_same_drawing_without_xmlns_again_changes_nothing():
    run = imported(drawings(a=bare(RED), b=bare(BLUE)))
    again = added(run, drawings(a=bare(RED)), drawings(b=BLUE))
    assert (again.errors, again.changed) == ([], False)
    assert pairs_of(run)[0].a.metadata == {"changes": ["added xmlns"]}


def test_a_text_that_speaks_of_drawings_is_left_as_it_is():
    run = imported(pair(1, output_a=bare(RED)))
    assert pairs_of(run)[0].a.output == bare(RED)
