"""A report is read by whoever has its link, and tells nothing that is not for them."""

import json
import re
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from humanjudge.core.tables import percent
from judge_eval.models import Findings
from judge_eval.workshop import services
from reports.composite import sources
from reports.models import Share
from reports.report.files import badge_svg, headline
from reports.report.views.shared_report import LIMIT, _png_of, current, png_of
from reports.report.views.shares import make_share, revoke_share
from tests.helpers.pages import queries_of, text_of
from tests.helpers.run_findings import compute, voted_run
from tests.helpers.tuned import fresh
from tests.makers import (
    key_client,
    make_key,
    make_project,
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
from voting.ballot.services import flag
from voting.ledger import ledger
from voting.models import Assignment, Entry, Exposure, Flag, Inference, Item
from voting.people.voters import erase, voter_of_user
from voting.pictures.rendering import render as render_picture

pytestmark = pytest.mark.django_db
WON = {"weight": 1, "reason": "It says the contrary."}
FILES = (
    *("report.html", "report.json", "judges.csv"),
    *("picture.svg", "picture.png", "card.png", "badge.svg"),
)


@pytest.fixture(scope="module")
def made_once(module_db):
    return voted_run()


@pytest.fixture
def run(made_once):
    return deepcopy(made_once)


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    cache.clear()


def share(run, *, of_project=False, **options):
    row, token = make_share(run.queue.project, None if of_project else run, None, **options)
    return row, f"/r/{token}/"


def read(link, name=""):
    return Client().get(link + name)


def words_of(run):
    """What was found, which depends on the order of evidence: each run has its own."""
    return " ".join(Findings.objects.get(run=run, part="").data["words"].split())


def another_vote(run):
    Item.objects.filter(queue=run.queue).update(votes_wanted=9)
    make_vote(make_voter(run), pairs_of(run)[0], "B")
    seal_all(run.queue.project)
    compute(run)


# --- the page -----------------------------------------------------------------------------------


def test_whoever_has_the_link_reads_words_picture_and_table(run):
    _, link = share(run)
    answer = read(link)
    text = text_of(answer)
    assert answer.status_code == 200
    assert words_of(run) in text
    run.queue.project.refresh_from_db()
    assert "ledger entry 161." in text
    assert run.queue.project.ledger_head in text
    assert b'class="plot' in answer.content
    rows = [row.name for row in answer.context["sections"][0][1]["table"].rows]
    assert rows == ["near-judge", "contrary-judge", "People among themselves", "floor-baseline"]


def test_the_report_of_a_project_has_its_score_who_was_heard_and_its_runs(run):
    flag(make_voter(run), pairs_of(run)[0].pk, Flag.Category.UNSAFE, "Not for children.")
    _, link = share(run, of_project=True)
    text = text_of(read(link))
    assert re.search(
        "Share of pairs with a good answer .* No score yet: .* Quality score not", text
    )
    assert "Votes over time" in text
    assert "Population confidence 75 % 3 of 4 who may vote have" in text
    assert "Completeness 100 % 40 of 40 items have enough votes" in text
    assert "Flags 1 unsafe" in text
    assert words_of(run) in text


def test_a_score_that_is_mostly_its_start_value_is_told_nowhere_and_the_pass_rate_is(run):
    row, _ = share(run, of_project=True)
    report = current(row)
    [of], all_pass = report.quality, percent(1.0)
    rate = f"{all_pass} of the last 120 votes on pairs pass"
    of.begins = of.last.at - timedelta(seconds=of.half_life_seconds / 2)
    assert f">{all_pass} pass (97" in badge_svg(report)
    of.begins -= timedelta(seconds=of.half_life_seconds)
    score = percent(of.last.score)
    assert f">{score} · {all_pass} pass (97" in badge_svg(report)
    report.runs = []
    assert headline(report) == f"{rate}; their quality score is {score}."
    of.begins = of.last.at
    assert headline(report) == f"{rate}."


def test_a_project_without_votes_has_a_report():
    project = make_project("Empty")
    _, token = make_share(project, None, None)
    assert "Empty" in text_of(read(f"/r/{token}/"))
    assert read(f"/r/{token}/", "badge.svg").status_code == 200
    assert read(f"/r/{token}/", "card.png").status_code == 200


def test_no_name_of_a_voter_and_no_comment_is_in_a_report(run):
    ann = make_voter(run, name="Ann Example")
    make_vote(ann, pairs_of(run)[0], "B")
    seal_all(run.queue.project)
    flag(ann, pairs_of(run)[1].pk, Flag.Category.OTHER, "My private comment.")
    compute(run)
    for of_project in (False, True):
        _, link = share(run, of_project=of_project)
        for name in ("", "report.json", "judges.csv"):
            said = read(link, name).content.decode()
            assert "Ann Example" not in said
            assert "private comment" not in said


def test_a_report_that_is_not_computed_says_so():
    run = make_run()
    _, link = share(run)
    for name in ("", "report.json", "badge.svg", "bundle.zip"):
        answer = read(link, name)
        assert answer.status_code == 409
        assert "still being computed" in text_of(answer)


def test_what_another_version_froze_is_refused_in_words(run):
    row, link = share(run, is_frozen=True)
    del row.frozen["head"]
    row.save()
    assert read(link).status_code == 409
    assert "Another version froze this report" in text_of(read(link))


# --- links ----------------------------------------------------------------------------------------


def test_a_wrong_an_expired_and_a_revoked_link_get_the_same_answer(run):
    revoked, gone = share(run)
    revoke_share(revoked)
    _, past = share(run, expires_at=timezone.now() - timedelta(seconds=1))
    wrong = "/r/" + "x" * 43 + "/"
    for name in ("", "report.json", "nothing.txt"):
        answers = [read(link, name) for link in (gone, past, wrong)]
        assert {answer.status_code for answer in answers} == {404}
        assert len({text_of(answer) for answer in answers}) == 1
        words = "This report was withdrawn or has expired. Ask whoever sent it."
        assert words in text_of(answers[0])


def test_a_link_cannot_be_guessed_and_is_kept_as_a_hash():
    row, link = share(make_run())
    token = link.split("/")[2]
    assert len(token) >= 43  # 256 bits
    kept = json.dumps(list(Share.objects.values()), default=str)
    assert token not in kept
    assert row.prefix == token[:6]


def test_who_owns_a_run_makes_and_revokes_links_on_its_page(run):
    owner = user_client()
    page = f"/runs/{run.pk}/share/"
    made = owner.post(page, {"label": "press", "shows": "live", "days": "7"})
    link = made.context["link"].removeprefix("http://testserver")
    assert read(link).status_code == 200
    read(link)
    listed = owner.get(page)
    assert "opened 2 times" in text_of(listed)
    assert link.split("/")[2] not in listed.content.decode()
    row = Share.objects.get()
    assert abs(row.expires_at - timezone.now() - timedelta(days=7)) < timedelta(minutes=1)
    assert owner.post(f"/shares/{row.pk}/revoke").status_code == 302
    assert read(link).status_code == 404
    assert "revoked on" in text_of(owner.get(page))


@pytest.mark.parametrize(
    "given, wrong, words",
    [
        ({"shows": "thawed", "days": "0"}, {"shows", "days"}, "not one of the available choices"),
        ({"shows": "frozen"}, {"shows"}, "still being computed"),
    ],
)
def test_what_cannot_be_is_refused_and_no_link_is_made(given, wrong, words):
    answer = user_client().post(f"/runs/{make_run().pk}/share/", given)
    assert (answer.status_code, set(answer.context["form"].errors)) == (422, wrong)
    assert words in text_of(answer)
    assert not Share.objects.exists()


def test_search_engines_are_kept_out_unless_the_owner_says_otherwise(run):
    for is_public in (False, True):
        _, link = share(run, is_public=is_public)
        for name in ("", "badge.svg"):
            robots = read(link, name).headers.get("X-Robots-Tag")
            assert robots == (None if is_public else "noindex, nofollow")
        assert ('content="noindex' in read(link).content.decode()) is not is_public


def test_who_still_has_pairs_to_vote_on_votes_first(run):
    Item.objects.filter(queue=run.queue).update(votes_wanted=9)
    client = voter_client(make_voter(run))
    assert client.get(f"/vote/{run.queue_id}/").status_code == 200
    for of_project in (False, True):
        _, link = share(run, of_project=of_project)
        for name in ("", "report.json"):
            answer = client.get(link + name)
            assert (answer.status_code, "Vote first" in text_of(answer)) == (403, True)


def test_a_member_with_pairs_to_vote_on_reads_no_report(run):
    Item.objects.filter(queue=run.queue).update(votes_wanted=9)
    member = member_client(run.queue.project, "evaluator")
    (_, of_run), (_, of_project) = share(run), share(run, of_project=True)
    (_, frozen) = share(run, is_frozen=True)
    voter = voter_of_user(run.queue.project, User.objects.get(username="evaluator"))
    [of] = json.loads(member.get(f"{of_run}report.json").content)["runs"]
    worst = {pair["position"] for pair in [*of["disputed"], *of["findings"]["disputed"]]}
    seen = Exposure.objects.filter(voter=voter)
    assert worst == {*seen.values_list("item__position", flat=True)}
    seen.delete()
    Assignment.objects.create(voter=voter, item=pairs_of(run)[0], leased_until=timezone.now())
    for link in (of_run, of_project, frozen):
        assert member.get(f"{link}report.json").status_code == 403
        assert member.get(f"{link}badge.svg").status_code == 403
        answer = member.get(f"{link}bundle.zip")
        assert (answer.status_code, "Vote first" in text_of(answer)) == (403, True)
    assert not seen.exists()
    Item.objects.filter(queue=run.queue).update(votes_wanted=3)
    assert member.get(f"{of_run}report.json").status_code == 200
    assert member.get(f"{of_run}bundle.zip").getvalue()
    assert seen.count() == 40


def test_a_member_with_pairs_to_vote_on_reads_no_report_of_a_few():
    run = voted_run(pairs=9)
    Item.objects.filter(queue=run.queue).update(votes_wanted=9)
    member = member_client(run.queue.project, "evaluator")
    voter = voter_of_user(run.queue.project, User.objects.get(username="evaluator"))
    Assignment.objects.create(voter=voter, item=pairs_of(run)[0], leased_until=timezone.now())
    for of_project in (False, True):
        _, link = share(run, of_project=of_project)
        for name in ("", "badge.svg", "judges.csv"):
            assert member.get(link + name).status_code == 403


def test_files_are_kept_for_strangers_alone(run):
    (_, public), (_, link) = share(run, is_public=True), share(run)
    voter = make_voter(run)
    key = {"Authorization": "Bearer x"}
    readers = (user_client(), voter_client(voter), Client(headers=key))
    for name in ("report.json", "badge.svg", "card.png"):
        assert {*caching(read(public, name))} == {"public", "max-age=300"}
        assert {*caching(read(link, name))} == {"private", "max-age=300"}
        for address in (public, link):
            answers = [client.get(address + name) for client in readers]
            assert [caching(answer) for answer in answers] == [["private", "no-store"]] * 3
            for answer in (*answers, read(address, name)):
                assert {"Cookie", "Authorization"} <= {*answer.headers["Vary"].split(", ")}


def caching(answer):
    return answer.headers["Cache-Control"].split(", ")


def test_who_reads_a_link_gets_no_cookie(run):
    _, link = share(run)
    for address in (link, f"{link}report.html", f"{link}nothing.txt", "/r/wrong/"):
        assert not Client().get(address).cookies


def test_an_address_that_asks_for_reports_again_and_again_waits(run, monkeypatch):
    monkeypatch.setattr(LIMIT, "clock", lambda: 0.0)
    _, link = share(run)
    # Wrong links count as well.
    assert {read("/r/wrong/").status_code for _ in range(LIMIT.burst - 1)} == {404}
    assert read(link, "badge.svg").status_code == 200
    for name in ("", "badge.svg", "bundle.zip"):
        refused = read(link, name)
        assert (refused.status_code, "your address" in text_of(refused)) == (429, True)
        assert refused.headers["Retry-After"]
    assert Client(REMOTE_ADDR="192.0.2.7").get(f"{link}badge.svg").status_code == 200


def test_a_picture_is_rendered_once_until_it_changes(monkeypatch):
    rendered = []

    def render(drawing):
        rendered.append(drawing)
        return render_picture(drawing)

    monkeypatch.setattr("reports.report.views.shared_report.render_picture", render)
    _png_of.cache_clear()
    run = voted_run()
    (_, one), (_, other) = share(run), share(run, is_public=True)
    with ThreadPoolExecutor(4) as readers:
        drawn = [draw_graph(1), draw_graph(1), draw_graph(2), draw_graph(1)]
        assert len({*readers.map(png_of, drawn)}) == 2
    assert len(rendered) == 2
    for link in (one, other, one):
        assert read(link, "card.png").content.startswith(b"\x89PNG")
    assert len(rendered) == 3
    another_vote(run)
    read(one, "card.png")
    assert len(rendered) == 4


def draw_graph(width):
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="1"></svg>'


def test_links_are_made_listed_and_revoked_by_scripts(run):
    owner, reader = (key_client(make_key(scope)[1]) for scope in ("manage", "read"))
    for of in (f"runs/{run.pk}", f"projects/{run.queue.project_id}"):
        path = f"/api/{of}/shares"
        said = {"label": "press", "days": 7, "frozen": True}
        made = owner.post(path, said, content_type="application/json")
        assert made.status_code == 201
        link = made.json()["link"].removeprefix("http://testserver")
        assert "Frozen: as of" in text_of(read(link))
        [listed] = owner.get(path).json()["shares"]
        assert (listed["label"], listed["frozen_seq"], listed["views"]) == ("press", 161, 1)
        assert "link" not in listed
        for refused in (reader.get(path), reader.post(path, {}, content_type="application/json")):
            assert refused.status_code == 403
        revoked = owner.post(f"{path}/{listed['id']}/revoke").json()
        assert revoked["revoked_at"]
        assert read(link).status_code == 404
        assert owner.post(f"{path}/999999/revoke").status_code == 404
        wrong = owner.post(path, {"days": 0}, content_type="application/json")
        assert wrong.status_code == 422
    of_other = make_run()
    other = Share.objects.create(project=of_other.queue.project, run=of_other, prefix="x")
    assert owner.post(f"/api/runs/{run.pk}/shares/{other.pk}/revoke").status_code == 404
    pending = f"/api/runs/{of_other.pk}/shares"
    assert owner.post(pending, {}, content_type="application/json").status_code == 201
    answer = owner.post(pending, {"frozen": True}, content_type="application/json")
    assert (answer.status_code, "still being computed" in answer.json()["detail"]) == (409, True)
    stranger = key_client(make_key("manage", project=make_project("Another"))[1])
    for of in (f"runs/{run.pk}", f"projects/{run.queue.project_id}"):
        assert stranger.get(f"/api/{of}/shares").status_code == 404
    blind = key_client(make_key("manage", "vote")[1])
    Item.objects.filter(queue=run.queue).update(votes_wanted=9)
    for of in (f"runs/{run.pk}", f"projects/{run.queue.project_id}"):
        assert blind.get(f"/api/{of}/shares").status_code == 403


# --- frozen and live ------------------------------------------------------------------------------


def test_a_frozen_report_stays_what_it_was_and_a_live_one_does_not(run):
    (_, frozen), (_, live) = share(run, is_frozen=True), share(run)

    def votes():
        data = json.loads(read(live, "report.json").content)
        return data["runs"][0]["findings"]["as_of"]["votes"]

    before = (read(frozen, "report.json").content, text_of(read(frozen)))
    assert votes() == 120
    another_vote(run)
    assert (read(frozen, "report.json").content, text_of(read(frozen))) == before
    assert votes() == 121


def facts(link):
    """What a link's data say; which draws and keys made them stands in no answer."""
    return json.loads(read(link, "report.json").content)


@pytest.mark.parametrize("of_project", [False, True])
def test_while_judges_are_tuned_a_link_shows_the_last_state_before_and_never_an_error(
    run, of_project
):
    options = {"of_project": of_project, "is_public": True}
    (_, frozen), (_, live) = share(run, is_frozen=True, **options), share(run, **options)
    before = facts(live)
    services.open_for_tuning(run)
    run = fresh(run)
    another_vote(run)
    (_, later), (_, frozen_later) = share(run, **options), share(run, is_frozen=True, **options)
    held_out = {item.position for item in pairs_of(run) if item.is_held_out}
    assert held_out & {pair["position"] for pair in before["runs"][0]["findings"]["disputed"]}
    for link in (frozen, live, later, frozen_later):
        assert {read(link, name).status_code for name in ("", *FILES)} == {200}
        told = facts(link)
        assert told["runs"][0]["findings"]["words"] == before["runs"][0]["findings"]["words"]
        assert told["runs"][0]["findings"]["as_of"]["votes"] == 120
        of_run = told["runs"][0]
        listed = [*of_run["disputed"], *of_run["findings"]["disputed"]]
        assert not held_out & {pair["position"] for pair in listed}
        refused = read(link, "bundle.zip")
        assert (refused.status_code, b"bundle.zip" in read(link).content) == (403, False)
    assert "until that ends, this report stays as it was" in text_of(read(live))
    services.end(run)
    another_vote(run)
    assert facts(live)["runs"][0]["findings"]["as_of"]["votes"] == 122
    assert read(live, "bundle.zip").getvalue()


def test_a_report_without_figures_before_the_tuning_is_no_error_either():
    run = make_run(pairs=4)
    (_, link), (_, of_project) = share(run), share(run, of_project=True)
    services.open_for_tuning(run)
    for address in (link, of_project):
        for name in ("", "report.html", "report.json", "badge.svg", "card.png"):
            assert read(address, name).status_code == 200


def test_an_erasure_shows_on_a_frozen_report(run):
    voter = run.queue.project.voters.first()
    _, link = share(run, is_frozen=True)
    assert "erased" not in text_of(read(link))
    erase(voter)
    seal_all(run.queue.project)
    tag = read(link, "report.html").headers["ETag"]
    for name in ("", "report.html"):
        text = text_of(read(link, name))
        assert "Since then 1 person was erased from the records" in text
        assert "Frozen: as of" in text
    assert json.loads(read(link, "report.json").content)["since"] == {"people": 1, "runs": 0}
    assert read(link, "report.html").headers["ETag"] == tag
    about = {"project": run.queue.project, "queue": run.queue, "at": timezone.now()}
    gone = {"queue": str(run.queue_id)}
    ledger.record(Entry(**about, kind=Entry.Kind.ERASURE, payload=gone))
    seal_all(run.queue.project)
    words = "Since then 1 person was and 1 run was erased from the records"
    assert words in text_of(read(link))
    assert read(link, "report.html").headers["ETag"] != tag


# --- what stands on it ----------------------------------------------------------------------------


def test_a_composite_is_shown_with_its_components_and_whether_it_holds(run):
    config = {
        "label": "Worth",
        "weights": {"near": {"weight": 3, "reason": "It knows best."}, "won": WON},
        "gates": ["rendered"],
        "sources": {
            "near": {"from": "judge_wins", "judge": "near-judge"},
            "won": {"from": "judge_wins", "judge": "contrary-judge"},
            "rendered": "rendered",
        },
    }
    _, link = share(run)
    assert "Worth" not in text_of(read(link))
    sources.store(run, sources.read_config(run, config))
    text = text_of(read(link))
    assert "Worth version" in text
    assert "mean composite of 80 outputs" in text
    assert "win rate by near-judge. It knows best. 75 %" in text
    assert "the composite ranks items as people do" in text
    [said] = json.loads(read(link, "report.json").content)["runs"]
    assert [part["name"] for part in said["composite"]["components"]] == ["near", "won", "rendered"]


def test_pass_rates_are_told_by_model():
    run = make_single_run([["pass"]] * 12)
    voter, items = make_voter(run), pairs_of(run)
    for name, some in (("first", items[:6]), ("second", items[6:])):
        Inference.objects.filter(pk__in=[item.a_id for item in some]).update(generator=name)
    for place, item in enumerate(items):
        make_vote(voter, item, "flag" if place > 8 else "pass")
    seal_all(run.queue.project)
    compute(run)
    _, link = share(run, of_project=True)
    text = text_of(read(link))
    heads = "Pass rate of each model Model Outputs Votes Passed, %"
    assert f"{heads} first 6 6 100 % 61\u2013100" in text
    assert "second 6 6 50 %" in text
    lines = read(link, "pass-rates.csv").content.decode().splitlines()
    assert lines[1].startswith("first,6,1.0,")


def test_outputs_that_divide_people_and_judges_are_shown_where_the_owner_says_so(run):
    beginnings = [output.output for output in pairs_of(run)[1].outputs]
    _, without = share(run)
    _, with_them = share(run, shows_outputs=True)
    for name in ("", "report.html"):
        said = read(without, name).content.decode()
        assert not [text for text in beginnings if f">{text}<" in said]
        said = read(with_them, name).content.decode()
        assert [text for text in beginnings if f">{text}<" in said] == beginnings
    for name in ("report.json", "judges.csv"):
        assert read(without, name).content == read(with_them, name).content


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_sent_once_while_it_is_the_same(run, name):
    _, link = share(run)
    first = read(link, name)
    assert first.status_code == 200
    assert len(first.content) > 200
    assert "script" not in first.headers["Content-Security-Policy"]
    tag = first.headers["ETag"]
    again = Client().get(link + name, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    another_vote(run)
    assert Client().get(link + name, headers={"If-None-Match": tag}).status_code == 200


def test_pictures_are_pictures_and_the_badge_says_who_is_best_and_how_old_that_is(run):
    row, link = share(run)
    assert read(link, "card.png").content.startswith(b"\x89PNG")
    badge = read(link, "badge.svg").content.decode()
    assert "near-judge 95\N{NO-BREAK SPACE}% (" in badge
    assert re.search("(best|agrees most, not settled) · 120 votes, the last today", badge)
    report = current(row)
    report.runs[0].findings.claims.best = 0
    assert ") best · 120 votes, the last today" in badge_svg(report)
    report.last_vote_at -= timedelta(days=3)
    assert "120 votes, the last 3 days ago" in badge_svg(report)


def test_every_chart_has_files_of_its_own(run):
    _, link = share(run, of_project=True)
    page = read(link).content.decode()
    for name in ("score-pairs", "votes", "picture", "winning-rates", "model-ratings"):
        for suffix in ("svg", "png", "csv"):
            assert f'href="{link}{name}.{suffix}"' in page
        drawing = read(link, f"{name}.svg").content.decode()
        assert ("viewBox" in drawing, "var(" in drawing) == (True, False)
        assert "currentColor" not in drawing
        ElementTree.fromstring(drawing)
        assert read(link, f"{name}.png").content.startswith(b"\x89PNG")
        assert len(read(link, f"{name}.csv").content.decode().splitlines()) > 1
    for unknown in ("score-items.svg", "picture.pdf", "run-2-picture.svg", "nothing"):
        assert read(link, unknown).status_code == 404
    assert page.count("The same as a table") == 4  # the judges are a table of their own
    # On the page letters keep their size: what is stretched has none.
    stretched = re.findall(r"<svg[^>]*viewBox(?:(?!<svg).)*?</svg>", page, re.DOTALL)
    assert len(stretched) >= 2
    assert [drawing for drawing in stretched if "<text" in drawing] == []


def test_a_report_in_one_file_needs_nothing_else(run):
    _, link = share(run)
    answer = read(link, "report.html")
    page = answer.content.decode()
    assert words_of(run) in text_of(answer)
    assert "<style>" in page
    for asks in ("<script", "src=", "<link", "url(", "@import", 'href="/'):
        assert asks not in page, asks


def test_names_in_pictures_are_text(run):
    run.name = "<script>alert(1)</script>"
    run.save()
    run.judges.filter(name="near-judge").update(name="<b onload=x>&")
    compute(run)
    _, link = share(run)
    for name in ("", "picture.svg", "badge.svg"):
        said = read(link, name).content.decode()
        assert "<b onload" not in said
        assert "<script>alert" not in said
    assert read(link, "card.png").status_code == 200


def test_a_report_costs_the_same_however_much_it_is_of():
    few, many = voted_run(pairs=12), voted_run(pairs=60, people=5)
    for _ in range(3):
        voted_run(pairs=12, project=many.queue.project)
    for of_project in (False, True):
        costs = []
        for run in (few, many):
            cache.clear()
            _, link = share(run, of_project=of_project)
            cold = queries_of(Client(), link)
            costs.append((cold, queries_of(Client(), link)))
        assert costs[0] == costs[1]
        assert costs[0][1] <= 5
