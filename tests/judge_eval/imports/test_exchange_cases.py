"""Small files in the shapes that the field's tools write, each read as it is."""

import gzip
import json
import re
from functools import partial
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from judge_eval.imports import import_write
from judge_eval.models import Import, Judge, Run, Verdict
from tests.helpers.run_findings import compute
from tests.makers import seal_all
from voting.items.conversations import messages_of
from voting.models import Entry, Item

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "exchange"

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.django_db,
    pytest.mark.skipif(not CASES.exists(), reason="not run: no ../shared/cases"),
]


def imported(*names, **options):
    """Import files by the command; return their run and what it has said."""
    files = [str(CASES / name) if isinstance(name, str) else str(name) for name in names]
    lines = StringIO()
    call_command("import_run", *files, project="Cases", stdout=lines, stderr=lines, **options)
    run = Run.objects.get(pk=lines.getvalue().split()[-1])
    seal_all(run.queue.project)
    return run, lines.getvalue()


def votes_of(run):
    entries = Entry.objects.filter(queue=run.queue, kind=Entry.Kind.VOTE)
    return sorted(entries.values_list("item__position", "voter__external_id", "choice"))


def choices_of(run):
    return [choice for *_, choice in votes_of(run)]


def verdicts_of(run):
    verdicts = Verdict.objects.filter(judge__run=run, judge__provider=Judge.IMPORTED)
    return list(verdicts.order_by("item__position").values_list("winner", flat=True))


def outputs_of(run):
    items = Item.objects.filter(queue=run.queue).order_by("position")
    return list(items.values_list("a__output", "b__output"))


@pytest.mark.parametrize("name", ["votes-only.csv", "one-pair-without-verdict.csv"])
def test_votes_alone_have_figures(name):
    """Of these files `test_imports` opens every page."""
    run, _ = imported(f"00-votes-without-verdicts/{name}")
    assert compute(run).data["as_of"]["votes"] == len(votes_of(run)) > 0


def test_outputs_alone_are_a_run_that_can_be_voted_on():
    run, said = imported("00-votes-without-verdicts/outputs-only.csv")
    assert run.queue.is_open
    assert "3 records: 3 used, 0 left out" in said


@pytest.mark.parametrize("name", ["german-excel.csv", "comma-with-bom.csv"])
def test_excel_of_germany_is_read(name):
    run, _ = imported(f"01-semicolon-bom-decimal-comma/{name}")
    scores = Verdict.objects.filter(judge__run=run, score_a__isnull=False)
    assert sorted(scores.values_list("score_a", "score_b")) == [(0.75, 0.5), (0.9, 0.1)]
    assert outputs_of(run)[1] == ("Etwa 1,20 €", "Keine Ahnung; fragen Sie im Laden")


@pytest.mark.parametrize("name", ["table.tsv", "unicode-text.txt", "utf16.csv", "cp949.csv"])
def test_other_encodings_and_tabs_are_read(name):
    run, said = imported(f"02-utf16-tsv-excel/{name}")
    assert choices_of(run) == ["A", "A"]
    prompts = run.queue.items.values_list("a__prompt", flat=True)
    assert not any("\ufffd" in prompt for prompt in prompts)
    assert ("read as Korean (Windows)" in said) == (name == "cp949.csv")


def test_the_arena_of_conversations_is_read():
    run, _ = imported("03-arena-140k-nested/arena.jsonl")
    assert choices_of(run) == ["A", "both_bad"]
    item = Item.objects.filter(queue=run.queue, position=0).get()
    assert [turn.role for turn in messages_of(item.a.output)][-1] == "assistant"
    assert not run.judges.exclude(provider="baseline").exists()


def test_users_of_the_arena_are_people():
    run, _ = imported("03-arena-140k-nested/arena33k.json")
    assert choices_of(run) == ["A", "B", "tie", "both_bad"]
    assert outputs_of(run)[0] == ("0", "no 0")
    assert run.queue.is_open


def test_winners_in_three_columns_are_read():
    run, _ = imported("04-arena-55k-onehot/train.csv")
    assert choices_of(run) == ["A", "B", "tie"]
    assert outputs_of(run)[1] == ("4", "")


def test_a_preference_between_1_and_2_is_a_verdict_and_none_is_a_failure():
    run, _ = imported("05-alpaca-weighted/annotations.json")
    assert verdicts_of(run) == ["A", "B", "tie", "A", ""]
    assert Verdict.objects.get(judge__run=run, state="failed", winner="").error
    discrete, _ = imported("05-alpaca-weighted/annotations-discrete.json")
    assert verdicts_of(discrete) == ["A", "B", "tie"]


@pytest.mark.parametrize("name", ["swapped-all-judged.csv", "swapped.csv", "swapped-ids.csv"])
def test_exchanged_pairs_are_one_pair(name):
    run, said = imported(f"06-swapped-columns/{name}")
    pairs = run.queue.items.count()
    assert set(choices_of(run)) == {"A"}
    assert len(votes_of(run)) == 2 * pairs
    assert f"{pairs} rows had A and B swapped" in said


def test_exchanged_pairs_have_the_figures_of_pairs_that_are_not(monkeypatch):
    numbers = {"run": uuid4(), "queue": uuid4()}
    monkeypatch.setattr(Import._meta.pk, "_get_default", lambda: numbers["run"])
    create = partial(import_write.create_queue, pk=numbers["queue"])
    monkeypatch.setattr(import_write, "create_queue", create)
    found = []
    for name in ("control-unswapped.csv", "swapped-all-judged.csv"):
        with transaction.atomic():
            run, _ = imported(f"06-swapped-columns/{name}")
            data = compute(run).data
            names = {str(judge.pk): judge.name for judge in run.judges.all()}
            # How long baselines took is no figure of the votes.
            text = re.sub(r'"seconds[a-z_]*": [^,}]*', "", json.dumps(data, sort_keys=True))
            for number, judge in names.items():
                text = text.replace(number, judge)
            found.append(text)
            transaction.set_rollback(True)
    assert found[0] == found[1]


def test_scores_alone_make_a_verdict():
    run, said = imported("08-scores-no-verdict/scores.csv")
    assert verdicts_of(run) == ["A", "B", "tie", "A", ""]
    assert "1 of ultra's 5 cells are empty: counted as not answered" in said


def test_the_spellings_of_choices_are_understood_and_the_others_can_be_mapped(tmp_path):
    mapping = tmp_path / "map.json"
    config = {name: name for name in ("pair", "prompt", "voter")}
    config |= {f"{it}_{side}": f"{it}_{side}" for it in ("generator", "output") for side in "ab"}
    words = "A|A [[A]]|A A>>B|A a|A model_b|B B>A|B Tie|tie draw|tie =|tie C|tie 1|A 2|B"
    values = dict(word.split("|") for word in words.split())
    values |= {"both_bad": "both_bad", "tie (bothbad)": "both_bad"}
    config["vote"] = {"column": "vote", "values": values}
    mapping.write_text(json.dumps(config))
    with pytest.raises(CommandError, match="2 errors"):
        imported("09-ties-five-ways/votes.csv")
    run, _ = imported("09-ties-five-ways/votes.csv", mapping=mapping)
    assert "".join(choice[0] for choice in choices_of(run)) == "ABtbbtttBAAAAB"


def test_a_pairwise_project_of_label_studio_is_read():
    run, _ = imported("10-label-studio-pairwise/project-1.json")
    three, four = (f"annotator {number} ({run.pk.hex[:8]})" for number in (3, 4))
    assert votes_of(run) == [(0, three, "A"), (1, four, "B"), (2, four, "A")]
    item = Item.objects.filter(queue=run.queue, position=0).get()
    assert (item.a.generator, item.b.generator) == ("m1", "m2")


def test_results_of_promptfoo_are_read():
    run, _ = imported("11-promptfoo-results/results.json")
    assert verdicts_of(run) == ["pass", "pass"]
    human = f"human ({run.pk.hex[:8]})"
    assert votes_of(run) == [(0, human, "pass"), (1, human, "flag")]


def test_numbers_that_pandas_changed_are_found():
    folder = "12-ids-float-and-duplicates"
    run, said = imported(f"{folder}/outputs.csv", f"{folder}/votes-from-pandas.csv")
    assert choices_of(run) == ["pass", "flag", "pass"]
    assert "3 names stood for an item of another name" in said
    later, _ = imported(f"{folder}/outputs.csv")
    imported(f"{folder}/votes-from-pandas.csv", run=str(later.pk))
    assert (choices_of(later), later.queue.items.count()) == (["pass", "flag", "pass"], 3)


@pytest.mark.parametrize("name", ["dup-ids.csv", "dup-votes.csv"])
def test_contradictions_are_refused_with_both_values(name):
    with pytest.raises(CommandError, match="1 error; nothing was imported"):
        imported(f"12-ids-float-and-duplicates/{name}")


def test_characters_that_cannot_be_stored_lose_no_row():
    run, said = imported("14-control-and-surrogates/lines.jsonl")
    assert outputs_of(run)[:2] == [("a\ufffdb", "fine"), ("broken \ufffd end", "ok \U0001f600")]
    assert "3 characters that cannot be stored" in said


def test_gz_and_workbooks_are_read(tmp_path):
    packed = CASES / "17-gz-and-xlsx" / "votes.jsonl.gz"
    run, _ = imported(packed)
    assert len(votes_of(run)) == len(gzip.decompress(packed.read_bytes()).splitlines())


@pytest.mark.parametrize("name", ["chat.jsonl", "as-text.jsonl"])
def test_a_prompt_may_be_a_conversation(name):
    run, _ = imported(f"19-system-prompt-multiturn/{name}")
    items = Item.objects.filter(queue=run.queue).order_by("position")
    assert [messages_of(item.a.prompt)[0].role for item in items] == ["system"] * len(items)
    assert items.last().a.output == "Sorry to hear."


def test_a_coin_does_not_beat_the_floor():
    run, _ = imported(CASES.parent / "field" / "36-coin-floor" / "votes.csv")
    judges = {judge["name"]: judge for judge in compute(run).data["judges"]}
    shares = {name: round(100 * judge["overall"]["value"], 1) for name, judge in judges.items()}
    assert shares == {
        "coin": 49,
        "always-left-copy": 47,
        "shorter": 72,
        "always-first": 47,
        "always-second": 53,
        "always-both-bad": 0,
        "random": shares["random"],
        "longer-wins": 28,
        "shorter-wins": 72,
    }
    assert {judge["beats_floor"] for judge in judges.values()} == {False, None}
