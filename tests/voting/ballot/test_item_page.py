"""Voting on single items without scripts: what each kind asks, and the words around it."""

import html
import re

import pytest
from django.test import Client

from tests.helpers.pages import HTMX, ballots_in, text_of
from tests.makers import make_invite, make_single_run, make_voter, voter_client
from voting.ballot.questions import posted_of
from voting.items.kinds import Options, kind_of
from voting.models import Entry
from voting.people.voters import invite_token

pytestmark = pytest.mark.django_db

CRITERIA = {
    "criteria": [
        {"name": "safe", "gate": True, "weight": 0},
        {"name": "funny", "graded": True, "weight": 0.6},
        {"name": "short", "weight": 0.4},
    ]
}
WORDS = {
    "kind": "category",
    "ballot": ["pun", "irony", "dark"],
    "options": {"task": "kind of joke"},
}
LABELS = {"kind": "labels", "ballot": ["rude", "long"]}
RATING = {"kind": "rating", "ballot": list("12345")}
TEXT = {"kind": "text", "ballot": []}
# What each kind of study is, and what a voter may answer.
STUDIES = {
    "pass_flag": ({}, {"choice": "pass", "comment": "Made me laugh"}),
    "why": ({}, {"category": "unsafe"}),
    "graded": ({"options": {"graded": True}}, {"value": "0.3", "category": "format"}),
    "criteria": (
        {"options": CRITERIA},
        {"criterion.safe": "pass", "criterion.funny": "0.9", "criterion.short": "flag"},
    ),
    "category": (WORDS, {"choice": "dark"}),
    "rating": (RATING, {"choice": "4", "comment": "Nearly"}),
    "labels": (LABELS, {"choice": ["rude", "long"]}),
    "no labels": (LABELS, {}),
    "text": (TEXT, {"text": "Two lines\nof it"}),
}
each_study = pytest.mark.parametrize("study, said", STUDIES.values(), ids=STUDIES)


class Sitting:
    """One voter before the items of a study, without scripts."""

    def __init__(self, items=2, **study):
        self.run = make_single_run(outputs=[f"Joke {n}" for n in range(items)], **study)
        self.client = voter_client(make_voter(self.run))
        self.address = f"/vote/{self.run.queue_id}/"

    def page(self):
        return self.client.get(self.address)

    def send(self, said, *, action="ballot", page=None):
        ballot = ballots_in(page or self.page())[0]
        return self.client.post(f"{self.address}{action}", {"ballot": ballot, **said}, follow=True)


def first_form(page):
    """The fields of the form on the screen, as a browser without scripts would send them."""
    [form, *_] = re.findall(r'<form class="ballot.*?</form>', page.content.decode(), re.DOTALL)
    tags = re.findall(r"<(?:input|button)[^>]*>", form)
    return form, [dict(re.findall(r'([\w-]+)="([^"]*)"', tag)) | {"tag": tag} for tag in tags]


def filled_in(page):
    """What the form holds before anybody has touched it."""
    form, tags = first_form(page)
    held = {}
    for tag in tags:
        if "checked" in tag["tag"]:
            held.setdefault(tag["name"], []).append(html.unescape(tag["value"]))
    for name, text in re.findall(r'<textarea name="(\w+)".*?>(.*?)</textarea>', form, re.DOTALL):
        if text:
            held[name] = [html.unescape(text)]
    return held


@each_study
def test_a_vote_is_sent_by_a_plain_form_and_an_undo_brings_it_back_as_it_was_said(study, said):
    sitting = Sitting(**study)
    page = sitting.page()
    _, tags = first_form(page)
    fields = {tag.get("name") for tag in tags} | {"text", "comment"}
    assert set(said) <= fields
    offered = {(tag.get("name"), tag.get("value")) for tag in tags}
    for name, values in said.items():
        if name not in ("text", "comment"):
            assert {(name, each) for each in ([values] if isinstance(values, str) else values)} <= (
                offered
            )
    after = sitting.send(said, page=page)
    assert "Your vote was recorded" in text_of(after)
    assert len(ballots_in(after)) < len(ballots_in(page))
    vote = Entry.objects.get(kind="vote")
    back = sitting.send({}, action="undo")
    words = "wrote" if "text" in said else "chose"
    assert f"You {words} " in text_of(back)
    assert " before." in text_of(back)
    held = {
        name: values[0] if len(values) == 1 else values for name, values in filled_in(back).items()
    }
    # Buttons hold nothing: what was pressed is said in words.
    if not first_form(back)[0].count("data-send"):
        said = {name: value for name, value in said.items() if name == "comment"}
    assert held == said
    again = {name: values for name, values in posted_of(vote).items() if values}
    queue = vote.queue
    answer = kind_of(queue).answer(again, queue.ballot, Options.model_validate(queue.options), "")
    assert (answer.choice, answer.details.value) == (vote.choice, vote.value)
    assert dict(answer.details.labels) == (vote.labels or {})


def test_with_scripts_an_undo_brings_it_back_alike():
    sitting = Sitting(**LABELS)
    sitting.send({"choice": ["rude"]})
    back = sitting.client.post(f"{sitting.address}undo", headers=HTMX)
    assert filled_in(back) == {"choice": ["rude"]}
    assert "You chose rude before." in text_of(back)


@each_study
def test_nothing_but_the_answer_keeps_anybody_from_skipping(study, said):
    sitting = Sitting(**study)
    [skip] = [tag["tag"] for tag in first_form(sitting.page())[1] if "data-skip" in tag["tag"]]
    assert "formnovalidate" in skip
    sitting.send({}, action="skip")
    assert not Entry.objects.exists()


@pytest.mark.parametrize(
    "study, words",
    [
        ({}, "one output at a time and say whether it passes, or flag it."),
        ({"options": {"graded": True}}, "grade it, from 0 to 1"),
        ({"options": CRITERIA}, "answer 3 questions about it: safe (must pass), funny and short."),
        (WORDS, "choose what fits it: pun, irony or dark."),
        (RATING, "rate it, from 1, the lowest, to 5, the highest."),
        (LABELS, "choose whichever of these fit it: rude or long. None is an answer too."),
        (TEXT, "answer in your own words."),
    ],
)
def test_an_invite_says_what_is_asked_and_how_long_it_takes(study, words):
    run = make_single_run(outputs=["a", "b", "c"], **study)
    text = text_of(Client().get(f"/join/{invite_token(make_invite(run))}/"))
    assert words in text
    assert "3 items, about 15 s each: some 45 s in all." in text
    assert run.queue.rubric.text in text


# With one item the words are of one; with two the page behind the first vote has another, and
# the page behind the second none.
@each_study
@pytest.mark.parametrize("items", [0, pytest.param(1, marks=pytest.mark.thorough), 2])
def test_a_page_of_items_never_speaks_of_pairs(study, said, items):
    sitting = Sitting(items, says=[[None, None]] * items, **study)
    seen = text_of(sitting.page())
    for _ in range(items):
        after = sitting.send(said)
        seen += text_of(after)
        seen += text_of(sitting.client.get(f"{sitting.address}mine"))
        seen += text_of(
            sitting.client.get(f"/reveal/{Entry.objects.filter(kind='vote').latest('id').uid}/")
        )
    body = sitting.page().content.decode()
    seen += " ".join(re.findall(r'aria-label="([^"]*)"', body))
    assert not re.search(r"\bpairs?\b|\bA\b|\bB\b|comparison|both_bad|\blabel\b", seen)
    assert "item" in seen


def test_a_criterion_is_shown_with_what_it_counts():
    text = text_of(Sitting(options=CRITERIA).page())
    for words in ("safe must pass", "funny counts 60%", "short counts 40%"):
        assert words in text


def test_the_word_of_the_study_stands_over_the_choices():
    assert "Kind of joke" in text_of(Sitting(**WORDS).page())


@pytest.mark.parametrize(
    "said, words",
    [
        ({"category": "unsafe"}, "Flag (unsafe)"),
        ({"choice": "flag", "category": ""}, "Flag"),
        ({"choice": "pass"}, "Pass"),
    ],
)
def test_my_votes_say_what_was_chosen(said, words):
    sitting = Sitting(says=[["pass", "flag"]] * 2)
    sitting.send(said)
    assert f"{words} Change your vote on" in text_of(sitting.client.get(f"{sitting.address}mine"))


@pytest.mark.parametrize(
    "study, said, words",
    [
        ({}, {"choice": "pass"}, "You chose Pass · 1 of 2 judges agree"),
        (LABELS, {}, "You chose none of these · 0 of 2 judges agree"),
        (TEXT, {"text": "Neat"}, "You wrote 'Neat'"),
        ({"options": {"graded": True}}, {"value": "0.7"}, "You chose Pass (0.7) · 1 of 2"),
    ],
)
def test_the_reveal_says_who_agrees(study, said, words):
    says = [["rude", "long;rude"] if study is LABELS else ["pass", "flag"]] * 2
    sitting = Sitting(says=[[None, None]] * 2 if study is TEXT else says, **study)
    sitting.send(said)
    text = text_of(sitting.client.get(f"/reveal/{Entry.objects.get(kind='vote').uid}/"))
    assert words in text
    assert "By generator" in text
    assert "Next item" in text
    if study is LABELS:
        assert "said long, rude" in text


def test_the_study_with_the_most_criteria_can_be_voted_on():
    names = ["\N{GREEK SMALL LETTER ALPHA}" * 56 + f"{n:02}" for n in range(20)]
    sitting = Sitting(options={"criteria": [{"name": name} for name in names]})
    after = sitting.send({f"criterion.{name}": "pass" for name in names})
    assert "Your vote was recorded" in text_of(after)
