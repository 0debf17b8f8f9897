"""Prompts and outputs that are conversations, on every page that shows them."""

import csv
import io
import json
import re

import pytest

from judge_eval.exports.export import export_run
from judge_eval.exports.rows import run_csv
from judge_eval.judging.prompts.judge import JudgeQuestion, messages
from tests.helpers.bundles import empty_the_instance, restored
from tests.helpers.pages import queries_of, text_of
from tests.makers import (
    make_run,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    user_client,
    voter_client,
)
from voting.items.conversations import conversation, messages_of
from voting.items.turns import as_sent, prompt, turns
from voting.models import Inference

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert(1)</script> **bold** <img src="https://example.org/x.png">'


# Where a page also has what was written, to the letter.
SOURCE = re.compile('<pre class="source".*?</pre>', re.DOTALL)


def chat(*messages):
    return conversation([{"role": role, "content": content} for role, content in messages])


PROMPT = chat(
    ("system", "You are terse."),
    ("user", "Hi"),
    ("assistant", "Hello."),
    ("user", "Why <so> blue?"),
)
OUTPUT = chat(("assistant", HOSTILE), ("user", "And now?"), ("assistant", "Rayleigh scattering."))


def make_chats(make=make_run, **options):
    run = make(**options)
    Inference.objects.filter(project=run.queue.project).update(prompt=PROMPT, output=OUTPUT)
    return run


def roles(shown):
    return [(turn.role, len(turn.folded)) for turn in shown]


def test_a_short_conversation_is_open_but_for_the_system():
    assert roles(turns(PROMPT)) == [("", 1), ("user", 0), ("assistant", 0), ("user", 0)]
    assert turns(PROMPT)[0].content == "System: You are terse."
    assert turns("Hello") is prompt("Hello") is None
    assert prompt(PROMPT).turns == turns(PROMPT)[:-1]


@pytest.mark.parametrize("long", ["turns", "text"])
def test_of_a_long_one_the_last_turns_are_open(long):
    text = "so " * 600 if long == "text" else "so"
    many = [("user", text), ("assistant", "hm")] * (1 if long == "text" else 5)
    shown = turns(chat(("system", "x " * 99), *many, ("user", "why?"), ("assistant", "thus")))
    earlier = [("", len(many))] if len(many) > 1 else [("", 1), ("assistant", 0)]
    assert roles(shown) == [("", 1), *earlier, ("user", 0), ("assistant", 0)]
    assert shown[1].content == f"{len(many)} earlier turns"
    assert len(shown[0].content) < 100


def test_where_nobody_is_asked_the_last_words_are_the_heading():
    text = chat(("user", "Add 1 and 2"), ("tool", "3"))
    assert prompt(text).role == "user"
    assert roles(prompt(text).turns) == [("user", 0), ("tool", 0)]
    assert prompt(chat(("system", "Be kind."))).role == "system"


@pytest.mark.parametrize("make", [make_run, make_single_run])
def test_the_voting_page_shows_turns_and_asks_no_more_queries(make):
    plain, run = make(says=[[]]), make_chats(make, says=[[]])
    queries = [
        queries_of(voter_client(make_voter(each)), f"/vote/{each.queue_id}/")
        for each in (plain, run)
    ]
    assert queries[0] == queries[1]
    html = voter_client(make_voter(run)).get(f"/vote/{run.queue_id}/").content.decode()
    html = SOURCE.sub("", html)
    assert "Why &lt;so&gt; blue?</p>" in html
    assert '<p class="role">Assistant</p>' in html
    assert "<strong>bold</strong>" in html
    assert "<script>alert" not in html
    assert '<img src="https' not in html
    assert "{&quot;role" not in html
    assert '{"role' not in html
    assert 'class="sides brief"' not in html


def test_no_page_shows_json(client):
    run = make_chats(says=[["A", "B"]] * 2)
    pair = pairs_of(run)[0]
    voter = make_voter(run)
    vote = make_vote(voter, pair)
    owner, voting = user_client(), voter_client(voter)
    for reader, address in [
        (owner, f"/runs/{run.pk}/pairs/"),
        (owner, f"/runs/{run.pk}/pairs/{pair.pk}/"),
        (voting, f"/vote/{run.queue_id}/mine"),
        (voting, f"/reveal/{vote.uid}/"),
    ]:
        response = reader.get(address)
        assert response.status_code == 200, address
        response.content = SOURCE.sub("", response.content.decode())
        assert "Why <so> blue?" in text_of(response), address
        assert '"role"' not in text_of(response), address


def test_a_text_that_only_looks_like_one_is_shown_as_it_is():
    run = make_run()
    odd = json.dumps([{"role": "king", "content": "Hi"}])
    Inference.objects.filter(project=run.queue.project).update(prompt=odd, output=odd)
    response = voter_client(make_voter(run)).get(f"/vote/{run.queue_id}/")
    assert text_of(response).count(odd) >= 3


def test_exports_carry_the_text_as_it_is():
    run = make_chats(says=[["A", "B"]])
    spaced = json.dumps(json.loads(PROMPT), indent=1)
    Inference.objects.filter(project=run.queue.project).update(prompt=spaced)
    rows = csv.DictReader(io.StringIO("".join(run_csv(run)), newline=""))
    row = next(row for row in rows if row["prompt"])
    assert (row["prompt"], row["output_a"], row["output_b"]) == (spaced, OUTPUT, OUTPUT)
    lines = list(export_run(run))
    empty_the_instance()
    [back] = restored(lines)
    outputs = Inference.objects.filter(project=back.queue.project)
    assert set(outputs.values_list("prompt", "output")) == {(spaced, OUTPUT)}


def test_its_source_is_turn_by_turn_as_judges_are_sent_it():
    first, *_ = messages_of(OUTPUT)
    told = as_sent(OUTPUT)
    assert told.startswith(f"turn 1 of 3 (assistant)\n{first.content}\n\nturn 2 of 3 (user)\n")
    question = JudgeQuestion(["pass", "flag"], "pass_flag")
    _, user = messages("1", question, kind="text", prompt="p", rubric="r", outputs=[OUTPUT])
    for number, each in enumerate(messages_of(OUTPUT), start=1):
        assert f"turn {number} of 3 ({each.role})\n{each.content}" in user["content"]
    assert as_sent(" [1]\r\n") == " [1]\r\n"


def test_the_admin_names_it_by_what_the_user_said_last():
    assert str(Inference(generator="m", prompt=PROMPT)) == "m: Why <so> blue?"
