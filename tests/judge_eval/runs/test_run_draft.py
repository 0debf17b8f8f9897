"""The page of a draft: what it will do and cost, the words it sends, and a judge tried on it."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.judging import trial
from judge_eval.judging.config.run_config import RUBRICS
from judge_eval.models import Provider, Run
from tests.helpers.pages import HTMX, queries_of, text_of
from tests.helpers.run_rows import PRICES, make_draft, make_provider
from tests.judge_eval.runs.test_run_pages import a_voting_evaluator, rows_of
from tests.makers import make_run, make_vote, pairs_of, user_client
from voting.models import Exposure

pytestmark = pytest.mark.django_db

PRICED = dict.fromkeys(["model-a", "model-b", "judge-long", "judge-hash"], PRICES)


def draft_page(run):
    return f"/runs/{run.pk}/draft/"


@pytest.mark.parametrize(
    "config, is_warned",
    [
        ({}, True),
        ({"votes_per_pair": 2}, False),
        ({"overlap": {"share": 0.2, "votes": 3}}, False),
        ({"overlap": {"share": 0.0, "votes": 3}}, True),
        ({"overlap": {"share": 0.2, "votes": 1}}, True),
    ],
)
def test_a_run_in_which_nobody_votes_on_the_same_pair_is_warned_of(config, is_warned):
    text = text_of(user_client().get(draft_page(make_draft(**config))))
    assert ("No two people will vote on the same pair." in text) == is_warned


@pytest.mark.parametrize("prompts, is_warned", [(2, True), (40, False)])
def test_a_run_whose_prompts_are_too_few_for_any_claim_is_warned_of(prompts, is_warned):
    run = make_draft(prompts=[f"Question {n}" for n in range(prompts)])
    text = text_of(user_client().get(draft_page(run)))
    assert ("2 prompts are too few to tell " in text) == is_warned
    assert ("add prompts rather than pairs" in text) == is_warned


def test_it_says_what_will_be_asked():
    make_provider(prices=PRICED)
    run = make_draft(prompts=["a", "b", "c"], judging={"samples": 3}, budget_usd=2)
    text = text_of(user_client().get(draft_page(run)))
    for said in (
        "Outputs to generate 6 2 models, 3 prompts",
        "Pairs to vote on 3",
        "Calls for verdicts 36 both orders, 3 samples",
        "Budget $2.00",
        "random baseline answered here verdicts 0 0 0 $0",
    ):
        assert said in text, said


def test_a_draft_that_came_without_its_config_is_told_and_not_an_error():
    run = make_draft()
    Run.objects.update(config=None)
    response = user_client().get(draft_page(run))
    assert response.status_code == 409
    assert "This draft has no config" in text_of(response)


def test_what_it_costs_for_each_model():
    make_provider(prices=PRICED)
    run = make_draft(prompts=["x" * 400])
    response = user_client().get(draft_page(run))
    # 100 tokens of the prompt and 200 around it, 4,000 out, at $2.50 and $10 a million.
    assert "model-a default outputs 1 300 4,000 $0.0408" in rows_of(response)
    assert re.search(r"Cost at most about \$0\.\d{3} Budget no limit", text_of(response))


def test_prices_that_nobody_knows_are_said_to_be_unknown():
    make_provider(prices={"model-a": PRICES})
    run = make_draft()
    response = user_client().get(draft_page(run))
    assert "and 3 models of unknown price" in text_of(response)
    assert any(row.startswith("model-b") and "price not known" in row for row in rows_of(response))
    Provider.objects.update(prices={})
    assert "Cost not known: no price for 4 models" in text_of(user_client().get(draft_page(run)))


def start_button(response):
    return re.search(r'<button type="submit" class="primary"( disabled)?>Start<', _body(response))[
        1
    ]


def _body(response):
    return response.content.decode()


def test_what_stands_in_the_way_is_said_and_start_is_disabled():
    run = make_draft(judges=["judge-long", {"id": "j", "provider": "other"}], budget_usd=1)
    response = user_client().get(draft_page(run))
    text = text_of(response)
    assert "There is no provider named default." in text
    assert "There is no provider named other." in text
    assert "nobody has said what model-a, model-b, judge-long, j costs" in text
    assert start_button(response)
    make_provider(prices=PRICED)
    make_provider(name="other", prices={"j": PRICES})
    response = user_client().get(draft_page(run))
    assert "cannot be started" not in text_of(response)
    assert not start_button(response)


def test_start_leads_to_progress_and_a_refusal_is_said():
    run, client = make_draft(), user_client()
    refused = client.post(f"/runs/{run.pk}/start")
    assert refused.status_code == 409
    assert "There is no provider named default." in text_of(refused)
    make_provider()
    assert client.post(f"/runs/{run.pk}/start").url == f"/runs/{run.pk}/progress/"
    run.refresh_from_db()
    assert run.state == "generating"


@pytest.mark.parametrize("kind", ["svg", "text", "code"])
def test_the_words_that_are_sent(kind):
    run = make_draft(
        kind=kind,
        rubric="Which is <b>bolder</b>?",
        ballot=["A", "B", "tie"],
        judging={"temperature": None, "max_tokens": 1234},
    )
    response = user_client().get(draft_page(run))
    text = text_of(response)
    assert "Which is &lt;b&gt;bolder&lt;/b&gt;?" in _body(response)
    assert '"tie": both are equally good' in text
    assert '"both_bad"' not in text
    assert "a harbour" in text
    assert ("⟨the picture, as PNG⟩" if kind == "svg" else "⟨the first output⟩") in text
    assert "prompt version 1, no temperature, at most 1,234 tokens" in text
    assert "sent with temperature 0.7, at most 4,000 tokens" in text


def test_prompts_and_the_rules_of_voting_are_shown():
    run = make_draft(
        prompts=[f"prompt number {n}" for n in range(130)],
        votes_per_pair=2,
        overlap={"share": 0.15, "votes": 4},
        reveal="never",
    )
    text = text_of(user_client().get(draft_page(run)))
    assert "prompt number 99" in text
    assert "prompt number 100" not in text
    assert "And 30 more." in text
    assert RUBRICS["text"][:60] in text
    assert "They may say: A is better, B is better, both bad." in text
    assert "2 votes per pair, 4 on 15 % of the pairs; what the judges said is shown never" in text


def test_a_draft_is_deleted_after_one_was_asked():
    run, client = make_draft(), user_client()
    body = _body(client.get(draft_page(run)))
    confirm = body.partition("Delete draft</summary>")[2].partition("</details>")[0]
    assert f'action="/runs/{run.pk}/draft/delete"' in confirm
    assert client.post(f"/runs/{run.pk}/draft/delete").url == "/runs/"
    assert not Run.objects.exists()


# --- a judge tried --------------------------------------------------------------------------------


def make_tried(*, answered=2, pairs=3, **fields):
    """A draft with a judge's trial on the pairs of another run, of which so many are answered."""
    make_provider(prices=PRICED)
    other = make_run(pairs=pairs, names=["x", "y"])
    run = make_draft()
    run.queue.project = other.queue.project
    run.queue.save()
    judge = run.judges.get(name="judge-long")
    run.record(trial.TRIED, "It is tried.", judge=str(judge.pk))
    about = {"purpose": "trial", "provider": judge.provider, "model": judge.model, "order": "AB"}
    for place, pair in enumerate(pairs_of(other)):
        run.calls.create(item=pair, sample=place, not_before=trial.BEFORE_ALL, **about)
    for place in range(answered):
        answer(run, place, **fields)
    return run, other


def answer(run, place, **fields):
    said = {"state": "done", "winner": "A", "reason": "villach", "reply": "raw-ulm"}
    said |= {"score_a": 8.0, "score_b": 5.0, "prompt_tokens": 10, "completion_tokens": 5}
    said |= {"latency_ms": 1260, "reported_model": "judge-long-2026", "cost_nano": 75_000}
    run.calls.filter(sample=place).update(**(said | fields))


def test_what_a_tried_judge_said_is_shown():
    run, _ = make_tried()
    text = text_of(user_client().get(draft_page(run)))
    assert "judge-long: 2 of 3 pairs answered" in text
    assert "A is better (8.0 : 5.0): villach" in text
    assert "answered as judge-long-2026 · 10 tokens in, 5 out · $0.0000750 · 1.3 s" in text
    assert text.count("Being asked…") == 1
    assert "raw-ulm" in text


def test_a_failure_is_shown_with_its_raw_reply_as_text():
    run, _ = make_tried(
        answered=1, state="failed", winner="", score_a=None, score_b=None,
        error="the <b>reply</b> is empty", reply="<script>alert(1)</script>", cost_nano=None,
    )  # fmt: skip
    response = user_client().get(draft_page(run))
    assert "No verdict: the <b>reply</b> is empty" in text_of(response)
    assert "price not known" in text_of(response)
    assert "<script>alert" not in _body(response)


def test_it_is_asked_for_again_until_it_is_over():
    run, _ = make_tried()
    client = user_client()
    [address] = re.findall(r'hx-get="([^"]+)"', _body(client.get(draft_page(run))))
    assert client.get(address, headers=HTMX).status_code == 204
    assert re.search(r"<button type=\"submit\" disabled>Try it", _body(client.get(draft_page(run))))
    answer(run, 2)
    part = client.get(address, headers=HTMX)
    assert "3 of 3 pairs answered" in text_of(part)
    assert "judge-long has answered on 3 of 3 pairs." in text_of(part)
    assert "hx-trigger" not in _body(part)
    # The button can be pressed again.
    assert re.search(r"<button type=\"submit\">Try it", _body(part))


def test_a_trial_that_nobody_takes_up_is_given_up():
    run, _ = make_tried(answered=0)
    asked = run.events.get(kind=trial.TRIED)
    asked.at = timezone.now() - timedelta(minutes=5)
    asked.save()
    text = text_of(user_client().get(draft_page(run)))
    assert "No worker has taken this up. Is one running? Try again." in text
    assert text.count("No answer came.") == 3


def test_what_it_said_of_a_pair_that_is_open_to_the_reader_stays_closed():
    run, other = make_tried(answered=3)
    client, voter = a_voting_evaluator(other)
    response = client.get(draft_page(run))
    assert text_of(response).count("You have this pair open for voting.") == 3
    for secret in (b"villach", b"raw-ulm", b"8.0", b"generator-0"):
        assert secret not in response.content
    make_vote(voter, pairs_of(other)[0])
    response = client.get(draft_page(run))
    assert text_of(response).count("villach") == 1
    assert Exposure.objects.filter(voter=voter).count() == 1


def test_whoever_reads_it_first_does_not_vote_blind_on_those_pairs():
    run, other = make_tried(answered=1)
    user_client().get(draft_page(run))
    assert [seen.item for seen in Exposure.objects.all()] == pairs_of(other)[:1]


def test_trying_leads_back_to_the_draft():
    run, _ = make_tried(answered=3)
    client = user_client()
    judge = run.judges.get(name="judge-hash")
    response = client.post(f"/runs/{run.pk}/draft/try", {"judge": str(judge.pk)})
    assert response.url == f"{draft_page(run)}#trial"
    assert trial.latest(run).judge == judge
    assert client.post(f"/runs/{run.pk}/draft/try", {"judge": "x"}).status_code == 422
    again = client.post(f"/runs/{run.pk}/draft/try", {"judge": str(judge.pk)})
    assert again.status_code == 409
    assert "judge-hash is being tried" in text_of(again)


def test_where_there_is_nothing_to_try_it_on_or_nobody_to_try_it_says_so():
    assert "there are none of this kind yet" in text_of(user_client().get(draft_page(make_draft())))
    run = make_draft(judges=["random"])
    text = text_of(user_client().get(draft_page(run)))
    assert "there is nothing to try" in text


def test_the_draft_costs_the_same_however_much_it_will_ask():
    make_provider(prices=PRICED)
    client = user_client()
    counts = []
    for size in (2, 40):
        models = [f"m{n}" for n in range(size)]
        prompts = [f"p{n}" for n in range(size)]
        run = make_draft(models=models, prompts=prompts, judges=models)
        counts.append(queries_of(client, draft_page(run)))
    assert counts[0] == counts[1]
