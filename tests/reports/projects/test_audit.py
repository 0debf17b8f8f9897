"""The audit of a project: its ledger in words, searchable, page by page; and changes beside it."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reports.projects.views.audit import AuditForm, page_of
from reports.quality.parameters import change as change_quality
from tests.helpers.pages import queries_of, text_of
from tests.helpers.plans import plan_of
from tests.makers import (
    entry_of,
    make_many_votes,
    make_run,
    make_vote,
    make_voter,
    member_client,
    pairs_of,
    seal_all,
    voter_client,
)
from voting.access.changes import rename
from voting.ballot.services import undo_last_vote
from voting.curating.services import decide
from voting.models import Assignment, Entry, Exposure, Member, Voter
from voting.people.voters import voter_of_user

pytestmark = pytest.mark.django_db


def address(project, query=""):
    return f"/projects/{project.pk}/audit/{query}"


def audit_of(project, query="", role="owner"):
    response = member_client(project, role).get(address(project, query))
    assert response.status_code == 200, text_of(response)
    return response


def lines(response):
    return [(line.entry.seq, line.kind, line.words) for line in response.context["lines"]]


def numbers(response):
    return [line.entry.seq for line in response.context["lines"]]


def words_of(project, kind, role="owner"):
    return [words for _, _, words in lines(audit_of(project, f"?kind={kind}", role))]


class TestWords:
    def test_votes_verdicts_and_a_vote_taken_back(self):
        run = make_run(says=[["A", None]], names=["north", "<south>"], votes_wanted=9)
        project, [pair] = run.queue.project, pairs_of(run)
        ann, bob = make_voter(run, name="Ann"), make_voter(run)
        make_vote(ann, pair, "B")
        vote = make_vote(bob, pair, "tie")
        seal_all(project)
        undo_last_vote(bob, run.queue)
        seal_all(project)
        response = audit_of(project)
        assert lines(response) == [
            (4, "vote taken back", f"{bob.pseudonym} took back the vote of entry 3"),
            (3, "vote", f"{bob.pseudonym} chose tie (taken back by entry 4)"),
            (2, "vote", f"Ann ({ann.pseudonym}) chose B"),
            (1, "verdicts", "north said A, <south> said nothing"),
        ]
        page = response.content.decode()
        assert f'href="/runs/{run.pk}/pairs/{pair.pk}/">pair 1 of A run of pairs</a>' in page
        entry = entry_of(vote)
        assert bytes(entry.hash).hex() in page
        assert f"--head {project.ledger_head}" in page

    def test_what_waits_to_be_sealed_is_counted(self):
        run = make_run()
        make_vote(make_voter(run), pairs_of(run)[0])
        assert "1 more being sealed" in text_of(audit_of(run.queue.project))


class TestSearch:
    @pytest.fixture
    def runs(self):
        """Two runs of one project with two pairs each, on which Ann and Bob have voted."""
        first = make_run(pairs=2, votes_wanted=9)
        second = make_run(first.queue.project, pairs=2, votes_wanted=9)
        self.ann = make_voter(first, name="Ann")
        self.bob = make_voter(first, name="Bob B.")
        make_voter(first, name="Bob C.")
        for run in (first, second):
            for voter in (self.ann, self.bob):
                for pair in pairs_of(run):
                    make_vote(voter, pair)
        seal_all(first.queue.project)
        return first, second

    def test_by_kind_run_voter_item_and_number(self, runs):
        first, second = runs
        project, pair = first.queue.project, pairs_of(second)[1]
        of = dict(Entry.objects.values_list("seq", "pk"))
        entries = {entry.pk: entry for entry in Entry.objects.all()}

        def expected(fits):
            return [seq for seq in sorted(of, reverse=True) if fits(entries[of[seq]])]

        wanted = {
            "?kind=verdicts": lambda e: e.kind == "verdicts",
            f"?run={second.pk}": lambda e: e.queue_id == second.queue_id,
            f"?run={second.pk}&kind=vote": lambda e: e.queue_id == second.queue_id and e.voter_id,
            "?voter=ann": lambda e: e.voter_id == self.ann.pk,
            f"?voter={self.bob.pseudonym}": lambda e: e.voter_id == self.bob.pk,
            f"?item={pair.pk}": lambda e: e.item_id == pair.pk,
            f"?run={second.pk}&item=2": lambda e: e.item_id == pair.pk,
            "?seq=3": lambda e: e.seq <= 3,
            f"?voter=ann&seq=8&run={first.pk}": lambda e: (
                e.voter_id == self.ann.pk and e.queue_id == first.queue_id and e.seq <= 8
            ),
        }
        for query, fits in wanted.items():
            assert numbers(audit_of(project, query)) == expected(fits), query
            assert expected(fits), query

    def test_by_time_in_the_order_of_time(self, runs):
        project = runs[0].queue.project
        start = timezone.now().replace(second=0, microsecond=0) - timedelta(days=10)
        # As an import brings them: the later number has the earlier time.
        for seq in range(1, project.head_seq + 1):
            at = start + timedelta(hours=project.head_seq - seq)
            Entry.objects.filter(seq=seq).update(at=at)

        def moment(hours):
            return (start + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M")

        head = project.head_seq
        found = numbers(audit_of(project, f"?since={moment(2)}&until={moment(5)}"))
        assert found == [head - 5, head - 4, head - 3, head - 2]
        found = numbers(audit_of(project, f"?since={moment(2)}&until={moment(5)}&seq={head - 4}"))
        assert found == [head - 4, head - 3, head - 2]
        assert numbers(audit_of(project, f"?until={moment(0)}")) == [head]

    @pytest.mark.parametrize(
        "query, why",
        [
            ("?kind=secret", "Select a valid choice"),
            ("?run=nothing", "is not a valid UUID"),
            ("?voter=zoe", "No voter has that name"),
            ("?item=1", "Choose the run"),
            ("?item=00000000", "There is no such item"),
            ("?item=%00", "Null characters"),
            ("?since=yesterday", "Enter a valid date/time"),
            ("?seq=0", "greater than or equal to 1"),
            ("?seq=99999999999999999999", "less than or equal to"),
        ],
    )
    def test_what_cannot_be_searched_for_is_said(self, runs, query, why):
        project = runs[0].queue.project
        response = member_client(project, "owner").get(address(project, query))
        assert response.status_code == 422
        assert why in text_of(response)
        assert numbers(response) == []

    def test_a_name_that_several_have_offers_them(self, runs):
        project = runs[0].queue.project
        response = member_client(project, "owner").get(address(project, "?voter=bob&kind=vote"))
        assert response.status_code == 422
        assert "Several voters have that name" in text_of(response)
        assert f'"?kind=vote&amp;voter={self.bob.pseudonym}"' in response.content.decode()

    def test_of_another_project_nothing_is_found(self, runs):
        other = make_run()
        voter, run = make_voter(other, name="Zoe"), runs[0]
        client = member_client(run.queue.project, "owner")
        for query in (
            f"?run={other.pk}",
            f"?voter={voter.pseudonym}",
            f"?item={pairs_of(other)[0].pk}",
        ):
            assert client.get(address(run.queue.project, query)).status_code == 422, query


@pytest.mark.parametrize("query", ["?", "?kind=vote", "?run=RUN", "?since=2020-01-01T00:00"])
def test_pages_follow_each_other_without_a_gap(query):
    run = make_run(pairs=60, votes_wanted=9)
    project, ann = run.queue.project, make_voter(run, name="Ann")
    make_many_votes(run, [(ann, pair, "A") for pair in pairs_of(run)])
    seal_all(project)
    client = member_client(project, "owner")
    seen, url = [], address(project, query.replace("RUN", str(run.pk)))
    while url:
        response = client.get(url)
        seen += numbers(response)
        older = response.context["older"]
        url = older and address(project, older)
    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) == (60 if "vote" in query else 120)


def test_it_costs_the_same_at_one_and_at_many():
    def cost(size):
        run = make_run(pairs=size, votes_wanted=9)
        project, ann = run.queue.project, make_voter(run, name="Ann")
        make_many_votes(run, [(ann, pair, "A") for pair in pairs_of(run)])
        curator = make_voter(run, name="Curator")
        decide(pairs_of(run)[0].pk, "exclude", curator, after=None)
        change_quality(project, {"min_votes": 5}, curator)
        seal_all(project)
        client = member_client(project, "owner")
        pages = (
            address(project),
            address(project, f"?run={run.pk}&voter=Ann&since=2020-01-01T00:00"),
        )
        # What is read for the first time is noted.
        for page in pages:
            client.get(page)
        return [queries_of(client, page) for page in pages]

    # A page without verdicts has no judges to name.
    assert all(many <= one for one, many in zip(cost(1), cost(80), strict=True))


INDEXES = {
    "kind=erasure": "entry_kinds",
    "run=RUN": "entry_sealed_votes entry_of_queue",
    "voter=Ann": "entry_of_voter",
    "until=2020-01-01T00:00": "entry_votes_in_time entry_in_time",
}


@pytest.mark.parametrize("query", INDEXES)
def test_what_is_searched_for_is_read_from_an_index(query):
    run = make_run()
    make_voter(run, name="Ann")
    data = dict(part.split("=") for part in query.replace("RUN", str(run.pk)).split("&"))
    form = AuditForm(run.queue.project, data)
    assert form.is_valid()
    with CaptureQueriesContext(connection) as queries:
        page_of(form)
    used = []
    for query_made in queries:
        sql = query_made["sql"]
        if "ORDER BY" in sql and "LIMIT" in sql:
            plan = plan_of(sql)
            assert "USE TEMP B-TREE" not in plan, plan
            used += re.findall(r"INDEX (\w+)", plan)
    assert used == INDEXES[query].split()


class TestBlindness:
    def scene(self):
        """A curator who was handed a pair and has not voted; others have, on both."""
        run = make_run(pairs=2, votes_wanted=9, says=[["A", "B"], ["A", "B"]])
        project = run.queue.project
        client = member_client(project, "curator")
        me = voter_of_user(project, Member.objects.get(role="curator").user)
        until = timezone.now() + timedelta(minutes=1)
        Assignment.objects.create(voter=me, item=pairs_of(run)[0], leased_until=until)
        for pair in pairs_of(run):
            cast = make_vote(make_voter(run, name="Ann"), pair, "B")
            Entry.objects.filter(uid=cast.uid).update(comment="so much better")
        seal_all(project)
        return run, client, me

    def test_what_was_said_of_an_item_that_is_open_to_me_is_closed(self):
        run, client, me = self.scene()
        response = client.get(address(run.queue.project))
        for line in response.context["lines"]:
            assert line.is_closed
            assert "Ann" not in line.words
        assert "so much better" not in text_of(response)
        assert not Exposure.objects.filter(voter=me).exists()

    def test_it_opens_with_my_vote(self):
        run, client, me = self.scene()
        for pair in pairs_of(run):
            make_vote(me, pair, "A")
        text = text_of(client.get(address(run.queue.project)))
        assert "shown once you have" not in text
        assert "so much better" in text

    def test_who_votes_in_this_browser_is_kept_blind_too(self):
        run = make_run(votes_wanted=9)
        project = run.queue.project
        guest = make_voter(run)
        client = member_client(project, "owner")
        client.cookies.update(voter_client(guest).cookies)
        assert all(line.is_closed for line in client.get(address(project)).context["lines"])

    def test_what_was_read_is_not_blind_later(self):
        run = make_run(votes_wanted=9)
        project, [pair] = run.queue.project, pairs_of(run)
        member_client(project, "curator").get(address(project))
        me = Voter.objects.get(user__username="curator")
        assert Exposure.objects.filter(voter=me, item=pair).exists()
        vote = make_vote(me, pair)
        seal_all(project)
        assert entry_of(vote).unblinded


def test_changes_are_listed_with_who_made_them():
    run = make_run()
    project = run.queue.project
    client = member_client(project, "owner")
    rename(project, "Better", Member.objects.get().user)
    text = text_of(client.get(address(project, "?show=changes")))
    assert "Renamed from “Project” to “Better”. owner " in text
    one = queries_of(client, address(project, "?show=changes"))
    for number in range(60):
        rename(project, f"Name {number}", Member.objects.get().user)
    assert queries_of(client, address(project, "?show=changes")) == one
