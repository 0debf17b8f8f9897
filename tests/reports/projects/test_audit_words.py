"""What an audit says of parameters reads into JSON, as each database does in its own way."""

import pytest
from django.utils import timezone

from reports.quality.parameters import change as change_quality
from tests.helpers.pages import text_of
from tests.makers import make_run, make_voter, member_client, pairs_of, seal_all
from voting.curating.services import change_for_all, decide, exclude_voter, reverse
from voting.ledger.decisions import Rules
from voting.models import Entry, Member
from voting.people.voters import erase, voter_of_user

pytestmark = pytest.mark.django_db


def audit_of(project, query=""):
    response = member_client(project, "owner").get(f"/projects/{project.pk}/audit/{query}")
    assert response.status_code == 200, text_of(response)
    return response


def words_of(project, kind):
    return [line.words for line in audit_of(project, f"?kind={kind}").context["lines"]]


def test_decisions_parameters_and_erasures_are_said_in_plain_words():
    run = make_run(votes_wanted=9)
    project, [pair] = run.queue.project, pairs_of(run)
    member_client(project, "owner")
    curator = voter_of_user(project, Member.objects.get().user)
    ann = make_voter(run, name="Ann")
    made = decide(pair.pk, "exclude", curator, "a duplicate", after=None)
    seal_all(project)
    reverse(made.uid, curator)
    exclude_voter(ann.pk, run.queue, curator, "a bot", after=None)
    seal_all(project)
    assert words_of(project, "decision") == [
        f"owner excludes all votes of Ann ({ann.pseudonym})",
        "owner takes back the decision of entry 2",
        "owner excludes it",
    ]
    assert "“a duplicate”" in text_of(audit_of(project, "?kind=decision"))
    change_quality(project, {"min_votes": 5}, curator)
    change_for_all(run.queue, Rules(votes_per_item=2, overlap_share=0, overlap_votes=3), curator)
    change_quality(project, {"min_votes": 7, "initial_score": 0.25}, curator)
    change_for_all(run.queue, Rules(votes_per_item=4, overlap_share=0, overlap_votes=3), curator)
    seal_all(project)
    by = f"by owner ({curator.pseudonym})"
    assert [words.replace("\xa0", " ") for words in words_of(project, "parameters")] == [
        f"Votes wanted per item: 2 → 4, {by}",
        f"Quality score: Initial score 50 % → 25 %; Minimum votes 5 → 7, {by}",
        f"Votes wanted per item: 2, {by}",
        f"Quality score: Minimum votes 3 → 5, {by}",
    ]
    erase(ann)
    seal_all(project)
    [erased] = words_of(project, "erasure")
    assert erased.startswith(f"The person behind {ann.pseudonym} was forgotten")
    assert "Ann" not in text_of(audit_of(project))


def test_what_an_import_brought_breaks_nothing():
    run = make_run()
    project, [pair] = run.queue.project, pairs_of(run)
    about = {"project": project, "queue": run.queue, "at": timezone.now()}
    payloads = {
        "verdicts": [{}, {"verdicts": 3}, {"verdicts": [1, {"judge": [2], "winner": 4}]}],
        "decision": [{"action": {"x": 1}, "by": ["y"]}, {}],
        "parameters": [
            {"quality": 3},
            {"quality": "abc"},
            {"quality": {"min_votes": "x"}},
            {"import": "begins"},
            {"import": {"x": 1}},
            {"groups": 3},
            {"groups": {}},
            {"groups": {"3f0a": "nurses", "9b1c": ""}},
            {"something": "new"},
            {"votes_wanted": 3},
            {"votes_wanted": {"votes_per_item": "no"}},
            {"votes_wanted": {"votes_per_item": 3}},
        ],
    }
    rows = [(kind, payload) for kind, some in payloads.items() for payload in some]
    for seq, (kind, payload) in enumerate(rows, start=100):
        item = pair if kind == "verdicts" else None
        entry = Entry(kind=kind, payload=payload, item=item, seq=seq, hash=b"x" * 32, **about)
        entry.save()
    assert len(audit_of(project).context["lines"]) == len(rows) + 1
    words = words_of(project, "parameters")
    assert "Groups of voters: 3f0a to nurses and 9b1c to none" in words
    assert "Parameters were set" in words
