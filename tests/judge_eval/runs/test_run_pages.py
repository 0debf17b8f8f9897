"""How far a run is, what failed, and what can be done about it: the pages of a run at work."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from judge_eval.judging import leases
from judge_eval.models import Call, Provider, Run, Verdict
from tests.helpers.pages import HTMX, queries_of, text_of
from tests.helpers.run_rows import (
    PRICES,
    first_verdict,
    make_asked_run,
    make_calls,
    make_draft,
    make_outputs,
    make_provider,
    set_state,
)
from tests.makers import (
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.assignment import next_pairs
from voting.models import Exposure
from voting.people.voters import voter_of_user

pytestmark = pytest.mark.django_db


def progress(run):
    return f"/runs/{run.pk}/progress/"


def calls(run):
    return f"/runs/{run.pk}/calls/"


def rows_of(response):
    """The words of each row of each table."""
    body = response.content.decode()
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]


# --- progress -------------------------------------------------------------------------------------


def a_run_at_work():
    run = make_asked_run(pairs=2, judges=2, names=["judge-x", "judge-y"])
    make_outputs(run, 3)
    make_outputs(run, 1, first=3, state="failed", error="404 Not Found: no such model")
    make_outputs(run, 2, first=4, state="waiting")
    Call.objects.update(is_paired=True)  # else pairs would be to come
    make_calls(run, orders=["AB"], is_repaired=True)
    make_calls(run, orders=["BA"], state="waiting", attempts=0)
    run.record("started", "Outputs are being asked for.")
    run.record("call_failed", "model-a: 404 Not Found: no such model")
    return run


def test_parts_figures_and_models_are_shown():
    run = a_run_at_work()
    Run.objects.filter(pk=run.pk).update(
        budget_nano=2_000_000_000, spent_nano=3_150_000, reserved_nano=10_000_000
    )
    response = user_client().get(progress(run))
    rows = rows_of(response)
    assert "Outputs 3 1 2 6" in rows
    assert "Calls for verdicts 4 0 4 8" in rows
    assert "Verdicts 4 0 0 4" in rows
    assert "model-a default outputs 6 3 1 400 80 $0.00180 250 ms" in rows
    assert "judge-x default verdicts 4 2 0 200 40 $0.000900 250 ms" in rows
    text = text_of(response)
    for figure in (
        "Judging. Outputs are drawn and judged.",
        "Calls in the last minute 8",
        "Spent $0.00315 of $2.00",
        "Set aside for calls under way $0.0100",
        "Tokens in 800",
        "Attempts 10",
        "Repaired replies 4",
        "Mean time of a call 250 ms",
        "1 failed call: see why",
        "Outputs are being asked for.",
    ):
        assert figure in text, figure
    assert "no such model" not in text  # it stands in the list of failed calls


def test_the_time_that_is_left_is_told_once_it_can_be():
    run = make_asked_run(pairs=1)
    outputs = make_outputs(run, 20)
    make_outputs(run, 10, first=20, state="waiting")
    # However slow this machine is, no time has passed since the first answer.
    done = Call.objects.filter(state="done")
    done.update(done_at=timezone.now() + timedelta(minutes=5))
    assert "Time left" not in text_of(user_client().get(progress(run)))
    since = timezone.now() - timedelta(seconds=40)
    Call.objects.filter(pk=outputs[0].pk).update(done_at=since)
    assert "Time left, about " in text_of(user_client().get(progress(run)))


REASON = "401 Unauthorized: the key was refused"


def a_run_with_a_judge_that_fails(**fields):
    run = make_asked_run(pairs=2, judges=2, names=["judge-x", "judge-y"])
    made = make_calls(run, **fields)
    failing = [call.pk for call in made if call.model == "judge-x"]
    Call.objects.filter(pk__in=failing).update(state="failed", error=REASON)
    return run, failing


def test_a_judge_of_which_every_call_fails_is_an_alarm_on_its_run_and_in_the_list():
    run, failing = a_run_with_a_judge_that_fails()
    client = user_client()
    text = text_of(client.get(progress(run)))
    assert "Every call to judge-x (default) for verdicts has failed" in text
    assert f"4 so far: {REASON}" in text
    assert text.count(REASON) == 1
    assert "Wrong model name? Duplicate and change." in text
    assert "Every call to judge-y" not in text
    assert "judge-x: every call failed" in text_of(client.get("/runs/"))
    # While it is not the last word on every call it is none.
    Call.objects.filter(pk=failing[0]).update(state="done", error="")
    assert "Every call to" not in text_of(client.get(progress(run)))
    assert "every call failed" not in text_of(client.get("/runs/"))


def test_two_first_failures_of_many_calls_may_be_accidents():
    run, failing = a_run_with_a_judge_that_fails()
    Call.objects.filter(pk__in=failing[2:]).update(state="waiting", error="", done_at=None)
    assert "Every call to" not in text_of(user_client().get(progress(run)))
    Call.objects.filter(pk=failing[2]).update(state="failed", error=REASON)
    assert "Every call to" in text_of(user_client().get(progress(run)))


def test_a_model_that_is_left_alone_is_told_with_the_reason():
    run = make_asked_run(judges=1, names=["judge-x"])
    make_provider()
    make_calls(run, state="waiting", attempts=0)
    leases.pause("default", "judge-x", 60, "429 Too Many Requests: asked to wait 600 s")
    leases.pause("default", "judge-of-others", 60, "429")
    text = text_of(user_client().get(progress(run)))
    assert "judge-x (default) is rate limited; next call" in text
    assert "429 Too Many Requests: asked to wait 600 s. Its calls wait" in text
    assert "judge-of-others" not in text
    Provider.objects.update(pauses={})
    assert "rate limited" not in text_of(user_client().get(progress(run)))


def test_the_list_of_runs_takes_as_many_queries_for_many_failing_judges():
    a_run_with_a_judge_that_fails()
    client = user_client()
    few = queries_of(client, "/runs/")
    for _ in range(3):
        a_run_with_a_judge_that_fails()
    assert queries_of(client, "/runs/") == few


def test_a_price_that_nobody_knows_is_not_nothing():
    run = a_run_at_work()
    Call.objects.filter(model="judge-x", state="done").update(cost_nano=None)
    response = user_client().get(progress(run))
    assert "judge-x default verdicts 4 2 0 200 40 not known 250 ms" in rows_of(response)
    assert "Spent $0, where prices are known" in text_of(response)


def test_a_run_whose_outputs_were_given_has_progress_too():
    run = make_run(pairs=2)
    response = user_client().get(progress(run))
    assert "Verdicts 4 0 0 4" in rows_of(response)
    assert "did not generate its outputs, so there is no config to copy." in text_of(response)


def test_names_reasons_and_replies_are_text():
    run = make_asked_run(names=["<script>alert(1)</script>"], judges=1)
    make_calls(run, state="failed", error="<img src=x>", reply="<script>alert(2)</script>")
    client = user_client()
    call = Call.objects.first()
    for url in (progress(run), calls(run), f"{calls(run)}{call.pk}/"):
        for headers in ({}, HTMX):
            body = client.get(url, headers=headers).content
            assert b"<script>alert" not in body
            assert b"<img src=x" not in body


LIVE = 'hx-trigger="every 2s"'


@pytest.mark.parametrize("state", Run.State.values[1:])
def test_it_is_asked_for_again_while_calls_are_made(state):
    run = a_run_at_work()
    set_state(run, state)
    body = user_client().get(progress(run)).content.decode()
    assert (LIVE in body) == (state in ("generating", "judging"))
    assert "Time left" not in body or state in ("generating", "judging")


def test_after_a_stop_it_follows_the_calls_that_are_out():
    run = a_run_at_work()
    set_state(run, "stopped")
    soon = timezone.now() + timedelta(seconds=20)
    Call.objects.filter(state="waiting", purpose="generate").update(leased_until=soon)
    response = user_client().get(progress(run))
    assert LIVE in response.content.decode()
    assert "Under way 2" in text_of(response)


def polled(client, run):
    """The address that the page asks for again."""
    [address] = re.findall(r'hx-get="([^"]+)"', client.get(progress(run)).content.decode())
    return address.replace("&amp;", "&")


def test_what_has_not_changed_is_left_alone():
    run, client = a_run_at_work(), user_client()
    address = polled(client, run)
    assert client.get(address, headers=HTMX).status_code == 204
    Call.objects.filter(state="waiting").first().delete()
    changed = client.get(address, headers=HTMX)
    assert changed.status_code == 200
    assert b"<html" not in changed.content
    # Nothing was done to the run itself: its buttons keep their focus.
    moved = re.findall(r'id="([^"]+)" hx-swap-oob', changed.content.decode())
    assert moved == ["run-counts"]


def test_the_head_follows_as_pairs_come_and_open():
    run, client = a_run_at_work(), user_client()
    run.queue.items.update(unusable="not drawn yet")
    address, body = polled(client, run), ""
    assert "No pairs yet" in text_of(client.get(progress(run)))
    for changes, words in (
        ({"unusable": "", "opened_at": None}, "0 of 2 pairs have enough votes, 2 being prepared"),
        ({"opened_at": timezone.now()}, "0 of 2 pairs have enough votes"),
    ):
        run.queue.items.update(**changes)
        body = client.get(address, headers=HTMX).content.decode()
        head = re.search(
            r'<p class="muted small" id="run-counts" hx-swap-oob="true">(.*?)<prog', body, re.DOTALL
        )
        assert head[1].strip().endswith(words)
        address = re.search(r'hx-get="([^"]+)"', body)[1].replace("&amp;", "&")
    set_state(run, "voting")
    body = client.get(address, headers=HTMX).content.decode()
    assert "Invite people" in re.search(r'id="run-about" hx-swap-oob.*?</div>', body, re.DOTALL)[0]


def test_a_change_of_state_is_said_and_changes_the_buttons():
    run, client = a_run_at_work(), user_client()
    address = polled(client, run)
    set_state(run, "stopped", note="The budget of $2.00 is used up.")
    body = client.get(address, headers=HTMX).content.decode()
    assert 'id="state" hx-swap-oob="innerHTML"' in body
    assert "The budget of $2.00 is used up." in body
    assert 'id="actions" hx-swap-oob="innerHTML"' in body
    assert LIVE not in body


def test_a_draft_has_a_page_of_its_own():
    run, client = make_draft(), user_client()
    draft = f"/runs/{run.pk}/draft/"
    assert client.get(progress(run)).url == draft
    assert client.get(progress(run), headers=HTMX)["HX-Redirect"] == draft
    set_state(run, "judging")
    assert client.get(draft).url == progress(run)
    assert client.get(draft, headers=HTMX)["HX-Redirect"] == progress(run)


# --- who may see it -------------------------------------------------------------------------------


def test_only_evaluators_may_follow_a_run():
    run = make_asked_run(shared=True, pairs=1)
    [call, *_] = make_calls(run, state="failed")
    done = make_voter(run)
    make_vote(done, pairs_of(run)[0])
    seal_all(run.queue.project)
    for url in (progress(run), calls(run), f"{calls(run)}{call.pk}/"):
        for client in (Client(), voter_client(done)):
            assert client.get(url).url == f"/login/?next={url}"
            assert client.get(url, headers=HTMX)["HX-Refresh"] == "true"
            assert client.get(url, headers=HTMX).content == b""
        assert user_client("a reader").get(url).status_code == 200


def test_a_voter_with_open_pairs_is_sent_back_to_vote():
    run = make_asked_run(shared=True, names=["zwickau-judge"])
    make_calls(run, state="failed")
    client = voter_client(make_voter(run))
    for url in (progress(run), calls(run)):
        response = client.get(url)
        assert response.status_code == 403
        assert "You still have pairs to vote on" in text_of(response)
        assert b"zwickau" not in response.content


def a_voting_evaluator(run):
    client = user_client()
    voter = voter_of_user(run.queue.project, User.objects.get(username="owner"))
    next_pairs(voter, run.queue, [], 10, timezone.now())
    return client, voter


def test_an_evaluator_who_votes_reads_no_judge_on_pairs_that_are_open_to_them():
    run = make_asked_run(pairs=2, names=["judge-x"], state="voting")
    failed = make_calls(run, orders=["AB"], state="failed", error="villach", reply="ulm")
    client, voter = a_voting_evaluator(run)
    response = client.get(calls(run))
    assert b"villach" not in response.content
    assert text_of(response).count("You have this pair open for voting") == 2
    for headers in ({}, HTMX):
        reply = client.get(f"{calls(run)}{failed[0].pk}/", headers=headers)
        assert reply.status_code == 403
        assert b"ulm" not in reply.content
    assert not Exposure.objects.exists()
    make_vote(voter, pairs_of(run)[0])
    assert text_of(client.get(calls(run))).count("villach") == 1
    assert b"ulm" in client.get(f"{calls(run)}{failed[0].pk}/").content
    assert Exposure.objects.get().item == pairs_of(run)[0]


def test_a_raw_reply_that_was_read_makes_a_later_vote_not_blind():
    run = make_asked_run(pairs=1, names=["judge-x"], state="voting")
    [call] = make_calls(run, orders=["AB"], state="failed")
    client = user_client()
    client.get(calls(run))
    assert not Exposure.objects.exists()
    client.get(f"{calls(run)}{call.pk}/")
    assert Exposure.objects.filter(item=pairs_of(run)[0]).count() == 1


# --- failed calls ---------------------------------------------------------------------------------


def test_each_failed_call_with_its_reason():
    run = make_asked_run(pairs=1, names=["judge-x"])
    make_outputs(run, 1, first=4, state="failed", error="401 Unauthorized", attempts=1)
    make_calls(run, samples=2, state="failed", error="the reply is empty", attempts=2)
    text = text_of(user_client().get(calls(run)))
    assert "5 failed calls" in text
    assert "model-a default · output for prompt 5 · 1 attempt" in text
    assert "judge-x default · verdict on pair 1 , swapped, sample 2 · 2 attempts" in text
    assert "401 Unauthorized" in text
    # Each, and their group.
    assert text.count("the reply is empty") == 4 + 1


def test_failed_calls_are_grouped_by_model_role_and_reason_and_a_group_is_retried():
    run = make_asked_run(pairs=2, names=["judge-x", "judge-y"], state="voting")
    make_calls(run, state="failed", error="the reply is empty")
    run.calls.filter(model="judge-x").update(error="404 no such model")
    client = user_client()
    page = client.get(calls(run))
    groups = page.context["groups"]
    told = [(group["model"], group["error"], group["number"]) for group in groups]
    assert told == [("judge-x", "404 no such model", 4), ("judge-y", "the reply is empty", 4)]
    assert "?leave_out=judge-x#leave-out" in page.content.decode()
    client.post(f"/runs/{run.pk}/retry", {"like": groups[0]["example"]})
    states = run.calls.values_list("model", "state").distinct()
    assert {*states} == {("judge-x", "waiting"), ("judge-y", "failed")}
    for unknown in (10**9, 10**30, "x"):
        assert client.post(f"/runs/{run.pk}/retry", {"like": unknown}).status_code == 422


def test_the_reason_of_a_pair_one_is_to_vote_on_is_told_where_it_tells_nothing_of_a_verdict():
    run = make_asked_run(pairs=2, names=["judge-x"], state="voting")
    make_calls(run, state="failed", error="it said A and B")
    client, _ = a_voting_evaluator(run)
    assert "it said A and B" not in text_of(client.get(calls(run)))
    run.calls.update(error="404 no such model")
    assert "404 no such model" in text_of(client.get(calls(run)))


def test_failed_calls_come_in_pages():
    run = make_asked_run(pairs=1)
    make_outputs(run, 110, state="failed")
    client = user_client()
    first, last = client.get(calls(run)), client.get(f"{calls(run)}?page=6")
    assert text_of(first).count("output for prompt") == 20
    assert text_of(last).count("output for prompt") == 10
    assert "Page 6 of 6" in text_of(last)


def test_verdicts_that_failed_with_all_their_calls_done_are_listed_too():
    run = make_asked_run(says=[[None], ["A"]], names=["judge-x"])
    verdict = first_verdict(run)
    make_calls(run)
    Verdict.objects.filter(pk=verdict.pk).update(error="it answered as a and as b")
    text = text_of(user_client().get(calls(run)))
    assert "0 failed calls" in text
    assert "it answered as a and as b" in text


def test_verdicts_that_failed_for_the_same_reason_are_one_line():
    run = make_asked_run(says=[[None], [None], ["A"]], names=["judge-x"])
    make_calls(run)
    Verdict.objects.filter(winner="").update(error="it answered as a and as b")
    text = text_of(user_client().get(calls(run)))
    assert text.count("it answered as a and as b") == 1
    assert "On pair 2 , 1" in text


def test_a_raw_reply_as_a_page_and_as_a_part_of_one():
    run = make_asked_run(pairs=1, names=["judge-x"])
    long, empty = make_calls(run, state="failed")
    Call.objects.filter(pk=long.pk).update(reply="x" * 30_000)
    client = user_client()
    page = client.get(f"{calls(run)}{long.pk}/")
    assert page.content.count(b"x" * 20_000) == 1
    assert "Cut here." in text_of(page)
    part = client.get(f"{calls(run)}{empty.pk}/", headers=HTMX)
    assert text_of(part) == "No reply was received."


def test_only_calls_of_this_run_that_were_made_are_shown():
    run, other = make_asked_run(pairs=1), make_asked_run(pairs=1)
    [waiting, *_] = make_calls(run, state="waiting")
    [elsewhere, *_] = make_calls(other, state="failed")
    client = user_client()
    for call in (waiting.pk, elsewhere.pk, 10**30):
        assert client.get(f"{calls(run)}{call}/").status_code == 404


# --- what can be done -----------------------------------------------------------------------------


def buttons(response):
    """Which buttons there are, and whether they can be pressed."""
    body = response.content.decode()
    found = re.findall(r'<button type="submit" id="act-\w+"( disabled)?>([^<]+)<', body)
    return {name: not disabled for disabled, name in found}


@pytest.mark.parametrize(
    "state, can",
    [
        ("generating", {"Stop", "Retry what failed", "Duplicate"}),
        ("judging", {"Stop", "Retry what failed", "Duplicate"}),
        ("voting", {"Stop", "Retry what failed", "Duplicate"}),
        ("stopped", {"Resume", "Duplicate"}),
        ("complete", {"Retry what failed", "Duplicate"}),
        ("failed", {"Retry what failed", "Duplicate"}),
    ],
)
def test_buttons_that_the_state_does_not_allow_are_disabled(state, can):
    run = a_run_at_work()
    set_state(run, state)
    shown = buttons(user_client().get(progress(run)))
    # Judges join once all items are there.
    assert shown.pop("Add judges", False) == (state in ("voting", "complete"))
    assert "Watch judges" not in shown  # no config says how they are asked
    assert shown.pop("Archive")  # always
    assert {name for name, enabled in shown.items() if enabled} == can
    assert set(shown) == {"Stop", "Resume", "Retry what failed", "Duplicate"}


def test_nothing_to_retry_and_nothing_to_copy():
    shown = buttons(user_client().get(progress(make_run())))
    assert not shown["Retry what failed"]
    assert not shown["Duplicate"]


def test_stop_and_resume():
    run, client = a_run_at_work(), user_client()
    assert client.post(f"/runs/{run.pk}/stop").url == progress(run)
    run.refresh_from_db()
    assert run.state == "stopped"
    assert not run.queue.__class__.objects.get(pk=run.queue_id).is_open
    assert "Stopped. Stopped by hand." in text_of(client.get(progress(run)))
    assert client.post(f"/runs/{run.pk}/resume").url == progress(run)
    run.refresh_from_db()
    assert run.state == "generating"


def test_resume_with_a_larger_budget():
    models = ["model-a", "model-b", "judge-long", "judge-hash"]
    make_provider(prices=dict.fromkeys(models, PRICES))
    run, client = a_run_at_work(), user_client()
    set_state(run, "stopped", budget_nano=10**9, spent_nano=10**9)
    refused = client.post(f"/runs/{run.pk}/resume")
    assert refused.status_code == 409
    assert "enter a larger budget to continue" in text_of(refused)
    assert client.post(f"/runs/{run.pk}/resume", {"budget_usd": " 2.5 "}).status_code == 302
    run.refresh_from_db()
    assert run.budget_nano == 2_500_000_000


@pytest.mark.parametrize("budget", ["much", "0", "-1", "nan", "inf", "1e30", "1000001"])
def test_a_budget_that_is_none_is_refused(budget):
    run = a_run_at_work()
    set_state(run, "stopped")
    response = user_client().post(f"/runs/{run.pk}/resume", {"budget_usd": budget})
    assert response.status_code == 422
    assert "must be a number above 0" in text_of(response)
    assert "Back to the run" in text_of(response)
    assert f'href="{progress(run)}"' in response.content.decode()
    run.refresh_from_db()
    assert run.state == "stopped"


def test_retry_asks_again_for_what_failed():
    run, client = a_run_at_work(), user_client()
    assert client.post(f"/runs/{run.pk}/retry").url == progress(run)
    assert not Call.objects.filter(state="failed").exists()
    again = client.post(f"/runs/{run.pk}/retry")
    assert again.status_code == 409
    assert "Nothing failed that could be asked again." in text_of(again)


def test_duplicate_leads_to_the_new_draft():
    run = a_run_at_work()
    response = user_client().post(f"/runs/{run.pk}/duplicate")
    copy = Run.objects.get(state="draft")
    assert response.url == f"/runs/{copy.pk}/draft/"
    assert copy.name == f"{run.name} (copy)"


@pytest.mark.parametrize(
    "action, state, why",
    [
        ("start", "judging", "only a draft can be started"),
        ("stop", "complete", "there is nothing to stop"),
        ("resume", "judging", "only a stopped one can be resumed"),
        ("retry", "stopped", "start or resume it first"),
        ("draft/delete", "stopped", "only a draft can be deleted"),
        ("draft/try", "judging", "judges are tried in a draft"),
    ],
)
def test_what_the_state_does_not_allow_is_refused_in_words(action, state, why):
    run = a_run_at_work()
    set_state(run, state)
    judge = run.judges.first()
    response = user_client().post(f"/runs/{run.pk}/{action}", {"judge": str(judge.pk)})
    assert response.status_code == 409
    text = text_of(response)
    assert "That cannot be done now" in text
    assert why in text
    assert progress(run) in response.content.decode()


def test_a_run_whose_outputs_were_given_cannot_be_copied():
    response = user_client().post(f"/runs/{make_run().pk}/duplicate")
    assert response.status_code == 409
    assert "it has no config" in text_of(response)


# --- the list of runs -----------------------------------------------------------------------------


def test_the_list_leads_to_drafts_progress_and_a_new_run():
    draft, run = make_draft(), a_run_at_work()
    body = user_client().get("/runs/").content.decode()
    assert 'href="/runs/new/"' in body
    assert f'href="/runs/{draft.pk}/draft/"' in body
    assert f'href="/runs/{draft.pk}/vote/"' not in body
    assert f'href="{progress(run)}"' in body


def test_the_board_of_a_draft_says_that_it_is_one():
    run = make_draft()
    response = user_client().get(f"/runs/{run.pk}/")
    assert "This run is a draft: nothing was asked yet." in text_of(response)
    assert f'href="/runs/{run.pk}/draft/"' in response.content.decode()


# --- what it costs --------------------------------------------------------------------------------


def costs_of(size):
    run = make_asked_run(pairs=size, judges=1, votes_wanted=3)
    make_outputs(run, size)
    make_outputs(run, size, first=size, state="failed")
    make_calls(run, orders=["AB"], state="failed")
    make_calls(run, orders=["BA"])
    for number in range(size // 50 + 1):
        run.record("started", f"Event {number}")
    client, _ = a_voting_evaluator(run)
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    urls = [progress(run), calls(run)]
    return {url.split("/")[3]: queries_of(client, url) for url in urls}


@pytest.mark.slow
def test_pages_cost_the_same_at_1_and_at_200_calls():
    few = costs_of(1)
    assert costs_of(200) == few
    # Five of them are for watches and for models that are left alone, seven for the head, and two
    # for judges that are left out or may be.
    assert few["progress"] <= 24
