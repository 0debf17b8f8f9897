"""Baselines join an imported board, and answer as they do in a run that is judged here."""

import io
from itertools import compress
from random import Random

import pytest

from judge_eval.imports.formats import read
from judge_eval.imports.import_report import ImportOptions
from judge_eval.imports.import_write import UNSEEN
from judge_eval.imports.row_models import JudgeOrder
from judge_eval.judging.baselines import longer_wins, random_choice
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
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import judges_of, key_client, make_key, make_project, seal_all, user_client
from voting.items.choices import SWAPPED
from voting.models import Entry

pytestmark = pytest.mark.django_db

BLIND = ["always-first", "always-second", "always-both-bad", "random"]
FLOOR = [*BLIND, "longer-wins", "shorter-wins"]


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
    assert answers_of(run, "always-first") == {"p1": "A", "p2": "A"}
    assert answers_of(run, "always-second") == {"p1": "B", "p2": "B"}
    tossed = Verdict.objects.filter(judge__run=run, judge__name="random")
    assert {v.item.external_id: v.picks for v in tossed} == {
        p: [random_choice("", "", f"{p} AB").winner] for p in ("p1", "p2")
    }
    said = answers_of(run, "longer-wins")
    assert said["p1"] == longer_wins("long answer", "short", "").winner == "A"
    assert answers_of(run, "shorter-wins")["p1"] == "B"
    assert_whole(run.queue.project)


def test_they_are_in_the_ledger_before_the_votes_and_change_no_elo():
    records = [pair(1), verdict(1, "gpt", "B"), vote(1, "ann", "B")]
    run = imported(*records, baselines=None)
    entries = Entry.objects.filter(queue=run.queue).exclude(kind="object").order_by("seq")
    assert [entry.kind for entry in entries] == ["verdicts", "parameters", "vote", "parameters"]
    assert [said["winner"] for said in entries[0].payload["verdicts"]][:2] == ["B", "A"]
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
    assert elos[1] == [*elos[0], *[1000.0] * len(FLOOR)]
    assert elos[0] == pytest.approx([1014.666, 985.334], abs=0.001)


def test_without_outputs_only_those_join_that_look_at_none():
    run = imported(verdict(1, "gpt", "A"), vote(1, "ann", "A"), baselines=None)
    assert names_of(run) == ["gpt", *BLIND]


def test_an_output_that_did_not_come_is_no_verdict():
    records = [pair(1), {"pair": "p2", "prompt": "Only asked"}]
    run = imported(*records, verdict(1, "gpt", "A"), verdict(2, "gpt", "A"), baselines=None)
    assert answers_of(run, "longer-wins")["p2"] is None
    failed = Verdict.objects.get(judge__name="longer-wins", state=Verdict.State.FAILED)
    assert failed.error == UNSEEN
    assert answers_of(run, "always-first")["p2"] == "A"


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
    assert answers_of(run, "always-first") == {"p1": "A"}
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


# --- judges that were asked in other orders than each other ---------------------------------------


def figures_of(run):
    """Figures, and the judges in them by name."""
    seal_all(run.queue.project)
    figures = compute(run).data
    return figures, {judge["name"]: judge for judge in figures["judges"]}


def held_against(figures, name):
    """The baselines that a judge is held against."""
    names = [judge["name"] for judge in figures["judges"]]
    return list(compress(names, figures["claims"]["floor"][names.index(name)]))


def test_a_coin_and_who_always_says_the_same_do_not_beat_the_floor():
    """People like the shorter text in three pairs of four; all judges gave one verdict a pair."""
    chance, lines = (
        Random(36),
        ["pair,prompt,output_a,output_b,voter,vote,verdict.coin,verdict.left"],
    )
    for n in range(100):
        outputs = [f"short {n}", f"a much longer answer than the other one {n}"]
        chance.shuffle(outputs)
        shorter = "AB"[len(outputs[0]) > len(outputs[1])]
        vote = shorter if n % 4 else SWAPPED[shorter]
        lines.append(f"p{n},P {n},{','.join(outputs)},ann,{vote},{chance.choice('AB')},A")
    content = io.BytesIO("\n".join(lines).encode())
    run = run_of(import_run(make_project(), "Coin", read(content, "votes.csv")))
    _, judges = figures_of(run)
    assert judges["longer-wins"]["overall"]["value"] == 0.25
    assert judges["shorter-wins"]["overall"]["value"] == 0.75
    names = ["coin", "left"]
    assert [0.4 < judges[name]["overall"]["value"] < 0.6 for name in names] == [True] * 2
    assert [judges[name]["beats_floor"] for name in names] == [False] * 2
    board = text_of(user_client().get(f"/runs/{run.pk}/"))
    assert "Floor: coin and left are worse than shorter-wins." in board
    assert "beat the baselines" not in board
    asked = f"/api/runs/{run.pk}/gate?beats_floor=true&judge="
    client = key_client(make_key("read")[1])
    assert [client.get(asked + name).json()["code"] for name in names] == [1, 1]


def test_who_gave_both_picks_and_who_gave_one_verdict_have_floors_of_their_own():
    records = [pair(n) for n in range(1, 13)]
    records += [verdict(n, "once", "A") for n in range(1, 13)]
    both = {"judge": "both", "pick_ab": "A", "pick_ba": "B"}
    records += [{"pair": f"p{n}"} | both for n in range(1, 13)]
    run = imported(*records, *(vote(n, "ann", "A") for n in range(1, 13)), baselines=None)
    figures, judges = figures_of(run)
    twice = [f"{name} (both orders)" for name in (*BLIND, "random-output", *FLOOR[-2:])]
    assert held_against(figures, "once") == FLOOR
    assert sorted(held_against(figures, "both")) == sorted(twice)
    assert judges["always-first"]["overall"]["value"] == 1
    assert judges["always-first (both orders)"]["overall"]["value"] == 0
    assert {judges[name]["beats_floor"] for name in ("once", "both")} == {False}
    assert_whole(run.queue.project)


def test_coins_with_one_verdict_and_with_both_picks_do_not_beat_the_floor_in_one_run():
    """People like what stands first on nine pairs of ten, and no judge has read a word."""
    chance, records = Random(8), []
    for n in range(100):
        toss = {name: chance.choice("AB") for name in ("once", "steady", "first", "second")}
        records += [pair(n), vote(n, "ann", "AB"[n % 10 == 0])]
        records += [verdict(n, "left", "A"), verdict(n, "once", toss["once"])]
        steady = {"judge": "steady", "pick_ab": toss["steady"], "pick_ba": toss["steady"]}
        fickle = {"judge": "fickle", "pick_ab": toss["first"], "pick_ba": toss["second"]}
        records += [{"pair": f"p{n}"} | picks for picks in (steady, fickle)]
    run = imported(*records, baselines=None)
    figures, judges = figures_of(run)
    assert "always-first" in held_against(figures, "left")
    assert "random-output (both orders)" in held_against(figures, "steady")
    names = ("left", "once", "steady", "fickle")
    assert [judges[name]["beats_floor"] for name in names] == [False] * 4
    client = key_client(make_key("read")[1])
    asked = f"/api/runs/{run.pk}/gate?beats_floor=true&judge="
    assert 0 not in [client.get(asked + name).json()["code"] for name in names]


def test_who_was_asked_in_both_orders_on_some_pairs_only_is_followed_pair_by_pair():
    records = [pair(1), pair(2), verdict(1, "gpt", "A")]
    records.append({"pair": "p2", "judge": "gpt", "pick_ab": "A", "pick_ba": "B"})
    run = imported(*records, vote(1, "ann", "A"), vote(2, "ann", "A"), baselines=None)
    figures, _ = figures_of(run)
    assert answers_of(run, "always-first") == {"p1": "A", "p2": "tie"}
    assert "always-first" in held_against(figures, "gpt")
    added(run, verdict(1, "eve", "B"), verdict(2, "eve", "B"))
    figures, _ = figures_of(run)
    assert answers_of(run, "always-first (as stored)") == {"p1": "A", "p2": "A"}
    assert "always-first (as stored)" in held_against(figures, "eve")
    assert "always-first" in held_against(figures, "gpt")
