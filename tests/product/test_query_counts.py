"""No page and no endpoint asks the database more often because there is more in it."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from judge_eval.imports.guesses import ColumnFacts
from judge_eval.imports.import_report import ImportReport
from judge_eval.imports.preview import Preview
from judge_eval.imports.row_models import RowError
from judge_eval.models import Findings, Import, Judge
from tests.helpers.pages import HTMX, queries_of, token_of
from tests.helpers.run_findings import compute
from tests.makers import (
    key_client,
    make_invite,
    make_key,
    make_many_votes,
    make_project,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.models import Assignment, Voter
from voting.people.voters import invite_token

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

PART = "generator:generator-0"
ITEMS = "accuracy=85&noise=20&humans=3&categories=3&allowed=0.20"


class Study:
    """A run with so many pairs, votes on its first pair, judges, invites and leases."""

    def __init__(self, size):
        judges = 2 + size // 500
        self.run = make_run(pairs=size + 1, votes_wanted=2 * size + 9, judges=judges, shared=True)
        self.voter = make_voter(self.run)
        self.pairs = pairs_of(self.run)
        self.vote = make_vote(self.voter, self.pairs[0])
        self._many_votes(size)
        seal_all(self.run.queue.project)
        Assignment.objects.bulk_create(
            Assignment(voter=self.voter, item=pair, leased_until=timezone.now(), skips=1)
            for pair in self.pairs[:size]
        )
        for number in range(size // 20 + 1):
            invite = make_invite(self.run, label=str(number), max_voters=5)
        self.invite = invite_token(invite)
        # Not a baseline: one that people can disagree with.
        Judge.objects.filter(run=self.run, position=1).update(provider="default")
        for part in ("", PART):
            assert compute(self.run, part).data["disputed"]

    def _many_votes(self, size):
        voters = Voter.objects.bulk_create(
            Voter(project=self.run.queue.project) for _ in range(size)
        )
        mine = [(self.voter, pair) for pair in self.pairs[1:size]]
        theirs = [(voter, self.pairs[0]) for voter in voters]
        make_many_votes(
            self.run, [(*vote, "AB"[number % 2]) for number, vote in enumerate(mine + theirs)]
        )

    def pages(self):
        vote_page, board = f"/vote/{self.run.queue_id}/", f"/runs/{self.run.pk}/"
        api_of_run = f"/api/runs/{self.run.pk}/judge-eval/"
        voter, owner = voter_client(self.voter), user_client()
        script = key_client(make_key("read", "verdicts")[1])
        return {
            "vote page": (voter, vote_page),
            "more pairs": (voter, f"{vote_page}pairs?have={self.pairs[0].pk}"),
            "my votes": (voter, f"{vote_page}mine"),
            "reveal": (voter, f"/reveal/{self.vote.uid}/"),
            "board": (owner, board),
            "board, a part": (owner, f"{board}?part={PART}"),
            "pairs": (owner, f"{board}pairs/"),
            "pairs, disputed": (owner, f"{board}pairs/?sort=disagreement&part={PART}"),
            "pair among the disputed": (
                owner,
                f"{board}pairs/{self.pairs[0].pk}/?sort=disagreement",
            ),
            "Alt-Test": (owner, f"{board}alt-test/"),
            "Alt-Test, a part": (owner, f"{board}alt-test/?part={PART}"),
            "items needed": (owner, f"{board}alt-test/items/?{ITEMS}"),
            "models": (owner, f"{board}models/"),
            "models, a part": (owner, f"{board}models/?part={PART}"),
            "findings": (script, f"/api/runs/{self.run.pk}/findings"),
            "findings, a part": (script, f"/api/runs/{self.run.pk}/findings?part={PART}"),
            "run by API": (script, f"/api/runs/{self.run.pk}"),
            "table": (owner, f"{board}tables/board.csv"),
            "chart": (owner, f"{board}charts/agreement.svg"),
            "pair": (owner, f"{board}pairs/{self.pairs[0].pk}/"),
            "data": (owner, f"{board}data/"),
            "people": (owner, f"{board}people/?sort=agreement"),
            "deletion": (owner, f"{board}delete/"),
            "home of a voter": (voter, "/"),
            "invite": (Client(), f"/join/{self.invite}/"),
            "pending": (script, f"{api_of_run}pending?limit=200"),
            "pending, next page": (script, f"{api_of_run}pending?limit=200"),
            "results": (script, f"{api_of_run}results"),
        }

    def counts(self):
        # That somebody looks at figures is noted now and then: not just while this is counted.
        Findings.objects.update(requested_at=timezone.now())
        # So is how far a voter has come.
        voter_client(self.voter).get(f"/vote/{self.run.queue_id}/")
        pages = self.pages()
        # And which verdicts somebody reads for the first time.
        for client, url in pages.values():
            client.get(url)
        costs = {name: queries_of(client, url) for name, (client, url) in pages.items()}
        return costs | {"board, live": queries_of(*pages["board"], headers=HTMX)}


def test_pages_and_endpoints_cost_the_same_at_1_and_at_1000_rows():
    small, large = Study(1), Study(1000)
    few, many = small.counts(), large.counts()
    # Figures over fewer than ten items with votes need to know who reads them.
    few_items = ["people", "chart", "table", "items needed", "results", "findings"]
    few_items += ["findings, a part", "board", "board, a part", "models", "models, a part"]
    few_items += ["Alt-Test", "Alt-Test, a part", "board, live"]
    assert {name for name in few if few[name] != many[name]} <= {*few_items}
    assert all(many[name] <= few[name] for name in few_items)


def test_the_lists_cost_the_same_however_long():
    client, pages = user_client(), ("/runs/", "/runs/?q=run&sort=votes", "/")
    make_run()
    few = [queries_of(client, page) for page in pages]
    for _ in range(40):
        make_run()
    assert [queries_of(client, page) for page in pages] == few


def test_the_pages_of_imports_cost_the_same_however_many_and_however_wide():
    client, user = user_client(), User.objects.get(username="owner")

    def costs(number):
        columns = {f"column {n}": ["A", "x"] for n in range(number)}
        facts = dict.fromkeys(columns, ColumnFacts())
        seen = Preview(columns=columns, facts=facts).model_dump(mode="json")
        form = {"files": ["v.csv"], "mapping": None, "options": {}, "found": seen, "preview": seen}
        for _ in range(number):
            job = Import.objects.create(state="draft", form=form, user=user)
            make_project()
        report = ImportReport(errors=[RowError("v.csv", n, "vote", "wrong") for n in range(number)])
        done = Import.objects.create(
            state="done", form=form, user=user, report=report.model_dump(mode="json")
        )
        pages = ("/runs/import/", f"/imports/{job.pk}/", f"/imports/{done.pk}/")
        return [queries_of(client, page) for page in pages]

    costs(1)  # what stays in memory is asked for once
    assert costs(1) == costs(40)


def test_the_start_costs_nothing():
    # Session, user, the projects in which something waits for a curator, and how much of it is
    # nothing that the curator has still to vote on.
    assert queries_of(user_client(), "/login/") <= 4


def posts_of(size):
    """Return what each kind of POST costs in a run in which the voter has so many votes."""
    run = make_run(pairs=size + 2, votes_wanted=9)
    voter, pairs = make_voter(run), pairs_of(run)
    for pair in pairs[:size]:
        make_vote(voter, pair)
    client, script = voter_client(voter), key_client(make_key("vote")[1])
    url, ballot = f"/vote/{run.queue_id}", {"ballot": token_of(voter, pairs[-1])}
    posts = {
        "vote": (client, f"{url}/ballot", ballot | {"choice": "left"}),
        "undo": (client, f"{url}/undo", {}),
        "skip": (client, f"{url}/skip", ballot),
        "flag": (client, f"{url}/flag", ballot | {"category": "other"}),
        "API": (script, f"/api/runs/{run.pk}/judge-eval/vote", None),
    }
    body = {"task_id": str(pairs[0].pk), "winner": "A"}
    costs = {}
    for name, (browser, address, data) in posts.items():
        with CaptureQueriesContext(connection) as queries:
            if data is None:
                response = browser.post(address, body, content_type="application/json")
            else:
                response = browser.post(address, data, headers=HTMX)
        assert response.status_code < 300, name
        costs[name] = len(queries)
    return costs


def test_posts_cost_the_same_however_many_votes_there_are():
    few = posts_of(1)
    assert posts_of(60) == few
    assert few["vote"] == 1


def test_a_key_that_has_voted_before_votes_with_one_insert():
    run = make_run(pairs=2)
    script = key_client(make_key("vote")[1])
    url, costs = f"/api/runs/{run.pk}/judge-eval/vote", []
    for pair in pairs_of(run):
        body = {"task_id": str(pair.pk), "winner": "A"}
        with CaptureQueriesContext(connection) as queries:
            assert script.post(url, body, content_type="application/json").status_code == 200
        costs.append([query["sql"].split()[0] for query in queries])
    # The others look up the key, its run, the pair and its voter.
    assert costs[1] == ["SELECT", "INSERT"]


def test_waiting_for_ones_own_votes_is_short(monkeypatch):
    """The API looks whether its own votes are sealed; when no worker seals, it answers anyway."""
    monkeypatch.setattr("judge_eval.runs.api_access.OWN_VOTES_SECONDS", 0)
    run = make_run(pairs=1)
    client = key_client(make_key("read", "vote")[1])
    url = f"/api/runs/{run.pk}/judge-eval/"
    body = {"task_id": str(pairs_of(run)[0].pk), "winner": "A"}
    assert client.post(f"{url}vote", body, content_type="application/json").status_code == 200
    assert client.get(f"{url}results").json()["votes"] == 0
