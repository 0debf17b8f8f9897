"""The Alt-Test against a plain loop, its tests against scipy, and its edges."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import (
    AltTestScorer,
    AltTestSettings,
    MetricConfig,
    Resampling,
    advice,
    alt_test,
    benjamini_yekutieli,
    epsilon_advice,
    epsilon_key,
    in_words,
    jaccard_similarity,
)
from judge_eval.stats import score as scores_of
from judge_eval.stats.significance import penalty, t_test, wilcoxon
from tests.helpers import oracles

FEW = Resampling(20)

counts = st.tuples(*[st.integers(0, 40)] * 3).filter(lambda n: sum(n) > 1)
epsilons = st.integers(0, 50).map(lambda percent: percent / 100)
texts = st.sampled_from(["A", "B", "tie"])
truths = st.booleans()
numbers = st.integers(1, 5) | st.sampled_from([1.5, 2.5])
sets = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)


@st.composite
def studies(draw):
    """Return a judge and people who all label things of one kind, with gaps."""
    labels = draw(st.sampled_from([texts, truths, numbers, sets]))
    said = st.dictionaries(st.integers(0, 11), labels, min_size=3)
    names = st.sampled_from(["ann", "ben", "cem", "dia"])
    return draw(said), draw(st.dictionaries(names, said, min_size=2))


# --- a plain loop, item by item and person by person ---------------------------------------------


def score(said, others):
    if isinstance(said, list):
        alike = [len({*said} & {*o}) / len({*said} | {*o}) if {*said} | {*o} else 1 for o in others]
        return np.mean(alike)
    if isinstance(said, bool | str):
        return np.mean([said == other for other in others])
    return -np.sqrt(np.mean([(said - other) ** 2 for other in others]))


def p_value(differences, against):
    if len(set(differences)) == 1:
        return 0.0 if differences[0] < against else 1.0
    return oracles.stats.ttest_1samp(differences, against, alternative="less").pvalue


def plain(judge, people, epsilon, *, multiplicative=False, least=3):
    p_values, advantages = [], {}
    for left_out, said in people.items():
        holds = []
        for item, label in said.items():
            others = [o[item] for name, o in people.items() if name != left_out and item in o]
            if others and item in judge:
                mine, theirs = score(judge[item], others), score(label, others)
                holds.append((mine >= theirs - 1e-12, theirs >= mine - 1e-12))
        if len(holds) >= least:
            cost = 1 - epsilon if multiplicative else 1
            differences = [human - judge / cost for judge, human in holds]
            p_values.append(p_value(differences, 0 if multiplicative else epsilon))
            advantages[left_out] = tuple(np.mean(holds, axis=0))
    if not p_values:
        return None, None, {}
    m = len(p_values)
    limits = [k * 0.05 / m / sum(1 / n for n in range(1, m + 1)) for k in range(1, m + 1)]
    passing = [k for k, p in enumerate(sorted(p_values), 1) if p <= limits[k - 1]]
    rate = max(passing, default=0) / m
    return rate, np.mean([judge for judge, _ in advantages.values()]), advantages


@pytest.mark.slow
@given(studies(), st.sampled_from([0.0, 0.1, 0.2, 0.3]), st.booleans())
def test_the_test_is_the_plain_loop(study, epsilon, multiplicative):
    judge, people = study
    settings_ = AltTestSettings(
        epsilon,
        multiplicative=multiplicative,
        min_instances_per_human=3,
        min_humans=1,
        resampling=FEW,
    )
    found = alt_test({"judge": judge}, people, settings_)["judge"]
    rate, advantage, advantages = plain(judge, people, epsilon, multiplicative=multiplicative)
    assert found.winning_rate[epsilon_key(epsilon)].value == rate
    if rate is None:
        assert found.advantage_probability.why
        assert found.passes is None
        return
    assert found.advantage_probability.value == pytest.approx(advantage)
    assert list(found.by_human) == sorted(advantages)
    for name, against in found.by_human.items():
        shares = against.judge_advantage, against.human_advantage
        assert shares == pytest.approx(advantages[name])


# --- what holds whatever the labels are ----------------------------------------------------------


@given(studies())
def test_winning_rates_rise_with_epsilon(study):
    judge, people = study
    settings_ = AltTestSettings(min_instances_per_human=3, resampling=FEW)
    rates = [
        figure.value
        for figure in alt_test({"judge": judge}, people, settings_)["judge"].winning_rate.values()
    ]
    assert rates == [None] * len(rates) or rates == sorted(rates)


@given(studies(), st.randoms(use_true_random=False))
def test_neither_order_nor_other_judges_make_a_difference(study, random):
    judge, people = study
    settings_ = AltTestSettings(min_instances_per_human=3, resampling=FEW)
    alone = alt_test({"judge": judge}, people, settings_)["judge"]
    shuffled = list(judge.items())
    random.shuffle(shuffled)
    other = {"other": dict.fromkeys(judge, "A"), "judge": dict(shuffled)}
    backwards = {name: dict(reversed(said.items())) for name, said in reversed(people.items())}
    assert alt_test(other, backwards, settings_)["judge"] == alone


@given(studies())
def test_a_judge_that_copies_a_person_is_as_good_as_that_person(study):
    _, people = study
    name, said = next(iter(people.items()))
    settings_ = AltTestSettings(min_instances_per_human=3, resampling=FEW)
    found = alt_test({"copy": said}, people, settings_)["copy"]
    if name in found.by_human:
        against = found.by_human[name]
        assert (against.judge_advantage, against.human_advantage) == (1, 1)
        assert not against.rejected["0.00"]
        assert against.p_values == {
            key: (1.0 if key == "0.00" else 0.0) for key in found.winning_rate
        }


# --- tests of significance -----------------------------------------------------------------------


def differences_of(outcomes, epsilon, multiplicative):
    cost = 1 - epsilon if multiplicative else 1
    both, human, judge = outcomes
    return np.array([1 - 1 / cost] * both + [1.0] * human + [-1 / cost] * judge)


@given(counts, epsilons, st.booleans())
def test_p_values_are_scipy_s(outcomes, epsilon, multiplicative):
    differences = differences_of(outcomes, epsilon, multiplicative)
    [found] = t_test(np.array(outcomes), penalty([epsilon], multiplicative))
    against = 0 if multiplicative else epsilon
    if sum(n > 0 for n in outcomes) == 1:
        assert found == (0.0 if differences[0] < against else 1.0)
    else:
        expected = oracles.stats.ttest_1samp(differences, against, alternative="less").pvalue
        assert found == pytest.approx(expected, abs=1e-9)


few = st.tuples(*[st.integers(0, 4)] * 3).filter(lambda n: 1 < sum(n) < 9)


@given(few, epsilons, st.booleans())
def test_wilcoxon_counts_every_way_the_signs_could_have_fallen(outcomes, epsilon, multiplicative):
    [found] = wilcoxon(np.array(outcomes), penalty([epsilon], multiplicative))
    differences = differences_of(outcomes, epsilon, multiplicative)
    differences = (differences - (0 if multiplicative else epsilon)).round(12)
    if len(set(differences)) == 1:
        assert found == (0.0 if differences[0] < 0 else 1.0)
        return
    differences = differences[differences != 0]
    ranks = oracles.stats.rankdata(np.abs(differences))
    sums = [ranks[np.array(signs)].sum() for signs in product([True, False], repeat=len(ranks))]
    assert found == pytest.approx(np.mean(sums <= ranks[differences > 0].sum()))


@pytest.mark.parametrize("outcomes", [(6, 1, 3), (2, 5, 1), (4, 0, 5)])
def test_wilcoxon_is_scipy_s_where_that_is_exact(outcomes):
    [found] = wilcoxon(np.array(outcomes), penalty([0.15]))
    differences = differences_of(outcomes, 0.15, multiplicative=False) - 0.15
    assert found == pytest.approx(oracles.stats.wilcoxon(differences, alternative="less").pvalue)


p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=9)


@given(p_lists, st.floats(0.01, 0.3))
def test_what_is_rejected_is_what_scipy_s_adjusted_p_values_reject(p_values, q):
    adjusted = oracles.stats.false_discovery_control(p_values, method="by")
    if np.abs(adjusted - q).min() > 1e-9:
        assert (benjamini_yekutieli(np.array(p_values), q) == (adjusted <= q)).all()


@given(p_lists, st.randoms(use_true_random=False))
def test_what_is_not_tested_makes_no_difference_to_the_others(p_values, random):
    with_gaps = [*p_values, np.nan, np.nan]
    random.shuffle(with_gaps)
    found = benjamini_yekutieli(np.array(with_gaps))
    assert not found[np.isnan(with_gaps)].any()
    assert found.sum() == benjamini_yekutieli(np.array(p_values)).sum()


@pytest.mark.parametrize(
    "p_values, rejected",
    [
        ([0.001, 0.02, 0.2], [0]),
        ([0.01, 0.01, 0.01], [0, 1, 2]),
        ([0.03, 0.001, 0.04], [1]),
        ([0.0272, 0.0001, 0.018], [0, 1, 2]),
        ([0.5, 0.6], []),
        ([np.nan], []),
    ],
)
def test_benjamini_yekutieli_by_hand(p_values, rejected):
    assert list(np.flatnonzero(benjamini_yekutieli(np.array(p_values)))) == rejected


# --- settings ------------------------------------------------------------------------------------


def three(n=40, wrong=0):
    """Return three people of one mind, but for the first few items of ann's."""
    people = {name: dict.fromkeys(range(n), "A") for name in ("ann", "ben", "cem")}
    people["ann"] |= dict.fromkeys(range(wrong), "B")
    return people


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"epsilon": 1.0}, "less than 1"),
        ({"more_epsilons": [-0.1]}, "at least 0"),
        ({"q": 0}, "q must be"),
        ({"min_humans_per_item": 1}, "someone must be left"),
        ({"min_instances_per_human": 0}, "at least 1"),
        ({"min_humans": 0}, "min_humans must be at least 1"),
        ({"scoring": "bleu"}, "scoring must be one of auto"),
        ({"jaccard": "cosine"}, "jaccard must be one of set, positional"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        AltTestSettings(**options)


def test_the_grid_has_seven_epsilons_and_those_asked_for():
    found = alt_test({"j": three()["ann"]}, three(), AltTestSettings(0.12, more_epsilons=[0.125]))
    assert list(found["j"].winning_rate) == [
        "0.00", "0.05", "0.10", "0.12", "0.125", "0.15", "0.20", "0.25", "0.30",
    ]  # fmt: skip
    assert found["j"].epsilon == "0.12"


def test_people_with_too_few_items_are_left_out_and_named():
    people = three() | {"dia": dict.fromkeys(range(29), "B")}
    found = alt_test({"j": people["ann"]}, people)["j"]
    assert list(found.by_human) == ["ann", "ben", "cem"]
    assert found.untested == {"dia": 29}
    assert [(gap.what, gap.names, gap.why) for gap in found.left_out] == [
        ("humans", ("dia",), "they have fewer than 30 items to test on")
    ]


@pytest.mark.parametrize(
    "tested, said", [(["ann"], "only 1 person has"), (["ann", "ben"], "only 2 people have")]
)
def test_too_few_people_with_enough_items_are_no_verdict(tested, said):
    """One person with 30 items would be won against or not: 1 of 1, which passes."""
    people = {name: dict.fromkeys(range(12), "A") for name in ("ann", "ben", "cem")}
    people |= {name: dict.fromkeys(range(40), "A") for name in tested}
    people["cem"] |= dict.fromkeys(range(40, 60), "A")
    people["dia"] = dict.fromkeys(range(12, 40), "A")
    judge = dict.fromkeys(range(60), "A")
    found = alt_test({"j": judge}, people)["j"]
    assert found.passes is None
    reason = f"{said} 30 items or more that the judge and at least 2 people labelled"
    for figure in (*found.winning_rate.values(), found.advantage_probability):
        assert figure.value is None
        assert figure.why == f"{reason}, and the test takes 3"
    assert sorted(found.by_human) == tested
    fewer = alt_test({"j": judge}, people, AltTestSettings(min_humans=1))["j"]
    assert fewer.passes is True
    [alone] = scores_of(
        [MetricConfig(AltTestScorer(), ["w"], display_name="alt")],
        {"j": {"w": judge}},
        {name: {"w": said} for name, said in people.items()},
    )["alt"]
    assert alone.figures["winning_rate"].value is None
    assert alone.metadata["passes"] is None


def test_items_with_too_few_people_are_left_out_and_counted():
    people = {"ann": dict.fromkeys(range(60), "A"), "ben": dict.fromkeys(range(50), "A")}
    people["cem"] = dict.fromkeys(range(40), "A")
    judge = dict.fromkeys([*range(55), 99], "A")
    gaps = alt_test({"j": judge}, people, AltTestSettings(min_humans_per_item=3))["j"].left_out
    assert [(gap.what, gap.count, gap.why) for gap in gaps] == [
        ("items", 20, "labelled by fewer than 3 people"),
        ("items", 1, "labelled by nobody"),
    ]
    [_, gap] = alt_test({"j": dict.fromkeys(range(45), "A")}, people)["j"].left_out
    assert (gap.count, gap.why) == (5, "without a label of the judge")


def test_fewer_items_are_enough_by_wilcoxon_s_test_where_it_is_allowed():
    people = three(n=12, wrong=2)
    assert alt_test({"j": people["ben"]}, people)["j"].passes is None
    found = alt_test({"j": people["ben"]}, people, AltTestSettings(wilcoxon=True))["j"]
    assert {against.test for against in found.by_human.values()} == {"wilcoxon"}
    expected = oracles.stats.wilcoxon(
        np.array([-1] * 2 + [0] * 10) - 0.2, alternative="less"
    ).pvalue
    assert found.by_human["ann"].p_values["0.20"] == pytest.approx(expected)


def test_with_thirty_items_wilcoxon_is_not_used():
    found = alt_test({"j": three(30)["ben"]}, three(30), AltTestSettings(wilcoxon=True))["j"]
    assert {against.test for against in found.by_human.values()} == {"t-test"}


def test_where_wilcoxon_is_allowed_nobody_is_left_out_for_too_few_items():
    """Who has 20 items is tested by ranks, so who has 40 is not left out for want of 50."""
    people = three(40) | {"dia": dict.fromkeys(range(20), "A")}
    asked = AltTestSettings(wilcoxon=True, min_instances_per_human=50)
    found = alt_test({"j": people["ben"]}, people, asked)["j"]
    assert {name: against.test for name, against in found.by_human.items()} == {
        **dict.fromkeys(("ann", "ben", "cem"), "t-test"),
        "dia": "wilcoxon",
    }


@pytest.mark.parametrize("judges, people", [({"j": {}}, three()), ({"j": {1: "A"}}, {})])
def test_without_labels_nothing_is_tested_and_the_reason_says_so(judges, people):
    found = alt_test(judges, people)["j"]
    assert found.passes is None
    assert found.winning_rate["0.20"].why == (
        "everybody has fewer than 30 items that the judge and at least 2 people labelled"
    )
    assert in_words(found).startswith("Not tested: everybody has")


def test_no_judge_no_result():
    assert alt_test({}, three()) == {}


def test_numbers_are_compared_by_their_distance():
    people = {name: dict.fromkeys(range(40), 4) for name in ("ann", "ben", "cem")}
    judges = {"near": dict.fromkeys(range(40), 4.5), "far": dict.fromkeys(range(40), 1)}
    people["ann"] = dict.fromkeys(range(40), 3)
    found = alt_test(judges, people)
    assert found["near"].scoring == "neg_rmse"
    assert found["near"].by_human["ann"].judge_advantage == 1
    assert found["far"].by_human["ann"].judge_advantage == 0


def test_truth_values_are_labels_and_a_judge_of_other_labels_agrees_with_nobody():
    people = {name: dict.fromkeys(range(40), True) for name in ("ann", "ben", "cem")}
    found = alt_test({"j": dict.fromkeys(range(40), "yes")}, people)["j"]
    assert (found.scoring, found.advantage_probability.value) == ("accuracy", 0)


def test_a_judge_s_labels_of_another_type_do_not_change_how_others_are_scored():
    people = {name: dict.fromkeys(range(40), 4) for name in ("ann", "ben", "cem")}
    found = alt_test({"text": dict.fromkeys(range(40), "4"), "number": people["ann"]}, people)
    assert [result.scoring for result in found.values()] == ["accuracy", "neg_rmse"]


def test_scores_that_differ_by_rounding_are_ties():
    """1/3 and 2/3 differ from 0 in opposite ways by other roundings; the distance is the same."""
    people = {"ann": dict.fromkeys(range(40), 0.1 + 0.2), "ben": dict.fromkeys(range(40), 0.0)}
    found = alt_test({"j": dict.fromkeys(range(40), 0.3)}, people)["j"]
    assert found.by_human["ann"].human_advantage == 1
    assert found.by_human["ann"].judge_advantage == 1


def test_jaccard():
    assert jaccard_similarity(("a", "b"), ("b", "c")) == 1 / 3
    assert jaccard_similarity((), ("FALSE",)) == 1
    assert jaccard_similarity((1, 0, 1), (1, 1, 1)) == 2 / 3
    assert jaccard_similarity((1, 0, 1), (1, 1, 1), "positional") == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="as many positions"):
        jaccard_similarity(("a",), ("a", "b"), "positional")


@given(st.integers(2, 5).flatmap(lambda n: st.tuples(*[st.tuples(*[texts] * n)] * 2)))
def test_jaccard_by_position_is_scikit_learn_s(pair):
    from sklearn.metrics import jaccard_score

    one, other = pair
    expected = jaccard_score(one, other, average="macro")
    assert jaccard_similarity(one, other, "positional") == pytest.approx(expected)


# --- words ---------------------------------------------------------------------------------------


def words_of(people, **options):
    settings_ = AltTestSettings(**options)
    return " ".join(advice(alt_test({"j": people["ben"]}, people, settings_)["j"], settings_))


def test_what_makes_a_test_weak_is_said():
    people = three(60)
    two = {name: people[name] for name in ("ann", "ben")}
    assert words_of(people) == ""
    assert "With two people" in words_of(two, min_humans=2)
    assert words_of(two) == ""  # there is no figure that could be weak
    assert "At most 40 items per person: 50 to 100 are enough" in words_of(three(40))
    assert "Fewer than 30 items: ann, ben, cem. The t-test" in words_of(
        three(20), min_instances_per_human=10
    )
    assert "tested by Wilcoxon" in words_of(three(20), wilcoxon=True)
    few_of_cem = people | {"cem": dict.fromkeys(range(35), "A")}
    of_two = words_of(few_of_cem)
    assert "Only two people labelled 25 of the 60 items" in of_two
    assert "min_humans" not in of_two  # who reads this may have nowhere to set it
    lonely = {
        "ben": dict.fromkeys(range(60), "A"),
        "cem": dict.fromkeys(range(29), "A"),
        "dia": dict.fromkeys(range(30, 59), "A"),
    }
    assert "Only one person has enough items" in words_of(lonely, min_humans=1)


def test_the_verdict_in_words():
    people = three(60, wrong=20)
    good = alt_test({"j": people["ben"]}, people)["j"]
    assert in_words(good).startswith("Passes at epsilon 0.20: it wins against 3 of 3 people")
    bad = alt_test({"j": dict.fromkeys(range(60), "tie")}, people)["j"]
    assert in_words(bad).startswith("Fails at epsilon 0.20: it wins against 0 of 3 people")


def test_how_to_choose_epsilon():
    assert "0.2 for experts" in epsilon_advice()
    assert "0.15 for skilled" in epsilon_advice()
    assert "0.1 for crowd" in epsilon_advice()
