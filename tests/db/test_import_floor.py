"""Baselines join an imported board, and answer as they do in a run that is judged here."""

import pytest

from judge_eval.baselines import longer_wins, random_choice
from judge_eval.exchange.import_report import ImportOptions
from judge_eval.exchange.import_write import UNSEEN
from judge_eval.exchange.row_models import JudgeOrder
from judge_eval.models import Verdict
from tests.helpers.imports import (
    added,
    assert_whole,
    import_run,
    imported,
    pair,
    rows,
    run_of,
    verdict,
    vote,
)
from tests.makers import judges_of, make_project
from voting.models import Entry

pytestmark = pytest.mark.django_db

FLOOR = ["always-first", "random", "longer-wins"]


def names_of(run):
    return [judge.name for judge in judges_of(run)]


def answers_of(run, name):
    """What a judge said, by the pair's name; None for a failure."""
    verdicts = Verdict.objects.filter(judge__run=run, judge__name=name)
    return {v.item.external_id: v.winner or None for v in verdicts}


def test_they_stand_behind_the_judges_of_the_source_and_answer_for_each_judged_pair():
    texts = {"output_a": "long answer", "output_b": "short"}
    records = [pair(1, **texts), pair(2), pair(3), verdict(1, "gpt", "A"), verdict(2, "gpt", "B")]
    run = imported(*records, vote(1, "ann", "A"), baselines=None)
    assert names_of(run) == ["gpt", *FLOOR]
    assert answers_of(run, "always-first") == {"p1": "tie", "p2": "tie"}
    tossed = Verdict.objects.filter(judge__run=run, judge__name="random")
    assert {v.item.external_id: v.picks for v in tossed} == {
        p: [random_choice("", "", f"{p} {order}").winner for order in ("AB", "BA")]
        for p in ("p1", "p2")
    }
    said = answers_of(run, "longer-wins")
    assert said["p1"] == longer_wins("long answer", "short", "").winner == "A"
    assert_whole(run.queue.project)


def test_they_are_in_the_ledger_before_the_votes_and_change_no_elo():
    records = [pair(1), verdict(1, "gpt", "B"), vote(1, "ann", "B")]
    run = imported(*records, baselines=None)
    entries = Entry.objects.filter(queue=run.queue).exclude(kind="object").order_by("seq")
    assert [entry.kind for entry in entries] == ["verdicts", "parameters", "vote", "parameters"]
    assert [said["winner"] for said in entries[0].payload["verdicts"]][:2] == ["B", "tie"]
    by_name = {judge.name: judge.rating for judge in judges_of(run)}
    assert {rating.elo for rating in by_name.values()} == {1000.0}
    assert by_name["always-first"].requested == by_name["always-first"].answered == 1
    assert_whole(run.queue.project)


def test_an_import_has_the_elo_of_its_source_with_a_floor_and_without():
    records = [pair(1), pair(2), verdict(1, "gpt", "A"), verdict(1, "eve", "B")]
    records += [verdict(2, "gpt", "B"), verdict(2, "eve", "A")]
    records += [vote(1, "ann", "A"), vote(2, "ann", "A"), vote(2, "ben", "B")]
    elos = []
    for baselines in (False, True):
        run = imported(*records, baselines=baselines, name=f"Floor {baselines}")
        elos.append([judge.rating.elo for judge in judges_of(run)])
    assert elos[1] == [*elos[0], 1000.0, 1000.0, 1000.0]
    assert elos[0] == pytest.approx([1014.666, 985.334], abs=0.001)


def test_without_outputs_only_those_join_that_look_at_none():
    run = imported(verdict(1, "gpt", "A"), vote(1, "ann", "A"), baselines=None)
    assert names_of(run) == ["gpt", "always-first", "random"]


def test_an_output_that_did_not_come_is_no_verdict():
    records = [pair(1), {"pair": "p2", "prompt": "Only asked"}]
    run = imported(*records, verdict(1, "gpt", "A"), verdict(2, "gpt", "A"), baselines=None)
    assert answers_of(run, "longer-wins")["p2"] is None
    failed = Verdict.objects.get(judge__name="longer-wins", state=Verdict.State.FAILED)
    assert failed.error == UNSEEN
    assert answers_of(run, "always-first")["p2"] == "tie"


def test_a_source_that_states_its_judges_keeps_its_board():
    stated = JudgeOrder("run.json", ("gpt",))
    records = [stated, *rows(pair(1), verdict(1, "gpt", "A"))]
    report = import_run(make_project(), "Stated", records)
    assert names_of(run_of(report)) == ["gpt"]
    assert report.notes == []


def test_a_source_that_states_its_judges_may_have_a_floor_all_the_same():
    stated = JudgeOrder("run.json", ("gpt",))
    records = [stated, *rows(pair(1), verdict(1, "gpt", "A"))]
    how = ImportOptions(baselines=True)
    assert names_of(run_of(import_run(make_project(), "Both", records, options=how)))[1:] == FLOOR


def test_they_can_be_declined_and_a_run_without_judges_gets_none():
    assert names_of(imported(pair(1), verdict(1, "gpt", "A"), baselines=False)) == ["gpt"]
    assert names_of(imported(pair(1), vote(1, "ann", "A"), name="Votes", baselines=None)) == []


def test_they_join_with_the_first_judges_however_late_these_come():
    run = imported(pair(1), vote(1, "ann", "A"), name="Votes", baselines=None)
    assert names_of(run) == []
    added(run, verdict(1, "gpt", "A"))
    assert names_of(run) == ["gpt", *FLOOR]
    assert answers_of(run, "always-first") == {"p1": "tie"}
    assert_whole(run.queue.project)


def test_what_is_added_later_is_answered_too_and_the_same_again_changes_nothing():
    run = imported(pair(1), verdict(1, "gpt", "A"), baselines=None)
    more = [pair(2), verdict(2, "gpt", "B"), verdict(1, "eve", "B")]
    added(run, *more)
    assert names_of(run) == ["gpt", *FLOOR, "eve"]
    assert set(answers_of(run, "longer-wins")) == {"p1", "p2"}
    verdicts, entries = Verdict.objects.count(), Entry.objects.count()
    assert added(run, *more).new.total() == 0
    assert (Verdict.objects.count(), Entry.objects.count()) == (verdicts, entries)
    assert_whole(run.queue.project)


def test_drawings_are_counted_by_their_elements():
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{}</svg>'
    drawn = {
        "output_a": svg.format("<rect width='9' height='9'/>"),
        "output_b": svg.format("<g><rect width='1' height='1'/><path d='M0 0h9'/></g>"),
    }
    run = imported(pair(1, **drawn), verdict(1, "gpt", "A"), kind="svg", baselines=None)
    assert names_of(run) == ["gpt", *FLOOR, "more-elements-wins"]
    assert answers_of(run, "more-elements-wins") == {"p1": "B"}
