"""The first page: what this is, a finished study, where to go on voting, what waits for a lead."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from humanjudge.core.charts.graphs import IntervalRow
from humanjudge.core.charts.plot import lay_out_plot
from judge_eval.demo.load import FIRST_START
from judge_eval.models import Call, Findings, Run
from reports.models import Share
from reports.projects.views.home import MOST_CARDS
from reports.report.views.shares import make_share
from tests.helpers.pages import queries_of, text_of
from tests.makers import (
    make_invite,
    make_run,
    make_vote,
    make_voter,
    member_client,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.services import flag
from voting.models import Invite, Queue
from voting.people.voters import remember, voter_of_user

pytestmark = pytest.mark.django_db

EXAMPLE = "See the finished study"
DEMO = "Vote on the demo"


def home(client=None):
    return text_of((client or Client()).get("/"))


def named(name, *, state="voting", **fields):
    run = make_run(**fields)
    Run.objects.filter(pk=run.pk).update(name=name, state=state)
    return run


def test_a_stranger_reads_what_this_is_and_how_to_vote():
    text = home()
    assert "People vote on the same outputs, blind" in text
    assert "open the invite link" in text
    assert EXAMPLE not in text
    assert DEMO not in text
    assert "Waits for you" not in text


def test_the_newest_finished_run_that_is_shared_is_the_example():
    named("Open", shared=True)
    named("Old", state="complete", shared=True)
    newest = named("New", state="complete", shared=True)
    named("Private", state="complete")
    archived = named("Archived", state="complete", shared=True)
    Run.objects.filter(pk=archived.pk).update(archived_at=timezone.now())
    assert f'href="/runs/{newest.pk}/">{EXAMPLE}' in Client().get("/").content.decode()
    assert Client().get(f"/runs/{newest.pk}/").status_code == 200


def test_the_demos_first_finished_study_is_the_example_while_it_is_there(monkeypatch):
    study = named("Study", state="complete", shared=True)
    monkeypatch.setattr("reports.projects.views.home.FIRST_STUDY", study.pk)
    newest = named("New", state="complete", shared=True)
    assert f'href="/runs/{study.pk}/">{EXAMPLE}' in Client().get("/").content.decode()
    Run.objects.filter(pk=study.pk).update(is_shared=False)
    assert f'href="/runs/{newest.pk}/">{EXAMPLE}' in Client().get("/").content.decode()


class TestTheDemo:
    def test_is_voted_on_without_a_login(self):
        run = make_run(pairs=2)
        make_invite(run, label="of a person")
        assert DEMO not in home()
        make_invite(run, label=FIRST_START)
        client = Client()
        page = client.get("/").content.decode()
        [address] = re.findall(r'href="(/join/[^"]+)">Vote on the demo', page)
        # Where there is a demo nobody needs an invite, nor an explanation of how to get one.
        assert "invite link" not in page
        assert client.post(address, {"name": ""}, follow=True).status_code == 200
        assert client.get(f"/vote/{run.queue_id}/").status_code == 200
        assert DEMO not in home(client)
        assert "Go on voting on" in home(client)

    @pytest.mark.parametrize(
        "of, change",
        [
            (Run, {"state": "complete"}),
            (Run, {"archived_at": timezone.now()}),
            (Queue, {"is_open": False}),
            (Queue, {"is_simulated": True}),
            (Invite, {"revoked_at": timezone.now()}),
        ],
    )
    def test_is_not_offered_where_nobody_can_vote_on_it(self, of, change):
        make_invite(make_run(), label=FIRST_START)
        assert DEMO in home()
        of.objects.update(**change)
        assert DEMO not in home()

    def test_is_not_offered_to_who_is_logged_in(self):
        make_invite(make_run(), label=FIRST_START)
        assert DEMO not in home(user_client())


class TestAKnownVoter:
    def test_goes_on_where_something_is_left(self):
        run, other = make_run(name="First"), make_run(name="Second")
        voter = make_voter(run, invite=make_invite(run))
        client = voter_client(voter)
        # A voter of two projects has a cookie of each.
        guest = make_voter(other)
        make_invite(other).guests.add(guest)
        client.cookies.update(remember(HttpResponse(), guest).cookies)
        for page in ("/", "/login/"):
            text = text_of(client.get(page))
            assert "Go on voting on First" in text
            assert "Go on voting on Second" in text
            assert "open the invite link" not in text
        make_vote(voter, pairs_of(run)[0])
        text = home(client)
        assert "on First" not in text
        assert "on Second" in text

    def test_who_came_without_an_invite_goes_on_where_pairs_were_handed_out(self):
        run = make_run(pairs=2, name="Mine")
        client = voter_client(make_voter(run))
        assert "Go on voting" not in home(client)
        client.get(f"/vote/{run.queue_id}/")
        assert "Go on voting on Mine" in home(client)

    @pytest.mark.parametrize("change", [{"is_open": False}, {"is_simulated": True}])
    def test_is_sent_nowhere_where_nobody_can_vote(self, change):
        run = make_run(**change)
        client = voter_client(make_voter(run, invite=make_invite(run)))
        assert "Go on voting" not in home(client)

    def test_is_nobody_once_blocked_or_with_a_cookie_that_is_not_theirs(self):
        run, other = make_run(), make_run()
        blocked = make_voter(run, invite=make_invite(run), blocked_at=timezone.now())
        assert "Go on voting" not in home(voter_client(blocked))
        client = voter_client(make_voter(run, invite=make_invite(run)))
        [(name, cookie)] = client.cookies.items()
        forged = Client()
        forged.cookies[name.replace(run.queue.project_id.hex[:12], "0" * 12)] = cookie.value
        forged.cookies[f"voter-{other.queue.project_id.hex[:12]}"] = cookie.value
        assert "Go on voting" not in home(forged)

    def test_costs_the_same_in_one_project_and_in_many(self):
        def cost(projects):
            client = Client()
            for _ in range(projects):
                run = make_run(pairs=3)
                voter = make_voter(run, invite=make_invite(run))
                client.cookies.update(remember(HttpResponse(), voter).cookies)
            return queries_of(client, "/")

        assert cost(1) == cost(9)


class TestALead:
    def test_nothing_waits(self):
        make_run(is_open=False)
        assert "Nothing waits for you." in home(user_client())

    def test_what_waits_is_said_with_what_to_do(self):
        for state in ("draft", "stopped", "failed", "complete"):
            named(f"A {state} run", state=state)
        text = home(user_client())
        assert "A draft run Check the draft and start it" in text
        assert "A stopped run Resume it" in text
        assert "A failed run See what failed" in text
        assert "A complete run See" not in text

    def test_a_model_that_never_answers_is_an_alarm(self):
        run = named("Silent")
        for pair in pairs_of(run):
            Call.objects.create(
                run=run,
                purpose="judge",
                verdict=pair.verdicts.first(),
                provider="default",
                model="gpt-x",
                state="failed",
                error="401 Unauthorized",
            )
        assert "Silent Open a provider: every call to gpt-x failed" in home(user_client())

    def test_what_is_flagged_waits_for_a_curator(self):
        run = make_run()
        assert "waiting for a decision" not in home(user_client())
        flag(make_voter(run), pairs_of(run)[0].pk, "unsafe", "")
        seal_all(run.queue.project)
        assert "Review 1 waiting for a decision" in home(user_client())

    def test_pairs_to_vote_on_until_this_login_has_voted_on_all(self):
        run = named("Mine", pairs=2)
        client = member_client(run.queue.project, "curator")
        assert "Mine Vote on 2 pairs" in home(client)
        me = voter_of_user(run.queue.project, User.objects.get(username="curator"))
        one, other = pairs_of(run)
        make_vote(me, one)
        assert "Mine Vote on 1 pair" in home(client)
        make_vote(me, other)
        assert "Mine Vote" not in home(client)

    def test_links_that_expire_within_a_week(self):
        run = make_run()
        project = run.queue.project
        for label, days, fields in (
            ("soon", 3, {}),
            ("late", 9, {}),
            ("over", -1, {}),
            ("gone", 3, {"revoked_at": timezone.now()}),
        ):
            expires_at = timezone.now() + timedelta(days=days)
            row, _ = make_share(project, run, None, label=label, expires_at=expires_at)
            Share.objects.filter(pk=row.pk).update(**fields)
        text = home(member_client(project, "owner"))
        assert "The link “soon” expires on" in text
        for label in ("late", "over", "gone"):
            assert f"“{label}”" not in text

    def test_projects_with_their_runs_votes_score_and_best_judge(self):
        run = make_run(name="Study")
        project = run.queue.project
        make_vote(make_voter(run), pairs_of(run)[0])
        seal_all(project)
        said = {"claims": {"best": 1}, "words": "judge-1 is the best judge."}
        Findings.objects.create(run=run, data=said)
        named("Not computed", project=project)
        named("Archived", project=project)
        Run.objects.filter(name="Archived").update(archived_at=timezone.now())
        text = home(member_client(project, "viewer")).replace("\xa0", " ")
        # Of pairs nearly all have a good output: that says nothing.
        assert "on pairs" not in text
        assert "The only vote" not in text
        assert "Not computed Voting No result yet. 0 votes" in text
        assert "A run of pairs Voting judge-1 is the best judge. 1 vote" in text
        assert "Archived" not in text

    def test_a_headline_waits_until_the_best_judge_is_known_or_voting_is_over(self):
        run = make_run(name="Study")
        said = {"claims": {"best": None}, "words": "No winner."}
        Findings.objects.create(run=run, data=said)
        client = member_client(run.queue.project, "viewer")
        assert "No winner." not in home(client)
        Run.objects.update(state="complete")
        assert "No winner." in home(client)

    def test_six_runs_that_something_happened_in_last_are_cards_and_a_finished_one_has_its_picture(
        self, monkeypatch
    ):
        run = make_run(name="Study")
        project = run.queue.project
        for number in range(MOST_CARDS):
            named(f"Later {number}", project=project)
        plot = lay_out_plot([IntervalRow("gpt", 0.8, (0.7, 0.9))], title="Agreement")
        monkeypatch.setattr("reports.projects.views.home.plot_of", lambda figures: plot)
        monkeypatch.setattr("reports.projects.views.home.RunFindings.read", lambda stored: stored)
        client = member_client(project, "viewer")
        assert 'class="strip"' not in client.get("/").content.decode()
        assert "Later 0" in home(client)
        Run.objects.filter(pk=run.pk).update(state="complete")
        data = {"words": "gpt leads."}
        Findings.objects.create(run=run, data=data, computed_at=timezone.now())
        page = client.get("/")
        assert "Later 0" not in text_of(page)
        assert "gpt leads." in text_of(page)
        assert 'aria-label="Agreement, best first: gpt 80\xa0% ' in page.content.decode()

    def test_drafts_with_the_same_next_step_are_counted(self):
        for number in range(3):
            named(f"Draft {number}", state="draft")
        assert "3 runs Check the draft and start it" in home(user_client())

    @pytest.mark.parametrize("role", ["owner", "evaluator", "curator", "viewer", ""])
    def test_each_is_told_only_what_their_role_may_do(self, role):
        run = named("Draft", state="draft")
        project = run.queue.project
        voted = named("Open", project=project)
        flag(make_voter(voted), pairs_of(voted)[0].pk, "unsafe", "")
        make_share(project, None, None, label="x", expires_at=timezone.now() + timedelta(days=1))
        seal_all(project)
        text = home(member_client(project, role))
        assert ("Draft Check the draft" in text) == (role in ("owner", "evaluator"))
        assert ("1 waiting for a decision" in text) == (role in ("owner", "curator"))
        assert ("The link “x”" in text) == (role in ("owner", "evaluator"))
        assert ("Open Vote on 1 pair" in text) == (role not in ("viewer", ""))
        assert ("not a member of any project yet" in text) == (role == "")

    def test_it_costs_the_same_however_much_there_is(self):
        def fill(projects):
            for _ in range(projects):
                run = named("Draft", state="draft")
                project = run.queue.project
                voted = named("Open", project=project)
                flag(make_voter(voted), pairs_of(voted)[0].pk, "other", "")
                expires_at = timezone.now() + timedelta(days=1)
                make_share(project, None, None, expires_at=expires_at)
                Findings.objects.create(run=voted, data={"claims": {"best": 0}})
                seal_all(project)

        fill(1)
        few = queries_of(user_client(), "/")
        fill(20)
        assert queries_of(user_client(), "/") == few
