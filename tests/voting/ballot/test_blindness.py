"""Every byte a voter's browser gets before the vote: no generator, no verdict, nobody's vote.

The secrets are words that occur nowhere else; what the browser gets is decoded as far as it can be:
HTML entities, base64 of ballots and cookies, and the bytes of the pictures.
"""

import base64
import html
import re
import zlib
from datetime import timedelta
from typing import ClassVar
from urllib.parse import unquote

import pytest
from django.core import signing
from django.test import Client
from django.utils import timezone

from judge_eval.models import RunEvent, Verdict
from tests.helpers.pages import HTMX, ballots_in, token_of
from tests.makers import (
    entry_of,
    key_client,
    make_invite,
    make_key,
    make_picture,
    make_run,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    voter_client,
)
from voting.ballot.assignment import ballot_for
from voting.ballot.services import cast_vote, flag
from voting.items.kinds import VoteDetails
from voting.models import Inference, Item
from voting.people.voters import invite_token

pytestmark = pytest.mark.django_db
of_each_kind = pytest.mark.parametrize("kind", ["pairs", "items"])


class Study:
    """A run of texts and drawings, on which judges and others have had their say."""

    def __init__(self):
        self.run = make_run(
            pairs=4, votes_wanted=5, names=["zwickau-judge", "yverdon-judge"], shared=True
        )
        pairs = pairs_of(self.run)
        make_picture("red", inferences=[pairs[0].a])
        make_picture("blue", inferences=[pairs[0].b])
        for name, number in (("generator-0", "a"), ("generator-1", "b")):
            Inference.objects.filter(generator=name).update(
                generator=f"xanten-model-{number}",
                metadata={"model": "wismar-weights"},
                tags=["ulm-tag"],
            )
        Verdict.objects.update(feedback="villach feedback", score_a=7.25, score_b=3.75)
        self.others = [make_voter(self.run, name="Tuttlingen Tester") for _ in range(2)]
        self.votes = [make_vote(other, pairs[0], "both_bad") for other in self.others]
        seal_all(self.run.queue.project)
        self.votes.append(make_vote(self.others[0], pairs[1], "tie"))
        flag(self.others[0], pairs[1].pk, "unsafe", "salzburg comment")
        self.pairs = pairs

    # What a vote says, and how many pictures a voter sees.
    said: ClassVar = {"choice": "left"}
    otherwise: ClassVar = {"choice": "right"}
    pictures = 2

    def secrets(self):
        names = (
            "zwickau yverdon xanten wismar ulm-tag villach tuttlingen salzburg 7.25 3.75".split()
        )
        people = [str(v.pk) for v in self.others] + [v.pk.hex for v in self.others]
        votes = [str(v.uid) for v in self.votes] + [entry_of(v).hash for v in self.votes]
        hashes = [
            bytes(value).hex() if isinstance(value, bytes | memoryview) else value
            for value in votes
        ]
        return names + people + [v.pseudonym for v in self.others] + [h for h in hashes if h]


class ItemStudy(Study):
    """A run of single outputs that pass or are flagged, on which others have had their say."""

    said: ClassVar = {"choice": "pass"}
    otherwise: ClassVar = {"category": "format"}
    pictures = 1

    def __init__(self):
        self.run = make_single_run(
            outputs=["One", "Two", "Three"],
            says=[["pass", "flag"]] * 3,
            names=["zwickau-judge", "yverdon-judge"],
            votes_per_item=5,
            shared=True,
            options={"graded": False, "flag_categories": ["format", "other"], "extra_votes": 2},
        )
        self.pairs = pairs_of(self.run)
        make_picture("red", inferences=[self.pairs[0].a])
        Inference.objects.update(generator="xanten-model", metadata={"model": "wismar-weights"})
        Verdict.objects.update(feedback="villach feedback", score_a=7.25)
        self.others = [make_voter(self.run, name="Tuttlingen Tester") for _ in range(2)]
        flagged = VoteDetails(value=0, category="other", comment="salzburg comment")
        passed = VoteDetails(value=1_000_000, comment="salzburg comment")
        self.votes = [self._cast(self.others[0], "flag", flagged)]
        seal_all(self.run.queue.project)
        self.votes.append(self._cast(self.others[1], "pass", passed))

    def _cast(self, voter, choice, further):
        ballot = ballot_for(voter, self.run.queue, self.pairs[0])
        return cast_vote(ballot, choice, details=further)


def decoded(text):
    """A text, and whatever it holds in base64, with and without compression."""
    yield text
    yield html.unescape(text)
    yield unquote(text)
    for word in set(re.findall(r"[A-Za-z0-9_+/=-]{8,}", html.unescape(text))):
        for piece in {word, *word.split(":"), word.lstrip(".")}:
            padded = piece + "=" * (-len(piece) % 4)
            try:
                raw = base64.urlsafe_b64decode(padded)
            except ValueError:
                continue
            yield raw.decode("latin-1")
            try:
                yield zlib.decompress(raw).decode("latin-1")
            except zlib.error:
                continue


def everything_in(response):
    """The status line, headers, cookies and body of an answer, as text."""
    body = b"".join(response.streaming_content) if response.streaming else response.content
    headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    cookies = response.cookies.output()
    return "\n".join([str(response.status_code), headers, cookies, body.decode("latin-1")])


def assert_blind(study, responses, *, more=(), known=()):
    secrets = [secret.lower() for secret in [*study.secrets(), *more] if secret not in known]
    for address, response in responses.items():
        for text in decoded(everything_in(response)):
            found = [secret for secret in secrets if secret in text.lower()]
            assert not found, f"{address} gives away {found}"


def study_of(kind):
    return {"pairs": Study, "items": ItemStudy}[kind]()


def addresses_before_the_vote(study):
    run, pairs = study.run, study.pairs
    vote_page, board = f"/vote/{run.queue_id}/", f"/runs/{run.pk}/"
    return [
        f"/join/{invite_token(make_invite(run))}/",
        vote_page,
        f"{vote_page}pairs",
        f"{vote_page}pairs?have={pairs[0].pk}",
        f"{vote_page}mine",
        *[f"/reveal/{vote.uid}/" for vote in study.votes],
        "/",
        "/login/",
        "/runs/",
        board,
        f"{board}pairs/",
        f"{board}vote/",
        *[f"{board}pairs/{pair.pk}/" for pair in pairs],
        "/api/openapi.json",
        f"/api/runs/{run.pk}/judge-eval/pending",
        f"/api/runs/{run.pk}/judge-eval/results",
        "/healthz",
        "/admin/login/",
        "/nowhere/",
        f"/vote/{run.pk}/",
    ]


@of_each_kind
def test_nothing_that_a_voter_can_get_gives_anything_away(kind):
    study = study_of(kind)
    client = voter_client(make_voter(study.run))
    addresses = addresses_before_the_vote(study)
    responses = {address: client.get(address) for address in addresses}
    responses |= {f"htmx {a}": client.get(a, headers=HTMX) for a in addresses}
    shown = "".join(everything_in(response) for response in responses.values())
    pictures = set(re.findall(r"/pictures/[0-9a-f]{64}\.png", shown))
    assert len(pictures) == study.pictures
    responses |= {address: client.get(address) for address in pictures}
    assert_blind(study, responses)
    assert client.get(f"/vote/{study.run.queue_id}/").status_code == 200


@of_each_kind
def test_nothing_that_is_refused_gives_anything_away(kind):
    study = study_of(kind)
    voter = make_voter(study.run)
    client = voter_client(voter)
    other_token = token_of(study.others[0], study.pairs[0])
    own_token = token_of(voter, study.pairs[0])
    vote_page = f"/vote/{study.run.queue_id}/"
    posts = {
        "another's ballot": ("ballot", {"ballot": other_token, **study.said}),
        "no choice": ("ballot", {"ballot": own_token}),
        "forged": ("ballot", {"ballot": own_token[:-1], **study.said}),
        "nothing to undo": ("undo", {}),
        "skip": ("skip", {"ballot": own_token}),
        "flag": ("flag", {"ballot": own_token, "category": "other"}),
        "strange flag": ("flag", {"ballot": own_token, "category": "?"}),
    }
    responses = {
        name: client.post(f"{vote_page}{action}", data) for name, (action, data) in posts.items()
    }
    assert_blind(study, responses)


@of_each_kind
def test_the_answer_to_a_vote_gives_away_nothing_but_that_it_was_recorded(kind):
    """The verdicts come with the reveal, which is asked for after the vote."""
    study = study_of(kind)
    voter = make_voter(study.run)
    client = voter_client(voter)
    data = {"ballot": token_of(voter, study.pairs[1]), **study.said}
    url = f"/vote/{study.run.queue_id}/ballot"
    responses = {"vote": client.post(url, data, headers=HTMX)}
    responses["again"] = client.post(url, data, headers=HTMX)
    responses["other"] = client.post(url, data | study.otherwise, headers=HTMX)
    responses["pairs"] = client.get(f"/vote/{study.run.queue_id}/pairs")
    assert_blind(study, responses)


def test_after_a_vote_the_other_pairs_stay_blind():
    study = Study()
    voter = make_voter(study.run)
    make_vote(voter, study.pairs[0])
    client = voter_client(voter)
    board = f"/runs/{study.run.pk}/"
    closed = [f"/vote/{study.run.queue_id}/", f"/vote/{study.run.queue_id}/mine", board]
    closed += [f"{board}pairs/{pair.pk}/" for pair in study.pairs[1:]]
    assert_blind(study, {address: client.get(address) for address in closed})


def test_a_key_without_the_scope_gets_no_verdicts():
    study = Study()
    _, token = make_key("read", "vote")
    client = Client(headers={"Authorization": f"Bearer {token}"})
    response = client.get(f"/api/runs/{study.run.pk}/judge-eval/pending")
    assert response.json()["tasks"]
    assert_blind(study, {"pending": response})


def test_ballots_hold_identifiers_and_nothing_else():
    study = Study()
    voter = make_voter(study.run)
    response = voter_client(voter).get(f"/vote/{study.run.queue_id}/")
    tokens = ballots_in(response)
    assert tokens
    for token in tokens:
        *identifiers, rubric, left, choices, kind, options = signing.loads(
            token, salt="voting.ballot"
        )
        assert [len(identifier) for identifier in identifiers] == [32] * 5
        assert (rubric, choices) == (study.run.queue.rubric_id, ["A", "B", "tie", "both_bad"])
        assert (kind, options) == ("comparison", {})
        assert left in ("A", "B")


def test_the_search_itself_finds_what_is_there():
    """Without this the other tests could pass by looking at nothing."""
    study = Study()
    voter = make_voter(study.run)
    vote = make_vote(voter, study.pairs[0])
    seal_all(study.run.queue.project)
    revealed = voter_client(voter).get(f"/reveal/{vote.uid}/")
    for word in ("zwickau", "xanten", "villach", "7.25"):
        assert word in everything_in(revealed).lower()
    with pytest.raises(AssertionError, match="gives away"):
        assert_blind(study, {"reveal": revealed})
    hidden = signing.dumps({"judge": "zwickau-judge"}, compress=True)
    assert any("zwickau" in text for text in decoded(f'value="{hidden}"'))


def test_sides_say_nothing_about_generators():
    """Over many pairs each generator stands on the left about as often as on the right."""
    run = make_run(pairs=200)
    voter = make_voter(run)
    lefts = 0
    for pair in Item.objects.filter(queue=run.queue).select_related("a", "queue"):
        ballot = signing.loads(token_of(voter, pair), salt="voting.ballot")
        lefts += ballot[6] == "A"
    # 200 fair coins leave 55..145 once in 10**10.
    assert 55 < lefts < 145


def test_a_key_that_votes_blindly_is_told_what_it_did_itself_and_no_standings():
    study = Study()
    client = key_client(make_key("read", "vote")[1])
    of_run = f"/api/runs/{study.run.pk}"
    addresses = [of_run, f"{of_run}/events", "/api/runs"]
    RunEvent.objects.update(at=timezone.now() - timedelta(seconds=1))
    responses = {address: client.get(address) for address in addresses}
    assert {response.status_code for response in responses.values()} == {200}
    rows = [pk for pair in study.pairs for pk in (pair.pk, pair.a_id, pair.b_id)]
    assert_blind(study, responses, more=map(str, rows), known=("zwickau", "yverdon"))
    assert client.get(f"{of_run}/judge-eval/results").status_code == 403
    assert client.get(f"{of_run}/findings").status_code == 403
    assert client.get(f"{of_run}/export").status_code == 403
    pending = client.get(f"{of_run}/judge-eval/pending").json()
    assert "verdicts" not in pending["tasks"][0]
    assert pending["mine"] == {"votes": 0, "left": len(pending["tasks"])}
    votes = len(pending["tasks"])
    for task in pending["tasks"]:
        body = {"task_id": task["id"], "winner": "A"}
        voted = client.post(f"{of_run}/judge-eval/vote", body, content_type="application/json")
        assert voted.status_code == 200
    pending = client.get(f"{of_run}/judge-eval/pending").json()
    assert pending["mine"] == {"votes": votes, "left": 0}
    assert client.get(f"{of_run}/judge-eval/results").status_code == 200
