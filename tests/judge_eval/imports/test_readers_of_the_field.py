"""Files in the shapes of other tools, each written by us: what is read, and out of nothing else."""

from copy import deepcopy
from datetime import UTC, datetime
from io import BytesIO
from json import dumps
from pathlib import Path

import pytest

from judge_eval.imports.formats import READERS, detect, first_records, read
from judge_eval.imports.row_models import MAIN, ImportRow, LeftOut, Note, RowError
from judge_eval.imports.sources import Record, records

FILES = Path(__file__).parents[2] / "data" / "exchange"
# What is in each file: its format, and how many items, outputs, votes, verdicts (of them failed),
# and statements that were left out.
KNOWN = {
    "alpacaeval.json": ("alpacaeval", 1, 2, 1, 1, 0, 0),
    "arena.jsonl": ("arena", 1, 2, 1, 0, 0, 0),
    "arena55k.jsonl": ("arena", 1, 2, 1, 0, 0, 0),
    "arenahard.jsonl": ("arenahard", 2, 4, 0, 2, 1, 0),
    "argilla.json": ("argilla", 1, 2, 1, 1, 0, 0),
    "argilla_flat.jsonl": ("argilla", 1, 1, 2, 1, 0, 0),
    "argilla_v1.json": ("argilla", 1, 1, 1, 1, 0, 1),
    "deepeval.json": ("deepeval", 1, 1, 0, 2, 1, 0),
    "deepeval_results.json": ("deepeval", 1, 1, 0, 1, 0, 0),
    "dpo.jsonl": ("dpo", 3, 6, 3, 0, 0, 0),
    "fastchat_pair.jsonl": ("fastchat", 2, 0, 0, 2, 1, 0),
    "fastchat_single.jsonl": ("fastchat", 2, 0, 0, 2, 1, 0),
    "helpsteer2.jsonl": ("helpsteer", 2, 4, 3, 0, 0, 0),
    "helpsteer3.jsonl": ("helpsteer", 1, 2, 2, 0, 0, 0),
    "helpsteer_ratings.jsonl": ("helpsteer_ratings", 2, 2, 2, 0, 0, 0),
    "inspect.eval": ("inspectlog", 1, 1, 1, 2, 0, 0),
    "inspect.json": ("inspectlog", 2, 2, 1, 2, 0, 0),
    "judgebench.jsonl": ("judgebench", 2, 4, 2, 2, 1, 0),
    "kto.jsonl": ("kto", 2, 2, 2, 0, 0, 0),
    "labelstudio.csv": ("labelstudio", 1, 1, 1, 0, 0, 0),
    "labelstudio_min.json": ("labelstudio", 1, 1, 1, 0, 0, 0),
    "labelstudio_pairwise.json": ("labelstudio", 1, 2, 2, 1, 0, 2),
    "labelstudio_ranker.json": ("labelstudio", 3, 6, 3, 0, 0, 0),
    "langfuse_scores.csv": ("langfuse", 2, 0, 1, 2, 1, 2),
    "langfuse_traces.json": ("langfuse", 2, 2, 0, 0, 0, 0),
    "langsmith.csv": ("langsmith", 1, 1, 0, 1, 0, 1),
    "langsmith_runs.jsonl": ("langsmith", 1, 1, 1, 1, 1, 0),
    "mlflow.json": ("mlflow", 1, 1, 1, 1, 0, 0),
    "mtbench.jsonl": ("mtbench", 2, 4, 2, 1, 0, 0),
    "pandalm.json": ("pandalm", 1, 2, 3, 0, 0, 0),
    "pathscore_export.json": ("pathscore", 1, 2, 1, 1, 0, 1),
    "pathscore_pending.json": ("pathscore", 1, 2, 0, 1, 0, 0),
    "prism.jsonl": ("prism", 2, 2, 2, 0, 0, 0),
    "prometheus.jsonl": ("prometheus", 2, 2, 0, 2, 1, 0),
    "prometheus_pair.jsonl": ("prometheus", 1, 2, 0, 1, 0, 0),
    "promptfoo.json": ("promptfoo", 1, 1, 1, 1, 0, 1),
    "promptfoo.jsonl": ("promptfoo", 2, 2, 2, 2, 0, 0),
    "ragas.json": ("ragas", 4, 4, 3, 4, 0, 0),
    "rewardbench.jsonl": ("dpo", 1, 2, 1, 0, 0, 0),
    "saferlhf.jsonl": ("saferlhf", 1, 2, 1, 0, 0, 0),
    "summaries.jsonl": ("summaries", 1, 2, 1, 0, 0, 0),
    "webgpt.jsonl": ("webgpt", 1, 2, 1, 0, 0, 0),
    "metaevaluator/main_state.json": ("metaevaluator", 0, 0, 0, 0, 0, 0),
    "metaevaluator/main_state_data.csv": ("metaevaluator", 3, 3, 0, 0, 0, 0),
    "metaevaluator/judge_own_results.csv": ("metaevaluator", 2, 0, 0, 2, 0, 0),
    "metaevaluator/run_1_haiku_results.json": ("metaevaluator", 3, 0, 0, 3, 1, 0),
    "metaevaluator/run_1_nano_results.json": ("metaevaluator", 3, 0, 0, 3, 1, 0),
    "metaevaluator/annotation_run_1_person_1_data.json": ("metaevaluator", 3, 0, 3, 0, 0, 0),
    "metaevaluator/annotation_run_1_person_2_data.json": ("metaevaluator", 3, 0, 3, 0, 0, 0),
    "metaevaluator/annotator_3.csv": ("metaevaluator", 1, 0, 1, 0, 0, 0),
}
# One row of each, at its place, by the fields that tell.
EXACT = {
    "alpacaeval.json": (0, {"judge": "gpt4", "verdict": "B", "labels": {"preference": 1.9}}),
    "arena.jsonl": (0, {"item": "q1", "prompt": "Hi", "output_b": "Good day.", "vote": "B"}),
    "arena55k.jsonl": (0, {"voter": "user of 30192", "vote": "A", "output_a": "Hello."}),
    "arenahard.jsonl": (
        0,
        {"pick_ab": "B", "pick_ba": "B", "generator_a": "o3-mini", "output_b": "Four."},
    ),
    "argilla.json": (
        1,
        {"judge": "gpt-4", "verdict": "B", "output_b": "Go.", "generator_b": "bob"},
    ),
    "argilla_flat.jsonl": (1, {"voter": "bob", "labels": {"quality": 5}, "output_a": "Hi."}),
    "argilla_v1.json": (0, {"voter": "ann", "labels": {"quality": 4}, "comment": "Curt."}),
    "deepeval.json": (0, {"judge": "Answer Relevancy", "labels": {MAIN: "pass"}, "score_a": 0.9}),
    "ragas.json": (3, {"voter": "reviewer", "labels": {MAIN: "flag"}, "comment": "Wrong."}),
    "deepeval_results.json": (0, {"feedback": "On topic.", "labels": {MAIN: "pass"}}),
    "dpo.jsonl": (0, {"prompt": "Hi", "output_a": "Hello.", "output_b": "Go.", "vote": "A"}),
    "fastchat_pair.jsonl": (
        0,
        {"item": "81__alpaca__gpt-4__1", "judge": "gpt-4", "pick_ab": "A", "pick_ba": "B"},
    ),
    "fastchat_single.jsonl": (0, {"item": "81__alpaca__1", "labels": {MAIN: 7}}),
    "helpsteer2.jsonl": (
        0,
        {"voter": "annotator 1", "vote": "B", "labels": {"strength": 3}, "comment": "2 is right."},
    ),
    "helpsteer3.jsonl": (1, {"voter": "annotator 2", "vote": "A", "tags": ("general", "english")}),
    "helpsteer_ratings.jsonl": (
        1,
        {
            "voter": "annotators",
            "labels": {
                "helpfulness": 0,
                "correctness": 1,
                "coherence": 4,
                "complexity": 0,
                "verbosity": 0,
            },
        },
    ),
    "inspect.eval": (0, {"judge": "model_graded_qa", "labels": {MAIN: "pass"}}),
    "inspect.json": (
        1,
        {
            "item": "rome__1__openai/gpt-x",
            "generator_a": "openai/gpt-x",
            "voter": "ann",
            "labels": {MAIN: "flag"},
            "comment": "Which Rome?",
            "voted_at": datetime(2026, 3, 29, 2, 39, 54, tzinfo=UTC),
        },
    ),
    "judgebench.jsonl": (1, {"judge": "gpt-4o (arena_hard)", "pick_ab": "A", "pick_ba": "A"}),
    "kto.jsonl": (1, {"voter": "label", "labels": {MAIN: "flag"}, "output_a": "No."}),
    "labelstudio.csv": (0, {"labels": {"sentiment": "positive", "stars": 4}, "item": "7"}),
    "labelstudio_min.json": (
        0,
        {
            "labels": {"sentiment": "positive", "stars": 4},
            "comment": "Short.",
            "generator_a": "ada",
        },
    ),
    "labelstudio_pairwise.json": (
        0,
        {"voter": "annotator 3", "vote": "B", "generator_b": "bob", "labels": {"why": "Kinder."}},
    ),
    "labelstudio_ranker.json": (1, {"item": "5__x__z", "output_b": "Yo.", "vote": "A"}),
    "langfuse_scores.csv": (
        0,
        {"item": "t1", "voter": "Ann", "labels": {"helpful": "1", "tone": "polite"}},
    ),
    "langfuse_traces.json": (1, {"prompt": "Where is Oslo?", "output_a": "In Norway."}),
    "langsmith.csv": (0, {"labels": {"correctness": "1", "concise": "0.5"}, "prompt_id": "e1"}),
    "langsmith_runs.jsonl": (
        0,
        {"voter": "ann", "labels": {"correctness": 1}, "comment": "Indeed."},
    ),
    "mlflow.json": (
        0,
        {
            "voter": "ann",
            "labels": {"polite": "yes"},
            "comment": "It is.",
            "output_a": "In Norway.",
            "prompt": "Where is Oslo?",
        },
    ),
    "mtbench.jsonl": (
        0,
        {"vote": "B", "prompt": "Name a river.", "output_a": "The Nile, says alpaca."},
    ),
    "pandalm.json": (1, {"voter": "annotator2", "vote": "B", "output_b": ""}),
    "pathscore_export.json": (
        0,
        {"judge": "J1", "verdict": "B", "score_b": 6.5, "kind": "svg", "item": "g1__g2"},
    ),
    "pathscore_pending.json": (0, {"judge": "J1", "verdict": "A", "score_a": 8}),
    "prism.jsonl": (1, {"voter": "user7", "labels": {MAIN: 35}, "generator_a": "bob"}),
    "prometheus.jsonl": (0, {"labels": {MAIN: 5}, "feedback": "It obeys.", "judge": "gpt-4"}),
    "prometheus_pair.jsonl": (0, {"verdict": "A", "score_a": 5, "output_b": "No."}),
    "promptfoo.json": (1, {"voter": "human", "labels": {MAIN: "pass"}, "comment": "Right."}),
    "promptfoo.jsonl": (3, {"voter": "human", "labels": {MAIN: 0.7}, "comment": "Nearly."}),
    "rewardbench.jsonl": (0, {"generator_a": "bob", "generator_b": "ada", "vote": "B"}),
    "saferlhf.jsonl": (0, {"vote": "A", "labels": {"safer": "A"}, "generator_b": "Alpaca2-7B"}),
    "summaries.jsonl": (0, {"voter": "w7", "vote": "B", "generator_b": "ref"}),
    "webgpt.jsonl": (0, {"vote": "B", "prompt": "Why is the sky blue?"}),
    "metaevaluator/main_state_data.csv": (
        0,
        {"prompt": "Question 1", "output_a": "Answer 1", "metadata": {"topic": "travel"}},
    ),
    "metaevaluator/run_1_haiku_results.json": (
        1,
        {"judge": "haiku", "labels": {"explanation": "Unclear."}},
    ),
    "metaevaluator/annotator_3.csv": (
        0,
        {"voter": "annotator_3", "labels": {"rejection": "not rejection"}},
    ),
}


def items_of(name):
    path = FILES / name
    with path.open("rb") as file:
        return detect(path.name, first_records(file, path.name)), list(read(file, path.name))


@pytest.mark.parametrize("name", KNOWN)
def test_a_file_is_its_own_format_and_nothing_in_it_is_lost(name):
    found, items = items_of(name)
    rows = [item for item in items if isinstance(item, ImportRow)]
    outputs = {
        (row.item, side)
        for row in rows
        for side in ("output_a", "output_b")
        if getattr(row, side) is not None
    }
    assert (
        found,
        len({row.item for row in rows}),
        len(outputs),
        sum(row.voter is not None for row in rows),
        sum(row.judge is not None for row in rows),
        sum(row.error is not None for row in rows),
        sum(isinstance(item, LeftOut) for item in items),
    ) == KNOWN[name]
    assert all(isinstance(item, ImportRow | LeftOut | Note) for item in items)


@pytest.mark.parametrize("name", EXACT)
def test_a_row_of_each_format(name):
    place, expected = EXACT[name]
    row = [item for item in items_of(name)[1] if isinstance(item, ImportRow)][place]
    assert {field: getattr(row, field) for field in expected} == expected


def test_long_texts_of_inspect_come_from_their_attachments():
    row = items_of("inspect.json")[1][-1]
    assert (row.prompt, row.output_a) == ("Where is Oslo?", "In Norway.")


def test_every_file_is_here_and_every_format_has_one():
    there = {str(path.relative_to(FILES)) for path in FILES.rglob("*") if path.is_file()}
    assert there == {*KNOWN}
    assert {format_of for format_of, *_ in KNOWN.values()} == {*READERS} - {"table", "alttest"}


@pytest.mark.parametrize(
    "columns",
    [
        "pair,prompt,output_a,output_b,voter,vote",
        "item,prompt,output,judge,verdict,score",
        "id,output,model,vote.ann,verdict.gpt-4",
        "prompt,generator_a,generator_b,output_a,output_b,labels.tone",
    ],
)
def test_files_in_our_own_columns_are_no_format(tmp_path, columns):
    path = tmp_path / "own.csv"
    path.write_text(f"{columns}\n{','.join('A' for _ in columns.split(','))}\n")
    with path.open("rb") as file:
        assert detect(path.name, first_records(file, path.name)) is None


ODD = (None, 7, True, "odd", [], {}, [None], ["x", 1], {"x": None})


def places(value, path=()):
    """Yield the path of every value within one, itself not counted."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inner:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


@pytest.mark.parametrize("name", [name for name in KNOWN if name.endswith(("json", "jsonl"))])
def test_no_odd_value_ends_in_a_traceback_or_in_nothing(name):
    """Each value of the first record in turn is what nobody writes: still something is said."""
    path = FILES / name
    with path.open("rb") as file:
        key = detect(path.name, first_records(file, path.name))
        found = [each.values for each in records(file, path.name) if isinstance(each, Record)]
    for place in places(found[0]) if found else ():
        for odd in ODD:
            record = deepcopy(found[0])
            target = record
            for step in place[:-1]:
                target = target[step]
            target[place[-1]] = odd
            if READERS[key].fits(record):
                text = BytesIO(f"{dumps(record)}\n".encode())
                items = list(READERS[key].rows(text, f"{path.stem}.jsonl"))
                assert items, (place, odd)


ANNOTATED = {"annotator": 3, "annotation_id": 71, "created_at": "2026-03-29T02:39:54Z"}
STARS = {"stars": [{"rating": 4}]}


@pytest.mark.parametrize(
    "record, labels",
    [
        ({"id": 5, "text": "It works.", "mood": "good"}, {"mood": "good"}),
        ({"id": 5, "source": "wiki", "text": "It works.", **STARS}, {"stars": 4}),
        ({"id": 5, "passage": "It works.", **STARS, "mood": "good"}, {"stars": 4, "mood": "good"}),
        ({"text": "It works.", "id": 5, "answer": "Good."}, {"answer": "Good."}),
        # What cannot be told is refused, and names itself.
        ({"id": 5, "text": "It works.", "source": "wiki", "mood": "good"}, "source, mood"),
        ({"id": 5, "text": "It works.", "source": "wiki", **STARS}, "source, stars"),
        ({"id": 5, "passage": "It works.", "mood": "good"}, "passage, mood"),
        (
            {"prompt": "Go.", "id": 5, "text": "It works.", "lang": "en", "mood": "good"},
            "lang, mood",
        ),
    ],
)
def test_data_behind_the_id_of_label_studio_is_no_answer(record, labels):
    text = f"{dumps(record | ANNOTATED)}\n".encode()
    [row] = read(BytesIO(text), "tasks.jsonl")
    found = row.field if isinstance(row, RowError) else row.labels
    assert found == labels


def test_columns_of_label_studio_that_may_be_data_are_no_answers():
    header = "annotation_id,annotator,created_at,id,lang,lead_time,mood,text,updated_at"
    text = f"{header}\n71,3,,7,en,3.1,good,It works.,\n".encode()
    [row] = read(BytesIO(text), "tasks.csv")
    assert isinstance(row, RowError)
    assert row.field == "lang, mood"
