"""What answers tell of what was asked, and how each kind of queue reads an answer."""

from io import BytesIO

import pytest

from judge_eval.imports.drafts import verdict_of
from judge_eval.imports.fields import Unfit
from judge_eval.imports.formats import read
from judge_eval.imports.import_report import ImportOptions
from judge_eval.imports.question import Answers, ImportQuestion, ParsedAnswer, answer_of


def told_by(*labels):
    answers = Answers()
    for label in labels:
        answers.take(label)
    return answers.kind, answers.ballot(answers.kind)


@pytest.mark.parametrize(
    "labels, kind, ballot",
    [
        ([], "pass_flag", ["pass", "flag"]),
        (["pass", "Flag "], "pass_flag", ["pass", "flag"]),
        ([1, 0], "pass_flag", ["pass", "flag"]),
        (["0.8", 0.25, "pass"], "pass_flag", ["pass", "flag"]),
        ([1, 2, 5], "rating", ["1", "2", "3", "4", "5"]),
        (["4", "3.0"], "rating", ["1", "2", "3", "4", "5"]),
        ([0, 7], "rating", ["0", "1", "2", "3", "4", "5", "6", "7"]),
        (["yes", "no", "n/a", "yes"], "category", ["n/a", "no", "yes"]),
        ([True, False], "category", ["false", "true"]),
        ([("a", "b"), (), ("c",)], "labels", ["a", "b", "c"]),
        ([("a",), "b"], "labels", ["a", "b"]),
        ([3, 95], "rating", [f"{n}" for n in range(101)]),
        ([1.5, "4"], "rating", ["1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5"]),
        ([-1, 0, 2], "rating", ["-2", "-1", "0", "1", "2"]),
        (["Pass", "fail", "True", "yes", "\N{THUMBS UP SIGN}", "1"], "pass_flag", ["pass", "flag"]),
        (["yes", "no"], "category", ["no", "yes"]),
        ([0.5, "a text " * 20], "text", []),
        ([f"word {n}" for n in range(21)], "text", []),
        (["yes", "x" * 61], "text", []),
    ],
)
def test_answers_tell_what_was_asked(labels, kind, ballot):
    assert told_by(*labels) == (kind, ballot)


def test_numbers_become_no_words_in_silence():
    with pytest.raises(Unfit, match="some answers are numbers, and some are not: 4, n/a; say"):
        told_by(4, "n/a")
    with pytest.raises(Unfit, match="too many ratings lie within 1 to 1000"):
        told_by(1, 1000)
    with pytest.raises(Unfit, match="round them"):
        told_by(1.001, 2)


def test_grades_tell_that_votes_are_graded():
    answers = Answers()
    answers.take(1)
    assert not answers.graded
    answers.take("0.5")
    assert answers.graded


def test_too_many_choices_are_the_wrong_task():
    answers = Answers()
    for n in range(201):
        answers.take((f"{n}",))
    with pytest.raises(Unfit, match="more than 200 different answers"):
        answers.ballot("labels")


@pytest.mark.parametrize(
    "kind, raw, answer",
    [
        ("pass_flag", "PASS", ParsedAnswer("pass", value=1_000_000)),
        ("pass_flag", "flag", ParsedAnswer("flag", value=0)),
        ("pass_flag", True, ParsedAnswer("pass", value=1_000_000)),
        ("pass_flag", 0.5, ParsedAnswer("pass", value=500_000)),
        ("pass_flag", "0.4999999", ParsedAnswer("pass", value=500_000)),
        ("pass_flag", 0.1, ParsedAnswer("flag", value=100_000)),
        ("category", " yes", ParsedAnswer("yes", "yes")),
        ("category", 3, ParsedAnswer("3", "3")),
        ("category", True, ParsedAnswer("true", "true")),
        ("rating", "4", ParsedAnswer("4", 4)),
        ("rating", 4.0, ParsedAnswer("4", 4)),
        ("rating", "2.5", ParsedAnswer("2.5", 2.5)),
        ("labels", ("b", "a", "b"), ParsedAnswer("a;b", ["a", "b"])),
        ("labels", "b; a", ParsedAnswer("a;b", ["a", "b"])),
        ("labels", (), ParsedAnswer("none", [])),
        ("text", "As I see it.", ParsedAnswer("", "As I see it.")),
        ("text", 87.5, ParsedAnswer("", 87.5)),
    ],
)
def test_an_answer_is_read(kind, raw, answer):
    assert answer_of(kind, raw) == answer


@pytest.mark.parametrize(
    "kind, raw, why",
    [
        ("pass_flag", "maybe", "'maybe' is neither pass, flag nor a number within 0..1"),
        ("pass_flag", 2, "'2' is neither pass, flag nor a number within 0..1"),
        ("pass_flag", ("pass",), "neither pass, flag"),
        ("category", ("a", "b"), "must be one label, not a list"),
        ("category", "x" * 61, "is not one line of 1 to 60 characters"),
        ("category", "a\nb", "is not one line"),
        ("rating", "good", "'good' is not a number"),
        ("labels", ("a;b",), "'a;b' holds ';'"),
        ("labels", tuple(str(n) * 18 for n in range(100, 112)), "more than 500 characters"),
    ],
)
def test_what_is_no_answer(kind, raw, why):
    with pytest.raises(Unfit, match=why):
        answer_of(kind, raw)


# --- people decide what is asked, and never a judge ---------------------------------------------

REFUSAL = "I cannot say whether this complies. " * 9


def asked_of(*lines, **options):
    """What is asked by a made file of lines `item,judge,verdict,voter,vote`, and its rows."""
    text = "\n".join(["item,judge,verdict,voter,vote", *lines])
    rows = list(read(BytesIO(text.encode()), "study.csv"))
    asked = ImportQuestion(ImportOptions(**options))
    for row in rows:
        asked.take(row)
    return asked, [row for row in rows if row.judge]


@pytest.mark.parametrize("votes_first", [True, False])
@pytest.mark.parametrize(
    "votes, kind, ballot",
    [
        (["yes", "no"], "category", ["no", "yes"]),
        (["1", "4"], "rating", ["1", "2", "3", "4", "5"]),
        (["pass", "flag"], "pass_flag", ["pass", "flag"]),
        (["a free text " * 9, "another"], "text", []),
    ],
)
@pytest.mark.parametrize("reply", [REFUSAL, "seven"])
def test_a_judges_reply_does_not_change_the_kind(votes_first, votes, kind, ballot, reply):
    by_people = [f"{n},,,ann,{vote}" for n, vote in enumerate(votes)]
    by_judge = [f"{n},j,{reply},," for n in range(len(votes))]
    both = [by_people, by_judge] if votes_first else [by_judge, by_people]
    rules = asked_of(*both[0], *both[1])[0].rules()
    assert (rules["kind"], rules["ballot"]) == (kind, ballot)
    assert "graded" not in rules["options"]


def test_a_reply_outside_the_choices_has_failed_and_no_row_is_wrong():
    _, [good, bad] = asked_of("1,,,ann,yes", "2,,,ann,no", "1,j,yes,,", f"2,j,{REFUSAL},,")
    queue = type("Queue", (), {"kind": "category", "ballot": ["no", "yes"], "options": {}})()
    asked = ImportQuestion(ImportOptions(), queue)
    states = []
    for row in (good, bad):
        asked.take(row)
        verdict = asked.settled(verdict_of(row, "tie", asked.statement(row)), "winner")
        states.append((verdict["state"], verdict["winner"], verdict["error"]))
    shown = f"{REFUSAL[:39]}…"
    assert states == [("done", "yes", ""), ("failed", "", f"'{shown}' is none of: no, yes")]


def test_without_people_judges_do_not_tell_what_is_asked():
    asked = asked_of("1,j,yes,,", "2,j,no,,")[0]
    with pytest.raises(Unfit, match="does not tell what is asked: say vote_kind, for instance cat"):
        asked.rules()
    rules = asked_of("1,j,yes,,", "2,j,no,,", vote_kind="category")[0].rules()
    assert (rules["kind"], rules["ballot"]) == ("category", ["no", "yes"])
    assert asked_of("1,j,pass,,", "2,j,1,,")[0].rules()["kind"] == "pass_flag"


@pytest.mark.parametrize(
    "votes, remedy",
    [
        (["yes", "no", "yes"], '"values": '),
        (["pass", "flag", "pass"], '"threshold": 0.5}}}, or say graded'),
        (["1", "0", "1"], '"threshold": 0.5'),
    ],
)
def test_numbers_where_answers_are_none_are_refused_with_what_maps_them(votes, remedy):
    by_people = [f"{n},,,ann,{vote}" for n, vote in enumerate(votes)]
    shares = [f"{n},j,0.{n + 1},," for n in range(3)]
    asked, _ = asked_of(*by_people, *shares)
    with pytest.raises(Unfit, match="j says numbers") as refused:
        asked.rules()
    assert remedy in str(refused.value)
    # One of many is a verdict that failed.
    assert asked_of(*by_people, shares[0], "1,j,flag,,", "2,j,yes,,")[0].rules()


def test_a_number_of_a_judge_is_kept_as_its_score():
    options = {"graded": True}
    queue = type("Queue", (), {"kind": "pass_flag", "ballot": ["pass", "flag"], "options": options})
    asked, [verdict] = asked_of("1,j,0.37,,", graded=True)
    asked = ImportQuestion(ImportOptions(), queue)
    told = asked.settled(verdict_of(verdict, "tie", asked.statement(verdict)), "winner")
    assert (told["winner"], told["score_a"]) == ("flag", 0.37)
    queue.options = {}
    asked = ImportQuestion(ImportOptions(), queue)
    told = asked.settled(verdict_of(verdict, "tie", asked.statement(verdict)), "winner")
    assert (told["state"], told["error"]) == ("failed", "'0.37' is none of: pass, flag")


def test_a_rating_of_a_judge_may_lie_between_those_of_people():
    queue = type(
        "Queue", (), {"kind": "rating", "ballot": ["1", "2", "3", "4", "5"], "options": {}}
    )
    told = []
    for reply in ("3.7", "7"):
        asked, [verdict] = asked_of(f"1,j,{reply},,", vote_kind="rating")
        asked = ImportQuestion(ImportOptions(), queue)
        one = asked.settled(verdict_of(verdict, "tie", asked.statement(verdict)), "winner")
        told.append((one["state"], one["winner"]))
    assert told == [("done", "3.7"), ("failed", "")]
