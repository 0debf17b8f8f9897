"""The first page: what this is, a finished study, where to go on voting, what waits for a lead."""

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from judge_eval.models import Call, Run
from tests.helpers.pages import queries_of, text_of
from tests.makers import (
    make_invite,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.services import flag
from voting.voters import remember

pytestmark = pytest.mark.django_db

EXAMPLE = "See a finished study"


def home(client=None):
    return text_of((client or Client()).get("/"))


def named(name, *, state="voting", **fields):
    run = make_run(**fields)
    Run.objects.filter(pk=run.pk).update(name=name, state=state)
    return run


def test_a_stranger_reads_what_this_is_and_how_to_vote():
    text = home()
    assert "People vote on the same outputs, blind" in text
    assert "Open the invite link" in text
    assert EXAMPLE not in text
    assert "What waits for you" not in text


def test_the_newest_finished_run_that_is_shared_is_the_example():
    named("Open", shared=True)
    named("Old", state="complete", shared=True)
    newest = named("New", state="complete", shared=True)
    named("Private", state="complete")
    archived = named("Archived", state="complete", shared=True)
    Run.objects.filter(pk=archived.pk).update(archived_at=timezone.now())
    assert f"{EXAMPLE} New" in home()
    assert Client().get(f"/runs/{newest.pk}/").status_code == 200


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
            assert "Open the invite link" not in text
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
        make_run()
        assert "No run waits for anything." in home(user_client())

    def test_what_waits_is_said_with_what_to_do(self):
        for state in ("draft", "stopped", "failed", "complete"):
            named(f"A {state} run", state=state)
        text = home(user_client())
        assert "A draft run: Check the draft and start it" in text
        assert "A stopped run: Resume it" in text
        assert "A failed run: See what failed" in text
        assert "A complete run" not in text

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
        assert "Silent: Open a provider: every call to gpt-x failed" in home(user_client())

    def test_what_is_flagged_waits_for_a_curator(self):
        run = make_run()
        assert "waiting for a decision" not in home(user_client())
        flag(make_voter(run), pairs_of(run)[0].pk, "other", "")
        seal_all(run.queue.project)
        assert "Review: 1 waiting for a decision" in home(user_client())

    def test_it_costs_the_same_however_many_runs_there_are(self):
        named("One", state="draft")
        few = queries_of(user_client(), "/")
        for _ in range(30):
            named("Another", state="draft")
        assert queries_of(user_client(), "/") == few
