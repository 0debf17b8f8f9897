"""The statistics of the board on MT-bench and PandaLM: published figures, and evalica's ratings."""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from judge_eval.imports.formats import read
from judge_eval.imports.row_models import ImportRow
from judge_eval.judging.baselines import BASELINES, longer_wins, random_choice
from judge_eval.stats.bradley_terry import as_votes, model_board
from judge_eval.stats.claims import claims
from judge_eval.stats.elo_orders import elo_range, shuffled_elo
from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
from judge_eval.stats.judge_figures import among_people, judge_figures, overall_agreement
from judge_eval.stats.mcnemar import mcnemar_tests
from judge_eval.stats.outcomes_table import OutcomesTable
from judge_eval.stats.wording import Words
from tests.helpers import oracles
from tests.helpers.outcome_tables import one_by_one, outcomes_of
from voting.items.choices import CHOICES
from voting.items.order import prompt_order

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
SIDED = [CHOICES.index(choice) for choice in ("A", "B")]

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not DATA.exists(), reason="not run: no ../shared/data"),
]


def figures_of(table):
    return judge_figures(table, np.arange(len(table.votes)), rng())


def people_of(votes):
    return among_people(votes, np.arange(len(votes)))


def rows_of(path):
    with (DATA / path).open("rb") as stream:
        return [row for row in read(stream, Path(path).name) if isinstance(row, ImportRow)]


def table_of(votes, *judges):
    """Count votes by pair beside what each judge says of it."""
    counts = defaultdict(Counter)
    for row in votes:
        counts[row.item][row.vote] += 1
    return outcomes_of(counts.values(), [[said[pair] for said in judges] for pair in counts])


def baseline(opinion, rows):
    return {
        row.item: opinion(row.output_a or "", row.output_b or "", row.item).winner for row in rows
    }


def rng():
    return np.random.default_rng(2026)


def elo_scale(scores, names):
    points = 400 * np.log10([scores[name] for name in names])
    return 1000 + points - points.mean()


def by_evalica(wins):
    """Rate a table of wins with the prior as games against one more player, "v"."""
    found = [(str(i), str(j), wins[i, j]) for i, j in np.argwhere(wins)]
    found += [game for n in range(len(wins)) for game in ((str(n), "v", 0.5), ("v", str(n), 0.5))]
    xs, ys, weights = (list(column) for column in zip(*found, strict=True))
    winners = [oracles.evalica.Winner.X] * len(found)
    fitted = oracles.evalica.bradley_terry(
        xs, ys, winners, weights=weights, tolerance=1e-15, limit=10**5
    )
    return elo_scale(fitted.scores, [str(n) for n in range(len(wins))])


# --- MT-bench -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def human():
    return rows_of("mtbench/human.jsonl")


@pytest.fixture(scope="module")
def gpt4():
    return {row.item: row.verdict for row in rows_of("mtbench/gpt4_pair.jsonl")}


@pytest.fixture(scope="module")
def mtbench(human, gpt4):
    baselines = (baseline(opinion, human) for opinion in (BASELINES["always-first"], random_choice))
    return table_of(human, gpt4, *baselines)


@pytest.mark.parametrize(
    "turn, with_gpt4, with_people, sided_with_gpt4, sided_with_people",
    [
        ("turn-1", (886, 1343), (454, 721), (727, 859), (388, 479)),
        ("turn-2", (871, 1325), (471, 707), (731, 864), (388, 474)),
    ],
)
def test_mtbench_agreement_and_that_of_people_are_as_published(
    human, gpt4, turn, with_gpt4, with_people, sided_with_gpt4, sided_with_people
):
    experts = [r for r in human if r.voter.startswith("expert") and turn in r.tags]
    table = table_of(experts, gpt4)
    judged = figures_of(table)[0].agreement
    assert (judged.successes, judged.n) == with_gpt4
    people = people_of(table.votes).pairs
    assert (people.successes, people.n) == with_people
    # Without ties: votes for a side, and verdicts that name one.
    named = np.where(np.isin(table.verdicts, SIDED), table.verdicts, -1).astype(np.int8)
    votes = table.votes.copy()
    votes[:, [n for n in range(4) if n not in SIDED]] = 0
    sided = OutcomesTable(votes, named)
    judged = figures_of(sided)[0].agreement
    assert (judged.successes, judged.n) == sided_with_gpt4
    people = people_of(table.votes[:, SIDED]).pairs
    assert (people.successes, people.n) == sided_with_people


def test_mtbench_intervals_are_by_comparison_and_wider_than_votes_would_make_them(mtbench):
    gpt4, _, _ = figures_of(mtbench)
    agreement = gpt4.agreement
    assert (agreement.method, agreement.comparisons, agreement.n) == ("prompts", 1814, 3354)
    by_vote = 2 * 1.96 * np.sqrt(agreement.value * (1 - agreement.value) / agreement.n)
    assert 1.1 * by_vote < agreement.high - agreement.low < 2 * by_vote


def test_mtbench_gpt4_beats_the_floor_and_is_as_good_as_one_more_person(mtbench, human):
    found = mcnemar_tests(mtbench, [1, 2])
    assert (found.labelled, found.unlabelled) == (1600, 214)
    names = ["gpt-4", "always-first", "random"]
    words = words_of(mtbench, prompts_of(human), names, [1, 2])
    assert words.headline()[0].startswith(
        "gpt-4 agrees with people on 66 %, always-first on 40 %: 26 points more ("
    )
    points = dict(words.points())
    assert points["Floor"] == "It beats the baselines."
    assert points["People"] == "Among themselves they agree on 66 %."
    gpt4, _, _ = figures_of(mtbench)
    assert gpt4.rating.worst_rank == 1
    people = people_of(mtbench.votes).pairs
    assert people.low < gpt4.agreement.value < people.high


def test_mtbench_ratings_are_those_of_evalica(mtbench):
    found = figures_of(mtbench)
    values = [one.rating.value for one in found]
    assert values == pytest.approx(by_evalica(mtbench.wins().astype(float)), abs=1e-6)


def test_mtbench_order_is_worth_tens_of_points(mtbench):
    """Also where the votes on a pair stay together, and only the pairs change places."""
    low, high = elo_range(*one_by_one(mtbench), rng())
    assert (high - low > 100).all()
    assert (high - low < 330).all()


def test_mtbench_people_and_gpt4_rank_the_models_alike_but_for_one_tie(human, mtbench):
    generators = {row.item: (row.generator_a, row.generator_b) for row in human}
    names = sorted({name for pair in generators.values() for name in pair})
    models = np.array([[names.index(name) for name in pair] for pair in generators.values()])
    people = model_board(models, len(names), mtbench.votes, rng())
    judge = model_board(models, len(names), as_votes(mtbench.verdicts[:, 0]), rng())
    assert (people.both_bad, people.unpaired) == (0, 0)
    for board in (people, judge):
        values = [rating.value for rating in board.ratings]
        assert values == pytest.approx(by_evalica(np.array(board.wins)), abs=1e-6)
        assert [name for _, name in sorted(zip(values, names, strict=True), reverse=True)] == [
            "gpt-4",
            "claude-v1",
            "gpt-3.5-turbo",
            "vicuna-13b-v1.2",
            "alpaca-13b",
            "llama-13b",
        ]
    assert dict(zip(names, people.ties, strict=True)) == {
        "gpt-4": "a",
        "claude-v1": "b",
        "gpt-3.5-turbo": "b",
        "vicuna-13b-v1.2": "c",
        "alpaca-13b": "d",
        "llama-13b": "e",
    }
    assert len(set(judge.ties)) == 6


def prompts_of(rows):
    """Return the key of each pair's prompt, in the order in which pairs are met."""
    return list({row.item: row.cluster or row.prompt_id or row.prompt for row in rows}.values())


def words_of(table, prompts, names, baselines):
    """Say it of votes that all came at once; `prompts` has the key of each row."""
    number = {key: n for n, key in enumerate(dict.fromkeys(prompts))}
    # As the run of an import does: in the order of the prompts.
    order = [prompt_order("a run", key) for key in number]
    rows = sorted(range(len(prompts)), key=lambda row: order[number[prompts[row]]])
    said = table.verdicts.tolist()
    events = [
        ItemOpened(row, row, number[key], int(table.votes[row].sum()), said[row])
        for row, key in enumerate(prompts)
    ]
    for row in rows:
        choices = np.repeat(np.arange(table.n_choices), table.votes[row]).tolist()
        events += [VoteCast(len(events), row, choice) for choice in choices]
    overall = [
        share.value for share in overall_agreement(table, np.array([number[k] for k in prompts]))
    ]
    is_baseline = np.isin(np.arange(table.n_judges), baselines)
    found = claims(enter(events, order), is_baseline, np.array(overall))
    best = sorted(range(table.n_judges), key=lambda n: -overall[n])
    people = people_of(table.votes).pairs.value
    coverage = (table.verdicts >= 0).mean(axis=0).tolist()
    votes = table.n_votes
    return Words(names, found, best, overall, coverage, votes=votes, people=people)


# --- PandaLM ------------------------------------------------------------------------------------

PANDALM = ["pandalm-7b", "gpt-3.5-turbo", "longer-wins", "always-first"]


@pytest.fixture(scope="module")
def pandalm():
    testset = rows_of("pandalm/testset-v1.json")
    judges = [
        {row.item: row.verdict for row in rows_of(f"pandalm/{judge}-testset-v1.json")}
        for judge in PANDALM[:2]
    ]
    baselines = [baseline(opinion, testset) for opinion in (longer_wins, BASELINES["always-first"])]
    return table_of(testset, *judges, *baselines)


def test_pandalm_agreement_with_the_majority_is_as_published(pandalm):
    found = mcnemar_tests(pandalm)
    assert (found.labelled, found.unlabelled) == (999, 0)
    assert [found.together[n][n] for n in (0, 1)] == [999, 974]
    assert [f.coverage.successes for f in figures_of(pandalm)[:2]] == [999, 974]


def test_pandalm_judges_are_practically_the_same_and_lead_the_baselines(pandalm):
    words = words_of(pandalm, prompts_of(rows_of("pandalm/testset-v1.json")), PANDALM, [2, 3])
    assert (words.claims.prompts, words.claims.entered) == (170, 170)
    first, _ = words.headline()
    assert first.startswith("gpt-3.5-turbo and pandalm-7b are practically the same: ")
    assert words.claims.beats_floor() == [False, False, None, None]
    assert [lead for lead, _ in words.points()] == ["Floor", "People"]
    assert "No judge" not in words.points()[0][1]
    ranks = [one.rating.rank for one in figures_of(pandalm)]
    assert ranks == [2, 1, 3, 4]


def test_pandalm_another_order_of_the_votes_crowns_another_judge(pandalm):
    """The Bradley-Terry rating is sure of the first rank; ELO is not."""
    best = shuffled_elo(*one_by_one(pandalm), rng()).argmax(axis=1)
    assert 0.4 < (best == 1).mean() < 0.9
    leader = figures_of(pandalm)[1].rating
    assert (leader.best_rank, leader.worst_rank) == (1, 1)


def test_pandalm_people_agree_far_better_than_any_judge_with_them(pandalm):
    found = people_of(pandalm.votes)
    agreement = [one.agreement for one in figures_of(pandalm)]
    assert found.pairs.n == 3 * 999
    assert round(found.pairs.value, 4) == 0.9199
    assert found.pairs.low > max(one.high for one in agreement)
    assert found.no_majority == 240
