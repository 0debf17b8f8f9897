"""People vote on items of one output: whatever is asked of them, the vote is in the ledger."""

import pytest

from tests.helpers.pages import ballots_in, token_of
from tests.makers import make_item, make_queue, seal_all, voter_client
from voting.curating.services import decide, reverse
from voting.ledger import chain, ledger
from voting.ledger.decisions import EXCLUDED
from voting.models import Entry, Voter
from voting.people.voters import erase

pytestmark = pytest.mark.django_db

PASS_FLAG = ["pass", "flag"]
GRADED = {"graded": True}
CRITERIA = {
    "criteria": [
        {"name": "safe", "gate": True, "weight": 0},
        {"name": "funny", "graded": True, "weight": 0.6},
        {"name": "short", "weight": 0.4},
    ]
}


class Study:
    """A queue of one item of one output, and one voter."""

    def __init__(self, kind, ballot=(), options=None):
        self.queue = make_queue(kind=kind, ballot=list(ballot), options=options or {})
        self.item = make_item(self.queue)
        self.voter = Voter.objects.create(project=self.queue.project)
        self.client = voter_client(self.voter)
        self.address = f"/vote/{self.queue.pk}/"

    def ballot(self):
        [ballot, *_] = ballots_in(self.client.get(self.address))
        return ballot

    def vote(self, ballot=None, **said):
        fields = {"ballot": ballot or self.ballot(), "elapsed_ms": "900"} | said
        return self.client.post(f"{self.address}ballot", fields, headers={"HX-Request": "true"})

    def sealed(self):
        """Seal, check that a replay finds the same, and return the standing votes."""
        project = self.queue.project
        seal_all(project)
        project.refresh_from_db()
        assert chain.verify(ledger.export(project), project.ledger_head)
        assert ledger.replay(project, write=False) == []
        self.item.refresh_from_db()
        return list(Entry.objects.filter(kind="vote", retracted=False).order_by("seq"))


@pytest.mark.parametrize(
    "kind, ballot, options, said, stored",
    [
        ("pass_flag", PASS_FLAG, {}, {"choice": "pass"}, ("pass", 1_000_000, "", None)),
        (
            *("pass_flag", PASS_FLAG, {}),
            *({"choice": "flag", "category": "unsafe"}, ("flag", 0, "unsafe", None)),
        ),
        ("pass_flag", PASS_FLAG, GRADED, {"value": "0.7"}, ("pass", 700_000, "", None)),
        (
            *("pass_flag", PASS_FLAG, CRITERIA),
            {"criterion.safe": "pass", "criterion.funny": "0.9", "criterion.short": "flag"},
            ("pass", 540_000, "", {"safe": 1.0, "funny": 0.9, "short": 0.0}),
        ),
        (
            *("pass_flag", PASS_FLAG, CRITERIA),
            {"criterion.safe": "flag", "criterion.funny": "1", "criterion.short": "pass"},
            ("flag", 0, "", {"safe": 0.0, "funny": 1.0, "short": 1.0}),
        ),
        (
            *("category", ["on topic", "off topic"], {"task": "topic"}),
            *({"choice": "off topic"}, ("off topic", None, "", {"topic": "off topic"})),
        ),
        ("rating", list("12345"), {}, {"choice": "4"}, ("4", None, "", {"label": 4})),
        (
            *("labels", ["rude", "long", "wrong"], {}),
            *({"choice": "wrong;rude"}, ("rude;wrong", None, "", {"label": ["rude", "wrong"]})),
        ),
        ("labels", ["rude"], {}, {"choice": ""}, ("none", None, "", {"label": []})),
        ("text", [], {}, {"text": " Too long. "}, ("", None, "", {"label": "Too long."})),
    ],
)
def test_a_vote_says_what_was_asked(kind, ballot, options, said, stored):
    study = Study(kind, ballot, options)
    assert study.vote(**said).status_code == 200
    [vote] = study.sealed()
    assert (vote.choice, vote.value, vote.category, vote.labels) == stored
    assert (vote.left_side, study.item.votes) == ("", 1)


@pytest.mark.parametrize(
    "kind, ballot, options, said, field",
    [
        ("pass_flag", PASS_FLAG, {}, {}, "choice"),
        ("pass_flag", PASS_FLAG, {}, {"choice": "A"}, "choice"),
        ("pass_flag", PASS_FLAG, {}, {"choice": "flag", "category": "dull"}, "category"),
        ("pass_flag", PASS_FLAG, {}, {"choice": "pass", "comment": "x" * 2001}, "comment"),
        ("pass_flag", PASS_FLAG, {}, {"choice": "pass", "comment": "a\0b"}, "comment"),
        ("pass_flag", PASS_FLAG, GRADED, {"choice": "pass"}, "value"),
        ("pass_flag", PASS_FLAG, GRADED, {"value": "1.1"}, "value"),
        ("pass_flag", PASS_FLAG, GRADED, {"value": "nan"}, "value"),
        ("pass_flag", PASS_FLAG, CRITERIA, {"criterion.safe": "pass"}, "criterion.funny"),
        ("category", ["a", "b"], {}, {"choice": "c"}, "choice"),
        ("rating", list("12345"), {}, {"choice": "6"}, "choice"),
        ("labels", ["rude"], {}, {"choice": "rude;kind"}, "choice"),
        ("text", [], {}, {"text": "  "}, "text"),
    ],
)
def test_what_the_ballot_does_not_offer_is_refused_in_words(kind, ballot, options, said, field):
    response = Study(kind, ballot, options).vote(**said)
    assert response.status_code == 422
    assert f"{field}:" in response.content.decode()
    assert not Entry.objects.exists()


def test_the_sums_of_graded_votes_are_kept_and_follow_an_undo():
    study = Study("pass_flag", PASS_FLAG, GRADED)
    study.queue.items.update(votes_wanted=3)
    for value in ("0.9", "0.8", "0.6"):
        study.client = voter_client(Voter.objects.create(project=study.queue.project))
        study.vote(value=value)
    study.sealed()
    item = study.item
    assert (item.votes, item.votes_pass, item.value_sum) == (3, 3, 2_300_000)
    variance = item.value_squares / 3 / 1e12 - (item.value_sum / 3 / 1e6) ** 2
    assert variance == pytest.approx(0.015556, abs=1e-6)
    study.client.post(f"{study.address}undo")
    study.sealed()
    assert (item.votes, item.value_sum, item.value_squares) == (2, 1_700_000, 1_450_000_000_000)


def test_the_same_ballot_counts_once_and_another_answer_is_a_conflict():
    study = Study("pass_flag", PASS_FLAG)
    ballot = study.ballot()
    first = study.vote(ballot, choice="flag", category="unsafe")
    assert study.vote(ballot, choice="flag", category="unsafe").content == first.content
    for other in ({"choice": "pass"}, {"choice": "flag", "category": "format"}):
        response = study.vote(ballot, **other)
        assert response.status_code == 409
        assert "You chose Flag on this item before" in response.content.decode()
    [vote] = study.sealed()
    assert (vote.choice, vote.category) == ("flag", "unsafe")


def test_erasing_a_person_leaves_a_chain_that_verifies():
    study = Study("text")
    study.vote(text="My own words", comment="and more")
    study.sealed()
    erase(study.voter)
    [vote] = study.sealed()
    assert (vote.labels, vote.comment, vote.salt) == (None, "", "")


def cast(study, *said):
    """Let somebody new cast each of these votes."""
    for choice in said:
        voter = Voter.objects.create(project=study.queue.project)
        study.client = voter_client(voter)
        # Whatever the page would hand out now.
        assert study.vote(token_of(voter, study.item), choice=choice).status_code == 200


@pytest.mark.parametrize(
    "kind, ballot, said, extra",
    [
        ("category", ["a", "b", "c"], "a", 0),
        ("category", ["a", "b", "c"], "aa", 0),
        ("category", ["a", "b", "c"], "ab", 1),
        ("category", ["a", "b", "c"], "aba", 1),
        ("category", ["a", "b", "c"], "abc", 2),
        ("category", ["a", "b", "c"], "abca", 3),
        ("category", ["a", "b", "c"], "abcab", 3),
        ("pass_flag", PASS_FLAG, ["pass", "flag"], 1),
        # Two thirds, and yet far apart.
        ("pass_flag", PASS_FLAG, ["pass", "flag", "pass"], 2),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_disputed_item_asks_for_more_votes_one_at_a_time(kind, ballot, said, extra, at_once):
    study = Study(kind, ballot, {"extra_votes": 3})
    study.queue.items.update(votes_wanted=2)
    for choice in said:
        cast(study, choice)
        at_once or study.sealed()
    study.sealed()
    study.queue.refresh_from_db()
    assert (study.item.votes_wanted, study.item.extra_votes) == (2 + extra, extra)
    assert study.queue.done == (len(said) >= 2 + extra)


def test_an_undo_settles_a_dispute_and_a_replay_finds_the_same():
    study = Study("pass_flag", PASS_FLAG, {"extra_votes": 3})
    study.queue.items.update(votes_wanted=2)
    cast(study, "pass", "pass", "flag")
    study.sealed()
    assert study.item.extra_votes == 0
    cast(study, "flag")
    study.sealed()
    first = Entry.objects.order_by("seq").first()
    study.client = voter_client(first.voter)
    study.client.post(f"{study.address}undo")
    study.sealed()
    # What was the third vote is now the second: they disagree.
    assert (study.item.votes, study.item.votes_wanted) == (3, 4)
    study.queue.items.update(extra_votes=0, votes_wanted=2)
    assert len(ledger.replay(study.queue.project, write=True)) == 2
    study.sealed()
    assert study.item.votes_wanted == 4


def test_where_no_extra_votes_are_wanted_a_dispute_changes_nothing():
    study = Study("category", ["a", "b"])
    study.queue.items.update(votes_wanted=2)
    cast(study, "a", "b")
    study.sealed()
    assert (study.item.votes_wanted, study.item.extra_votes) == (2, 0)


def test_curators_have_the_last_word_on_how_many_votes_a_disputed_item_wants():
    study = Study("pass_flag", PASS_FLAG, {"extra_votes": 3})
    study.queue.items.update(votes_wanted=2)
    cast(study, "pass", "flag")
    wants = [wants_after(study)]
    latest = None
    for action, votes in (("another_round", 2), ("exclude", None)):
        latest = decide(study.item.pk, action, study.voter, after=latest, votes=votes).uid
        wants.append(wants_after(study))
        latest = reverse(latest, study.voter).uid
        wants.append(wants_after(study))
    assert wants == [(3, 1), (5, 0), (3, 1), (2, 0), (3, 1)]


def test_a_late_vote_on_an_excluded_item_does_not_bring_it_back():
    study = Study("pass_flag", PASS_FLAG, {"extra_votes": 3})
    decide(study.item.pk, "exclude", study.voter, after=None)
    study.sealed()
    cast(study, "pass")
    study.sealed()
    assert (study.item.unusable, study.item.votes) == (EXCLUDED, 0)


def wants_after(study):
    study.sealed()
    return study.item.votes_wanted, study.item.extra_votes
