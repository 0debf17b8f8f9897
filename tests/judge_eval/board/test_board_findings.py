"""What stands beside the ELO: figures, how sure they are, as of which vote, and what is missing."""

import html
import json
import re
from datetime import timedelta

import pytest
from django.db.models import Value
from django.db.models.functions import Concat
from django.test import Client
from django.utils import timezone

from humanjudge.core.tables import DASH
from judge_eval.board import cache
from judge_eval.board.columns import PENDING
from judge_eval.board.views.board import MOST_DISPUTED, MOST_IN_FRONT
from judge_eval.models import Findings, Judge, JudgeRating, Run
from reports.report.views.shares import make_share
from tests.helpers.board_rows import (
    PAIRS,
    board_of,
    cells_of,
    make_studied_run,
    refresh_of,
    truth,
    vote_all,
    words_in,
)
from tests.helpers.pages import HTMX, text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    key_client,
    make_exposure,
    make_judges,
    make_key,
    make_many_votes,
    make_run,
    make_single_run,
    make_vote,
    make_voter,
    member_client,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.services import undo_last_vote
from voting.items.kinds import VoteDetails, options_of
from voting.models import Assignment, Entry, Inference, Item, Queue, Voter

pytestmark = pytest.mark.django_db

PEOPLE = "People among themselves"


@pytest.fixture(scope="module")
def run(module_db):
    """Two people have voted on everything, and the figures are computed."""
    return compute(make_studied_run()).run


@pytest.fixture(scope="module")
def voted_once(module_db):
    return compute(make_studied_run(people=1)).run


def get(run, **options):
    return user_client().get(board_of(run), **options)


def test_the_words_on_top_are_those_of_the_findings(run):
    found = Findings.objects.get(run=run)
    response = get(run)
    words = words_in(response, '<p class="words">', "</p>").replace("\N{NO-BREAK SPACE}", " ")
    assert words == html.escape(found.data["words"]).removesuffix(".") + "; you may stop voting."
    assert words.startswith("good agrees with people on 90 %, weak on 50 %: 40 points more (21 to ")
    # Odds and percentages are not torn.
    assert "90\N{NO-BREAK SPACE}%" in response.context["words"]
    for sentence in found.data["more"]:
        assert sentence in text_of(response)


def test_the_page_says_as_of_which_vote_the_figures_are(run):
    found = Findings.objects.get(run=run)
    text = text_of(get(run))
    assert (
        f"As of 80 votes by 2 people on 40 of 40 pairs, ledger entry {found.seq}, computed" in text
    )
    # A citation says it once more, to be copied.
    assert text.partition("How to cite")[0].count("ledger entry") == 1
    assert "since: these figures" not in text


def test_newer_votes_are_said_to_be_in_the_elo_alone(voted_once):
    before = cells_of(get(voted_once), "good")
    vote_all(voted_once, 1, places=[0, 1, 2])
    response = get(voted_once)
    after = cells_of(response, "good")
    assert "3 newer votes; updating." in text_of(response)
    assert before["elo"].main != after["elo"].main
    assert before["overall"] == after["overall"]


def test_a_vote_that_was_taken_back_since_is_the_ledger_going_on():
    run = make_studied_run(people=1, pairs=4)
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0], "B")
    seal_all(run.queue.project)
    compute(run)
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    assert "The ledger has newer entries" in text_of(get(run))


def test_how_long_ago_they_were_computed():
    run = make_studied_run(people=1, pairs=4)
    compute(run)
    earlier = timezone.now() - timedelta(minutes=7, seconds=-20)
    Findings.objects.update(computed_at=earlier)
    response = get(run)
    assert "computed 7 min ago" in text_of(response)
    assert 'data-seconds="40' in response.content.decode()


def test_a_judges_figures_have_intervals_and_say_how_they_were_made(run):
    good = cells_of(get(run), "good")
    assert re.fullmatch(r"in other orders 1,\d{3} to 1,\d{3}", good["elo"].small)
    assert good["overall"].main == "90\N{NO-BREAK SPACE}%"
    assert re.fullmatch(rf"\d\d{DASH}\d{{2,3}}", good["overall"].small)
    assert good["agreement"].main == "90.0\N{NO-BREAK SPACE}%"
    assert (
        good["agreement"].title
        == "72 of 80 votes; 95 % interval by prompts, which are taken as independent"
    )
    assert good["coverage"].title == "40 of 40 asked about; 95 % interval by Wilson"
    assert re.fullmatch(rf"\d{{4}}{DASH}\d{{4}}", good["rating"].small)


def test_one_vote_for_each_pair_makes_a_wilson_interval(voted_once):
    good = cells_of(get(voted_once), "good")["agreement"]
    assert good.title == "36 of 40 votes; 95 % interval by Wilson"
    assert good.small == f"77{DASH}96"


def test_every_missing_figure_is_a_dash_with_its_reason_to_be_read_below():
    run = make_run(says=[[None, "A"]] * 4, names=["mute", "wise"], baselines=())
    vote_all(run, 1)
    compute(run)
    response = get(run)
    tables = [response.context["table"], response.context["further"]]
    page = response.content.decode()
    for table in tables:
        dashes = [c for row in table.rows for c in row.cells if c.main == DASH and c.reason]
        for cell in dashes:
            assert cell.title == table.notes[cell.note - 1]
            assert f"<li>{cell.title}</li>" in page
        assert len(table.notes) == len(set(table.notes))
    assert any(table.notes for table in tables)


def test_without_a_vote_stands_what_to_do_and_what_is_known_without_any():
    run = make_run(pairs=2)
    compute(run)
    response = get(run)
    text = text_of(response)
    assert "No votes yet" in text
    assert "cannot be told apart" not in text.split("Methods")[0]
    assert not {"words", "plot", "evidence", "further"} & {
        name for name in ("words", "plot", "evidence", "further") if response.context.get(name)
    }
    assert response.context["disputed"] == []
    cells = cells_of(response, "judge-0")
    assert {cell.main for cell in cells.values()}.isdisjoint({DASH, "1000"})
    assert cells["coverage"].main == "100\N{NO-BREAK SPACE}%"


def test_before_anything_is_computed_the_page_says_so_and_shows_what_it_has():
    run = make_studied_run()
    response = get(run)
    text = text_of(response)
    assert "The figures beside ELO are being computed." in text
    assert "They appear here by themselves" in text
    good = cells_of(response, "good")
    assert good["elo"].main not in ("", DASH)
    assert good["overall"].main == "90\N{NO-BREAK SPACE}%"
    assert good.keys() == {"overall", "elo"}
    assert Findings.objects.get(run=run, part="").data is None


def test_a_ledger_of_another_version_is_refused_in_words(run):
    """Its verdicts hold neither the prompt nor the votes wanted."""
    for entry in Entry.objects.filter(kind=Entry.Kind.VERDICTS):
        Entry.objects.filter(pk=entry.pk).update(payload={"verdicts": entry.payload["verdicts"]})
    Findings.objects.update(data=None, not_before=timezone.now())
    assert not cache.compute(run.pk, "")
    for page in ("", "alt-test/", "models/"):
        text = text_of(user_client().get(board_of(run) + page))
        assert cache.OTHER_VERSION in text
        assert "computed" not in text.split("Methods")[0]
    for answer in (
        user_client().get(f"{board_of(run)}tables/board.csv"),
        key_client(make_key("read")[1]).get(f"/api/runs/{run.pk}/findings"),
    ):
        assert answer.status_code == 409
        assert cache.OTHER_VERSION in text_of(answer)


def test_figures_that_another_version_computed_are_refused_too(run):
    found = Findings.objects.get(run=run)
    Findings.objects.filter(pk=found.pk).update(data={"words": "b beats a", "judges": []})
    text = text_of(get(run))
    assert cache.OTHER_VERSION in text
    assert "b beats a" not in text
    results = key_client(make_key("read")[1]).get(f"/api/runs/{run.pk}/judge-eval/results")
    assert results.status_code == 200
    assert compute(run).data == found.data


def test_the_first_votes_are_shown_before_their_figures_are_computed():
    """What was computed before anybody voted must not hide that somebody has since."""
    run = make_studied_run(people=0)
    compute(run)
    vote_all(run, 1)
    response = get(run)
    good = cells_of(response, "good")["overall"]
    assert good.main == "90\N{NO-BREAK SPACE}%"
    assert response.context["table"].notes[good.note - 1] == PENDING
    assert "The figures beside ELO are being computed." in text_of(response)


def test_a_judge_that_joined_since_waits_for_its_figures(voted_once):
    make_judges(voted_once, ["newcomer"], first=3)
    response = get(voted_once)
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
    assert order_of(response) == ["good", "weak", PEOPLE, "always-first"]
    assert cells_of(response, "weak")["elo"].small.endswith(", unusual order")
    assert [head.hint for head in response.context["evidence"].heads[1:]] == [
        "good",
        "weak",
        "always-first",
    ]


def test_what_is_said_aloud_claims_no_more_than_the_findings():
    run = make_studied_run()
    assert words_in(get(run), 'data-summary="', '"') == "80 votes."
    found = compute(run)
    said = words_in(get(run), 'data-summary="', '"')
    assert said == html.escape(found.data["words"]).removesuffix(".") + "; you may stop voting."
    assert "leads" not in get(run).content.decode()


def test_a_judge_without_a_verdict_stands_below_the_table():
    run = make_run(
        says=[[None, "A", "B"] for _ in range(8)], names=["mute", "wise", "wrong"], votes_wanted=1
    )
    Judge.objects.filter(run=run).update(provider="default")
    JudgeRating.objects.filter(judge__name="mute").update(elo=1900)
    vote_all(run, 1)
    compute(run)
    response = get(run)
    assert order_of(response)[:2] == ["wise", "wrong"]
    assert "mute" not in order_of(response)
    assert "mute: every verdict failed. Reason: no answer came." in text_of(response)
    assert "mute answered nothing: no answer came." in text_of(response)


def test_what_is_known_of_no_judge_takes_no_columns():
    """The baselines' prices and picks say nothing about judges that answered elsewhere."""
    run = make_studied_run(people=1)
    Judge.objects.filter(run=run).exclude(name="always-first").update(provider="imported")
    compute(run)
    response = get(run)
    table = response.context["table"]
    assert [head.figure for head in table.heads] == ["name", "overall", "rank", "beats", "elo"]
    assert cells_of(response, "good").keys().isdisjoint({"consistency", "cost"})
    sentence = "Imported verdicts have no prices, times or answers in both orders."
    assert sentence in text_of(response)
    notes = [cell.note for cell in table.rows[0].cells if cell.note]
    assert all(note <= len(table.notes) for note in notes)
    Judge.objects.filter(run=run, name="good").update(provider="default")
    assert "Imported verdicts" not in text_of(get(run))


def test_a_column_is_shown_where_one_judge_has_a_figure(voted_once):
    found = Findings.objects.get(run=voted_once)
    found.data["judges"][0] |= {"seconds_per_verdict": 2.5}
    found.save()
    response = get(voted_once)
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


def test_people_stand_between_judges_and_baselines(run):
    row = get(run).context["table"].rows[2]
    cells = {cell.figure: cell for cell in row.cells[1:]}
    assert row.css == "people"
    assert cells["overall"].main == "100\N{NO-BREAK SPACE}%"
    assert cells["overall"].title.startswith("40 of 40 times that two people")
    assert cells["elo"].main == ""


def test_baselines_are_marked_in_the_table(run):
    tags = {row.name: row.cells[0].tag for row in get(run).context["table"].rows}
    assert tags["always-first"] == "baseline"
    assert tags["good"] == tags["weak"] == ""


def test_what_verdicts_cost(voted_once):
    found = Findings.objects.get(run=voted_once)
    for judge in found.data["judges"]:
        judge |= {"cost_usd": 0.5, "cost_per_verdict_usd": 0.0125, "cost_why": None}
        judge |= {"cost_per_correct_usd": 0.01389, "seconds_per_verdict": 1.26}
    found.save()
    good = cells_of(get(voted_once), "good")
    assert [good[name].main for name in ("cost", "correct", "seconds")] == [
        "0.0125",
        "0.0139",
        "1.3",
    ]
    assert good["cost"].title == "0.500 US$ for all its calls"


def test_mcnemars_tests_are_a_matrix_with_corrected_p(run):
    found = Findings.objects.get(run=run)
    response = get(run)
    matrix = response.context["mcnemar"]
    place = {head.hint: number for number, head in enumerate(matrix.heads)}
    rows = {row.name: row.cells for row in matrix.rows}
    cell = rows["good"][place["weak"]]
    assert cell.before == "better, p = "
    assert not rows["weak"][place["good"]].before
    assert cell.main == rows["weak"][place["good"]].main == "<0.001" or float(cell.main) <= 0.05
    assert rows["good"][place["good"]].main == DASH
    assert cell.small.split(":")[0] == str(found.data["mcnemar"]["ahead"][0][1])
    assert "Counted: 40 pairs with a strict majority of votes." in text_of(response)


def test_pairs_without_a_majority_are_counted_apart():
    run = make_studied_run(people=1, pairs=4)
    make_vote(make_voter(run), pairs_of(run)[0], "tie")
    seal_all(run.queue.project)
    compute(run)
    text = text_of(get(run))
    assert "Counted: 3 pairs with a strict majority of votes" in text
    assert "not counted: 1 voted on without one." in text


def test_of_very_many_judges_the_best_stand_in_front_and_all_at_one_tap():
    run = make_studied_run(people=1, pairs=6, judges=16)
    Judge.objects.filter(run=run, position__gt=2).update(name=Concat(Value("j" * 90), "name"))
    compute(run)
    page = get(run)
    names = [row.name for row in page.context["table"].rows]
    assert len([name for name in names if name not in ("always-first", PEOPLE)]) == MOST_IN_FRONT
    assert "always-first" in names
    assert len(page.context["evidence"].rows) == MOST_IN_FRONT + 1
    # Hundreds of cells, on a page that is asked for every few seconds.
    found = re.search(r'<table class="matrix">.*?</table>', page.content.decode(), re.DOTALL)
    assert len(found[0]) < 16 * 16 * 120
    assert "Show all 15 judges" in text_of(page)
    every = user_client().get(f"{board_of(run)}?all=1")
    assert len(every.context["table"].rows) == 17
    assert "Show only the best" in text_of(every)


def test_the_table_is_sorted_by_each_column(voted_once):
    found = Findings.objects.get(run=voted_once)
    for number, judge in enumerate(found.data["judges"]):
        judge |= {"seconds_per_verdict": 3.0 - number, "cost_per_correct_usd": 1.0 + number}
    found.save()
    client, heads = user_client(), get(voted_once).context["table"].heads
    assert [head.sorted for head in heads if head.sorted] == ["descending"]
    firsts = {}
    for head in heads:
        page = client.get(f"{board_of(voted_once)}{head.href}")
        [ordered] = [h for h in page.context["table"].heads if h.sorted]
        assert ordered.figure == head.figure
        firsts[head.figure] = order_of(page)[0]
    assert (firsts["overall"], firsts["seconds"], firsts["correct"]) == ("good", "weak", "good")
    # What is asked for keeps its place when the page is asked for again, and when it is sorted.
    sorted_part = client.get(f"{board_of(voted_once)}?all=1&sort=elo")
    assert "sort=elo" in refresh_of(sorted_part)
    assert {"all=1" in head.href for head in sorted_part.context["table"].heads} == {True}
    refused = client.get(f"{board_of(voted_once)}?sort=colour")
    assert refused.status_code == 400
    assert "sort: one of" in text_of(refused)


def test_judges_that_never_answer_are_an_alarm_with_its_reason_once():
    run = make_run(
        says=[[None, "A", None]] * 4, names=["mute", "wise", "dumb"], baselines=(), shared=True
    )
    compute(run)
    text = text_of(get(run))
    assert "dumb and mute: every verdict failed. Reason: no answer came. Correct the cause" in text
    assert text.count("no answer came") == 1
    assert "Correct the cause" not in text_of(Client().get(board_of(run)))


@pytest.fixture
def torn():
    """An import whose judges were asked for a side, and whose people also said tie."""
    run = make_run(
        says=[["A", "B"]] * 12, names=["left", "right"], baselines=(), votes_wanted=1, shared=True
    )
    Judge.objects.filter(run=run).update(provider=Judge.IMPORTED)
    voter = make_voter(run)
    for place, pair in enumerate(pairs_of(run)):
        make_vote(voter, pair, ("A", "tie", "both_bad")[place % 3])
    seal_all(run.queue.project)
    return run


def test_where_no_judge_could_answer_the_rest_is_shown_first(torn):
    found = compute(torn)
    assert found.data["unanswerable"] == {"choices": ["tie", "both_bad"], "votes": 8}
    compute(torn, "ballot:decided")
    first = get(torn)
    assert str(first.context["part"]) == "ballot:decided"
    assert "8 votes are ties or both bad; judges had no tie or both bad to choose" in text_of(first)
    assert cells_of(first, "left")["overall"].main == "100\N{NO-BREAK SPACE}%"
    whole = user_client().get(f"{board_of(torn)}?part=")
    assert whole.context["part"].kind == ""
    assert "so none could be right about them." in text_of(whole)
    assert cells_of(whole, "left")["overall"].main == "33\N{NO-BREAK SPACE}%"


def test_what_judges_were_offered_is_no_such_case(torn):
    Judge.objects.filter(run=torn, name="left").update(provider="default")
    assert compute(torn).data["unanswerable"] is None
    assert get(torn).context["part"].kind == ""


def test_how_often_two_judges_say_the_same(run):
    matrix = get(run).context["same_verdict"]
    place = [head.hint for head in matrix.heads].index("weak")
    [good] = [row.cells for row in matrix.rows if row.name == "good"]
    assert good[place].main == "50\N{NO-BREAK SPACE}%"


def test_where_judges_and_people_disagree_most_stands_beside_what_was_said(run):
    found = Findings.objects.get(run=run)
    worst = found.data["disputed"][0]
    pair = pairs_of(run)[worst["position"]]
    response = get(run)
    page, text = response.content.decode(), text_of(response)
    link = f'href="/runs/{run.pk}/pairs/{pair.pk}/?sort=disagreement">Pair {pair.position + 1}</a>'
    assert link in page
    assert f"{worst['wrong']} of {worst['of']} answers differ" in text
    assert page.count('id="pair-') == min(MOST_DISPUTED, len(found.data["disputed"]))
    choice, other = truth(pair.position), "BA"[pair.position % 2]
    assert f"People {choice} is better (2)" in text
    assert f"{other} is better (good and weak)" in text
    for output in (pair.a.output, pair.b.output):
        assert output in text
    assert user_client().get(f"/runs/{run.pk}/pairs/{pair.pk}/").status_code == 200


def test_code_in_the_prompt_of_a_disputed_pair_is_set_and_html_is_not(run):
    worst = Findings.objects.get(run=run).data["disputed"][0]
    prompt = "What does `len` do? <b>x</b>"
    Inference.objects.filter(pk=pairs_of(run)[worst["position"]].a_id).update(prompt=prompt)
    page = get(run).content.decode()
    assert 'What does <code dir="ltr">len</code> do? &lt;b&gt;x&lt;/b&gt;' in page


def test_the_picture_has_every_judge_between_people_and_floor(run):
    response = get(run)
    plot = response.context["plot"]
    assert [row.name for row in plot.rows] == ["good", "weak"]
    assert [band.label.text for band in plot.bands] == ["floor 50\xa0%", "people 100\xa0%"]
    page = response.content.decode()
    assert page.count("Overall agreement with people, best first: good 90\xa0%") == 1
    assert "people among themselves 100\xa0%" in page
    file = user_client().get(f"/runs/{run.pk}/charts/agreement.svg").content.decode()
    assert file.startswith("<svg xmlns=")
    assert "var(--accent, #2b49c4)" in file


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


def test_every_figure_says_what_it_is_and_its_method_is_one_click_away(run):
    response = get(run)
    page = response.content.decode()
    for name in ("table", "further"):
        for head in response.context[name].heads[1:]:
            assert f'id="about-{head.figure}" aria-label=' in page
            assert f'aria-describedby="tip-{head.figure}"' in page
            tip = words_in(response, f'id="tip-{head.figure}">', "</span>")
            assert html.unescape(tip).startswith(head.about)
            assert f'href="#{head.anchor}"' in tip
            assert f'<dt id="{head.anchor}">' in page


def test_ids_in_the_page_are_unique():
    run = make_studied_run(judges=9)
    compute(run)
    ids = re.findall(r'\sid="([^"]*)"', get(run).content.decode())
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.parametrize("part", ["", "ballot:decided", "tag:x", "colour:red"])
@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_voter_with_open_pairs_gets_none_of_it(run, part, headers):
    Run.objects.update(is_shared=True)
    late = make_voter(run)
    run.queue.items.filter(position=0).update(votes_wanted=9)
    response = voter_client(late).get(board_of(run, part), headers=headers)
    assert response.status_code == 403
    for word in (b"good", b"weak", b"always-first", b"beats"):
        assert word not in response.content


def test_a_shared_board_has_all_of_it_for_everybody(run):
    Run.objects.update(is_shared=True)
    found = Findings.objects.get(run=run)
    response = Client().get(board_of(run))
    text = text_of(response)
    assert found.data["words"] in text
    assert 'id="pair-' in response.content.decode()
    assert "manage.py up" not in text


def test_what_is_not_blind_is_in_no_figure(voted_once):
    voter, pair = make_voter(voted_once), pairs_of(voted_once)[0]
    make_exposure(voter, pair)
    make_vote(voter, pair, "both_bad")
    seal_all(voted_once.queue.project)
    compute(voted_once)
    assert cells_of(get(voted_once), "good")["overall"].title.startswith(f"36 of {PAIRS} votes")
    assert truth(0) == "A"


# --- to whom it is said ---------------------------------------------------------------------------

STOP = "; you may stop voting."


def said_to(client, run):
    response = client.get(board_of(run))
    return words_in(response, '<p class="words">', "</p>").replace("\N{NO-BREAK SPACE}", " ")


def test_only_who_runs_or_votes_in_an_open_study_is_told_to_stop():
    run = compute(make_studied_run()).run
    run.is_shared = True
    run.save()
    project = run.queue.project
    assert said_to(member_client(project, "owner"), run).endswith(STOP)
    # Nobody else: neither who only reads nor who has the link.
    for reader in (member_client(project, "viewer"), member_client(project, ""), Client()):
        assert not said_to(reader, run).endswith(STOP)
    key = key_client(make_key("read")[1])
    assert not key.get(f"/api/runs/{run.pk}/findings").json()["words"].endswith(STOP)
    key = key_client(make_key("read", "manage")[1])
    assert key.get(f"/api/runs/{run.pk}/findings").json()["words"].endswith(STOP)
    Queue.objects.filter(pk=run.queue_id).update(is_open=False)
    assert not said_to(member_client(project, "owner"), run).endswith(STOP)


def test_whose_votes_carry_a_lead_is_told_to_leads_who_have_voted():
    """Without one of the two, who votes on three pairs of four, the lead is gone."""
    says = [["A", "B"]] * 40 + [["B", "A"]] * 16
    run = make_run(pairs=56, says=says, names=["good", "weak"], baselines=(), votes_wanted=1)
    pairs = pairs_of(run)
    for name, own in (("Ann", pairs[:40]), ("Bob", pairs[40:])):
        voter = make_voter(run, name=name)
        make_many_votes(run, [(voter, pair, "A") for pair in own])
    seal_all(run.queue.project)
    data = compute(run).data
    assert ", by one voter's votes alone: 56 votes of 2 people" in data["words"]
    assert data["may_stop"] is False
    assert data["claims"]["by_one"][0][1] is True
    assert "Ann" not in json.dumps(data)
    without = "Without the votes of Ann the first judge is no longer ahead."
    assert without in text_of(get(run))
    reader = member_client(run.queue.project, "viewer")
    assert without not in text_of(reader.get(board_of(run)))
    # Nor to a lead who was handed pairs and could still vote.
    Item.objects.filter(queue=run.queue_id).update(votes_wanted=2)
    lead = Voter.objects.get(project=run.queue.project, user__username="owner")
    Assignment.objects.create(voter=lead, item=pairs[0], leased_until=timezone.now())
    assert without not in text_of(get(run))


def test_beside_a_prompt_that_is_cut_the_thin_interval_is_withheld_wherever_it_is_shown():
    run = make_studied_run(people=1)
    large = run.queue.items.filter(position__lt=PAIRS * 6 // 10)
    opened = Entry.objects.filter(kind=Entry.Kind.VERDICTS, item__in=large)
    for entry in opened:
        Entry.objects.filter(pk=entry.pk).update(payload=entry.payload | {"prompt": "large"})
    large.update(prompt_key="large")
    figures = compute(run).data
    why = "one prompt holds 60 % of the votes"
    for judge in figures["judges"]:
        assert (judge["always_low"], judge["always_high"], judge["always_why"]) == (None, None, why)
    response = get(run)
    assert [row.thin for row in response.context["plot"].rows] == [None, None]
    text = text_of(response)
    assert f"No thin line of good and weak: {why}." in text
    assert "One prompt holds 60 % of the votes." in text
    client = key_client(make_key("read")[1])
    rows = client.get(f"/api/runs/{run.pk}/findings").json()["judges"]
    assert {row["always_why"] for row in rows} == {why}
    assert why in user_client().get(f"{board_of(run)}tables/board.csv").content.decode()
    _, token = make_share(run.queue.project, run, None)
    assert why in text_of(Client().get(f"/r/{token}/"))


def test_figures_that_a_study_cannot_have_are_said_and_never_awaited():
    """Of free texts nothing is counted, and of votes that are all held out nothing is shown."""
    free = make_single_run(outputs=["one", "two"], kind="text", ballot=[])
    task, voter = options_of(free.queue).task, make_voter(free)
    for item in pairs_of(free):
        make_vote(voter, item, "", further=VoteDetails(labels={task: "Well put"}))
    seal_all(free.queue.project)
    compute(free)
    board = get(free)
    assert "in their own words" in text_of(board)
    assert "being computed" not in text_of(board)
    assert "Add judges" not in text_of(board)
    answer = key_client(make_key("read")[1]).get(f"/api/runs/{free.pk}/findings").json()
    assert (answer["as_of"]["votes"], answer["as_of"]["voted"]) == (2, 2)
    assert "in their own words" in answer["words"]
    tuned = make_run(pairs=2)
    make_vote(make_voter(tuned), pairs_of(tuned)[0])
    seal_all(tuned.queue.project)
    tuned.queue.items.filter(position=0).update(is_held_out=True)
    Queue.objects.filter(pk=tuned.queue_id).update(is_tuning=True, held_out_from=0)
    compute(tuned)
    assert "being computed" not in text_of(get(tuned))
