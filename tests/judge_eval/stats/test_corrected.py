"""The corrected figure: worked values of WORKSHOP.md, and what holds of all studies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judge_eval.board.corrected_table import LEAST_SAVING
from judge_eval.stats import corrected as module
from judge_eval.stats.corrected import (
    Grades,
    corrected,
    crossfitted_weights,
    mean_by_prompt,
    ppi,
    rogan_gladen,
    tuned_weight,
)
from judge_eval.stats.planning import Study, most_saved

NAN = float("nan")
PEOPLE, JUDGE = np.array([1.0, 1, 0, 1, 0]), np.array([1.0, 1, 1, 1, 0])
OTHERS = np.array([1.0, 1, 0, 1, 1, 0, 1, 1, 1, 0])
WORKED = Grades(PEOPLE, JUDGE, np.arange(5), OTHERS, np.arange(5, 15))


def near(value):
    return pytest.approx(value, abs=1e-6)


# --- worked values --------------------------------------------------------------------------------


def test_worked_value_of_the_judge_used_whole():
    assert ppi(WORKED, 1.0) == (near(0.5), near(0.251661))


def test_worked_value_of_the_tuned_weight():
    weight = tuned_weight(PEOPLE, JUDGE, OTHERS)
    assert weight == near(0.477273)
    assert ppi(WORKED, weight) == (near(0.552273), near(0.213987))


def test_worked_value_where_the_judge_gave_no_verdict():
    """A failed verdict is 1/2, with a vote or without."""
    judge = np.array([1, 1, 0.5, 1, 0])
    others = np.array([1, 1, 0, 0.5, 1, 0, 1, 0.5, 1, 0])
    grades = WORKED._replace(judge=judge, others=others)
    assert ppi(grades, 1.0) == (near(0.5), near(0.176383))
    weight = tuned_weight(PEOPLE, judge, others)
    assert weight == near(0.768293)
    assert ppi(grades, weight) == (near(0.523171), near(0.164091))


def test_pairs_of_both_bad_leave_a_ratio():
    """By the formula of WORKSHOP 4, written out with t and y."""
    t, y = np.array([1, 1, 0, 1, 1, 0, 1]), np.array([1, 0, 0, 1, 1, 0, 0])
    judge, others = np.array([1, 0.5, 0, 1, 0, 0.5, 0]), np.array([1, 1, 0, 0.5, 1, 0, 0, 1, 0.5])
    n, size = len(t), len(others)
    mean = (t * y).sum() / t.sum()
    z = t * (y - mean)
    spread = np.var([*judge, *others], ddof=1)
    weight = np.clip(np.cov(z, judge)[0, 1] / ((1 + n / size) * spread), 0, 1)
    theta = mean + weight * (others.mean() - judge.mean()) / t.mean()
    within, beyond = np.var(z - weight * judge, ddof=1) / n, np.var(others, ddof=1) / size
    error = np.sqrt(within + weight**2 * beyond) / t.mean()
    people = np.where(t == 1, y, NAN)
    assert tuned_weight(people, judge, others) == near(weight)
    grades = Grades(people, judge, np.arange(n), others, np.arange(n, n + size))
    assert ppi(grades, weight) == (near(theta), near(error))
    assert ppi(grades, 0.0).value == near(mean)


def test_worked_value_of_rogan_and_gladen():
    people, judge = np.repeat([0.0, 1], [60, 140]), np.repeat([0.0, 1, 1, 0], [48, 12, 126, 14])
    others = np.repeat([1.0, 0], [700, 300])
    grades = Grades(people, judge, np.arange(200), others, np.arange(200, 1200))
    assert rogan_gladen(grades) == (near(0.7142857), near(0.0392708))


def test_items_of_a_prompt_enter_the_variance_as_their_sum():
    """Every item three times over, as one prompt, is as good as the item once."""
    thrice = Grades(*(np.repeat(each, 3) for each in WORKED))
    assert ppi(thrice, 0.5) == (near(ppi(WORKED, 0.5).value), near(ppi(WORKED, 0.5).error))
    apart = thrice._replace(prompts=np.arange(15), others_prompts=np.arange(15, 45))
    assert ppi(apart, 0.5).error < 0.7 * ppi(thrice, 0.5).error


def test_a_prompt_on_both_sides_is_one_prompt():
    """What errs together on both sides does not average out."""
    shared = WORKED._replace(others=JUDGE, others_prompts=np.arange(5))
    apart = shared._replace(others_prompts=np.arange(5, 10))
    # With both sides the same the judge is taken out and put back: the votes alone remain.
    alone = mean_by_prompt(PEOPLE, np.arange(5))
    assert ppi(shared, 1.0) == (near(alone.value), near(alone.error))
    assert ppi(apart, 1.0).error != near(alone.error)


# --- when it is withheld --------------------------------------------------------------------------


def study(people, judge, **options):
    return corrected(
        np.array(people, float), np.array(judge, float), np.arange(len(people)), **options
    )


def voted(agreeing, differing, unvoted=50):
    """A judge that passes half of what people pass or flag, and every other one of the others."""
    people = [1.0, 0.0] * (agreeing // 2) + [1.0] * differing + [NAN] * unvoted
    judge = [1.0, 0.0] * (agreeing // 2) + [0.0] * differing + [1.0, 0.0] * (unvoted // 2)
    return people, judge


def test_few_disagreements_are_too_few_labels():
    result = study(*voted(40, 4), are_passes=True)
    assert result.corrected.value is None
    assert result.corrected.why.startswith("too few labels to correct")
    assert result.saving is None
    assert result.by_rates is None
    assert result.error.value == near(-4 / 44)
    assert study(*voted(40, 5)).corrected.value is not None


def test_few_prompts_are_too_few_labels():
    people, judge = (np.array(grades) for grades in voted(20, 10))
    for prompts, is_enough in ((9, False), (10, True)):
        result = corrected(people, judge, np.arange(80) % prompts)
        assert (result.corrected.value is not None) is is_enough


def test_where_people_nearly_always_say_the_same_it_is_withheld():
    """The variance would be 0, and the interval a lie."""
    for flagged, is_enough in ((0, False), (4, False), (5, True)):
        people = [0.0] * flagged + [1.0] * (60 - flagged) + [NAN] * 100
        result = study(people, [1.0, 0.0] * 80)
        assert (result.corrected.value is not None) is is_enough


def test_where_everything_is_voted_on_it_is_peoples_own_figure():
    result = study(*voted(40, 10, unvoted=0))
    assert (result.corrected.method, result.corrected.why) == ("people", module.NOTHING_LEFT)
    assert result.corrected.value == near(30 / 50)
    assert result.saving is None
    assert result.unvoted == 0


def test_a_judge_that_tells_nothing_apart_is_refused_by_its_rates():
    rng = np.random.default_rng(1)
    people, judge = rng.integers(0, 2, (2, 400)).astype(float)
    people[200:] = NAN
    result = study(people, judge, are_passes=True)
    assert result.by_rates.value is None
    assert result.by_rates.why == module.UNSELECTIVE
    assert result.corrected.value is not None
    assert result.saving < 0.05


def test_few_prompts_with_votes_tell_no_saving():
    for voted_prompts, is_told in ((29, False), (30, True)):
        people, judge = (np.array(grades) for grades in voted(60, 30, unvoted=90))
        prompts = np.concatenate([np.arange(90) % voted_prompts, np.arange(100, 190)])
        result = corrected(people, judge, prompts)
        assert result.corrected.method == "ppi++"
        assert (result.saving is not None) is is_told


# What a judge that has read nothing says of outputs, by how it is asked.
def in_one_order(rng, items):
    return rng.integers(0, 2, items).astype(float)


def in_both_orders(rng, items):
    """Of two tosses that differ nobody wins."""
    return rng.integers(0, 2, (2, items)).mean(axis=0)


def drawn_first(rng, items):
    """It says what stands first, mostly this output."""
    return (rng.random(items) < 0.85).astype(float)


@pytest.mark.parametrize("say", [in_one_order, in_both_orders, drawn_first])
@pytest.mark.parametrize("votes", [12, 30, 60])
def test_a_judge_that_has_read_nothing_is_hardly_ever_said_to_save_votes(say, votes):
    rng, studies, items = np.random.default_rng(6), 200, votes + 300
    said = 0
    for _ in range(studies):
        people = (rng.random(items) < 0.6).astype(float)
        people[votes:] = NAN
        saving = corrected(people, say(rng, items), np.arange(items)).saving
        said += saving is not None and saving >= LEAST_SAVING
    # 5 % of many; of so few as many as chance allows once in hundreds of times.
    assert said <= 0.095 * studies


@pytest.mark.thorough
@pytest.mark.parametrize("say", [in_one_order, in_both_orders, drawn_first])
def test_nor_in_many_studies(say):
    rng = np.random.default_rng(7)
    savings = []
    for _ in range(2_000):
        people = np.where(np.arange(330) < 30, rng.integers(0, 2, 330), NAN)
        savings.append(corrected(people, say(rng, 330), np.arange(330)).saving or 0)
    assert np.mean(np.array(savings) >= LEAST_SAVING) <= 0.05


def test_nothing_at_all_is_nothing():
    result = study([NAN] * 3, [NAN] * 3)
    assert result.judge.value is result.error.value is result.corrected.value is None


def test_a_judge_that_fails_is_taken_to_say_half():
    people, judge = voted(40, 10)
    failed = study([*people, 1.0, NAN], [*judge, NAN, NAN])
    said = study([*people, 1.0, NAN], [*judge, 0.5, 0.5])
    assert failed.corrected == said.corrected
    assert (failed.saving, failed.unvoted) == (said.saving, 51)
    # Alone it has said nothing there.
    assert failed.judge == study(people, judge).judge
    assert failed.error == study(people, judge).error


def test_a_judge_that_fails_on_bad_outputs_does_not_shift_the_figure():
    """Left out, what it fails on would be missing: 8 points too high."""
    rng = np.random.default_rng(4)
    truth = (rng.random(60_000) < 0.5).astype(float)
    judge = np.where(rng.random(60_000) < 0.9, truth, 1 - truth)
    judge[(truth == 0) & (rng.random(60_000) < 0.3)] = NAN
    result = study(np.where(np.arange(60_000) < 20_000, truth, NAN), judge, are_passes=True)
    assert result.corrected.value == pytest.approx(0.5, abs=0.01)
    assert (result.by_rates.value, result.by_rates.why) == (None, module.FEW_ANSWERS)


def test_what_it_was_not_asked_about_corrects_nothing():
    people, judge = (np.array(of) for of in voted(40, 10))
    asked = np.arange(100) < 90
    result = study(people, judge, is_asked=asked)
    assert (result.unvoted, result.corrected) == (40, study(people[:90], judge[:90]).corrected)
    nothing = study(people, judge, is_asked=np.arange(100) < 50)
    assert (nothing.unvoted, nothing.corrected.method) == (0, "people")
    assert nothing.corrected.value == near(np.nanmean(people))


def test_both_bad_is_a_vote():
    """Nobody is missing where all pairs are voted on: nothing is corrected."""
    people, judge = np.array([1.0, 0, NAN, NAN] * 30), np.array([1.0, 0, 1, 0] * 30)
    both_bad = np.arange(120) % 4 > 1
    result = study(people, judge, both_bad=both_bad)
    assert (result.corrected.method, result.corrected.value, result.unvoted) == ("people", 0.5, 0)
    assert study(people, judge, both_bad=both_bad & (np.arange(120) < 60)).unvoted == 30


# --- what holds of all studies --------------------------------------------------------------------

GRADES = st.sampled_from([0.0, 0.5, 1.0])


@st.composite
def studies(draw):
    size = draw(st.integers(2, 60))
    people, judge = (draw(arrays(float, size, elements=GRADES)) for _ in range(2))
    for of in (people, judge):
        of[draw(arrays(bool, size))] = NAN
    return people, judge, draw(arrays(int, size, elements=st.integers(0, 30)))


@given(studies(), st.booleans())
def test_figures_stay_in_their_range(given_study, are_passes):
    result = corrected(*given_study, are_passes=are_passes)
    figures = [result.judge, result.corrected, *filter(None, [result.by_rates])]
    for each, least in [(result.error, -1), *((figure, 0) for figure in figures)]:
        if each.value is None:
            assert each.why
        elif each.interval is None:
            assert each.why
            assert least <= each.value <= 1
        else:
            assert least <= each.low <= each.value <= each.high <= 1
    assert result.saving is None or result.saving <= 1


@given(studies())
def test_without_others_it_is_what_people_said(given_study):
    people, judge, prompts = given_study
    judge[np.isnan(people)] = NAN
    result = corrected(people, judge, prompts).corrected
    if np.isnan(people).all():
        assert result.value is None
    else:
        assert result.value == near(np.nanmean(people))


@given(studies())
def test_the_order_of_items_does_not_matter(given_study):
    order = np.random.default_rng(5).permutation(len(given_study[0]))
    one, other = (corrected(*(each[at] for each in given_study)) for at in (slice(None), order))
    assert (one.corrected.value is None) is (other.corrected.value is None)
    if one.corrected.value is not None:
        assert one.corrected.value == near(other.corrected.value)


@given(st.integers(0, 10_000))
def test_weights_are_shares_and_no_item_has_a_say_in_its_own(seed):
    rng = np.random.default_rng(seed)
    people, judge, others = (rng.integers(0, 2, size).astype(float) for size in (40, 40, 90))
    grades = Grades(people, judge, np.arange(40), others, np.arange(40, 130))
    weights = crossfitted_weights(grades)
    assert ((weights >= 0) & (weights <= 1)).all()
    people[0] = 1 - people[0]
    assert crossfitted_weights(grades)[0] == weights[0]


@given(st.integers(0, 10_000))
def test_without_weight_it_is_the_mean_of_the_votes(seed):
    rng = np.random.default_rng(seed)
    people, judge, others = (rng.random(size) for size in (20, 20, 30))
    prompts = rng.integers(0, 8, 20)
    grades = Grades(people, judge, prompts, others, rng.integers(0, 12, 30))
    assert ppi(grades, 0.0) == pytest.approx(mean_by_prompt(people, prompts))


@pytest.mark.parametrize("votes, ties", [(1, 0.0), (2, 0.0), (3, 0.2)])
def test_a_plan_promises_the_saving_that_a_study_then_has(votes, ties):
    """A judge as good as a person, on models that win half of their pairs."""
    study = Study(2, people_agreement=0.74, difference=0.1, votes_per_item=votes, ties=ties)
    rng, items, voted = np.random.default_rng(8), 400_000, 20_000
    truth, is_tie = rng.choice([-1, 1], items), rng.random(items) < ties
    right = 2 * (rng.random((votes + 1, items)) < study.person) - 1
    people = np.where(is_tie, 0.5, 0.5 + np.sign(right[1:].sum(axis=0)) * truth / 2)
    people[voted:] = NAN
    result = corrected(people, 0.5 + right[0] * truth / 2, np.arange(items))
    # Of so many verdicts without votes it saves nearly the most.
    assert result.saving * (1 + voted / items) == pytest.approx(most_saved(study), abs=0.02)
