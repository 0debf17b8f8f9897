"""What is computed of a run in the background: right, as of one entry, and not too often."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.board import alt_test, cache
from judge_eval.board import compute as compute_module
from judge_eval.board.api import results_of
from judge_eval.board.filters import Slice
from judge_eval.board.model import RunFindings
from judge_eval.board.pictures import chart_names, on_page
from judge_eval.models import Board, Findings, Judge, Run, Verdict
from judge_eval.stats.elo import SILENT
from judge_eval.tasks import refresh_findings
from tests.helpers import imports, run_findings
from tests.helpers.pages import text_of
from tests.helpers.run_findings import compute
from tests.makers import (
    judges_of,
    make_judges,
    make_many_votes,
    make_run,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.ballot.services import undo_last_vote
from voting.items.choices import SWAPPED
from voting.models import Inference, Item

pytestmark = pytest.mark.django_db


def computed(run, part="", **options):
    found = compute(run, part, **options)
    json.dumps(found.data, allow_nan=False)
    return found


def voted_run(*, people=3, pairs=40, **fields):
    """Two judges: one says A as people do on three of four pairs, the other says B."""
    run = make_run(pairs=pairs, says=[["A", "B"]] * pairs, **fields)
    vote_in(run, people)
    return run


def vote_in(run, people):
    """Let people say A on three of four pairs."""
    for _ in range(people):
        voter = make_voter(run)
        for place, pair in enumerate(pairs_of(run)):
            make_vote(voter, pair, "B" if place % 4 == 0 else "A")
    seal_all(run.queue.project)


def test_the_figures_of_a_small_run():
    run = voted_run(people=1, pairs=8)
    found = computed(run)
    one, other = found.data["judges"]
    assert (one["agreement"]["successes"], one["agreement"]["trials"]) == (6, 8)
    assert other["agreement"]["value"] == 0.25
    assert one["rating"]["rank"] == 1
    assert one["coverage"]["value"] == 1
    assert found.data["as_of"] | {"seq": 0} == {
        "seq": 0,
        "votes": 8,
        "people": 1,
        "comparisons": 8,
        "open": 8,
        "voted": 8,
        "simulated": False,
        "part": "all pairs",
    }
    assert found.seq == run.queue.project.head_seq or found.seq == found.data["as_of"]["seq"]
    assert found.data["words"].startswith("No judge was asked yet. Add judges: ")
    assert found.data["mcnemar"]["ahead"] == [[0, 6], [2, 0]]
    assert found.data["same_verdict"] == [[1.0, 0.0], [0.0, 1.0]]
    assert found.data["alt_test"] is None
    assert "3 people" in found.data["alt_test_why"]


def test_the_same_votes_give_the_same_findings():
    run = voted_run(people=2, pairs=10)
    assert computed(run).data == computed(run).data


def test_an_undone_vote_is_not_in_it():
    run = make_run(pairs=2, says=[["A", "B"]] * 2)
    voter = make_voter(run)
    for pair in pairs_of(run):
        make_vote(voter, pair, "A")
    seal_all(run.queue.project)
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    found = computed(run)
    assert found.data["as_of"]["votes"] == 1
    assert found.data["judges"][0]["agreement"]["trials"] == 1


def test_people_and_judges_meet_in_the_alt_test():
    run = voted_run(people=4)
    found = computed(run).data["alt_test"]
    one, other = found["judges"]
    assert found["humans"] == 4
    assert one["winning_rates"]["0.30"] >= one["winning_rates"]["0.00"]
    assert one["advantage"] == 0.75
    assert [human["judge"] for human in other["humans"]] == [0.25] * 4
    assert other["passes"] is False
    assert other["words"].startswith("Fails")


@pytest.mark.parametrize("limit, most", [("MOST_VOTES", 120), ("MOST_ANSWERS", 240)])
def test_of_very_many_votes_the_alt_test_takes_every_few_pairs_and_says_so(
    monkeypatch, limit, most
):
    run = voted_run(people=3, pairs=80)
    monkeypatch.setattr(alt_test, limit, most)
    found = computed(run).data["alt_test"]
    assert found["items"] == 40
    assert found["left_out"] == [
        (
            "This page compares one of every 2 items: all 240 votes would take too long here. "
            "Score files take all of them."
        )
    ]


def test_everybody_is_compared_however_many_they_are(monkeypatch):
    """Each is a part of the others whom the judge and a person left out are compared with."""
    run = voted_run(people=33, pairs=30)
    late = make_voter(run)
    make_vote(late, pairs_of(run)[0])
    seal_all(run.queue.project)
    found = computed(run).data["alt_test"]
    judge = found["judges"][0]
    assert (found["humans"], judge["tested"], judge["untested"]) == (34, 33, 1)
    assert found["left_out"] == []
    assert {human["items"] for human in judge["humans"]} == {30, 1}
    assert [human["items"] for human in judge["humans"] if human["why"]] == [1]
    monkeypatch.setattr(alt_test, "MOST_LISTED", 5)
    listed = computed(run).data["alt_test"]["judges"][0]
    assert [human["items"] for human in listed["humans"]] == [30] * 5
    assert listed | {"humans": judge["humans"]} == judge


def test_charts_are_drawn_of_what_there_is():
    run = voted_run(people=4)
    figures = RunFindings.read(computed(run).data)
    assert chart_names(figures) == {"winning_rates", "model_ratings"}
    drawn = {name: on_page(figures, name) for name in chart_names(figures)}
    assert drawn["winning_rates"].startswith('<div class="lines" role="img" aria-label="Share of')
    assert drawn["model_ratings"].startswith('<div class="plot')
    assert chart_names(RunFindings.read(computed(make_run()).data)) == set()


def test_agreement_as_votes_came_in_ends_where_it_stands():
    run = run_findings.voted_run(people=3, computed=False)
    data = computed(run).data
    course = data["course"]
    near, contrary, _ = (judge["id"] for judge in data["judges"])
    assert list(course["judges"]) == [near, contrary]
    assert (course["votes"][0], course["votes"][-1]) == (10, 120)
    assert len(course["votes"]) <= 50
    overall = {judge["id"]: judge["overall"]["value"] for judge in data["judges"]}
    assert {pk: shares[-1] for pk, shares in course["judges"].items()} == {
        pk: pytest.approx(overall[pk]) for pk in (near, contrary)
    }
    # Of the first ten votes of the first voter it was wrong on two.
    assert course["judges"][near][0] == 0.8
    page = user_client().get(f"/runs/{run.pk}/")
    assert "near-judge is in front from 10 votes on." in text_of(page)
    assert [line.name for line in page.context["course"].lines] == ["near-judge", "contrary-judge"]


def test_of_few_votes_or_ratings_nothing_is_said_of_their_order():
    assert computed(run_findings.voted_run(people=1, pairs=10)).data["course"] is None
    rated = make_single_run([["3"] * 2] * 12, kind="rating")
    make_many_votes(rated, [(make_voter(rated), item, "4") for item in pairs_of(rated)])
    seal_all(rated.queue.project)
    assert computed(rated).data["course"] is None
    labels = imports.imported(
        *(imports.pair(n) for n in range(12)),
        *(imports.verdict(n, "gpt", "A") for n in range(12)),
        *(imports.vote(n, "ann", "A") for n in range(12)),
    )
    assert computed(labels).data["course"] is None


def test_a_failed_verdict_is_no_answer_and_no_disagreement():
    run = make_run(pairs=2, says=[["A", "A"], ["A", None]])
    voter = make_voter(run)
    for pair in pairs_of(run):
        make_vote(voter, pair, "A")
    seal_all(run.queue.project)
    _, other = computed(run).data["judges"]
    assert other["agreement"]["trials"] == 1
    assert other["coverage"]["value"] == 0.5


def test_both_orders_tell_how_consistent_a_judge_is_and_whether_it_favours_the_first():
    run = make_run(pairs=4, says=[["A"]] * 4, judges=1)
    verdicts = list(Verdict.objects.filter(judge__run=run).order_by("item__position"))
    for verdict in verdicts[:3]:
        verdict.consistent, verdict.picks, verdict.first_picks = True, ["A", "B"], 1
        verdict.save()
    verdicts[3].consistent, verdicts[3].picks, verdicts[3].first_picks = False, ["A", "both_bad"], 1
    verdicts[3].save()
    [judge] = computed(run).data["judges"]
    assert judge["consistency"]["value"] == 0.75
    shown = judge["first_position"]
    assert (shown["successes"], shown["trials"]) == (4, 7)


def test_the_habit_of_people_is_measured_too():
    run = make_run(pairs=3)
    voter = make_voter(run)
    for pair in pairs_of(run):
        make_vote(voter, pair, "A")
    seal_all(run.queue.project)
    tallies = Item.objects.filter(queue=run.queue_id).values_list("votes_sided", "votes_left")
    share = computed(run).data["people_first_position"]
    assert share["trials"] == sum(sided for sided, _ in tallies) == 3
    assert share["successes"] == sum(left for _, left in tallies)


def tag(run, *places):
    for place, pair in enumerate(pairs_of(run)):
        names = {"tags": ["animals"]} if place in places else {"tags": []}
        Inference.objects.filter(pk__in=[pair.a_id, pair.b_id]).update(**names)


def test_a_tag_is_a_part_with_a_board_of_its_own():
    run = voted_run(people=1, pairs=8)
    tag(run, 0, 1)
    part = computed(run, "tag:animals").data
    assert part["as_of"]["votes"] == 2
    assert part["judges"][0]["agreement"]["value"] == 0.5
    assert computed(run).data["parts"]["tags"] == [["animals", 2]]


def test_a_part_has_no_price_since_calls_are_paid_for_the_whole_run():
    run = voted_run(people=1, pairs=8)
    tag(run, 0, 1)
    Verdict.objects.filter(judge__run=run).update(latency_ms=700)
    whole, part = computed(run).data["judges"][0], computed(run, "tag:animals").data["judges"][0]
    assert whole["seconds_per_verdict"] == pytest.approx(0.7)
    priced = [key for key in whole if key.startswith(("cost_", "seconds_"))]
    assert {part[key] for key in priced if key != "cost_why"} == {None}
    assert "whole run" in part["cost_why"]


def test_who_has_given_no_verdict_is_told_apart_from_whoever_has():
    run = make_run(pairs=4, says=[["A", None]] * 4)
    vote_in(run, people=1)
    Judge.objects.filter(run=run).update(provider="imported")
    data = computed(run).data
    _, other = data["judges"]
    assert (other["rating"]["rank"], other["rating"]["value"]) == (None, None)
    assert "It is the only judge: " in data["words"]
    assert data["more"][0] == f"Unanswered: {other['name']} answered nothing."
    assert (other["overall"]["value"], other["rank_low"], other["is_silent"]) == (None, None, True)
    assert (other["ties"], other["beats_floor"], other["elo_other_orders_low"]) == ("", None, None)
    *_, last = results_of(run)["leaderboard"]
    assert (last.row.judge.name, last.rank, last.share) == (other["name"], None, None)
    assert (last.elo.value, last.elo.note) == (None, SILENT)


def test_without_a_vote_nobody_has_a_letter():
    run = make_run(pairs=2, says=[["A", "B"]] * 2)
    assert [judge["ties"] for judge in computed(run).data["judges"]] == ["", ""]


def test_a_single_judge_stands_beside_people_and_floor():
    run = make_run(pairs=12, says=[["A"]] * 12)
    vote_in(run, people=3)
    Judge.objects.filter(run=run).update(provider="imported")
    data = computed(run).data
    assert data["words"] == (
        "judge-0 agrees with people on 75 %. "
        "It is the only judge: 36 votes of 3 people on 12 prompts."
    )
    assert data["more"] == ["People: Among themselves they agree on 100 %."]
    assert "No baseline is on the board, so the floor is not known." in data["notes"]
    beside = data["judges"][0]["beside_people"]
    assert (beside["trials"], data["among_people"]["votes"]["trials"]) == (36, 36)


@pytest.mark.parametrize(
    "prompts, headline, floor, more",
    [
        (
            12,
            (
                "reader (83 %) leads random (25 %) by 58 points (26 to 91), not settled "
                "(31 : 1 of 60 : 1). 120 votes of 10 people on 12 prompts; add prompts."
            ),
            "reader leads random, not settled (31 : 1 of 60 : 1).",
            ["Not settled: 12 prompts are few: 120 votes on them count as 12. Add prompts."],
        ),
        (
            24,
            (
                "reader agrees with people on 83 %, random on 25 %: 58 points more (37 to 80; "
                "evidence 2,180 : 1). It is the only judge: 240 votes of 10 people on 24 prompts."
            ),
            "It beats the baselines.",
            [],
        ),
    ],
)
def test_of_few_prompts_it_is_said_by_how_much_a_judge_leads_its_floor(
    prompts, headline, floor, more
):
    """Of 83 % against 0, 0 and 25 %: never that no judge beats the baselines yet."""
    said = ["AB"[place % 2] for place in range(prompts)]
    says = [
        [
            SWAPPED[choice] if place % 6 == 0 else choice,
            *["tie", "tie"],
            choice if place % 4 == 1 else SWAPPED[choice],
        ]
        for place, choice in enumerate(said)
    ]
    names = ["reader", "always-first", "longer-wins", "random"]
    run = make_run(says=says, names=names, votes_wanted=10, baselines=names[1:])
    voters, chosen = [make_voter(run) for _ in range(10)], zip(pairs_of(run), said, strict=True)
    make_many_votes(run, [(voter, *vote) for vote in chosen for voter in voters])
    seal_all(run.queue.project)
    data = computed(run).data
    assert [round(judge["overall"]["value"], 2) for judge in data["judges"]] == [0.83, 0, 0, 0.25]
    people = "People: Among themselves they agree on 100 %."
    assert data["words"] == headline
    assert data["more"] == [f"Floor: {floor}", *more, people]
    assert data["judges"][0]["beats_floor"] is (prompts == 24)
    board = text_of(user_client().get(f"/runs/{run.pk}/"))
    assert headline in board
    assert floor in board
    assert "No judge beats" not in board
    # Against each baseline by itself the reader may be ahead, and is.
    assert data["claims"]["beats"][0][1:3] == [True, True]


def test_a_ballot_of_sides_only_leaves_out_ties_of_people_and_of_judges():
    run = make_run(pairs=3, says=[["A", "tie"]] * 3)
    voter = make_voter(run)
    for pair, choice in zip(pairs_of(run), ["A", "tie", "B"], strict=True):
        make_vote(voter, pair, choice)
    seal_all(run.queue.project)
    one, other = computed(run, f"ballot:{'decided'}").data["judges"]
    assert (one["agreement"]["successes"], one["agreement"]["trials"]) == (1, 2)
    assert other["agreement"]["value"] is None


def test_generators_are_ranked_by_people_and_by_each_judge():
    run = make_run(pairs=6, says=[["A", "B"]] * 6)
    for pair in pairs_of(run):
        Inference.objects.filter(pk=pair.a_id).update(generator="one")
        Inference.objects.filter(pk=pair.b_id).update(generator="two")
        make_vote(make_voter(run), pair, "A")
    seal_all(run.queue.project)
    models = computed(run).data["models"]
    assert models["names"] == ["one", "two"]
    people, first, second = models["boards"]
    assert people["by"] == "people"
    assert people["wins"] == first["wins"] == [[0, 6], [0, 0]]
    assert second["wins"] == [[0, 0], [6, 0]]


def test_generators_without_a_second_one_are_no_board():
    run = voted_run(people=1, pairs=2)
    Inference.objects.update(generator="one")
    data = computed(run).data
    assert data["models"] is None
    assert "fewer than two" in data["models_why"]


def sealed(run):
    return Board.objects.get(run=run).seq


def computed_up_to(run):
    return dict(Findings.objects.filter(run=run).values_list("part", "seq"))


def test_it_is_computed_when_the_ledger_goes_on_and_not_more_often_than_every_few_seconds():
    run = voted_run(people=1, pairs=2)
    cache.findings_of(run, Slice())
    refresh_findings()
    first = computed_up_to(run)[""]
    assert first == sealed(run)
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    refresh_findings()
    assert computed_up_to(run) == {"": first}  # it was computed just now
    assert not cache.compute(run.pk, "")
    Findings.objects.update(not_before=timezone.now())
    refresh_findings()
    assert computed_up_to(run)[""] > first


def test_what_nobody_looks_at_rests_longer_until_somebody_does():
    run = voted_run(people=1, pairs=2)
    refresh_findings()
    first = computed_up_to(run)[""]
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    Findings.objects.update(not_before=timezone.now())
    refresh_findings()
    assert computed_up_to(run) == {"": first}
    assert cache.findings_of(run, Slice()).seq == first
    refresh_findings()
    assert computed_up_to(run) == {"": sealed(run)}


def test_what_nobody_looks_at_is_not_forgotten():
    run = voted_run(people=1, pairs=2)
    refresh_findings()
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    Findings.objects.update(not_before=timezone.now() - cache.UNSEEN_PAUSE)
    refresh_findings()
    assert computed_up_to(run) == {"": sealed(run)}


def test_while_judges_are_asked_and_nobody_votes_nothing_is_computed_unasked():
    run = make_run(pairs=2)
    Run.objects.update(state=Run.State.JUDGING)
    refresh_findings()
    assert computed_up_to(run) == {}
    cache.findings_of(run, Slice())
    refresh_findings()
    assert computed_up_to(run) == {"": sealed(run)}


def test_one_run_is_computed_at_a_time_and_others_have_their_turn_soon(monkeypatch):
    runs = [voted_run(people=1, pairs=2) for _ in range(3)]
    monkeypatch.setattr(cache, "LONGEST_SECONDS", 0.0)
    for _ in runs:
        refresh_findings()
    assert [computed_up_to(run)[""] for run in runs] == [sealed(run) for run in runs]
    with cache._computing:
        Findings.objects.update(seq=0, is_behind=True, not_before=timezone.now())
        refresh_findings()
    assert set(Findings.objects.values_list("seq", flat=True)) == {0}


def test_what_somebody_looks_at_is_computed_first(monkeypatch):
    others = [voted_run(people=1, pairs=2) for _ in range(2)]
    run = voted_run(people=1, pairs=2)
    monkeypatch.setattr(cache, "LONGEST_SECONDS", 0.0)
    cache.findings_of(run, Slice())
    refresh_findings()
    assert computed_up_to(run)[""] == sealed(run)
    assert {seq for other in others for seq in computed_up_to(other).values()} <= {0}


def test_a_run_that_cannot_be_computed_does_not_hold_up_the_others(caplog):
    broken, run = (voted_run(people=1, pairs=2) for _ in range(2))
    Findings.objects.create(run=broken, part="nonsense")
    refresh_findings()
    assert computed_up_to(run) == {"": sealed(run)}
    assert "nonsense" in caplog.text


def test_what_was_begun_and_lost_is_computed_by_another_after_a_while():
    run = voted_run(people=1, pairs=2)
    row = Findings.objects.create(run=run, not_before=timezone.now() + cache.LEASE)
    assert not cache.compute(run.pk, "")
    row.not_before = timezone.now()
    row.save()
    assert cache.compute(run.pk, "")


def test_who_computes_for_long_is_not_overtaken(monkeypatch):
    run = voted_run(people=1, pairs=2)
    long = 10 * cache.LEASE.total_seconds()
    Findings.objects.create(run=run, seconds=long)
    begun, until = timezone.now(), []

    def looked_at(outcomes, before, findings=compute_module.findings):
        until.append(Findings.objects.get(run=run).not_before)
        return findings(outcomes, before)

    monkeypatch.setattr(compute_module, "findings", looked_at)
    assert cache.compute(run.pk, "")
    assert until[0] >= begun + timedelta(seconds=long)


def test_a_part_that_nobody_looks_at_is_left_as_it_is():
    run = voted_run(people=1, pairs=2)
    cache.findings_of(run, Slice("tag", "animals"))
    refresh_findings()
    assert computed_up_to(run) == {"": sealed(run), "tag:animals": sealed(run)}
    long_ago = timezone.now() - timedelta(hours=2)
    Findings.objects.update(seq=0, is_behind=True, not_before=long_ago, requested_at=long_ago)
    refresh_findings()
    assert computed_up_to(run) == {"": sealed(run), "tag:animals": 0}


def test_the_number_of_parts_is_limited(monkeypatch):
    run = voted_run(people=1, pairs=2)
    monkeypatch.setattr(cache, "MOST_PARTS", 1)
    cache.findings_of(run, Slice())
    with pytest.raises(cache.TooManyParts):
        cache.findings_of(run, Slice("tag", "animals"))


def test_it_takes_as_many_queries_for_many_rows(django_assert_max_num_queries):
    run = voted_run(people=3, pairs=2)
    larger = voted_run(people=3, pairs=30)
    make_judges(larger, ["late"], first=len(judges_of(larger)))
    for which in (run, larger):
        Findings.objects.create(run=which)
        cache.fix_margin(which)
        with django_assert_max_num_queries(29):
            assert cache.compute(which.pk, "")
