"""The Models tab: whom people put first, whom judges would have crowned, and how sure that is."""

import re
from dataclasses import replace

import pytest
import time_machine
from django.utils import timezone

from judge_eval.board.generator_boards import boards_of
from judge_eval.board.model import MOST_MODELS, Models
from judge_eval.models import Findings
from judge_eval.stats.estimate import ModelBoard, Rating
from tests.helpers import imports
from tests.helpers.pages import HTMX, queries_of, text_of
from tests.helpers.run_findings import compute, voted_run
from tests.makers import judges_of, make_run, make_vote, make_voter, pairs_of, seal_all, user_client
from voting.models import Inference

pytestmark = pytest.mark.django_db


def page_of(run):
    return f"/runs/{run.pk}/models/"


def shown(run, **query):
    response = user_client().get(page_of(run), query)
    assert response.status_code == 200, text_of(response)
    return response


def rating(rank, *, value=1000.0):
    return Rating(
        value=None if rank is None else value,
        low=None if rank is None else value - 10,
        high=None if rank is None else value + 10,
        rank=rank,
        best_rank=rank,
        worst_rank=rank,
        n=9,
        why="nobody voted" if rank is None else None,
    )


def board(by, ranks, *, ties=None, is_baseline=False):
    size = len(ranks)
    return ModelBoard(
        by=by,
        name="People" if by == "people" else by,
        is_baseline=is_baseline,
        ratings=[rating(rank) for rank in ranks],
        ties=ties or [chr(97 + (rank or 9)) for rank in ranks],
        wins=[[0.0] * size for _ in ranks],
        win_rates=[[None] * size for _ in ranks],
        both_bad=0,
        unpaired=0,
    )


def models_of(*boards, names=("one", "two", "three")):
    return Models(names=list(names), boards=list(boards))


def judged(boards, number=0):
    """The cells of one judge in the table of ranks, from the top."""
    return [row.cells[2 + number] for row in boards["ranks"].rows]


def differing(boards):
    """Of each judge: whether its first is marked as surely another than people's."""
    columns = range(len(boards["ranks"].heads) - 2)
    return [any("other" in cell.css for cell in judged(boards, number)) for number in columns]


# --- in words -----------------------------------------------------------------------------------


def test_people_first_then_the_judges_that_agree_and_those_that_would_crown_another():
    found = boards_of(
        models_of(
            board("people", [1, 2, 3]),
            board("alike", [1, 3, 2]),
            board("other", [2, 1, 3]),
            board("third", [3, 2, 1]),
            board("floor", [2, 1, 3], is_baseline=True),
        )
    )
    assert found["words"] == [
        "People put one first.",
        "So does alike.",
        "other would have crowned two.",
        "third would have crowned three.",
    ]
    assert differing(found) == [False, True, True, True]


def test_a_first_place_that_is_no_more_than_level_says_so():
    found = boards_of(
        models_of(
            board("people", [1, 2, 3], ties=["ab", "a", "b"]),
            board("judge", [2, 1, 3], ties=["a", "a", "a2"]),
        )
    )
    assert found["words"] == [
        "People put one first (not told apart from two and three).",
        "judge would have crowned two (not told apart from one).",
    ]


def test_of_several_judges_it_is_said_how_many_do_not_tell_their_first_from_that_of_people():
    sure = board("sure", [2, 1, 3], ties=["b", "a", "c"])
    unsure = [board(f"unsure-{n}", [2, 1, 3], ties=["a", "a", "b"]) for n in range(2)]
    people = board("people", [1, 2, 3], ties=["a", "b", "c"])
    found = boards_of(models_of(people, sure, *unsure))
    [line] = found["words"][1:]
    assert line.startswith("sure, unsure-0 and unsure-1 would have crowned two ")
    assert line.endswith(" (2 of these 3 do not tell it apart from one).")
    assert differing(found) == [True, False, False]
    found = boards_of(models_of(people, *unsure))
    assert found["words"][1].endswith("crowned two (neither of them tells it apart from one).")


def test_what_baselines_would_have_crowned_is_not_counted():
    floors = [board(f"floor-{n}", [3, 2, 1], is_baseline=True) for n in range(5)]
    found = boards_of(models_of(board("people", [1, 2, 3]), board("judge", [2, 1, 3]), *floors))
    assert found["words"] == ["People put one first.", "judge would have crowned two."]
    assert len(found["ranks"].heads) == 2 + 6


def test_ranks_of_judges_have_a_range_where_more_than_one_is_possible():
    judge = board("judge", [2, 1, 3])
    judge.ratings[0] = replace(judge.ratings[0], best_rank=1, worst_rank=2)
    found = boards_of(models_of(board("people", [1, 2, 3]), judge))
    assert [cell.small for cell in judged(found)] == ["1–2", "", ""]  # noqa: RUF001
    assert found["ranks"].rows[0].cells[1].small == ""


def test_two_that_share_the_first_place_are_both_named():
    found = boards_of(models_of(board("people", [1, 1, 3]), board("judge", [3, 1, 2])))
    assert found["words"] == ["People put one and two first.", "So does judge."]
    assert differing(found) == [False]


def test_many_judges_are_counted():
    names = [f"model-{n}" for n in range(8)]
    ranks = [[(n - first) % 8 + 1 for n in range(8)] for first in range(8)]
    judges = [board(f"judge-{n}", ranks[n % 8]) for n in range(20)]
    found = boards_of(models_of(board("people", ranks[0]), *judges, names=names))
    assert found["words"] == [
        "People put model-0 first.",
        "So do judge-0, judge-8 and judge-16.",
        "17 judges would have crowned 7 different models; they are starred below.",
    ]


def test_without_votes_the_judges_speak_alone():
    found = boards_of(
        models_of(
            board("people", [None] * 3), board("a-judge", [2, 1, 3]), board("other", [2, 1, 3])
        )
    )
    assert found["words"] == ["a-judge and other put two first."]
    assert not found["has_people"]
    assert [row.name for row in found["ranks"].rows] == ["two", "one", "three"]
    assert found["chosen"]["by"] == "a-judge"


def test_how_far_a_judge_is_from_people_and_a_model_it_never_saw():
    found = boards_of(models_of(board("people", [1, 2, 3]), board("judge", [None, 1, 2])))
    star = "★\N{NO-BREAK SPACE}"
    assert [(cell.main, cell.css.split()[1]) for cell in judged(found)] == [
        ("\N{EN DASH}", "shift-0"),
        (f"{star}1", "shift-1"),
        ("2", "shift-1"),
    ]


# --- on the page --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(module_db):
    return voted_run()


def test_the_generators_are_ranked_by_people_and_by_each_judge(run):
    text = text_of(shown(run))
    assert "People put generator-0 first." in text
    assert "near-judge" in text
    assert "contrary-judge would have crowned generator-1" in text
    assert text.count("generator-0 ★ 1 ") == 1
    assert "floor-baseline (baseline)" in text


def test_example_judges_of_the_demo_are_tagged_as_on_the_board(run):
    judge = run.judges.get(name="near-judge")
    plain = shown(run).content.decode()
    run.judges.filter(pk=judge.pk).update(provider="imported", model="example")
    page = shown(run).content.decode()
    tag = '<span class="tag">example</span>'
    assert tag not in plain
    # At the head of the column, and where its board is chosen.
    assert page.count(f"near-judge {tag}") == page.count(tag) == 2


@pytest.mark.parametrize("ties, marked", [(["b", "a"], 1), (["a", "a"], 0)])
def test_where_a_judge_surely_would_have_crowned_another_the_cell_is_marked(run, ties, marked):
    found = Findings.objects.get(run=run)
    [contrary] = [
        board for board in found.data["models"]["boards"] if board["name"] == "contrary-judge"
    ]
    contrary["ties"] = ties
    found.save()
    response = shown(run)
    assert response.content.decode().count('shift-1 other"') == marked
    said = "not people\N{RIGHT SINGLE QUOTATION MARK}s first"
    assert text_of(response).split("Ranks side by side")[1].count(said) == marked


def test_ratings_have_intervals_rank_ranges_and_ties(run):
    stored = Findings.objects.get(run=run).data["models"]["boards"][0]
    first = stored["ratings"][0]
    text = text_of(shown(run))
    interval = f"{first['low']:.0f}–{first['high']:.0f}"  # noqa: RUF001
    assert f"generator-0 1 {first['value']:.0f} {interval} a 40" in text


def test_the_win_rates_are_a_table_with_shades_and_numbers(run):
    content = shown(run)
    assert b'class="num heat-8">75 <small>120</small>' in content.content
    assert b'class="num heat-2">25 <small>120</small>' in content.content
    assert "1 generator-0 – 75 120" in text_of(content)  # noqa: RUF001


def test_each_judge_has_a_board_of_its_own(run):
    contrary = next(judge for judge in judges_of(run) if judge.name == "contrary-judge")
    text = text_of(shown(run, by=contrary.pk))
    assert "As contrary-judge sees it" in text
    assert "1 generator-1 – 100 40" in text  # noqa: RUF001
    assert "As people see it" in text_of(shown(run, by="nobody"))


def compared(models):
    """An imported run in which each model met the next one, and the last the first."""
    names = [f"model-{number:03}" for number in range(models)]
    met = list(zip(names, names[1:] + names[:1], strict=True))
    run = imports.imported(
        *(imports.pair(n, generator_a=a, generator_b=b) for n, (a, b) in enumerate(met)),
        *(imports.verdict(n, "judge", "AB"[n % 2]) for n in range(models)),
        *(imports.vote(n, "ann", "A" if n % 3 else "B") for n in range(models)),
    )
    compute(run)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("models", [16, pytest.param(MOST_MODELS, marks=[pytest.mark.thorough])])
def test_as_many_models_as_fit_are_on_one_board_with_as_many_queries_as_ten(models, monkeypatch):
    """As many as fit: a hundred, whose intervals take long, or fewer where fewer fit."""
    for module in ("compute", "corrected"):
        monkeypatch.setattr(f"judge_eval.board.{module}.MOST_MODELS", models)
    few, many = compared(10), compared(models)
    client = user_client()
    # That somebody looks at figures is noted now and then: the clock stands still.
    with time_machine.travel(timezone.now(), tick=False):
        for run in (few, many):
            client.get(page_of(run))
        assert queries_of(client, page_of(many)) == queries_of(client, page_of(few))
    response = shown(many)
    on_page = response.context["models"]
    names = {f"model-{number:03}" for number in range(models)}
    assert {row.name for row in on_page["ranks"].rows} == names
    assert {name for name, *_ in on_page["chosen"]["rows"]} == names
    assert all(rating.n == 2 for _, rating, _ in on_page["chosen"]["rows"])
    [board, _] = Findings.objects.get(run=many).data["models"]["boards"]
    assert sum(map(sum, board["wins"])) == models
    assert {len(row.cells) for row in on_page["chosen"]["heat"].rows} == {1 + models}
    assert [head.title for head in on_page["ranks"].heads] == ["Model", "People", "judge"]
    heads = r'<th scope="row">(?:<span class="muted">\d+</span> )?model-\d{3}</th>'
    assert len(re.findall(heads, response.content.decode())) == 4 * models
    assert shown(many, by=judges_of(many)[0].pk).context["models"]["chosen"]["title"] == (
        "As judge sees it"
    )


def test_more_models_than_fit_on_a_board_are_said_to_be_too_many():
    assert MOST_MODELS == 100
    run = make_run(pairs=51)
    for number, each in enumerate(pairs_of(run)):
        Inference.objects.filter(pk=each.a_id).update(generator=f"a-{number}")
        Inference.objects.filter(pk=each.b_id).update(generator=f"b-{number}")
    compute(run)
    assert "102 generators are too many to compare." in text_of(shown(run))


def test_votes_that_rank_nothing_are_counted():
    run = voted_run(computed=False)
    late = make_voter(run)
    for number, pair in enumerate(pairs_of(run)[:5]):
        pair.votes_wanted = 4
        pair.save()
        make_vote(late, pair, "both_bad")
        if number < 2:
            Inference.objects.filter(pk=pair.b_id).update(generator="generator-0")
    seal_all(run.queue.project)
    compute(run)
    stored = Findings.objects.get(run=run).data["models"]["boards"][0]
    text = text_of(shown(run))
    assert (stored["both_bad"], stored["unpaired"]) == (3, 8)
    assert "Left out: 3 votes that say both bad: they do not say which is better." in text
    assert "Left out: 8 on pairs that do not name two different generators." in text


def test_one_generator_makes_no_board_and_that_is_said():
    run = make_run(pairs=2)
    Inference.objects.update(generator="the-only-one")
    compute(run)
    text = text_of(shown(run))
    assert "The pairs name fewer than two generators." in text
    assert "There are no boards of models" in text


def test_a_standard_run_shows_the_judges_boards_alone_and_says_so():
    run = voted_run(people=0, computed=False)
    run.config = {"mode": "standard"}
    run.save()
    compute(run)
    text = text_of(shown(run))
    assert "People do not vote in this run: these are the judges" in text
    assert "near-judge puts generator-0 first" in text
    assert "contrary-judge puts generator-1 first (not told apart from generator-0)." in text
    assert "As near-judge sees it" in text
    run.config = None
    run.save()
    assert "Nobody has voted on pairs of two generators yet" in text_of(shown(run))


def test_a_run_in_which_nobody_has_said_anything_has_no_board_yet():
    run = make_run(says=[[None, None]])
    compute(run)
    assert "Neither people nor judges have compared two generators" in text_of(shown(run))


def test_it_waits_follows_and_says_as_of_when():
    run = voted_run(computed=False, pairs=4)
    client = user_client()
    assert "Being computed" in text_of(client.get(page_of(run)))
    assert client.get(page_of(run), {"seen": "none"}, headers=HTMX).status_code == 204
    compute(run)
    fresh = client.get(page_of(run), {"seen": "none"}, headers=HTMX)
    assert b"<html" not in fresh.content
    assert "As of 12 votes by 3 people on 4 of 4 pairs" in text_of(fresh)
    seen = fresh.context["seen"]
    assert client.get(page_of(run), {"seen": seen}, headers=HTMX).status_code == 204


def test_a_part_has_boards_of_its_own():
    run = voted_run(pairs=4, computed=False)
    Inference.objects.filter(pk=pairs_of(run)[0].a_id).update(tags=["rare"])
    compute(run)
    compute(run, "tag:rare")
    text = text_of(shown(run, part="tag:rare"))
    assert "prompts tagged rare" in text
    assert "People put generator-1 first" in text
