"""Signed ballots: read back as issued, and nothing else is taken for one."""

from dataclasses import replace
from uuid import UUID

import pytest
from django.core import signing
from django.core.signing import TimestampSigner
from hypothesis import given
from hypothesis import strategies as st

from voting.ballot.signed_form import MAX_AGE, Ballot, BallotInvalid, issue, read
from voting.items.kinds import AnswerInvalid

BALLOT = Ballot(
    uid=UUID(int=1),
    project=UUID(int=2),
    queue=UUID(int=3),
    item=UUID(int=4),
    voter=UUID(int=5),
    rubric=6,
    left="B",
    choices=("A", "B", "both_bad"),
)

ballots = st.builds(
    Ballot,
    uid=st.uuids(),
    project=st.uuids(),
    queue=st.uuids(),
    item=st.uuids(),
    voter=st.uuids(),
    rubric=st.integers(1, 2**31),
    left=st.sampled_from(["A", "B"]),
    choices=st.lists(st.sampled_from(["A", "B", "tie", "both_bad"]), unique=True, min_size=1).map(
        tuple
    ),
)


@given(ballots)
def test_a_ballot_is_read_as_it_was_issued(ballot):
    assert read(issue(ballot)) == ballot


@given(st.integers(0, 400), st.integers(1, 127))
def test_an_altered_ballot_is_refused(place, bits):
    token = issue(BALLOT)
    place %= len(token)
    altered = token[:place] + chr(ord(token[place]) ^ bits) + token[place + 1 :]
    with pytest.raises(BallotInvalid, match="not issued here"):
        read(altered)


@given(st.text())
def test_any_other_text_is_refused(token):
    with pytest.raises(BallotInvalid):
        read(token)


def test_a_signature_for_another_purpose_is_no_ballot():
    with pytest.raises(BallotInvalid):
        read(signing.dumps(["0" * 32] * 5 + [1, "A", "A"], salt="voting.voter"))


def test_a_ballot_lives_a_day(monkeypatch):
    now = TimestampSigner().timestamp()
    token = issue(BALLOT)
    seconds = int(MAX_AGE.total_seconds())
    monkeypatch.setattr("django.core.signing.time.time", _clock(now, seconds - 5))
    assert read(token) == BALLOT
    monkeypatch.setattr("django.core.signing.time.time", _clock(now, seconds + 5))
    with pytest.raises(BallotInvalid, match="a day old"):
        read(token)


def _clock(base62_now, later):
    now = signing.b62_decode(base62_now)
    return lambda: now + later


def test_a_button_is_what_it_says_when_sides_are_swapped():
    pressed = ("left", "right", "both_bad")
    assert [chosen(BALLOT, position) for position in pressed] == ["B", "A", "both_bad"]
    assert chosen(replace(BALLOT, left="A"), "left") == "A"


def chosen(ballot, position):
    return ballot.answer({"choice": position}).choice


@pytest.mark.parametrize(
    "ballot, pressed, offered",
    [(BALLOT, "tie", "Right, Left, Both bad"), (replace(BALLOT, choices=("tie",)), "left", "Tie")],
)
def test_what_the_ballot_does_not_offer_is_no_choice(ballot, pressed, offered):
    with pytest.raises(AnswerInvalid, match=f"choice: '{pressed}' must be one of {offered}"):
        chosen(ballot, pressed)


def test_a_ballot_of_an_earlier_version_is_refused():
    token = signing.TimestampSigner(salt="voting.ballot").sign_object(
        ["0" * 32] * 5 + [1, "A", "A,B"]
    )
    with pytest.raises(BallotInvalid):
        read(token)


def test_a_ballot_fits_the_form():
    longest = replace(BALLOT, rubric=2**63, choices=("A", "B", "tie", "both_bad"))
    assert len(issue(longest)) < 2000
