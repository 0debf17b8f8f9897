"""What a board claims comes from the ledger: which entries count, and what withdraws a claim."""

import pytest

from judge_eval.board import history
from judge_eval.board.filters import Slice
from judge_eval.board.load import outcomes_of
from judge_eval.judging.verdicts import verdicts_entry
from judge_eval.models import Verdict
from judge_eval.stats.evidence_order import (
    ItemClosed,
    ItemOpened,
    OutOfOrder,
    VoteCast,
    VotesRequired,
)
from judge_eval.stats.outcomes_table import FAILED, UNASSIGNED
from tests.helpers.imports import imported, pair, verdict, vote
from tests.helpers.run_findings import compute
from tests.makers import (
    change_verdicts,
    judges_of,
    make_exposure,
    make_judges,
    make_run,
    make_verdict,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ballot.assignment import ballot_for
from voting.ballot.services import cast_vote, undo_last_vote
from voting.curating.services import change_for_all, decide, exclude_voter, reverse
from voting.items.order import prompt_order
from voting.ledger import ledger
from voting.ledger.decisions import Rules, payload_of
from voting.models import Entry, Queue

pytestmark = pytest.mark.django_db

# So many prompts, all won by one of two judges, are evidence of 56.8 : 1; 40 is enough.
ENOUGH = 8


def a_run(pairs=ENOUGH, says=("A", "B"), **fields):
    """Two judges, of which the first is right wherever people say A; each pair its own prompt."""
    return make_run(pairs=pairs, says=[list(says)] * pairs, baselines=(), **fields)


def vote_on(run, choice="A", pairs=None):
    voter = make_voter(run)
    for each in pairs_of(run) if pairs is None else pairs:
        make_vote(voter, each, choice)
    seal_all(run.queue.project)
    return voter


def told(run, part=""):
    run = type(run).objects.select_related("queue").get(pk=run.pk)
    return outcomes_of(run, Slice.parse(part)).history


def claims_of(run, part=""):
    return compute(run, part).data["claims"]


def withdrawn(run):
    return [(each["judge"], each["other"], each["why"]) for each in claims_of(run)["withdrawn"]]


# --- events -------------------------------------------------------------------------------------


def test_verdicts_and_votes_are_events_in_the_order_of_the_ledger():
    run = make_run(says=[["A", None]], baselines=(), votes_wanted=2)
    vote_on(run, "tie")
    found = told(run)
    assert found.events == [ItemOpened(1, 0, 0, 2, [0, FAILED]), VoteCast(2, 0, 2, 0)]
    assert found.votes_left == 1
    assert found.order == [prompt_order(run.queue_id, "Question 0")]
    assert found.changes == {}


def test_a_vote_that_was_taken_back_is_none_and_that_it_was_is_known():
    run = a_run(pairs=2)
    voter = vote_on(run)
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    found = told(run)
    assert sum(isinstance(event, VoteCast) for event in found.events) == 1
    assert found.changes == {history.TAKEN_BACK: 5}


def test_what_a_curator_excludes_is_not_open_and_a_reversal_brings_it_back():
    run = a_run(pairs=2)
    vote_on(run)
    curator, [first, _] = make_voter(run), pairs_of(run)
    decision = decide(first.pk, "exclude", curator, "Both are copied.", after=None)
    seal_all(run.queue.project)
    found = told(run)
    assert [type(event) for event in found.events] == [ItemOpened, VoteCast]
    assert found.changes == {history.EXCLUDED: 5}
    reverse(decision.uid, curator, "They are not.")
    seal_all(run.queue.project)
    assert len(told(run).events) == 4


def test_votes_that_are_not_blind_are_no_events():
    run = a_run(pairs=1)
    voter, [only] = make_voter(run), pairs_of(run)
    make_exposure(voter, only)
    make_vote(voter, only)
    seal_all(run.queue.project)
    assert [type(event) for event in told(run).events] == [ItemOpened]


def test_simulated_votes_are_events_of_a_simulated_run():
    run = a_run(pairs=1)
    vote_on(run)
    Queue.objects.filter(pk=run.queue_id).update(is_simulated=True)
    assert [type(event) for event in told(run).events] == [ItemOpened]
    Entry.objects.filter(kind="vote").update(simulated=True)
    assert [type(event) for event in told(run).events] == [ItemOpened, VoteCast]


def test_further_votes_change_no_label():
    run = a_run(votes_wanted=1)
    vote_on(run, "A")
    for _ in range(3):
        vote_on(run, "B")
    assert claims_of(run)["evidence"][0][1] == pytest.approx(511 / 9)


def test_votes_wanted_hold_from_the_entry_that_changes_them():
    run = a_run(pairs=2, votes_wanted=2)
    first, second = pairs_of(run)
    vote_on(run, pairs=[first])
    wanted = Entry(
        project=run.queue.project, queue=run.queue, kind="parameters", at=first.opened_at
    )
    wanted.payload = payload_of({first.pk: 1, second.pk: 3})
    ledger.record(wanted)
    seal_all(run.queue.project)
    vote_on(run, pairs=[second])
    assert told(run).events[2:] == [
        VoteCast(3, 0, 0, 0),
        VotesRequired(4, 0, 1),
        VotesRequired(4, 1, 3),
        VoteCast(5, 1, 0, 1),
    ]
    assert told(run).votes_left == 2
    # A verdict that changes later says nothing new of votes wanted.
    change_verdicts(second, ["B", "B"])
    seal_all(run.queue.project)
    assert told(run).events[-1] == ItemOpened(6, 1, told(run).events[1].prompt, 3, [1, 1])


def test_another_round_wants_more_until_it_is_reversed():
    run = a_run(pairs=1)
    vote_on(run)
    curator, [only] = make_voter(run), pairs_of(run)
    decision = decide(only.pk, "another_round", curator, "It is close.", after=None, votes=2)
    seal_all(run.queue.project)
    assert told(run).events[-1] == VotesRequired(3, 0, 3)
    reverse(decision.uid, curator, "It is not.")
    seal_all(run.queue.project)
    assert told(run).events[-1] == VotesRequired(4, 0, 1)
    assert told(run).changes == {}


def test_another_round_stands_whatever_a_lead_asks_for_since():
    run = a_run(pairs=1)
    vote_on(run)
    curator, [only] = make_voter(run), pairs_of(run)
    decision = decide(only.pk, "another_round", curator, "It is close.", after=None, votes=2)
    seal_all(run.queue.project)
    change_for_all(run.queue, Rules(votes_per_item=2, overlap_share=0.0, overlap_votes=2), curator)
    seal_all(run.queue.project)
    assert told(run).events[-1] == VotesRequired(4, 0, 3)
    reverse(decision.uid, curator, "It is not.")
    seal_all(run.queue.project)
    assert told(run).events[-1] == VotesRequired(5, 0, 2)


def test_a_judge_that_joins_was_not_asked_before_and_changes_no_verdict():
    run = a_run(pairs=1)
    join(run, "A")
    opened = told(run).events
    assert [event.verdicts for event in opened] == [[0, 1, UNASSIGNED], [0, 1, 0]]
    assert told(run).changes == {history.JOINED: 2}


def join(run, said):
    """Let a third judge say the same of all pairs."""
    make_judges(run, ["late"], first=2, baselines=())
    late = judges_of(run)[2]
    for item in pairs_of(run):
        Verdict.objects.create(**_columns(make_verdict(late, item, said)))
        verdicts = item.verdicts.select_related("judge").order_by("judge__position")
        ledger.record(verdicts_entry(item, list(verdicts)))
    seal_all(run.queue.project)


def _columns(verdict):
    names = ("judge", "item", "state", "winner", "feedback", "error")
    return {name: getattr(verdict, name) for name in names}


def test_when_voting_is_closed_nothing_is_waited_for():
    run = a_run(pairs=2)
    vote_on(run, pairs=pairs_of(run)[:1])
    assert told(run).votes_left == 1
    Queue.objects.filter(pk=run.queue_id).update(is_open=False)
    found = told(run)
    assert (found.events[-1], found.votes_left) == (ItemClosed(3), 0)


def test_a_part_has_claims_of_its_own_comparisons():
    run = a_run(pairs=2 * ENOUGH)
    vote_on(run, "A", pairs_of(run)[:ENOUGH])
    vote_on(run, "B", pairs_of(run)[ENOUGH:])
    for item in pairs_of(run)[:ENOUGH]:
        item.a.tags = ["easy"]
        item.a.save()
    assert not claims_of(run)["beats"][0][1]
    part = claims_of(run, "tag:easy")
    assert (part["beats"][0][1], part["prompts"], part["best"]) == (True, ENOUGH, 0)


def test_only_votes_for_a_side_leave_fewer_to_wait_for():
    run = make_run(says=[["A", "tie"]], baselines=(), votes_wanted=3)
    for choice in ("A", "tie", "A", "both_bad"):
        vote_on(run, choice)
    found = told(run, "ballot:decided")
    assert found.events == [
        ItemOpened(1, 0, 0, 3, [0, UNASSIGNED]),
        VoteCast(2, 0, 0, 0),
        VotesRequired(3, 0, 2),
        VoteCast(4, 0, 0, 2),
    ]


# --- votes that the queue did not hand out --------------------------------------------------------


def votes_but_on_the_first(run, cast):
    """Let somebody vote on all pairs but the first in the queue's order, and return that one."""
    voter = make_voter(run)
    first, *others = sorted(pairs_of(run), key=lambda item: item.turn)
    for item in others:
        cast(voter, item)
    seal_all(run.queue.project)
    return first


def by_script(voter, item):
    cast_vote(ballot_for(voter, item.queue, item), "A", left="")


def test_a_script_that_names_its_pairs_does_not_choose_which_prompts_enter():
    handed_out, named = a_run(pairs=13), a_run(pairs=13)
    votes_but_on_the_first(handed_out, make_vote)
    first = votes_but_on_the_first(named, by_script)
    assert (claims_of(handed_out)["entered"], claims_of(named)["entered"]) == (3, 0)
    assert OutOfOrder(14) in told(named).events
    assert OutOfOrder not in map(type, told(handed_out).events)
    by_script(make_voter(named), first)
    seal_all(named.queue.project)
    assert claims_of(named)["entered"] == 13


def test_one_such_vote_is_enough_from_its_entry_on():
    run = a_run(pairs=13)
    _, *others = sorted(pairs_of(run), key=lambda item: item.turn)
    vote_on(run, pairs=others[:11])
    assert claims_of(run)["entered"] == 2
    by_script(make_voter(run), others[11])
    seal_all(run.queue.project)
    assert claims_of(run)["entered"] == 2
    Queue.objects.filter(pk=run.queue_id).update(is_open=False)
    assert claims_of(run)["entered"] == 12


def test_a_vote_of_a_script_that_does_not_count_changes_nothing():
    run = a_run(pairs=13)
    voter, [one, *_] = make_voter(run), pairs_of(run)
    by_script(voter, one)
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    assert OutOfOrder not in map(type, told(run).events)


def test_nobody_chooses_what_simulated_votes_are_cast_on():
    run = a_run(pairs=13)
    votes_but_on_the_first(run, by_script)
    Queue.objects.filter(pk=run.queue_id).update(is_simulated=True)
    Entry.objects.filter(kind="vote").update(simulated=True)
    assert OutOfOrder not in map(type, told(run).events)


def test_votes_of_an_import_came_all_at_once_and_nobody_chose_their_order():
    run = imported(*rows(12))
    assert not Entry.objects.filter(queue=run.queue_id).exclude(left_side="").exists()
    assert OutOfOrder not in map(type, told(run).events)


# --- claims -------------------------------------------------------------------------------------


def both(why):
    """That the first judge beats the other, and that it is the best one."""
    return [(0, 1, why), (0, None, why)]


def test_a_claim_names_the_entry_since_which_it_stands():
    run = a_run(pairs=ENOUGH + 2)
    vote_on(run)
    data = compute(run).data
    claims, [first, second] = data["claims"], data["judges"]
    assert (claims["beats"], claims["best"]) == ([[False, True], [False, False]], 0)
    assert claims["threshold"] == 40
    seq = claims["since"][0][1]
    assert Entry.objects.get(project=run.queue.project, seq=seq).kind == "vote"
    votes = Entry.objects.filter(project=run.queue.project, kind="vote", seq__lte=seq).count()
    assert votes >= ENOUGH
    assert [(j["rank_low"], j["rank_high"], j["ties"]) for j in (first, second)] == [
        (1, 1, "a"),
        (2, 2, "b"),
    ]
    assert data["words"].endswith("; one person voted.")
    assert data["may_stop"] is False
    assert claims["withdrawn"] == []


def test_a_claim_that_a_vote_is_taken_back_from_is_withdrawn_until_it_is_made_again():
    run = a_run()
    voter = vote_on(run)
    assert claims_of(run)["beats"][0][1]
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    assert withdrawn(run) == both(history.TAKEN_BACK)
    assert withdrawn(run) == both(history.TAKEN_BACK)
    data = compute(run).data
    names = [judge["name"] for judge in data["judges"]]
    assert data["more"][0] == "Changed: A vote was taken back: 2 claims withdrawn."
    assert data["notes"][0] == (
        f"No longer claimed: {names[0]} beats {names[1]} and {names[0]} is the best judge."
    )
    vote_on(run, pairs=[item for item in pairs_of(run) if not item.votes])
    assert withdrawn(run) == []
    assert claims_of(run)["beats"][0][1]


def test_a_claim_falls_with_a_verdict_that_changed():
    run = a_run()
    vote_on(run)
    compute(run)
    change_verdicts(pairs_of(run)[0], ["A", "A"])
    seal_all(run.queue.project)
    assert withdrawn(run) == both(history.CHANGED)


def test_a_claim_falls_with_votes_that_are_excluded():
    run = a_run()
    vote_on(run)
    compute(run)
    decide(pairs_of(run)[0].pk, "exclude", make_voter(run), "Both are copied.", after=None)
    seal_all(run.queue.project)
    assert withdrawn(run) == both(history.EXCLUDED)


def test_a_claim_falls_with_the_votes_of_a_voter_who_is_excluded_and_comes_back():
    run = a_run()
    voter, curator = vote_on(run), make_voter(run)
    compute(run)
    decision = exclude_voter(voter.pk, run.queue, curator, "A bot.", after=None)
    seal_all(run.queue.project)
    assert withdrawn(run) == both(history.VOTER_EXCLUDED)
    reverse(decision.uid, curator)
    seal_all(run.queue.project)
    assert withdrawn(run) == []


def test_a_claim_falls_because_a_judge_joined_and_the_evidence_stays():
    run = a_run()
    vote_on(run)
    before = claims_of(run)
    join(run, "A")
    after = claims_of(run)
    assert withdrawn(run) == both(history.JOINED)
    assert compute(run).data["more"][0].startswith("Changed: A judge joined: ")
    assert (before["threshold"], after["threshold"]) == (40, 120)
    assert after["evidence"][0][1] == before["evidence"][0][1]


def test_clones_change_nothing_about_the_others():
    first, second = a_run(), a_run(says=("A", "B", "B", "B"))
    # The same order of prompts does not matter where all say the same.
    for run in (first, second):
        vote_on(run)
    one, other = compute(first).data, compute(second).data
    for name in ("evidence", "evidence_now", "difference"):
        assert [row[:2] for row in other["claims"][name][:2]] == one["claims"][name]
    keys = ("overall", "always_low", "always_high")
    for a, b in zip(one["judges"], other["judges"], strict=False):
        assert [a[key] for key in keys] == [b[key] for key in keys]


# --- imports ------------------------------------------------------------------------------------


def rows(pairs):
    """Two people and two judges on some pairs; one of the judges is right on three of four."""
    for n in range(pairs):
        yield pair(n)
        for judge, right in (("x", n % 4 > 0), ("y", n % 3 == 0)):
            yield verdict(n, judge, "A" if right else "B")
        for person in ("ann", "ben", "cat"):
            yield vote(n, person, "B" if (n, person) == (5, "cat") else "A")


def test_the_order_of_an_imported_file_does_not_matter(monkeypatch):
    # Two runs have two orders; here they have one.
    monkeypatch.setattr(history, "prompt_order", lambda _, prompt: prompt_order("one", prompt))
    records = list(rows(30))
    found = [claims_of(imported(*some)) for some in (records, records[::-1])]
    straight, backwards = found
    for name in ("beats", "evidence", "evidence_now", "forecast"):
        # Judges stand in the order in which they are met.
        assert [row[::-1] for row in backwards[name][::-1]] == straight[name]
    assert straight["entered"] == straight["prompts"] == 30


def test_all_votes_that_come_with_a_pair_are_wanted():
    run = imported(*rows(2), votes_per_pair=2)
    assert [item.votes_wanted for item in pairs_of(run)] == [3, 3]
    assert told(run).votes_left == 0
    [sealed, *_] = Entry.objects.filter(queue=run.queue_id, kind="verdicts")
    assert sealed.payload["votes_wanted"] == 3
