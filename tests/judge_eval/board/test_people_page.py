"""Who runs a study sees who does what, leaves a voter out, and asks for more votes or fewer."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from judge_eval.board import cache, voter_stats
from judge_eval.board.voter_stats import VotingPace, count_votes, figures_of, pace_of, people_of
from judge_eval.models import Board, Run
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute, voted_run
from tests.makers import (
    key_client,
    make_exposure,
    make_invite,
    make_key,
    make_run,
    make_single_run,
    make_skip,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.ballot.assignment import ballot_for
from voting.ballot.services import cast_vote, flag
from voting.curating.services import exclude_voter
from voting.models import Entry, Item, Queue
from voting.people.voters import join

pytestmark = pytest.mark.django_db


def address(run, rest=""):
    return f"/runs/{run.pk}/people/{rest}"


def voters_of(run):
    return people_of(run.queue, count_votes(run.queue))


def person_of(run, voter):
    return next(person for person in voters_of(run) if person.id == voter.pk)


def make_study(*, pairs=12, votes_wanted=3):
    """Return a run on whose pairs Ann and Bob say A, and Cy says B, but A on the first three."""
    run = make_run(pairs=pairs, votes_wanted=votes_wanted)
    ann, bob, cy = (make_voter(run, name=name) for name in ("Ann", "Bob", "Cy"))
    for number, pair in enumerate(pairs_of(run)):
        make_vote(ann, pair, "A")
        make_vote(bob, pair, "A")
        make_vote(cy, pair, "A" if number < 3 else "B")
    seal_all(run.queue.project)
    return run, ann, bob, cy


# --- the figures --------------------------------------------------------------------------------


def test_agreement_is_with_the_other_votes_on_the_same_pairs():
    run, ann, _, cy = make_study()
    agreement = person_of(run, ann).agreement
    # Bob says the same always, Cy on 3 of 12: (12 * 1/2 + 3 * 1/2) / 12.
    assert (agreement.value, agreement.n) == (0.625, 12)
    assert agreement.interval == pytest.approx((0.35435, 0.83501), abs=1e-4)
    assert person_of(run, cy).agreement.value == 0.25


def test_few_pairs_have_no_interval_and_a_voter_alone_has_no_agreement():
    run, ann, _, _ = make_study(pairs=9)
    assert person_of(run, ann).agreement.interval is None
    alone = make_run(pairs=2)
    voter = make_voter(alone)
    make_vote(voter, pairs_of(alone)[0])
    seal_all(alone.queue.project)
    assert person_of(alone, voter).agreement is None


def test_who_is_excluded_is_compared_with_others_and_others_are_not_compared_with_them():
    run, ann, _, cy = make_study()
    exclude_voter(cy.pk, run.queue, ann, after=None)
    seal_all(run.queue.project)
    assert person_of(run, ann).agreement.value == 1.0
    assert person_of(run, cy).agreement.value == 0.25
    assert person_of(run, cy).votes == 12


def test_a_vote_that_is_not_blind_agrees_with_nobody():
    run, ann, _, _ = make_study(pairs=2)
    late = make_voter(run)
    make_exposure(late, pairs_of(run)[0])
    make_vote(late, pairs_of(run)[0], "A")
    seal_all(run.queue.project)
    assert person_of(run, late).agreement is None
    assert person_of(run, late).votes == 1
    assert person_of(run, ann).agreement.n == 2


def test_words_are_compared_too_but_not_free_texts():
    for kind, ballot, agreement in (("category", ["pun", "dark"], 1.0), ("text", [], None)):
        run = make_single_run(outputs=["A joke"], kind=kind, ballot=ballot)
        queue, item = run.queue, run.queue.items.first()
        voters = [make_voter(run), make_voter(run)]
        for voter in voters:
            posted = {"choice": "pun", "text": "A pun."}
            answer = ballot_for(voter, queue, item).answer(posted)
            cast_vote(ballot_for(voter, queue, item), answer.choice, details=answer.details)
        seal_all(queue.project)
        found = person_of(run, voters[0]).agreement
        assert (found and found.value) == agreement, kind


def test_time_sides_skips_and_flags():
    run = make_run(pairs=5)
    voter, pairs = make_voter(run), pairs_of(run)
    for pair, seconds in zip(pairs[:4], (1, 100, 3, 2), strict=True):
        ballot = ballot_for(voter, run.queue, pair)
        cast_vote(ballot, "tie" if pair == pairs[3] else ballot.left, 1000 * seconds)
    for _ in range(2):
        make_skip(voter, pairs[4])
    flag(voter, pairs[4].pk, "other", "")
    seal_all(run.queue.project)
    person = person_of(run, voter)
    assert (person.votes, person.skips, person.flags) == (4, 2, 1)
    assert person.median_seconds == 2.5
    assert (person.left.value, person.left.n) == (1.0, 3)
    assert person.last_seen == voter.flags.get().created_at
    Entry.objects.filter(elapsed_ms=100_000).update(elapsed_ms=None)
    assert person_of(run, voter).median_seconds == 2.0


def test_who_was_let_in_here_is_listed_and_who_votes_in_another_run_is_not():
    run = make_run()
    other = make_run(run.queue.project)
    known = make_voter(other, name="Known")
    make_vote(known, pairs_of(other)[0])
    seal_all(other.queue.project)
    came = join(make_invite(run), "Came", timezone.now())
    assert [person.id for person in voters_of(run)] == [came.pk]
    join(make_invite(run), "", timezone.now(), known)
    assert {person.id for person in voters_of(run)} == {came.pk, known.pk}


# --- how far the votes are ----------------------------------------------------------------------


def pace(**fields):
    usual = {"waiting": 1, "preparing": 0, "unit": "day", "votes": (), "votes_left": 100}
    return VotingPace(**usual | {"last_day": 0, "last_week": 0} | fields)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"votes_left": 0}, "All votes are in."),
        ({}, "100 votes to go."),
        ({"last_day": 25, "last_week": 999}, "of the last 24 hours (25 votes) this takes about 4"),
        ({"last_week": 70}, "of the last 7 days (70 votes) this takes about 10 days."),
    ],
)
def test_the_forecast_is_of_recent_votes(fields, words):
    assert words in pace(**fields).forecast


def test_what_waits_is_counted_and_votes_are_counted_by_time():
    run = make_run(pairs=4, votes_wanted=2)
    pairs, voter = pairs_of(run), make_voter(run)
    Item.objects.filter(pk=pairs[3].pk).update(opened_at=None)
    Item.objects.filter(pk=pairs[2].pk).update(unusable="It cannot be drawn.")
    start = datetime(2026, 11, 1, 9, tzinfo=UTC)
    make_vote(voter, pairs[0], at=start)
    make_vote(make_voter(run), pairs[0], at=start + timedelta(minutes=5))
    make_vote(voter, pairs[1], at=start + timedelta(hours=30))
    seal_all(run.queue.project)
    found = pace_of(run.queue, start + timedelta(days=2), count_votes(run.queue))
    assert (found.waiting, found.votes_left, found.preparing) == (1, 3, 1)
    assert (found.last_day, found.last_week) == (1, 3)
    assert found.unit == "hour"
    assert found.votes == [(start, 2), (start + timedelta(hours=30), 1)]
    make_vote(make_voter(run), pairs[1], at=start + timedelta(days=20))
    seal_all(run.queue.project)
    assert pace_of(run.queue, timezone.now(), count_votes(run.queue)).unit == "day"


def test_of_very_many_votes_the_stored_figures_are_those_that_a_page_would_count(monkeypatch):
    run = voted_run(people=3, pairs=8, computed=False)
    counted = people_of(run.queue, count_votes(run.queue))
    for module in (voter_stats, cache):
        monkeypatch.setattr(module, "MOST_READ", 10)
    compute(run)
    monkeypatch.setattr(voter_stats, "count_votes", lambda queue: pytest.fail("all votes are read"))
    figures = figures_of(Run.objects.get(pk=run.pk))
    assert people_of(run.queue, figures) == counted
    assert pace_of(run.queue, timezone.now(), figures).last_day == 24


# --- the page -----------------------------------------------------------------------------------


def names_on(response):
    return [row.name for row in response.context["table"].rows]


def test_it_is_sorted_by_each_column_and_searched():
    run, ann, bob, cy = make_study()
    make_voter(run, name="")
    Entry.objects.filter(kind="vote", voter=cy).update(elapsed_ms=9)
    Entry.objects.filter(kind="vote", voter=bob).update(elapsed_ms=5)
    client = user_client()
    for head in client.get(address(run)).context["table"].heads:
        assert client.get(address(run) + head.href).status_code == 200
    assert names_on(client.get(address(run, "?sort=-name"))) == ["Cy", "Bob", "Ann"]
    # Nothing is known of the time that Ann took.
    assert names_on(client.get(address(run, "?sort=-seconds"))) == ["Cy", "Bob", "Ann"]
    assert names_on(client.get(address(run, "?sort=seconds"))) == ["Bob", "Cy", "Ann"]
    assert names_on(client.get(address(run, "?sort=agreement")))[0] == "Cy"
    assert names_on(client.get(address(run, "?q=AN"))) == ["Ann"]
    assert names_on(client.get(address(run, f"?q={bob.pseudonym}"))) == ["Bob"]
    assert "No voter has that name." in text_of(client.get(address(run, "?q=nobody")))
    assert client.get(address(run, "?sort=colour")).status_code == 400
    assert ann.pseudonym in text_of(client.get(address(run)))


def test_agreement_is_drawn_for_those_on_the_page_and_said():
    run, ann, _, cy = make_study()
    exclude_voter(cy.pk, run.queue, ann, after=None, reason="Fast.")
    seal_all(run.queue.project)
    client = user_client()
    plot = client.get(address(run)).context["plot"]
    assert [(row.name, row.value, row.beats_floor) for row in plot.rows] == [
        ("Ann", "100\xa0%", True),
        ("Bob", "100\xa0%", True),
        ("Cy", "25\xa0%", False),
    ]
    assert plot.rows[2].thick
    page = client.get(address(run, "?q=ann"))
    assert 'aria-label="Agreement with others, best first: Ann 100' in page.content.decode()
    assert [row.name for row in page.context["plot"].rows] == ["Ann"]
    # Nothing is drawn where nobody can be compared.
    assert client.get(address(make_run())).context["plot"] is None


def test_names_and_reasons_are_text():
    run = make_run()
    voter = make_voter(run, name="<b>Ann</b>")
    make_vote(voter, pairs_of(run)[0])
    seal_all(run.queue.project)
    client = user_client()
    client.post(address(run, f"{voter.pk}/exclude"), {"why": "<i>fast</i>"})
    page = client.get(address(run)).content.decode()
    assert "&lt;b&gt;Ann" in page
    assert "&lt;i&gt;fast" in page
    assert "<b>Ann" not in page


def test_before_anybody_comes_it_says_what_to_do():
    text = text_of(user_client().get(address(make_run())))
    assert "Nobody has come to vote yet. Invite people" in text
    assert "1 vote to go." in text


def test_a_voter_is_excluded_with_a_reason_and_taken_back():
    run, _, _, cy = make_study()
    client = user_client("Lea")
    listed = client.get(address(run)).content.decode()
    [link] = re.findall(rf'href="([^"]*exclude={cy.pk})#exclude"', listed)
    asked = client.get(address(run) + html.unescape(link)).content.decode()
    assert f'action="{address(run, f"{cy.pk}/exclude")}"' in asked
    page = client.post(address(run, f"{cy.pk}/exclude"), {"why": "Too fast."}, follow=True)
    assert "Cy is excluded" in text_of(page)
    assert "by Lea" in text_of(page)
    assert ": Too fast." in text_of(page)
    seal_all(run.queue.project)
    assert Board.objects.get(run=run).votes == 24
    stands = person_of(run, cy).excluded
    page = client.post(address(run, f"decisions/{stands.decision}/take-back"), follow=True)
    assert "Cy counts again" in text_of(page)
    seal_all(run.queue.project)
    assert Board.objects.get(run=run).votes == 36
    assert person_of(run, cy).excluded is None


def test_a_reason_must_be_given_and_what_is_late_is_told():
    run, _, _, cy = make_study()
    client = user_client()
    refused = client.post(address(run, f"{cy.pk}/exclude"), {"why": " "})
    assert (refused.status_code, "Say why." in text_of(refused)) == (422, True)
    client.post(address(run, f"{cy.pk}/exclude"), {"why": "Fast."})
    late = client.post(address(run, f"{cy.pk}/exclude"), {"why": "Slow."})
    assert (late.status_code, "Somebody else has just decided" in text_of(late)) == (409, True)
    stands = person_of(run, cy).excluded.decision
    for status in (302, 409):
        again = client.post(address(run, f"decisions/{stands}/take-back"))
        assert again.status_code == status
    stranger = make_voter(make_run())
    assert client.post(address(run, f"{stranger.pk}/exclude"), {"why": "?"}).status_code == 404


ALL = {"about": "all", "votes": "5", "overlap_share": "0", "overlap_votes": "3"}


def test_more_votes_are_asked_for_once_it_is_said_what_that_takes():
    run, *_ = make_study()
    client = user_client("Lea")
    asked = client.get(address(run), ALL)
    assert "24 more votes: 24 to come instead of 0." in text_of(asked)
    assert "12 pairs with enough votes would come back." in text_of(asked)
    assert not Entry.objects.filter(kind="parameters").exists()
    done = client.post(address(run, "votes-wanted"), ALL, follow=True)
    assert "5 votes per pair" in text_of(done)
    assert "Lea" in text_of(done)
    seal_all(run.queue.project)
    assert set(run.queue.items.values_list("votes_wanted", flat=True)) == {5}
    queue = Queue.objects.get(pk=run.queue_id)
    assert (queue.votes_per_item, queue.overlap_share, queue.done) == (5, 0, 0)


def test_only_pairs_on_which_people_disagree_are_asked_for_more():
    run, *_ = make_study(votes_wanted=4)
    fourth = make_voter(run)
    make_vote(fourth, pairs_of(run)[11], "B")
    seal_all(run.queue.project)
    some = {"about": "disputed", "votes": "7"}
    client = user_client()
    assert "3 more votes" in text_of(client.get(address(run), some))
    page = client.post(address(run, "votes-wanted"), some, follow=True)
    assert "only pairs on which people disagreed" in text_of(page)
    seal_all(run.queue.project)
    assert list(run.queue.items.order_by("position").values_list("votes_wanted", flat=True)) == [
        *[4] * 11,
        7,
    ]


@pytest.mark.parametrize(
    "wrong, field",
    [
        ({"votes": "0"}, "votes"),
        ({"votes": "1001"}, "votes"),
        ({"votes": ""}, "votes"),
        ({"overlap_share": "101"}, "overlap_share"),
        ({"overlap_votes": ""}, "overlap_votes"),
        ({"about": "some"}, "about"),
    ],
)
def test_what_cannot_be_asked_for_is_said_beside_its_field_and_nothing_is_lost(wrong, field):
    run = make_run()
    client = user_client()
    refused = client.post(address(run, "votes-wanted"), ALL | wrong)
    assert refused.status_code == 422
    assert list(refused.context["form"].errors) == [field]
    assert 'name="votes" value=' in refused.content.decode() or field == "votes"
    assert client.get(address(run), ALL | wrong).context["cost"] == ""
    assert not Entry.objects.filter(kind="parameters").exists()


def test_a_script_reads_the_same_figures():
    run, ann, _, _ = make_study()
    assert key_client(make_key("read")[1]).get(f"/api/runs/{run.pk}/people").status_code == 403
    answer = key_client(make_key("manage")[1]).get(f"/api/runs/{run.pk}/people").json()
    assert {person["name"] for person in answer["people"]} == {"Ann", "Bob", "Cy"}
    of_ann = next(person for person in answer["people"] if person["pseudonym"] == ann.pseudonym)
    assert of_ann["agreement"]["value"] == 0.625
    assert of_ann["is_excluded"] is False
    assert answer["votes_left"] == 0


def test_a_lead_puts_a_voter_into_a_group_and_takes_it_out_again():
    run = make_run()
    voter = make_voter(run, name="Ada", invite=make_invite(run, group="doctors"))
    client, path = user_client(), f"/runs/{run.pk}/people/"
    chosen = client.get(path, {"group": str(voter.pk)}).content.decode()
    assert f"{path}{voter.pk}/group" in chosen
    assert '<option value="doctors">' in chosen
    for group, shown in (("  nurses ", "nurses"), ("", "Choose")):
        page = client.post(f"{path}{voter.pk}/group", {"group": group})
        assert page.url == path
        seal_all(run.queue.project)
        voter.refresh_from_db()
        assert voter.group == group.strip()
        assert f"{shown} as the group of Ada" in text_of(client.get(path))
    entry = Entry.objects.filter(kind="parameters").latest("seq")
    assert entry.payload == {"groups": {voter.pseudonym: ""}}
    assert entry.voter.name == "owner"


@pytest.mark.parametrize("group", ["x" * 61, "a\u202eb"])
def test_a_group_that_cannot_be_is_refused_in_words(group):
    run = make_run()
    voter = make_voter(run)
    answer = user_client().post(f"/runs/{run.pk}/people/{voter.pk}/group", {"group": group})
    assert answer.status_code == 422
    assert "group" in text_of(answer)
    assert not Entry.objects.filter(kind="parameters").exists()
