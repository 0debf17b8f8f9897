"""What stands beside the ELO: figures, how sure they are, as of which vote, and what is missing."""

import html
import re
from datetime import timedelta

import pytest
from django.db.models import Value
from django.db.models.functions import Concat
from django.test import Client
from django.utils import timezone

from humanjudge.lib.tables import DASH
from judge_eval.findings.columns import PENDING, UNVOTED
from judge_eval.models import Findings, Judge, JudgeRating
from tests.helpers.board_rows import (
    PAIRS,
    board_of,
    cells_of,
    make_studied_run,
    truth,
    vote_all,
    words_in,
)
from tests.helpers.pages import HTMX, text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    judges_of,
    make_exposure,
    make_judges,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.models import Inference
from voting.services import undo_last_vote

pytestmark = pytest.mark.django_db


def get(run, **options):
    return user_client().get(board_of(run), **options)


def test_the_words_on_top_are_those_of_the_findings():
    run = make_studied_run()
    found = compute(run)
    response = get(run)
    assert found.data["words"] in text_of(response)
    assert "After 80 votes by 2 people: good beats weak" in text_of(response)
    assert words_in(response, '<p class="words">', "</p>") == html.escape(found.data["words"])


def test_the_page_says_as_of_which_vote_the_figures_are():
    run = make_studied_run()
    found = compute(run)
    text = text_of(get(run))
    assert (
        f"As of 80 votes by 2 people on 40 of 40 pairs, ledger entry {found.seq}, computed" in text
    )
    assert "ELO is live" in text
    assert "since" not in text.split("ELO is live")[1].split("Votes")[0]


def test_newer_votes_are_said_to_be_in_the_elo_alone():
    run = make_studied_run(people=1)
    compute(run)
    before = cells_of(get(run), "good")
    vote_all(run, 1, places=[0, 1, 2])
    response = get(run)
    after = cells_of(response, "good")
    assert "3 votes came since: these figures follow within seconds." in text_of(response)
    assert before["elo"].main != after["elo"].main
    assert before["agreement"] == after["agreement"]


def test_a_vote_that_was_taken_back_since_is_the_ledger_going_on():
    run = make_studied_run(people=1, pairs=4)
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0], "B")
    seal_all(run.queue.project)
    compute(run)
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    assert "The ledger has gone on since: these figures follow" in text_of(get(run))


def test_how_long_ago_they_were_computed():
    run = make_studied_run(people=1, pairs=4)
    compute(run)
    earlier = timezone.now() - timedelta(minutes=7, seconds=-20)
    Findings.objects.update(computed_at=earlier)
    response = get(run)
    assert "computed 7 min ago" in text_of(response)
    assert 'data-seconds="40' in response.content.decode()


def test_a_judges_figures_have_intervals_and_say_how_they_were_made():
    run = make_studied_run()
    good = cells_of((compute(run), get(run))[1], "good")
    assert good["rank"].main == "1"
    assert good["ties"].main == "a"
    assert re.fullmatch(r"±\d+", good["elo"].small)
    assert good["overall"].main == good["agreement"].main == "90.0\N{NO-BREAK SPACE}%"
    assert re.fullmatch(rf"\d\d{DASH}\d{{2,3}}, n 80", good["overall"].small)
    assert good["agreement"].title == "72 of 80 votes; 95 % interval by bootstrap over comparisons"
    assert good["coverage"].title == "40 of 40 asked about; 95 % interval by Wilson"
    assert re.fullmatch(rf"\d{{4}}{DASH}\d{{4}}", good["rating"].small)


def test_one_vote_for_each_pair_makes_a_wilson_interval():
    run = make_studied_run(people=1)
    compute(run)
    good = cells_of(get(run), "good")["agreement"]
    assert good.title == "36 of 40 votes; 95 % interval by Wilson"
    assert good.small == f"77{DASH}96"


def test_every_missing_figure_is_a_dash_with_its_reason_to_be_read_below():
    run = make_studied_run()
    compute(run)
    response = get(run)
    table, text = response.context["table"], text_of(response)
    reasons = list(table.notes)
    dashes = [cell for row in table.rows for cell in row.cells if cell.main == DASH]
    assert len(dashes) > 2
    for cell in dashes:
        assert cell.title == reasons[cell.note - 1]
        assert cell.title in text
    listed = words_in(response, '<ol class="missing">', "</ol>").count("<li>")
    assert listed == len(reasons) == len(set(reasons))


def test_without_a_vote_there_is_no_claim_and_every_reason_is_said():
    run = make_run(pairs=2)
    compute(run)
    response = get(run)
    text = text_of(response)
    assert "No votes yet" in text
    assert UNVOTED in text
    assert "cannot be told apart" not in text.split("How to read this")[0]
    assert response.context.get("claims") is None
    assert response.context["disputed"] == []


def test_before_anything_is_computed_the_page_says_so_and_shows_what_it_has():
    run = make_studied_run()
    response = get(run)
    text = text_of(response)
    assert "The figures beside ELO are being computed." in text
    assert "They appear here by themselves" in text
    good = cells_of(response, "good")
    assert good["elo"].main not in ("", DASH)
    assert good["agreement"].main == "90.0\N{NO-BREAK SPACE}%"
    assert good["rating"].main == DASH
    assert Findings.objects.get(run=run, part="").data is None


def test_the_first_votes_are_shown_before_their_figures_are_computed():
    """What was computed before anybody voted must not hide that somebody has since."""
    run = make_studied_run(people=0)
    compute(run)
    vote_all(run, 1)
    response = get(run)
    good = cells_of(response, "good")["agreement"]
    assert good.main == "90.0\N{NO-BREAK SPACE}%"
    assert response.context["table"].notes[good.note - 1] == PENDING
    assert "The figures beside ELO are being computed." in text_of(response)


def test_a_judge_that_joined_since_waits_for_its_figures():
    run = make_studied_run(people=1)
    compute(run)
    make_judges(run, ["newcomer"], first=3)
    response = get(run)
    assert cells_of(response, "newcomer")["rating"].main == DASH
    assert "joined after these figures were computed" in text_of(response)
    assert cells_of(response, "good")["rating"].main != DASH


def order_of(response):
    return [row.name for row in response.context["table"].rows]


def test_the_table_is_sorted_by_overall_agreement_not_by_the_luck_of_the_order():
    run = make_studied_run()
    JudgeRating.objects.filter(judge__run=run, judge__name="weak").update(elo=1700)
    assert order_of(get(run))[0] == "good", "before anything is computed too"
    compute(run)
    response = get(run)
    assert order_of(response) == ["good", "weak", "always-first", order_of(response)[-1]]
    assert "Judges of A run of pairs, by overall agreement, best first" in (
        response.content.decode()
    )
    assert cells_of(response, "weak")["elo"].small.startswith("±")
    assert cells_of(response, "good")["overall"].main == "90.0\N{NO-BREAK SPACE}%"
    assert [head.hint for head in response.context["claims"].heads[1:]] == [
        "good",
        "weak",
        "always-first",
    ]


def test_what_is_said_aloud_claims_no_more_than_the_findings():
    run = make_studied_run()
    assert words_in(get(run), 'data-summary="', '"') == "80 votes."
    found = compute(run)
    assert words_in(get(run), 'data-summary="', '"') == html.escape(found.data["words"])
    assert "leads" not in get(run).content.decode()


def test_a_judge_without_a_verdict_stands_last_with_a_dash():
    run = make_run(
        says=[[None, "A", "B"] for _ in range(8)], names=["mute", "wise", "wrong"], votes_wanted=1
    )
    Judge.objects.filter(run=run).update(provider="default")
    JudgeRating.objects.filter(judge__name="mute").update(elo=1900)
    vote_all(run, 1)
    compute(run)
    response = get(run)
    assert order_of(response)[:3] != ["mute", "wise", "wrong"]
    assert order_of(response)[2] == "mute"
    mute = cells_of(response, "mute")
    assert (mute["rank"].main, mute["ties"].main, mute["elo"].small) == (DASH, DASH, "")


def test_nobody_has_a_letter_before_there_are_votes():
    run = make_studied_run(people=0)
    compute(run)
    assert {cells_of(get(run), name)["ties"].main for name in ("good", "weak")} == {DASH}


def test_what_is_known_of_no_judge_takes_no_columns():
    """The baselines' prices and picks say nothing about judges that answered elsewhere."""
    run = make_studied_run(people=1)
    Judge.objects.filter(run=run).exclude(name="always-first").update(provider="imported")
    compute(run)
    response = get(run)
    table = response.context["table"]
    assert [title for title, _ in table.groups] == [
        "Standing",
        "Agreement with people",
        "Position bias",
    ]
    assert {cell.figure for cell in table.rows[0].cells}.isdisjoint(
        {"consistency", "cost", "correct", "seconds"}
    )
    said = "Not known of any judge: answers in both orders, prices and times, since the verdicts"
    assert f"{said} were imported." in text_of(response)
    notes = [cell.note for cell in table.rows[0].cells if cell.note]
    assert all(note <= len(table.notes) for note in notes)
    Judge.objects.filter(run=run, name="good").update(provider="default")
    assert "were imported" not in text_of(get(run))


def test_a_column_is_shown_where_one_judge_has_a_figure():
    run = make_studied_run(people=1)
    found = compute(run)
    found.data["judges"][0] |= {"seconds_per_verdict": 2.5}
    found.save()
    response = get(run)
    assert cells_of(response, "good")["seconds"].main == "2.5"
    assert cells_of(response, "weak")["seconds"].main == DASH
    assert "times" not in response.context["table"].unknown


def test_one_judge_alone_has_no_graph():
    run = make_run(says=[["A"], ["A"]], names=["alone"])
    vote_all(run, 1)
    compute(run)
    response = get(run)
    assert response.context["graph"] is None
    assert "Rating after each vote" not in text_of(response)


def test_people_are_the_last_line_of_the_table():
    run = make_studied_run()
    compute(run)
    row = get(run).context["table"].rows[-1]
    cells = {cell.figure: cell for cell in row.cells[1:]}
    assert row.css == row.cells[0].tag == "people"
    assert cells["overall"].main == "100.0\N{NO-BREAK SPACE}%"
    assert cells["overall"].title.startswith("40 of 40 times that two people")
    assert cells["first"].title.split(" votes")[0].endswith("of 80")
    assert cells["elo"].main == ""


def test_baselines_are_marked_in_the_table():
    run = make_studied_run()
    compute(run)
    tags = {row.name: row.cells[0].tag for row in get(run).context["table"].rows}
    assert tags["always-first"] == "baseline"
    assert tags["good"] == tags["weak"] == ""


def test_what_verdicts_cost():
    run = make_studied_run(people=1)
    found = compute(run)
    for judge in found.data["judges"]:
        judge |= {"cost_usd": 0.5, "cost_per_verdict_usd": 0.0125, "cost_why": None}
        judge |= {"cost_per_correct_usd": 0.01389, "seconds_per_verdict": 1.26}
    found.save()
    good = cells_of(get(run), "good")
    assert [good[name].main for name in ("cost", "correct", "seconds")] == [
        "0.0125",
        "0.0139",
        "1.3",
    ]
    assert good["cost"].title == "0.500 US$ for all its calls"


def test_a_price_without_votes_is_not_blamed_on_the_judge():
    run = make_run(pairs=2)
    compute(run)
    [row, *_] = get(run).context["table"].rows
    cells = {cell.figure: cell for cell in row.cells[1:]}
    assert cells["cost"].main == "0"
    assert cells["correct"].title == "Nobody has voted on what it judged."


def test_who_beats_whom_is_a_matrix_with_corrected_p():
    run = make_studied_run()
    found = compute(run)
    response = get(run)
    matrix = response.context["claims"]
    place = {head.hint: number for number, head in enumerate(matrix.heads)}
    rows = {row.name: row.cells for row in matrix.rows}
    cell = rows["good"][place["weak"]]
    assert cell.before == "beats, p = "
    assert not rows["weak"][place["good"]].before
    assert cell.main == rows["weak"][place["good"]].main == "<0.001" or float(cell.main) <= 0.05
    assert rows["good"][place["good"]].main == DASH
    assert cell.title.endswith("of 40 that both answered")
    [ahead] = re.findall(r"alone right: (\d+) to", cell.title)
    assert int(ahead) == found.data["mcnemar"]["ahead"][0][1]
    assert "Counted here: 40 pairs with a strict majority of votes." in text_of(response)


def test_pairs_without_a_majority_are_counted_apart():
    run = make_studied_run(people=1, pairs=4)
    make_vote(make_voter(run), pairs_of(run)[0], "tie")
    seal_all(run.queue.project)
    compute(run)
    text = text_of(get(run))
    assert "Counted here: 3 pairs with a strict majority of votes" in text
    assert "not counted: 1 voted on without one." in text


@pytest.mark.parametrize("judges, is_folded", [(8, False), (9, True)])
def test_a_large_matrix_is_folded_away(judges, is_folded):
    run = make_studied_run(people=1, pairs=6, judges=judges)
    compute(run)
    assert ('<details id="matrix">' in get(run).content.decode()) == is_folded


def test_a_large_matrix_is_light():
    """Hundreds of cells stand folded away on a board that is asked for every few seconds."""
    run = make_studied_run(people=1, pairs=6, judges=16)
    Judge.objects.filter(run=run, position__gt=2).update(name=Concat(Value("j" * 90), "name"))
    compute(run)
    found = re.search(r'<table class="matrix">.*?</table>', get(run).content.decode(), re.DOTALL)
    assert len(found[0]) < 16 * 16 * 120


def test_how_often_two_judges_say_the_same():
    run = make_studied_run()
    compute(run)
    matrix = get(run).context["same_verdict"]
    place = [head.hint for head in matrix.heads].index("weak")
    [good] = [row.cells for row in matrix.rows if row.name == "good"]
    assert good[place].main == "50\N{NO-BREAK SPACE}%"


def test_where_judges_and_people_disagree_most_leads_to_the_pairs():
    run = make_studied_run()
    found = compute(run)
    worst = found.data["disputed"][0]
    pair = pairs_of(run)[worst["position"]]
    page = get(run).content.decode()
    link = f'href="/runs/{run.pk}/pairs/{pair.pk}/?sort=disagreement">Pair {pair.position + 1}</a>'
    assert link in page
    assert f"{worst['wrong']} of {worst['of']} differ" in page
    assert page.count('id="pair-') == len(found.data["disputed"])
    assert user_client().get(f"/runs/{run.pk}/pairs/{pair.pk}/").status_code == 200


def test_names_and_prompts_are_text_not_markup():
    run = make_studied_run()
    Judge.objects.filter(pk=judges_of(run)[0].pk).update(name="<b>good</b>")
    Inference.objects.update(prompt="<img src=x>")
    compute(run, charts=True)
    page = get(run).content.decode()
    assert "<b>good" not in page
    assert "<img" not in page
    assert "&lt;b&gt;good" in page


def test_charts_stand_in_the_page_where_they_were_drawn():
    run = make_studied_run()
    compute(run)
    drawn = {name: f"<svg><title>{name}</title></svg>" for name in ("agreement", "ratings")}
    Findings.objects.update(charts=drawn)
    page = get(run).content.decode()
    assert [svg in page for svg in drawn.values()] == [True, True]
    Findings.objects.update(charts={})
    assert "drawn" not in words_in(get(run), '<div class="drawn-pair">', "</div>")


def test_new_figures_are_news_to_a_page_that_is_open():
    run = make_studied_run(people=1)
    client = user_client()
    waiting = client.get(board_of(run), headers=HTMX).context["seen"]
    assert client.get(f"{board_of(run)}?seen={waiting}", headers=HTMX).status_code == 204
    compute(run)
    fresh = client.get(f"{board_of(run)}?seen={waiting}", headers=HTMX)
    assert fresh.status_code == 200
    seen = fresh.context["seen"]
    assert client.get(f"{board_of(run)}?seen={seen}&parts=2", headers=HTMX).status_code == 204
    compute(run)
    assert client.get(f"{board_of(run)}?seen={seen}&parts=2", headers=HTMX).status_code == 200


def test_every_figure_is_explained_one_click_away():
    run = make_studied_run()
    compute(run)
    page = get(run).content.decode()
    anchors = set(re.findall(r'href="#(how-[a-z]+)"', page))
    assert len(anchors) >= 8
    assert anchors <= set(re.findall(r'id="(how-[a-z]+)"', page))
    for head in get(run).context["table"].heads[1:]:
        assert f'href="#{head.anchor}" id="head-{head.figure}"' in page
    assert "not corrected for watching the board" in page


def test_ids_in_the_page_are_unique():
    run = make_studied_run(judges=9)
    compute(run)
    ids = re.findall(r'\sid="([^"]*)"', get(run).content.decode())
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.parametrize("part", ["", "ballot:decided", "tag:x", "colour:red"])
@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_voter_with_open_pairs_gets_none_of_it(part, headers):
    run = make_studied_run(shared=True)
    compute(run)
    late = make_voter(run)
    run.queue.items.filter(position=0).update(votes_wanted=9)
    response = voter_client(late).get(board_of(run, part), headers=headers)
    assert response.status_code == 403
    for word in (b"good", b"weak", b"always-first", b"beats"):
        assert word not in response.content


def test_a_shared_board_has_all_of_it_for_everybody():
    run = make_studied_run(shared=True)
    found = compute(run)
    response = Client().get(board_of(run))
    text = text_of(response)
    assert found.data["words"] in text
    assert 'id="pair-' in response.content.decode()
    assert "manage.py up" not in text


def test_what_is_not_blind_is_in_no_figure():
    run = make_studied_run(people=1)
    voter, pair = make_voter(run), pairs_of(run)[0]
    make_exposure(voter, pair)
    make_vote(voter, pair, "both_bad")
    seal_all(run.queue.project)
    compute(run)
    assert cells_of(get(run), "good")["overall"].small.endswith(f"n {PAIRS}")
    assert truth(0) == "A"
