"""Runs with findings, computed here and now, for tests of the board."""

import re

from tests.makers import make_many_votes, make_run, make_voter, pairs_of, seal_all

PAIRS = 40


def make_studied_run(*, people=2, pairs=PAIRS, judges=3, **options):
    """Good is right on nine pairs of ten, weak on half of them; the baseline always says A.

    Further judges say tie. Everybody votes the same, A and B in turn.
    """
    names = ["good", "weak", "always-first", *[f"tie-{n}" for n in range(3, judges)]][:judges]
    says = [says_on(place)[:judges] + ["tie"] * (judges - 3) for place in range(pairs)]
    run = make_run(
        says=says, names=names, votes_wanted=people, baselines=["always-first"], **options
    )
    vote_all(run, people)
    return run


def truth(place):
    return "AB"[place % 2]


def says_on(place):
    other = "BA"[place % 2]
    return [
        other if place % 10 == 9 else truth(place),
        truth(place) if place % 4 < 2 else other,
        "A",
    ]


def vote_all(run, people, places=None):
    pairs = [(n, pair) for n, pair in enumerate(pairs_of(run)) if places is None or n in places]
    voters = [make_voter(run) for _ in range(people)]
    make_many_votes(run, [(voter, pair, truth(n)) for voter in voters for n, pair in pairs])
    seal_all(run.queue.project)


def board_of(run, part=""):
    return f"/runs/{run.pk}/" + (f"?part={part}" if part else "")


def cells_of(response, judge):
    """What is written of a judge by figure, in the table and in the one folded below it."""
    tables = [table for name in ("table", "further") if (table := response.context.get(name))]
    rows = [row for table in tables for row in table.rows if row.name == judge]
    return {cell.figure: cell for row in rows for cell in row.cells[1:]}


def refresh_of(response):
    """Where the live part of a page asks for itself."""
    address = words_in(response, 'data-summary="[^"]*"\\s+hx-get="', '"')
    return address.replace("&amp;", "&")


def words_in(response, start, end):
    """The part of a page between two pieces of its source, as source."""
    page = response.content.decode()
    return re.search(f"{start}(.*?){end}", page, flags=re.DOTALL)[1]
