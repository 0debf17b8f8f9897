"""Boards as people meet them: what each says, in how many words."""

import pytest
from django.urls import reverse

from judge_eval.models import Findings
from tests.helpers.board_rows import cells_of, words_in
from tests.helpers.boards import BOARDS
from tests.makers import user_client

pytestmark = pytest.mark.django_db

# In what order prompts enter depends on the number of a run: of the others either may be said.
SAYS = {
    "nobody_has_voted": "There are no votes yet",
    "three_votes": "Too early: 3 votes. The first claims need some 20.",
    "only_baselines": "No judge was asked yet. Add judges: they answer on the votes you have.",
    "all_equal": "No winner: these 120 votes do not separate ",
    "clear_winner": "good-judge is the best judge: it agrees with people on ",
    "after_an_exclusion": "Too early: 40 votes. The first claims need all votes on some ",
    "twelve_judges": "No winner: these 120 votes do not separate ",
}


@pytest.mark.parametrize("name", [*SAYS, "ratings", "imported_ties", "flagged_items"])
def test_a_board_says_it_in_forty_words_and_three_points(name):
    data = Findings.objects.get(run=BOARDS[name](), part="").data
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
            "Lost to contradiction",
        }
        assert text.endswith(".")


def test_whoever_runs_it_is_led_to_add_judges_where_there_are_only_baselines():
    run = BOARDS["only_baselines"]()
    page = user_client().get(reverse("run", args=[run.pk]))
    button = words_in(page, 'id="add-judges" href="', '"')
    assert 'id="join-title"' in user_client().get(button).content.decode()


@pytest.fixture(scope="module")
def twelve_judges(module_db):
    return BOARDS["twelve_judges"]()


def test_how_a_judge_stands_to_the_baselines_is_in_its_row(twelve_judges):
    response = user_client().get(reverse("run", args=[twelve_judges.pk]))
    cells = [
        cells_of(response, name)["beats"]
        for name in ("vendor-0/judge-0-large", "vendor-0/judge-9-small", "vendor-0/preview")
    ]
    assert cells[0].main.endswith("the floor")
    assert (cells[1].small, cells[1].title.partition(" : ")[0][:9]) == (
        "not yet random",
        "evidence ",
    )
    assert cells[2].small == "worse than random or longer-wins"


def test_judges_that_fail_are_named_before_all_else_and_what_changed_after_them(twelve_judges):
    failing = Findings.objects.get(run=twelve_judges).data["more"]
    assert failing[0].startswith(
        "Unanswered: vendor-0/preview and vendor-4/judge-xl have no verdict"
    )
    changed = Findings.objects.get(run=BOARDS["after_an_exclusion"]()).data["more"]
    assert changed[0].startswith("Changed: A voter was excluded: ")
