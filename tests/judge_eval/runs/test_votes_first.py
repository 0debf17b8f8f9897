"""Votes that are there before any judge: people are counted at once, judges join later."""

from io import BytesIO

import pytest

from judge_eval.imports.formats import read
from judge_eval.judging.config.run_config import JoiningJudges
from judge_eval.models import Verdict
from judge_eval.runs.lifecycle import add_judges_to
from judge_eval.runs.state import advance
from tests.helpers.imports import (
    added,
    assert_whole,
    import_run,
    imported,
    pair,
    run_of,
    verdict,
    vote,
)
from tests.helpers.run_findings import compute
from tests.makers import elos_of, make_project, seal_all
from voting.models import Entry

pytestmark = pytest.mark.django_db

TWO_VOTES = [vote(1, "ann", "A"), vote(1, "bob", "A"), vote(2, "ann", "B"), vote(2, "bob", "A")]


def kinds_of(run):
    entries = Entry.objects.filter(queue=run.queue_id, seq__isnull=False).order_by("seq")
    return [entry.kind for entry in entries]


def test_votes_alone_are_figures_of_people_and_of_models():
    run = imported(pair(1), pair(2), *TWO_VOTES)
    opening, votes = ["object", "verdicts", "verdicts"], ["vote"] * 4
    assert kinds_of(run) == [*opening, "parameters", *votes, "parameters"]
    [first, _] = Entry.objects.filter(queue=run.queue, kind="verdicts").order_by("seq")
    assert first.payload["verdicts"] == []
    assert first.payload["prompt"] == first.item.prompt_key
    data = compute(run).data
    assert data["as_of"]["votes"] == 4
    assert data["among_people"]["pairs"]["value"] == 0.5
    assert data["models"]["boards"][0]["by"] == "people"
    assert data["judges"] == []
    assert_whole(run.queue.project)


@pytest.mark.parametrize(
    "text", [b"pair,voter,vote\n7,ann,tie\n", b"item,voter,vote\n7,ann,pass\n8,bob,flag\n"]
)
def test_a_few_lines_of_votes_are_enough(text):
    report = import_run(make_project(), "Votes", read(BytesIO(text), "votes.csv"))
    assert report.errors == []
    run = run_of(report)
    assert compute(run).data["as_of"]["votes"] == text.count(b"\n") - 1
    assert_whole(run.queue.project)


def test_the_same_again_adds_no_entry_whatever_its_prompt_is_called():
    records = [pair(1, prompt_id="81"), pair(2, prompt_id="true"), *TWO_VOTES]
    run = imported(*records)
    before = kinds_of(run)
    assert added(run, *records).new.total() == 0
    assert kinds_of(run) == before


def test_of_two_pairs_one_is_judged():
    run = imported(pair(1), pair(2), verdict(1, "gpt", "A"), *TWO_VOTES, baselines=None)
    data = compute(run).data
    assert data["as_of"]["votes"] == 4
    assert data["among_people"]["pairs"]["trials"] == 2
    gpt = data["judges"][0]
    # Only votes on what it was asked about.
    assert (gpt["overall"]["successes"], gpt["overall"]["trials"]) == (2, 2)
    assert gpt["coverage"]["trials"] == 1
    assert_whole(run.queue.project)


def figures_of(run):
    judges = compute(run).data["judges"]
    return {judge["name"]: (judge["overall"], judge["beats_floor"]) for judge in judges}


def long_study(pairs=30):
    """Records of pairs, votes of three people who agree, and verdicts: one judge right, one not."""
    numbers = range(pairs)
    texts = [pair(n) for n in numbers]
    votes = [vote(n, who, "AB"[n % 2]) for n in numbers for who in ("ann", "bob", "eve")]
    verdicts = [verdict(n, "right", "AB"[n % 2]) for n in numbers]
    return texts, votes, verdicts + [verdict(n, "wrong", "BA"[n % 2]) for n in numbers]


def test_judges_whose_verdicts_come_later_stand_as_if_they_had_come_first():
    texts, votes, verdicts = long_study()
    first = imported(*texts, *votes, baselines=None)
    added(first, *verdicts)
    at_once = imported(*texts, *votes, *verdicts, project=make_project("Other"), baselines=None)
    assert figures_of(first) == figures_of(at_once)
    assert elos_of(first) == elos_of(at_once)
    words = compute(first).data["words"]
    assert words.startswith("right agrees with people on 100 %, wrong on 0 %: 100 points more (")
    assert compute(first).data["may_stop"] is True
    assert_whole(first.queue.project)


def test_judges_that_are_asked_later_join_such_a_run():
    texts, votes, _ = long_study()
    run = imported(*texts, *votes)
    names = ["always-first", "longer-wins"]
    joining = JoiningJudges.model_validate({"judges": [{"id": name} for name in names]})
    assert add_judges_to(run.pk, joining) == 60
    while Verdict.objects.filter(judge__run=run, state="waiting").exists():
        advance(run.pk)
    seal_all(run.queue.project)
    assert set(figures_of(run)) == {*names}
    run.refresh_from_db()
    assert run.state == "voting"
    assert_whole(run.queue.project)


# --- ledgers of earlier versions, whose imports wrote no entry for what had no verdict ----------


def without_openings(run, *names):
    entries = Entry.objects.filter(queue=run.queue_id, kind="verdicts")
    (entries.filter(item__external_id__in=names) if names else entries).delete()


@pytest.mark.parametrize("judged", [[], [verdict(1, "gpt", "A")]])
def test_votes_on_what_has_no_entry_count_for_people_and_models(judged):
    run = imported(pair(1), pair(2), *judged, *TWO_VOTES)
    before = compute(run).data
    without_openings(run, *(["p2"] if judged else []))
    data = compute(run).data
    for name in ("as_of", "among_people", "models", "judges"):
        assert data[name] == before[name]


def test_entries_that_were_written_behind_the_votes_open_their_pairs_before_them():
    texts, votes, verdicts = long_study(12)
    run = imported(*texts, *votes, *verdicts)
    before = compute(run).data
    for entry in Entry.objects.filter(queue=run.queue_id, kind="verdicts").order_by("-seq"):
        Entry.objects.filter(pk=entry.pk).update(seq=entry.seq + 1_000)
    data = compute(run).data
    assert data["claims"] == before["claims"]
    assert data["words"] == before["words"]
