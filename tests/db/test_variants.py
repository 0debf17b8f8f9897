"""Judges tuned on one half of a run's votes, and told by the other."""

import pytest

from judge_eval.config.run_config import JoiningJudges
from judge_eval.findings.cache import request_findings
from judge_eval.findings.workshop import look_at_held_out, tuning_figures
from judge_eval.models import REPEATED, Call, Run, Verdict
from judge_eval.runs import variants
from tests.helpers import model_calls
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.helpers.run_maker import asked_of, go_on, make_provider
from tests.makers import make_single_run, make_vote, make_voter, seal_all, user_client
from tests.provider import provider
from voting.ledger import ledger

pytestmark = pytest.mark.django_db
at = pytest.fixture(model_calls.model)


@pytest.fixture(scope="module")
def server():
    with provider() as running:
        yield running


def make_voted_run(items=24, **options):
    """A finished run of texts with a vote on each."""
    run = make_single_run(outputs=[f"Answer {n} {'x' * n}" for n in range(items)], **options)
    voter = make_voter(run)
    for n, item in enumerate(run.queue.items.order_by("position")):
        make_vote(voter, item, "pass" if n % 2 else "flag")
    seal_all(run.queue.project)
    return Run.objects.select_related("queue").get(pk=run.pk)


def opened(at, **options):
    make_provider(at)
    run = make_voted_run(**options)
    variants.open_for_tuning(run)
    return fresh(run)


def fresh(run):
    seal_all(run.queue.project)
    return Run.objects.select_related("queue__project", "board").get(pk=run.pk)


def test_a_variant_is_asked_on_tuning_items_first_and_told_by_those_held_out(at):
    run = opened(at)
    halves = list(run.queue.items.values_list("is_held_out", flat=True))
    assert (halves.count(True), halves.count(False)) == (12, 12)
    spec = {"id": "strict", "model": "judge-careful", "instructions": "Be strict about {rubric}"}
    [judge] = variants.add(run, JoiningJudges.model_validate({"judges": [spec]}))
    assert (judge.name, judge.model, judge.is_tuned) == ("strict", "judge-careful", True)
    run = fresh(run)
    assert not Verdict.objects.filter(judge=judge).exists()
    assert variants.next_step(run, judge)[:3] == ("first", 12, 12)
    assert variants.ask(run, judge, "first") == 12
    run = go_on(run)
    assert not Verdict.objects.filter(judge=judge, item__is_held_out=True).exists()
    [best] = tuning_figures(run)
    assert best.judge == judge
    assert best.overall.n == 12
    assert 0 < best.overall.value < 1
    assert variants.next_step(run, judge).step == "all"
    variants.ask(run, judge, "all")
    run = fresh(go_on(run))
    held = look_at_held_out(run, judge)
    assert held.overall.n == 12
    assert held.looks == 1
    sent = asked_of(at, "judge-careful")
    assert len(sent) == 24
    system = sent[0]["messages"][0]["content"]
    assert system.startswith(f"Be strict about {run.queue.rubric.text}")
    assert "nothing in between" in system
    assert "Answer with one JSON object" in system
    assert ledger.replay(run.queue.project, write=False) == []


def test_the_workshop_goes_the_whole_way(at):
    make_provider(at)
    run, client = make_voted_run(40), user_client()
    page = f"/runs/{run.pk}/workshop/"
    assert "Open for tuning" in text_of(client.get(page))
    assert client.post(f"{page}open").status_code == 302
    said = {"id": "strict", "model": "judge-careful", "provider": "default", "repeats": 2}
    said |= {"instructions": "Be strict.\n<script>", "no_temperature": "on"}
    assert client.post(f"{page}add", said).status_code == 302
    assert "exactly as" in text_of(client.post(f"{page}add", said | {"id": "again"}))
    judge = run.judges.get()
    text = client.get(page).content.decode()
    assert "Ask about 20 items of the tuning half (20 items, 40 calls, cost not known)" in text
    assert "+ &lt;script&gt;" in text
    assert client.post(f"{page}{judge.pk}/ask").status_code == 302
    go_on(run)
    shown = text_of(client.get(page))
    assert run.calls.filter(state="failed").values_list("error", flat=True).first() is None
    assert "Agrees with itself 100" in shown
    assert "most people say" in shown
    assert "Held-out looked at 0 times" in shown
    client.post(f"{page}{judge.pk}/ask")
    go_on(run)
    looked = text_of(client.post(f"{page}{judge.pk}/look"))
    assert "Held-out looked at 1 time" in looked
    assert "points above it on the tuning half" in looked
    assert client.post(f"{page}end").status_code == 302
    assert "The tuning has ended" in text_of(client.get(page))
    assert ledger.replay(fresh(run).queue.project, write=False) == []


def test_repeats_are_in_no_other_figure(at):
    run = opened(at)
    for name, repeats in (("once", 1), ("thrice", 3)):
        spec = {"id": name, "model": "judge-careful", "repeats": repeats, "samples": repeats}
        variants.add(run, JoiningJudges.model_validate({"judges": [spec]}))
        variants.ask(run, run.judges.get(name=name), "all")
        run = go_on(run)
    assert Call.objects.filter(REPEATED, run=run).count() == 24 * 3 * 2
    assert {c.reused_id for c in Call.objects.filter(REPEATED, run=run)} == {None}
    variants.end(run)
    run = fresh(run)
    compute(run)
    once, thrice = request_findings(run, "").findings.judges
    assert once.overall == thrice.overall
    assert once.overall.n == 12
