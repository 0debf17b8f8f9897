"""Files in people's own words are understood, and come as shown without a hand on a mapping."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.helpers.pages import text_of
from tests.helpers.proposals import check_proposal
from tests.helpers.workbooks import workbook
from tests.makers import user_client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("forked_previews")]

GERMAN = [
    ["Frage", "AntwortA", "AntwortB", "Besser", "Richter"],
    *(
        [f"Wie erkläre ich {what}?", "Öfter üben: zuerst A, dann B.", f"Kurz {what}.", a, b]
        for what, a, b in (("Zinsen", "A", "B"), ("Inflation", "B", "B"), ("Steuern", "A", "A"))
    ),
]
ENGLISH = [
    "Question,Model A,Response A,Model B,Response B,Winner,Annotator,Judge model,Judge winner"
    ",Reason".split(","),
    ["Why?", "m1", "So it is.", "m2", "It is not.", "Model A", "ann", "gpt", "Model B", "short"],
    ["How?", "m1", "Like this.", "m2", "Or that.", "tie", "bob", "gpt", "Model A", "clear"],
]
VOTES = [["Prompt", "Answer 1", "Answer 2", "Better"], ["Why?", "So.", "No.", "1"]]
VOTES += [["How?", "Like this.", "Or that.", "2"]]
NAMES = "Two names are missing."


def table(rows, separator, encoding):
    return "".join(f"{separator.join(row)}\n" for row in rows).encode(encoding)


@pytest.mark.parametrize(
    "name, data, sentence",
    [
        (
            "umfrage.csv",
            table(GERMAN, ";", "cp1252"),
            f"3 pairs, 3 votes of one person, 3 verdicts of one judge. {NAMES}",
        ),
        (
            "umfrage.xlsx",
            workbook(GERMAN),
            f"3 pairs, 3 votes of one person, 3 verdicts of one judge. {NAMES}",
        ),
        (
            "rich.csv",
            table(ENGLISH, ",", "utf-8"),
            "2 pairs, 2 votes of 2 people, 2 verdicts of one judge.",
        ),
        (
            "votes.csv",
            table(VOTES, ",", "utf-8"),
            "2 pairs, 2 votes of one person. One name is missing.",
        ),
    ],
)
def test_a_file_is_understood_and_comes_as_it_is_shown(name, data, sentence):
    page = check_proposal(user_client(), SimpleUploadedFile(name, data))
    assert page.context["sentence"] == sentence


def test_letters_and_separators_are_said_with_a_proof_and_names_are_asked_in_their_row():
    client = user_client()
    file = SimpleUploadedFile("umfrage.csv", table(GERMAN, ";", "cp1252"))
    shown = text_of(client.get(client.post("/runs/import/", {"file": file}).headers["Location"]))
    for words in (
        "Western European (Windows)",
        "semicolons",
        "Do ä Ö ü look right?",
        "Who gave these 3 votes?",
        "Which judge gave these 3 verdicts?",
        "what a person chose",
        "Person 1 (umfrage) chose the first",
        "Import 3 pairs",
        "0 rows are wrong",
        "Name “umfrage”, new project “umfrage”, 1 vote per pair, the usual question",
    ):
        assert words in shown, words
    # The rarer meanings stand behind a button.
    assert "what the verdict cost" not in shown


def test_a_file_without_a_known_column_asks_what_they_are_and_takes_another_separator():
    client = user_client()
    file = SimpleUploadedFile("v.csv", b"pair~vote;x\n1~A;2\n")
    address = client.post("/runs/import/", {"file": file}).headers["Location"]
    page = client.get(address)
    assert page.context["sentence"] == "Say what these two columns are."
    assert "semicolons" in text_of(page)
    client.post(address, {"do": "look", "separator": "comma"})
    assert page.context["form"].columns != client.get(address).context["form"].columns


def test_a_mapping_that_was_proposed_is_shown_and_can_be_left():
    client = user_client()
    record = (
        b'{"span": "s", "inputs": {"query": "Why?"}, "answer": {"text": "So."},'
        b' "human_feedback": [{"user": "ann", "label": "bad"}],'
        b' "evaluators": {"tone": {"label": "bad"}}}\n'
    )
    file = SimpleUploadedFile("fresh.jsonl", record)
    address = client.post("/runs/import/", {"file": file}).headers["Location"]
    page = client.get(address)
    assert page.context["sentence"] == "1 item, 1 vote of one person, 1 verdict of one judge."
    shown = {row.source: (row.meaning, row.sample) for row in page.context["form"].in_use}
    assert shown["label"] == ("what a person said", "bad")
    assert shown["evaluators.tone.label"][0] == "what the judge tone said"
    form = page.context["form"]
    client.post(address, {"do": "columns", "written": form["written"].value()})
    left = client.get(address).context["form"]
    assert left.in_use == []
    assert {it.role.subject: it.role.selected for it in left.columns}["answer.text"] == "output"
