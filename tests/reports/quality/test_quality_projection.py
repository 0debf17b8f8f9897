"""A project's quality score follows its ledger: votes in any order, undos, late ones, settings."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge_eval.models import Import
from judge_eval.stats.elo import graph_stride
from reports.models import Quality, QualityPoint
from reports.quality import projection
from reports.quality.parameters import DEFAULT, Parameters, change, parameters_of, settings_of
from reports.quality.score import SECONDS, microseconds, step
from reports.tasks import sweep
from tests.makers import (
    entry_of,
    make_item,
    make_many_votes,
    make_queue,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ballot.assignment import ballot_for
from voting.ballot.services import (
    NothingToUndo,
    VoteConflict,
    cast_vote,
    record_exposure,
    undo_last_vote,
)
from voting.curating.services import AlreadyDecided, CannotDecide, decide, decisions_on, reverse
from voting.items.kinds import VoteDetails
from voting.ledger import ledger
from voting.ledger.decisions import IMPORT_BEGINS, IMPORT_ENDS
from voting.models import Entry, Project, Voter

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

PAIRS, VOTERS = 3, 3


def quality_of(project, series="pairs"):
    return Quality.objects.get(project=project, series=series)


def reference(project):
    """Fold all votes of people that stand, batch by batch, and return score, freshness, votes."""
    parameters = parameters_of(project)
    votes = Entry.objects.filter(kind="vote", project=project, seq__isnull=False)
    votes = votes.filter(retracted_seq__isnull=True, excluded=False, simulated=False)
    votes = votes.filter(queue__kind="comparison")
    standing = votes.order_by("at", "seq")
    score, freshness = parameters.initial_score, 0.0
    batches = []
    window = timedelta(seconds=parameters.batch_window)
    for vote in standing:
        opened = batches[-1][0].at if batches else None
        if opened is not None and (vote.at == opened or vote.at - opened < window):
            batches[-1].append(vote)
        else:
            batches.append([vote])
    before = min([project.created_at, *(batch[0].at for batch in batches)])
    for batch in batches:
        elapsed = (batch[0].at - before) / timedelta(seconds=SECONDS[parameters.decay_unit])
        worths = [float(vote.choice != "both_bad") for vote in batch]
        weights = [vote.reputation / 1_000_000 for vote in batch]
        _, _, score, freshness = step(score, elapsed, parameters.decay_rate, worths, weights)
        before = batch[0].at
    return score, freshness, standing.count()


def assert_as_expected(project):
    project.refresh_from_db()
    assert ledger.replay(project, write=False) == []
    score, freshness, votes = reference(project)
    found = Quality.objects.filter(project=project, series="pairs").first()
    if found is None:
        assert votes == 0
        return
    assert found.votes == votes
    assert (found.score, found.freshness) == pytest.approx((score, freshness), abs=1e-9)


class Study:
    """A run whose project is an hour old, and votes at given seconds since then."""

    def __init__(self, pairs=PAIRS, project=None):
        self.run = make_run(project, pairs=pairs, votes_wanted=1000)
        self.project = self.run.queue.project
        self.begin = timezone.now() - timedelta(hours=1)
        Project.objects.filter(pk=self.project.pk).update(created_at=self.begin)
        self.project.refresh_from_db()
        self.pairs = pairs_of(self.run)

    def vote(self, seconds, choice="A", *, pair=0, voter=None):
        at = self.begin + timedelta(seconds=seconds)
        return make_vote(voter or make_voter(self.run), self.pairs[pair], choice, at=at)

    def many(self, number, *, first=0):
        voters = Voter.objects.bulk_create(Voter(project=self.project) for _ in range(number))
        votes = [(voter, self.pairs[0], "AB"[n % 2]) for n, voter in enumerate(voters)]
        for n, entry in enumerate(rows := make_many_votes(self.run, votes)):
            entry.at = self.begin + timedelta(seconds=first + n)
            entry.choice = ("A", "both_bad")[n % 3 == 0]
        Entry.objects.bulk_update(rows, ["at", "choice"])
        return voters

    def seal(self):
        sealed = seal_all(self.project)
        assert_as_expected(self.project)
        return sealed


def change_settings(project, *, apply_reputations=False, **changes):
    by = Voter.objects.filter(project=project).first() or Voter.objects.create(project=project)
    return change(project, changes, by, apply_reputations=apply_reputations)


def test_the_worked_value_reaches_the_score():
    study = Study()
    study.vote(7, "both_bad")
    study.seal()
    found = quality_of(study.project)
    assert round(found.score, 6) == 0.466197
    assert round(found.freshness, 6) == 0.067606
    assert (found.votes, found.passes) == (1, 0)
    assert found.last_vote_at == study.begin + timedelta(seconds=7)


def test_four_votes_at_one_time_are_one_batch_in_however_many_seals():
    study = Study()
    for choice in ("A", "both_bad", "both_bad", "tie"):
        study.vote(7, choice)
        study.seal()
    assert quality_of(study.project).score == 0.5


def test_a_side_or_a_tie_passes_and_both_bad_is_a_flag():
    study = Study()
    for seconds, choice in enumerate(["A", "B", "tie", "both_bad"]):
        study.vote(seconds, choice)
    study.seal()
    assert (quality_of(study.project).votes, quality_of(study.project).passes) == (4, 3)


def make_item_vote(queue, *, choice="pass", value=None, ago=0):
    item = queue.items.first() or make_item(queue)
    voter = Voter.objects.create(project=queue.project)
    further = VoteDetails(value=value) if value is not None else None
    vote = cast_vote(ballot_for(voter, queue, item), choice, details=further)
    Entry.objects.filter(uid=vote.uid).update(at=timezone.now() - timedelta(seconds=ago))


def test_single_items_have_a_score_of_their_own_and_grades_count():
    study = Study()
    queue = make_queue(study.project, kind="pass_flag", ballot=["pass", "flag"])
    study.vote(3300, "both_bad")
    make_item_vote(queue, choice="pass", value=700_000, ago=3600 - 10)
    make_item_vote(queue, choice="flag", value=0, ago=3600 - 20)
    study.seal()
    items, pairs = quality_of(study.project, "items"), quality_of(study.project, "pairs")
    assert (items.votes, items.passes, pairs.votes, pairs.passes) == (2, 1, 1, 0)
    assert items.standing["worth"] == 0.0
    [first, _] = projection.history(items)
    assert first.worth == 0.7
    assert pairs.score == pytest.approx(step(0.5, 3300, 0.01, [0]).score)


def test_a_category_is_no_quality_whatever_its_words_are():
    queue = make_queue(kind="category", ballot=["pass", "A"])
    for word in ("pass", "A"):
        make_item_vote(queue, choice=word)
    seal_all(queue.project)
    assert not Quality.objects.exists()
    assert ledger.replay(queue.project, write=False) == []


@pytest.mark.parametrize("undone", [0, 2, 4], ids=["first", "middle", "last"])
@pytest.mark.parametrize("sealed_between", [True, False], ids=["later batch", "same batch"])
def test_a_retraction_is_as_if_the_vote_had_never_been(undone, sealed_between):
    study = Study()
    voters = [make_voter(study.run) for _ in range(5)]
    for number, voter in enumerate(voters):
        study.vote(100 * number, ["A", "both_bad"][number % 2], voter=voter)
    if sealed_between:
        study.seal()
    undo_last_vote(voters[undone], study.run.queue)
    study.seal()
    assert quality_of(study.project).votes == 4


def test_a_vote_that_is_sealed_late_stands_where_it_was_cast():
    early, late = Study(), Study()
    for study, order in ((early, (10, 20, 30)), (late, (10, 30, 20))):
        for seconds in order:
            study.vote(seconds, "both_bad" if seconds == 20 else "A")
            study.seal()
    assert quality_of(late.project).score == pytest.approx(quality_of(early.project).score)


def test_votes_older_than_their_project_begin_it():
    study = Study()
    study.vote(-3600, "both_bad")
    study.vote(-3593, "both_bad")
    study.seal()
    assert round(quality_of(study.project).score, 6) == 0.466197


def test_simulated_votes_say_nothing_of_quality_and_unblinded_ones_do():
    pretend = make_run(is_simulated=True)
    study = Study(project=pretend.queue.project)
    Entry.objects.filter(uid=study.vote(1).uid).update(simulated=True)
    voter = make_voter(study.run)
    record_exposure(voter.pk, [study.pairs[1].pk], study.begin)
    seen = study.vote(2, pair=1, voter=voter)
    study.seal()
    assert entry_of(seen).unblinded
    assert quality_of(study.project).votes == 1


def test_a_rebuild_gives_todays_reputations_to_earlier_votes_and_later_ones_keep_theirs():
    study = Study()
    heavy = make_voter(study.run, reputation=3_000_000)
    study.vote(500, "A", voter=heavy)
    study.vote(500, "both_bad")
    study.seal()
    Voter.objects.filter(pk=heavy.pk).update(reputation=1_000_000)
    entry = change_settings(study.project, apply_reputations=True)
    assert entry.payload["reputations"] == {heavy.pseudonym: 1_000_000}
    seal_all(study.project)
    first = step(0.5, 500, 0.01, [1, 0])
    assert quality_of(study.project).score == pytest.approx(first.score)
    Voter.objects.filter(pk=heavy.pk).update(reputation=3_000_000)
    study.vote(600, "A", voter=heavy, pair=1)
    study.vote(600, "both_bad", pair=1)
    seal_all(study.project)
    second = step(first.score, 100, 0.01, [1, 0], [3, 1])
    assert quality_of(study.project).score == pytest.approx(second.score)
    assert ledger.replay(study.project, write=False) == []


# --- settings -------------------------------------------------------------------------------------


def test_other_settings_fold_all_votes_anew_and_the_old_ones_stay_to_be_seen():
    study = Study()
    for seconds in (10, 20, 30):
        study.vote(seconds, "both_bad")
    study.seal()
    before = quality_of(study.project).score
    change_settings(study.project, decay_rate=0.1, decay_unit="hour", initial_score=0.9)
    assert parameters_of(study.project) == DEFAULT  # nothing holds before it is sealed
    study.seal()
    assert parameters_of(study.project).decay_unit == "hour"
    assert quality_of(study.project).score != before
    change_settings(study.project, batch_window=15.0)
    study.seal()
    assert quality_of(study.project).standing["weight"] == 1.0
    assert [entry.payload["quality"]["batch_window"] for entry in settings_of(study.project)] == [
        "15.0",
        "0.0",
    ]


def test_settings_that_change_in_the_batch_of_votes_hold_for_all_of_it():
    study = Study()
    study.vote(10, "both_bad")
    change_settings(study.project, initial_score=1.0)
    study.vote(20, "both_bad")
    study.seal()
    assert quality_of(study.project).score == pytest.approx(
        step(step(1.0, 10, 0.01, [0]).score, 10, 0.01, [0]).score
    )


def test_settings_that_say_the_same_are_no_entry():
    study = Study()
    make_voter(study.run)
    assert change_settings(study.project, decay_rate=0.01) is None
    assert change_settings(study.project, decay_rate=0.02) is not None
    assert change_settings(study.project, decay_rate=0.02) is None
    assert settings_of(study.project).count() == 1


@pytest.mark.parametrize(
    "said",
    [
        {"quality": 5},
        {"quality": {"decay_rate": "-1"}},
        {"quality": {"decay_rate": None}},
        {"quality": {}, "reputations": [1]},
        {"quality": {}, "reputations": {"nobody": 0, "somebody": "much"}},
    ],
)
def test_settings_of_a_strange_bundle_are_as_by_default(said):
    study = Study()
    study.vote(10, "both_bad")
    now = timezone.now()
    entry = Entry(project=study.project, kind="parameters", at=now, payload=said)
    ledger.append(study.project.pk, [entry])
    study.seal()
    assert parameters_of(study.project) == DEFAULT
    assert quality_of(study.project).votes == 1


def test_settings_go_through_the_ledger_unharmed():
    study = Study()
    odd = Parameters(decay_rate=1 / 3, initial_score=0.1, critical_variance=0.2, min_votes=7)
    change_settings(study.project, **odd.model_dump())
    study.seal()
    assert parameters_of(study.project) == odd


# --- where the fold goes on -----------------------------------------------------------------------


@pytest.fixture
def soon_thinned(monkeypatch):
    """Drop points of a score behind 16 votes already, as it does behind 128."""
    monkeypatch.setattr(projection, "graph_stride", partial(graph_stride, points=16))


def test_what_an_undo_costs_does_not_depend_on_how_many_votes_there_were(soon_thinned):
    study = Study()
    study.many(40)
    study.seal()
    few = _queries_of_an_undo(study, 41)
    study.many(280, first=60)
    study.seal()
    points = QualityPoint.objects.filter(quality__project=study.project)
    assert 16 < points.count() < 320
    assert _queries_of_an_undo(study, 400) == few


def _queries_of_an_undo(study, seconds):
    voter = make_voter(study.run)
    study.vote(seconds, voter=voter)
    study.seal()
    undo_last_vote(voter, study.run.queue)
    with CaptureQueriesContext(connection) as queries:
        seal_all(study.project)
    assert_as_expected(study.project)
    # Of what is prepared PostgreSQL's connection does not tell the text.
    return sum("reports_quality" in (query["sql"] or "") for query in queries)


def test_a_late_vote_refolds_from_the_point_before_it(soon_thinned):
    study = Study()
    study.many(50)
    study.seal()
    first = QualityPoint.objects.filter(quality__project=study.project).order_by("votes").first()
    study.vote(25.5, "both_bad")
    study.seal()
    found = quality_of(study.project)
    assert found.points.order_by("votes").first().pk == first.pk
    kept = found.points.order_by("votes").values_list("votes", flat=True)
    assert list(kept) == list(projection.kept_numbers(found.votes))


def _mark(study, payload):
    told = {"kind": "parameters", "queue": study.run.queue, "at": timezone.now()}
    ledger.append(study.project.pk, [Entry(project=study.project, payload=payload, **told)])


def _import_in_any_order(study):
    job = Import.objects.create(project=study.project, form={}, state="writing")
    _mark(study, IMPORT_BEGINS)
    for seconds in (50, 10, 40, 20, 30):
        study.vote(seconds, "both_bad" if seconds == 20 else "A")
        seal_all(study.project)
    return job


def test_an_import_in_any_order_is_folded_once(monkeypatch):
    study, counted, folding = Study(), [], projection.folding

    def noted(rule):
        count = folding(rule)
        return lambda standing, vote: (counted.append(vote), count(standing, vote))

    monkeypatch.setattr(projection, "folding", noted)
    _import_in_any_order(study)
    assert ledger.replay(study.project, write=False) == []
    _mark(study, IMPORT_ENDS)
    assert_as_expected(study.project)
    assert len(counted) == 1 + 5
    study.vote(60, "both_bad")
    study.seal()
    assert len(counted) == 1 + 5 + 1


def test_an_undo_during_an_import_is_counted_at_its_end():
    study = Study()
    voter = make_voter(study.run)
    study.vote(5, "both_bad", voter=voter)
    study.seal()
    _import_in_any_order(study)
    undo_last_vote(voter, study.run.queue)
    seal_all(study.project)
    _mark(study, IMPORT_ENDS)
    assert_as_expected(study.project)


@pytest.mark.parametrize("goes_on", [False, True])
def test_votes_of_an_import_that_broke_off_are_counted(goes_on):
    study = Study()
    job = _import_in_any_order(study)
    sweep()
    assert quality_of(study.project).votes == 1
    Import.objects.filter(pk=job.pk).update(state="refused")
    if goes_on:
        study.vote(15)
        study.seal()
    else:
        sweep()
    assert_as_expected(study.project)


@pytest.mark.parametrize("votes", [0, 1, 127, 128, 129, 130, 1000, 40_000])
def test_what_is_kept_while_votes_come_is_what_a_replay_keeps(votes):
    kept = [number for number in range(1, votes + 1) if projection.is_kept(number)]
    assert list(projection.kept_numbers(votes)) == kept


def test_times_are_read_from_the_database_to_the_microsecond():
    study = Study()
    for micros in (0, 1, 999_499, 999_500, 999_999):
        at = datetime(2026, 2, 28, 23, 59, 59, micros, tzinfo=UTC)
        entry = Entry.objects.get(uid=study.vote(0).uid)
        Entry.objects.filter(pk=entry.pk).update(at=at)
        [found] = Entry.objects.filter(pk=entry.pk).values_list(projection.Microseconds("at"))
        assert found == (microseconds(at),)


TAMPERING = {
    "score": lambda quality: Quality.objects.update(score=0.9),
    "votes": lambda quality: Quality.objects.update(votes=9),
    "standing": lambda quality: Quality.objects.update(standing=quality.standing | {"weight": 2.0}),
    "nothing at all": lambda quality: quality.delete(),
    "a point": lambda quality: quality.points.order_by("votes").first().delete(),
    "a point's standing": lambda quality: quality.points.update(
        standing=quality.standing | {"before": 0.9}
    ),
}


def test_what_was_tampered_with_is_found_and_repaired(soon_thinned):
    study = Study()
    study.many(20)
    study.seal()
    for number, (what, tamper) in enumerate(TAMPERING.items()):
        tamper(quality_of(study.project))
        found = ledger.replay(study.project, write=False)
        assert found, what
        assert ledger.replay(study.project, write=True) == found, what
        assert_as_expected(study.project)
        study.vote(500 + 60 * number)
        study.seal()


def test_a_score_differs_from_a_millionth_of_a_thousandth_on():
    study = Study()
    study.vote(10)
    study.seal()
    score = quality_of(study.project).score
    Quality.objects.update(score=score + 1e-12)
    assert ledger.replay(study.project, write=False) == []
    Quality.objects.update(score=score + 1e-8)
    [difference] = ledger.replay(study.project, write=False)
    assert "score in quality of pairs" in str(difference)


# --- whatever happens -----------------------------------------------------------------------------

seconds = st.one_of(st.sampled_from([0, 7, 7, 60]), st.integers(-100, 3000))
vote = st.tuples(
    st.just("vote"),
    st.integers(0, VOTERS - 1),
    st.integers(0, PAIRS - 1),
    st.sampled_from(["A", "both_bad"]),
    seconds,
)
steps = st.one_of(
    vote,
    vote,
    vote,
    st.tuples(st.just("undo"), st.integers(0, VOTERS - 1)),
    st.tuples(st.just("weigh"), st.integers(0, VOTERS - 1), st.integers(1, 5_000_000)),
    st.tuples(st.just("window"), st.sampled_from([0.0, 8.0, 500.0])),
    st.tuples(st.just("exclude"), st.integers(0, PAIRS - 1)),
    st.tuples(st.just("take_back"), st.integers(0, PAIRS - 1)),
    st.tuples(st.just("seal"), st.integers(1, 4)),
)


class World:
    """Voters who vote at any time, and seals that take any number of what there is."""

    def __init__(self):
        self.study = Study()
        self.voters = [make_voter(self.study.run) for _ in range(VOTERS)]

    def vote(self, voter, pair, choice, seconds):
        with suppress(VoteConflict):
            self.study.vote(seconds, choice, pair=pair, voter=self.voters[voter])

    def undo(self, voter):
        with suppress(NothingToUndo):
            undo_last_vote(self.voters[voter], self.study.run.queue)

    def weigh(self, voter, reputation):
        Voter.objects.filter(pk=self.voters[voter].pk).update(reputation=reputation)

    def exclude(self, pair):
        item = self.study.pairs[pair].pk
        latest = decisions_on(item).first()
        decide(item, "exclude", self.voters[0], after=latest and latest.uid)

    def take_back(self, pair):
        latest = decisions_on(self.study.pairs[pair].pk).first()
        with suppress(CannotDecide, AlreadyDecided):
            if latest is not None:
                reverse(latest.uid, self.voters[0])

    def window(self, seconds):
        change_settings(self.study.project, batch_window=seconds)

    def seal(self, size):
        with override_settings(SEAL_BATCH=size):
            sealed = ledger.seal(self.study.project.pk, now=timezone.now() + timedelta(seconds=1))
        assert_as_expected(self.study.project)
        return sealed


@given(st.lists(steps, max_size=20), st.integers(1, 7))
@settings(
    max_examples=settings().max_examples // 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_live_score_replay_and_reference_agree_after_every_batch(steps, last_batches):
    world = World()
    for name, *arguments in steps:
        getattr(world, name)(*arguments)
    while world.seal(last_batches):
        pass
