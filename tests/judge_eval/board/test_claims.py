"""A whole run worked out by an independent prototype, and published tables of four judges."""

import json
from math import ceil, exp, floor, log
from pathlib import Path

import numpy as np
import pytest

from judge_eval.stats.claims import always_valid
from judge_eval.stats.claims import claims as claims_of
from judge_eval.stats.estimate import best_first
from judge_eval.stats.evidence import (
    beats,
    best_growth,
    evidence,
    log_wealth,
    thresholds,
)
from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
from judge_eval.stats.judge_figures import overall_agreement, prompt_interval, shares_by_prompt
from judge_eval.stats.outcomes_table import FAILED, UNASSIGNED, OutcomesTable

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases"
CODES = {"A": 0, "B": 1, "tie": 2, "both_bad": 3, None: FAILED}

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not CASES.exists(), reason="not run: no ../shared/cases"),
]


def case(name):
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def claims():
    return case("claims")


def test_evidence_of_sequences_is_as_worked_out(claims):
    assert len(claims["evidence_of_sequences"]) >= 7
    for sequence in claims["evidence_of_sequences"]:
        log_all = log_wealth(np.array([sequence["D"]], dtype=float).T)[:, 0]
        so_far = np.exp(np.append(0, log_all))
        assert (so_far[-1], so_far.max()) == pytest.approx((sequence["last"], sequence["largest"]))


def test_intervals_of_overall_agreement_are_as_worked_out(claims):
    assert len(claims["intervals"]) >= 4
    for of in claims["intervals"]:
        right, votes = (np.array(of[name])[:, None] for name in ("right", "votes"))
        [share] = shares_by_prompt(right, votes, np.arange(len(right)))
        expected = tuple(of[name] for name in ("value", "low", "high"))
        assert (share.value, share.low, share.high) == pytest.approx(expected, rel=1e-9)
        if 0 < right.sum() < votes.sum():
            assert prompt_interval(of["right"], of["votes"]) == pytest.approx(expected[1:])


class Run:
    """The recorded run, as this project counts it."""

    def __init__(self, recorded):
        self.names = recorded["judges"] + recorded["baselines"]
        self.prompts = [prompt["id"] for prompt in recorded["prompts"]]
        self.events, numbers, prompt_of = [], {}, []
        for number, prompt in enumerate(recorded["prompts"]):
            for comparison in prompt["comparisons"]:
                said = comparison["verdicts"]
                codes = [CODES[said[n]] if n in said else UNASSIGNED for n in self.names]
                n = numbers[comparison["id"]] = len(numbers)
                self.events.append(ItemOpened(n, n, number, comparison["votes_wanted"], codes))
                prompt_of.append(number)
        votes = np.zeros((len(numbers), 4), dtype=np.int64)
        for seq, vote in enumerate(recorded["ledger"], start=len(numbers)):
            item, choice = numbers[vote["comparison"]], CODES[vote["choice"]]
            self.events.append(VoteCast(seq, item, choice))
            votes[item, choice] += 1
        verdicts = np.array([opened.verdicts for opened in self.events[: len(numbers)]], np.int16)
        self.table = OutcomesTable(votes, verdicts)
        self.overall = overall_agreement(self.table, np.array(prompt_of))
        self.entered = enter(self.events, range(len(self.prompts)))
        self.is_baseline = np.array([name in recorded["baselines"] for name in self.names])
        self.evidence = evidence(self.entered, thresholds(self.is_baseline))
        agreement = np.array([share.value for share in self.overall])
        self.claims = claims_of(self.entered, self.is_baseline, agreement)

    def said(self, places):
        return [self.names[place] for place in places]


@pytest.fixture(scope="module")
def run(claims):
    return Run(claims["run"])


def test_prompts_enter_as_recorded(claims, run):
    expected = claims["expected"]
    assert [run.prompts[prompt] for prompt in run.entered.prompts] == expected["entered"]
    assert set(run.entered.most_votes) == {expected["n_max"]}


def test_overall_agreement_is_as_recorded(claims, run):
    judged, table = run.table.judged().sum(axis=0), run.table
    for n, (name, share) in enumerate(zip(run.names, run.overall, strict=True)):
        expected = claims["expected"]["overall"][name]
        found = {
            "right": share.successes,
            "votes": share.n,
            "agree": share.successes,
            "disagree": judged[n] - share.successes,
            "asked": (table.verdicts[:, n] != UNASSIGNED).sum(),
            "answered": (table.verdicts[:, n] >= 0).sum(),
            "value": share.value,
            "low": share.low,
            "high": share.high,
        }
        assert found == pytest.approx({name: expected[name] for name in found}, rel=1e-9)


def test_what_holds_however_often_one_looks_is_as_recorded_on_its_grid(claims, run):
    ends = always_valid(run.entered.right, run.entered.votes, run.entered.most_votes)
    for name, (low, high) in zip(run.names, ends.tolist(), strict=True):
        expected = claims["expected"]["overall"][name]
        on_grid = ceil(1000 * low) / 1000, floor(1000 * high) / 1000
        assert on_grid == (expected["always_valid_low"], expected["always_valid_high"])


def test_evidence_growth_and_forecasts_are_as_recorded(claims, run):
    found, expected = run.evidence, claims["expected"]
    assert len(expected["evidence"]) == 9
    for pair, recorded in expected["evidence"].items():
        cell = tuple(run.names.index(name) for name in pair.split(">"))
        assert recorded["entries"] == len(run.entered.prompts)
        assert recorded["votes"] == found.votes
        worked = (exp(found.log_now[cell]), exp(found.log_largest[cell]))
        assert worked == pytest.approx((recorded["last"], recorded["largest"]), rel=1e-9)
        # This one, and no other, was searched for among bets up to 0.9995 only.
        as_it_looks = best_growth(differences_of(run.entered, cell)) / found.votes
        assert as_it_looks == pytest.approx(recorded["growth_per_vote"], rel=5e-4)
    assert len(expected["forecast_votes"]) == 2
    for pair, recorded in expected["forecast_votes"].items():
        cell = tuple(run.names.index(name) for name in pair.split(">"))
        missing = log(run.claims.needed[cell]) - found.log_largest[cell]
        low, high = (
            missing / growth if growth > 0 else None
            for growth in found.growth[(slice(None), *cell)]
        )
        assert low == pytest.approx(recorded[0], rel=1e-4)
        assert high == (recorded[2] and pytest.approx(recorded[2], rel=1e-4))
    forecasts = run.claims.forecast
    assert (forecasts[1][2], forecasts[1][3]) == ((120, None), (8, 210))


def differences_of(entered, cell):
    """Return D of the prompts for a judge against another."""
    first, second = sorted(cell)
    one, other = np.triu_indices(entered.n_judges, 1)
    [column] = np.flatnonzero((one == first) & (other == second))
    sign = 1 if cell == (first, second) else -1
    return sign * entered.differences[:, column, None]


def test_what_is_claimed_is_as_recorded(claims, run):
    expected, found = claims["expected"], run.claims
    judges = np.flatnonzero(~run.is_baseline)
    among = found.beats[np.ix_(judges, judges)]
    thresholds = found.threshold, found.best_threshold, found.floor_threshold
    names = "threshold", "best_threshold", "floor_threshold"
    assert thresholds == tuple(expected[name] for name in names)
    assert [run.said(pair) for pair in np.argwhere(among)] == expected["beats"]
    assert run.said([found.best]) == expected["best"]
    ranges = dict(zip(run.names, map(list, found.ranks()[:3]), strict=False))
    assert ranges == expected["rank_range"]
    assert (
        run.said([n for n, beats in enumerate(found.beats_floor()) if beats])
        == (expected["beats_floor"])
    )


# --- Published tables of four judges ------------------------------------------------------------


@pytest.fixture(scope="module")
def umass():
    return case("umass_tables")


def test_the_better_judge_stands_first_of_the_published(umass):
    values = []
    for rows in umass["tables"].values():
        counts = [row["count"] for row in rows]
        votes = np.repeat(
            np.eye(4, dtype=np.int64)[[CODES[row["human"]] for row in rows]], counts, 0
        )
        verdicts = np.repeat(np.int16([[CODES[row["judge"]]] for row in rows]), counts, axis=0)
        [share] = overall_agreement(OutcomesTable(votes, verdicts), np.arange(len(votes)))
        values.append(share.value)
    names = [*umass["tables"]]
    assert [names[n] for n in best_first(values)] == ["GPT-4", "Llama3-70B", "Gemma-2B", "JudgeLM"]
    assert [round(100 * value, 1) for value in values] == [95.0, 94.4, 62.7, 52.1]


def one_against_other(counts, rng):
    """Return the claims of two of the four judges, item by item in an order of chance."""
    kinds = {"both right": [0, 0], "first only": [0, 1], "second only": [1, 0], "neither": [1, 1]}
    rows = [kinds[name] for name, count in counts.items() for _ in range(count)]
    items = rng.permutation(len(rows)).tolist()
    opened = [ItemOpened(n, n, n, 1, rows[item]) for n, item in enumerate(items)]
    voted = [VoteCast(len(rows) + n, n, 0) for n in range(len(rows))]
    entered = enter([*opened, *voted], range(len(rows)))
    agreement = entered.right.sum(axis=0) / entered.votes.sum(axis=0)
    needed = thresholds(np.zeros(4, dtype=bool))[:2, :2]
    found = evidence(entered, needed)
    return beats(found.reached, found.log_now, agreement).tolist()


def test_no_one_of_the_two_best_is_claimed_better(umass):
    counts = umass["paired"]["GPT-4|Llama3-70B"]
    for seed in range(20):
        said = one_against_other(counts, np.random.default_rng(seed))
        assert said == [[False, False], [False, False]]


def test_what_is_clear_is_claimed(umass):
    first = {"GPT-4|Gemma-2B": True, "GPT-4|JudgeLM": True, "Gemma-2B|Llama3-70B": False}
    first |= {"Gemma-2B|JudgeLM": True, "JudgeLM|Llama3-70B": False}
    for pair, is_first in first.items():
        said = one_against_other(umass["paired"][pair], np.random.default_rng(1))
        assert said == [[False, is_first], [not is_first, False]]
