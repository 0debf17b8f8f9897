"""How judges were asked about a pair: on its page, and in a word or two after a vote."""

import pytest
from django.test import Client

from judge_eval.board.views.pairs import picks_of
from judge_eval.models import Call, Judge, Verdict
from tests.helpers.pages import queries_of, text_of
from tests.helpers.run_rows import first_verdict, make_asked_run, make_calls
from tests.judge_eval.runs.test_run_pages import a_voting_evaluator, rows_of
from tests.makers import (
    entry_of,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.models import Inference, Picture

pytestmark = pytest.mark.django_db


def pair_page(run, number=0):
    return f"/runs/{run.pk}/pairs/{pairs_of(run)[number].pk}/"


def plain_rows_of(response):
    return [row.replace("\N{EN DASH}", "-").replace(" ,", ",") for row in rows_of(response)]


def set_verdict(run, **fields):
    verdict = first_verdict(run)
    Verdict.objects.filter(pk=verdict.pk).update(**fields)
    return Verdict.objects.get(pk=verdict.pk)


INCONSISTENT = {
    "order": "both",
    "winner": "tie",
    "consistent": False,
    "picks": ["A", "A"],
    "first_picks": 2,
    "feedback": "Inconsistent: A as stored, B when swapped.",
    "latency_ms": 500.0,
}


@pytest.mark.parametrize(
    "order, picks, meant",
    [
        ("both", ["A", "B"], ["A", "A"]),
        ("both", ["tie", "both_bad"], ["tie", "both_bad"]),
        ("AB", ["B"], ["B"]),
        ("BA", ["B"], ["A"]),
        ("AB", [], []),
    ],
)
def test_a_raw_pick_of_the_swapped_order_means_the_other(order, picks, meant):
    verdict = Verdict(order=order, picks=picks)
    assert [pick.raw for pick in picks_of(verdict)] == picks
    assert [pick.meant for pick in picks_of(verdict)] == meant


def test_both_orders_with_what_was_said_and_what_it_means():
    run = make_asked_run(names=["judge-x"])
    set_verdict(run, **INCONSISTENT)
    make_calls(run, winner="A")
    response = user_client().get(pair_page(run))
    row = "judge-x said A said A, which is B here no: scored as tie - 2 240 $0.000900 500 ms"
    assert row in plain_rows_of(response)
    assert "inconsistent: scored as tie" in text_of(response)


def test_orders_that_agree_and_samples():
    run = make_asked_run(names=["judge-x"])
    set_verdict(
        run, order="both", picks=["A", "B"], consistent=True, sample_consistency=5 / 6, winner="A"
    )
    make_calls(run, samples=3, winner="A")
    response = user_client().get(pair_page(run))
    text = text_of(response)
    assert "yes 83 % 6 720" in text.replace("\xa0", " ")
    assert "scored as tie" not in text
    assert [row for row in rows_of(response) if row.startswith("judge-x swapped 3")]


def test_one_order_alone():
    run = make_asked_run(names=["judge-x"])
    set_verdict(run, order="BA", picks=["B"], winner="A")
    make_calls(run, orders=["BA"], winner="B")
    rows = plain_rows_of(user_client().get(pair_page(run)))
    assert [row for row in rows if row.startswith("judge-x - said B, which is A here - - 1")]


def test_calls_that_failed_were_repaired_or_came_from_storage():
    run = make_asked_run(says=[[None]], names=["judge-x"])
    first, second = make_calls(run, winner="A")
    Call.objects.filter(pk=first.pk).update(
        state="failed", winner="", error="<i>refused</i>", cost_nano=0
    )
    Call.objects.filter(pk=second.pk).update(
        is_repaired=True, reused=first, cost_nano=None, prompt_tokens=None, completion_tokens=None
    )
    response = user_client().get(pair_page(run))
    text = text_of(response)
    assert "<i>refused</i>" in text
    assert "asked once more" in text
    assert "from storage" in text
    assert "price not known" not in text


def test_a_price_that_nobody_knows_is_said():
    run = make_asked_run(names=["judge-x"])
    make_calls(run, cost_nano=None, winner="A")
    assert "price not known" in text_of(user_client().get(pair_page(run)))


def test_baselines_are_not_asked_anywhere():
    assert "How they were asked" not in text_of(user_client().get(pair_page(make_run())))


def test_code_is_shown_as_it_is_on_both_sides():
    run = make_run()
    Inference.objects.update(kind="code", output="if a < b:\n    return *b*  # <script>")
    body = user_client().get(pair_page(run)).content.decode()
    shown = "if a &lt; b:\n    return *b*  # &lt;script&gt;"
    assert body.count(f"<code>{shown}</code>") == 2
    assert body.count('<pre class="text code"') == 2


def pair_costs(judges, samples):
    run = make_asked_run(judges=judges)
    make_calls(run, samples=samples, winner="A")
    return queries_of(user_client(), pair_page(run))


def test_the_page_costs_the_same_with_many_calls():
    assert pair_costs(1, 1) == pair_costs(25, 20)


# --- after a vote ---------------------------------------------------------------------------------


def revealed(run):
    voter = make_voter(run)
    vote = make_vote(voter, pairs_of(run)[0])
    seal_all(run.queue.project)
    response = voter_client(voter).get(f"/reveal/{vote.uid}/")
    return text_of(response), entry_of(vote).left_side


def test_the_reveal_says_that_orders_disagree_in_the_voters_own_sides():
    run = make_asked_run(names=["judge-x"], state="voting")
    set_verdict(run, **INCONSISTENT)
    text, left = revealed(run)
    stored, swapped = ("left", "right") if left == "A" else ("right", "left")
    assert f"which counts as a tie: {stored.title()} in one order, {swapped.title()} with" in text


def test_the_reveal_says_that_orders_and_samples_agree():
    run = make_asked_run(names=["judge-x"], state="voting")
    set_verdict(run, order="both", picks=["A", "B"], consistent=True, sample_consistency=0.75)
    text, _ = revealed(run)
    assert "The same in both orders." in text
    assert "75 % of its samples agree." in text.replace("\xa0", " ")


def test_the_reveal_of_a_baseline_says_nothing_of_orders():
    text, _ = revealed(make_run())
    assert "order" not in text
    assert "samples" not in text
    assert Judge.objects.filter(provider="baseline").exists()


def make_output_call(run, side="a", **fields):
    output = getattr(pairs_of(run)[0], side)
    common = {"purpose": "generate", "provider": "default", "model": "model-x", "prompt": 0}
    made = {"state": "done", "attempts": 3, "inference": output, "reply": "<think>Hm.</think>Yes."}
    return Call.objects.create(run=run, **common | made | fields)


CHANGED = "Changed before it was stored: left out 18 characters of thinking; trimmed white space."


def test_what_was_changed_in_an_output_and_how_often_it_was_asked_for_stand_under_it():
    run = make_asked_run()
    changes = ["left out 18 characters of thinking", "trimmed white space"]
    call = make_output_call(run, changes=changes)
    response = user_client().get(pair_page(run))
    assert text_of(response).count(CHANGED) == 1
    assert "Made in 3 attempts." in text_of(response)
    assert f"/runs/{run.pk}/calls/{call.pk}/" in response.content.decode()


def test_what_an_import_changed_stands_under_the_output():
    run = make_run()
    Inference.objects.filter(pk=pairs_of(run)[0].b_id).update(metadata={"changes": ["added xmlns"]})
    text = text_of(user_client().get(pair_page(run)))
    assert "Changed before it was stored: added xmlns." in text
    assert "Made in" not in text


def test_what_a_drawing_was_drawn_without_stands_under_it():
    run = make_asked_run(names=["judge-x"])
    picture = Picture.objects.create(
        source_sha256="0" * 64, state="done", png_sha256="0" * 64, left_out="<b>/a.css"
    )
    Inference.objects.filter(pk=run.queue.items.get(position=0).a_id).update(
        kind="svg", picture=picture
    )
    text = text_of(user_client().get(pair_page(run)))
    assert text.count("Drawn without external resources: <b>/a.css.") == 1


def test_every_call_says_how_often_it_was_made_and_leads_to_what_came():
    run = make_asked_run(names=["judge-x"])
    [call] = make_calls(run, orders=["AB"], winner="A", attempts=4, reply='Sure: {"winner": "A"}')
    page = user_client().get(pair_page(run))
    assert any(row.endswith("250 ms 4 Raw reply of judge-x Open it") for row in rows_of(page))
    address = f"/runs/{run.pk}/calls/{call.pk}/"
    assert address in page.content.decode()
    said = user_client().get(address)
    assert 'Sure: {"winner": "A"}' in text_of(said)
    assert "4 attempts" in text_of(said)


def test_raw_replies_are_for_evaluators():
    run = make_asked_run(names=["judge-x"])
    run.is_shared = True
    run.save()
    [call] = make_calls(run, orders=["AB"], winner="A", reply="secret words")
    page = Client().get(pair_page(run))
    assert page.status_code == 200
    assert "Raw reply" not in text_of(page)
    assert Client().get(f"/runs/{run.pk}/calls/{call.pk}/").status_code == 302


def test_a_call_that_was_not_made_yet_has_no_page():
    run = make_asked_run(names=["judge-x"])
    [call] = make_calls(run, orders=["AB"], state="waiting")
    assert user_client().get(f"/runs/{run.pk}/calls/{call.pk}/").status_code == 404


def test_who_made_an_output_is_not_told_to_an_evaluator_who_could_still_vote_on_it():
    run = make_asked_run(pairs=2, state="voting")
    browser, _ = a_voting_evaluator(run)
    call = make_output_call(run)
    response = browser.get(f"/runs/{run.pk}/calls/{call.pk}/")
    assert response.status_code == 403
    assert "Hm." not in text_of(response)
    other = user_client("somebody else")
    assert other.get(f"/runs/{run.pk}/calls/{call.pk}/").status_code == 200
