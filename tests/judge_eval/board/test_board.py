"""The board of a run: what stands on it and who may see it."""

import re
from copy import deepcopy
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from judge_eval.board.filters import WHOLE_RUN
from judge_eval.board.model import RunFindings
from judge_eval.board.views.board import _headline
from judge_eval.models import Findings
from judge_eval.stats.points import BoardPoint
from tests.helpers.board_rows import cells_of, words_in
from tests.helpers.boards import BOARDS
from tests.helpers.pages import HTMX, text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    make_exposure,
    make_run,
    make_skip,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.models import Item, Picture

pytestmark = pytest.mark.django_db


def board_of(run):
    return f"/runs/{run.pk}/"


def make_voted_run(**options):
    """Wise was right three times of four and missed one pair of five; wrong was always wrong."""
    says = [["A", "B"]] * 3 + [["B", "B"], [None, "A"]]
    run = make_run(says=says, names=["wise", "wrong"], **options)
    voter = make_voter(run)
    for pair in pairs_of(run)[:4]:
        make_vote(voter, pair, "A")
    seal_all(run.queue.project)
    return run


def rows_of(response):
    """The board's rows as (judge, ...) words."""
    return [
        (row.judge.name, round(row.elo), row.agree, row.disagree, row.total)
        for row in response.context["board"].rows
    ]


def test_the_owner_sees_the_judges_in_order():
    run = make_voted_run()
    response = user_client().get(board_of(run))
    assert response.status_code == 200
    assert [row[:1] + row[2:] for row in rows_of(response)] == [
        ("wise", 3, 1, 4),
        ("wrong", 0, 4, 4),
    ]
    table = response.context["table"]
    assert [row.name for row in table.rows][:2] == ["wise", "wrong"]
    # What is counted live, before anything is computed; a verdict that failed is not right.
    assert [row.cells[1].main for row in table.rows] == [
        "75\N{NO-BREAK SPACE}%",
        "0\N{NO-BREAK SPACE}%",
    ]


def test_coverage_is_apart_from_agreement():
    run = make_voted_run()
    wise, wrong = user_client().get(board_of(run)).context["board"].rows
    assert wise.agree_rate == 75.0
    assert (wise.coverage, wrong.coverage) == (80.0, 100.0)


def test_without_votes_the_board_is_empty_and_says_so():
    response = user_client().get(board_of(make_run()))
    text = text_of(response)
    assert "No votes yet" in text
    assert [row[1:] for row in rows_of(response)] == [(1000, 0, 0, 0)] * 2
    assert response.context["graph"] is None
    assert [row[0] for row in rows_of(response)] == ["judge-0", "judge-1"]


def test_the_graph_has_a_line_for_each_judge():
    response = user_client().get(board_of(make_voted_run()))
    assert [line.name for line in response.context["graph"].lines] == ["wise", "wrong"]
    assert response.content.count(b"<polyline") == 2
    assert {line.style for line in response.context["graph"].lines} == {"baseline"}


def test_votes_that_were_not_blind_are_said_and_not_counted():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    make_exposure(voter, pair)
    make_vote(voter, pair)
    seal_all(run.queue.project)
    text = text_of(user_client().get(board_of(run)))
    assert "1 vote cast after the voter had seen" in text
    assert "No votes yet" in text


def test_pairs_that_are_left_out_are_said_with_the_reason():
    run = make_run(pairs=2)
    Item.objects.filter(pk=pairs_of(run)[1].pk).update(
        opened_at=None, unusable="A could not be drawn: it is empty"
    )
    text = text_of(user_client().get(board_of(run)))
    assert "1 pair left out" in text
    assert "A could not be drawn: it is empty" in text
    assert "1 of 1 pairs still need votes" in text


def test_a_refresh_is_the_live_part_only_and_nothing_when_nothing_is_new():
    run = make_voted_run()
    client = user_client()
    fresh = client.get(board_of(run), headers=HTMX)
    assert b"<html" not in fresh.content
    seen = fresh.context["seen"]
    assert client.get(f"{board_of(run)}?seen={seen}", headers=HTMX).status_code == 204
    make_vote(make_voter(run), pairs_of(run)[4], "A")
    seal_all(run.queue.project)
    assert client.get(f"{board_of(run)}?seen={seen}", headers=HTMX).status_code == 200


def test_the_head_follows_as_people_vote_and_once_it_is_stopped():
    """Its counts and what is next; on the page itself nothing is swapped."""
    run = make_voted_run()
    client = user_client()
    page = client.get(board_of(run))
    assert b"hx-swap-oob" not in page.content
    assert "4 of 5 pairs have enough votes" in text_of(page)
    seen = page.context["seen"]
    make_vote(make_voter(run), pairs_of(run)[4], "A")
    seal_all(run.queue.project)
    for state, words in (("voting", "5 of 5 pairs"), ("stopped", "Resume it")):
        type(run).objects.filter(pk=run.pk).update(state=state)
        live = client.get(f"{board_of(run)}?seen={seen}", headers=HTMX)
        swapped = re.findall(r'id="([^"]+)" hx-swap-oob', live.content.decode())
        assert swapped[:2] == ["run-counts", "run-about"]
        assert words in text_of(live)
        seen = live.context["seen"]
    assert client.get(f"{board_of(run)}?seen={seen}", headers=HTMX).status_code == 204


def test_a_shared_board_is_for_everybody():
    run = make_voted_run(shared=True)
    response = Client().get(board_of(run))
    assert response.status_code == 200
    assert "wise" in text_of(response)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("path", ["", "pairs/"])
def test_a_voter_who_has_pairs_open_is_refused(shared, path):
    run = make_run(shared=shared, names=["wise", "wrong"])
    response = voter_client(make_voter(run)).get(board_of(run) + path)
    assert response.status_code == 403
    assert "You still have pairs to vote on" in text_of(response)
    assert b"wise" not in response.content
    assert f"/vote/{run.queue_id}/".encode() in response.content


@pytest.mark.parametrize("path", ["", "pairs/"])
def test_a_voter_who_is_done_sees_a_shared_board_and_no_other(path):
    run = make_run(shared=True)
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    assert voter_client(voter).get(board_of(run) + path).status_code == 200
    run.is_shared = False
    run.save()
    assert voter_client(voter).get(board_of(run) + path).status_code == 302


def test_what_a_voter_has_left_to_others_does_not_keep_the_board_closed():
    run = make_run(shared=True)
    voter = make_voter(run)
    for _ in range(2):
        make_skip(voter, pairs_of(run)[0].pk)
    assert voter_client(voter).get(board_of(run)).status_code == 200


def test_pairs_are_listed_with_their_state():
    run = make_run(pairs=4)
    voted, unusable, closed, _ = pairs_of(run)
    make_vote(make_voter(run), voted)
    Item.objects.filter(pk=unusable.pk).update(opened_at=None, unusable="B failed")
    Item.objects.filter(pk=closed.pk).update(opened_at=None)
    seal_all(run.queue.project)
    text = text_of(user_client().get(f"{board_of(run)}pairs/"))
    for shown in ("enough votes", "left out: B failed", "being prepared", "open"):
        assert shown in text


def test_pairs_come_in_pages_of_thirty():
    run = make_run(pairs=31)
    client = user_client()
    first = client.get(f"{board_of(run)}pairs/").content.decode()
    second = client.get(f"{board_of(run)}pairs/?page=2").content.decode()
    links = [sum(str(pair.pk) in page for pair in pairs_of(run)) for page in (first, second)]
    assert links == [30, 1]
    for strange in ("0", "-1", "x", "99", ""):
        assert client.get(f"{board_of(run)}pairs/?page={strange}").status_code == 200


@pytest.mark.parametrize("path", ["", "pairs/", "vote/"])
def test_a_run_that_is_not_there(path):
    run = make_run()
    assert user_client().get(f"/runs/{run.queue_id}/{path}").status_code == 404


def test_pictures_of_drawings_that_are_not_drawn_yet_do_no_harm():
    run = make_run()
    pair = pairs_of(run)[0]
    pair.a.picture = Picture.objects.create(source_sha256="0" * 64)
    pair.a.kind = "svg"
    pair.a.save()
    assert user_client().get(f"{board_of(run)}pairs/").status_code == 200


# --- as people meet them -------------------------------------------------------------------------

# In what order prompts enter depends on the number of a run: of the others either may be said.
SAYS = {
    "nobody_has_voted": "There are no votes yet",
    "three_votes": "Too early: 3 votes. The first claims need some 20.",
    "only_baselines": "No judge was asked yet. Add judges: they answer on the votes you have.",
    "clear_winner": "good-judge agrees with people on ",
    "after_an_exclusion": "Too early: 40 votes. The first claims need all votes on some ",
}


OTHERS = (
    *("all_equal", "twelve_judges", "ratings", "imported_ties", "flagged_items"),
    *("near_tie", "one_voter", "twelve_prompts", "in_tuning", "rare_answers"),
)
# Boards that more than one test reads.
READ_AGAIN = ("only_baselines", "after_an_exclusion", "twelve_judges")


@pytest.fixture(scope="module")
def read_again(module_db):
    return {name: BOARDS[name]() for name in READ_AGAIN}


@pytest.fixture
def board(read_again):
    return lambda name: deepcopy(read_again[name]) if name in read_again else BOARDS[name]()


@pytest.mark.parametrize("name", [*SAYS, *OTHERS])
def test_a_board_says_it_in_forty_words_and_three_points(name, board):
    data = Findings.objects.get(run=board(name), part="").data
    assert data["words"].startswith(SAYS.get(name, ""))
    assert len(data["words"].split()) <= 40
    assert data["words"].count(". ") <= 1
    assert len(data["more"]) <= 3
    for point in data["more"]:
        lead, _, text = point.partition(": ")
        assert lead in {
            "Unanswered",
            "Changed",
            "Floor",
            "Not settled",
            "Same",
            "Changes its mind",
            "People",
        }
        assert text.endswith(".")


@pytest.mark.parametrize(
    "name, says", [("a rule of 30 words", "A rule of 30 words"), ("a rule " * 28, "good-judge")]
)
def test_a_headline_calls_judges_what_they_are_where_there_is_room(name, says):
    run = BOARDS["one_voter"]()
    run.judges.filter(name="good-judge").update(description=name.strip())
    data = compute(run).data
    assert data["words"].startswith(f"{says} agrees with people on ")
    assert len(data["words"].split()) <= 40


def test_what_stands_beside_the_points_leaves_them_three():
    told = [BoardPoint("Floor", f"{number}.") for number in range(3)]
    board = SimpleNamespace(votes=1, run=None)
    figures = RunFindings.model_construct(words="So it is.", more=["A: b."] * 3, judges=[])
    said = _headline(None, board, WHOLE_RUN, figures, told[:2])
    assert [point.lead for point in said["points"]] == ["Floor", "Floor", "A"]


def test_whoever_runs_it_is_led_to_add_judges_where_there_are_only_baselines(board):
    run = board("only_baselines")
    page = user_client().get(reverse("run", args=[run.pk]))
    button = words_in(page, 'id="add-judges" href="', '"')
    assert '<details class="folded" id="join" open>' in user_client().get(button).content.decode()


def test_how_a_judge_stands_to_the_baselines_is_in_its_row(board):
    twelve_judges = board("twelve_judges")
    response = user_client().get(reverse("run", args=[twelve_judges.pk]))
    cells = [
        cells_of(response, name)["beats"]
        for name in ("vendor-0/judge-0-large", "vendor-0/judge-9-small")
    ]
    # Who answered nothing stands below the table.
    assert "vendor-0/preview" not in response.context["table"].rows[-1].name
    assert "vendor-0/preview answered nothing: " in text_of(response)

    assert cells[0].main.endswith("the floor")
    assert (cells[1].small, cells[1].title.partition(" : ")[0][:9]) == (
        "not shown to be better than random",
        "evidence ",
    )


def test_judges_that_fail_are_named_before_all_else_and_what_changed_after_them(board):
    failing = Findings.objects.get(run=board("twelve_judges")).data["more"]
    assert failing[0].startswith(
        "Unanswered: vendor-0/preview and vendor-4/judge-xl answered nothing."
    )
    changed = Findings.objects.get(run=board("after_an_exclusion")).data["more"]
    assert changed[0].startswith("Changed: A voter was excluded: ")
