"""What judges answer, and what of it is a verdict: nothing is guessed."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.judging.prompts.judge import JudgeQuestion
from judge_eval.judging.prompts.parse import ParsedVerdict, ReplyUnreadable, parse_verdict
from tests.helpers.growth import assert_linear

ALL = ("A", "B", "tie", "both_bad")
NASTY = [
    *("{", '{"', '{"a":', '{"a":[', '{"a":1,', "{}", '{"a":"', '{"a":{"b":1},"c":', "{ ", "{\n"),
    *('{"a\\"', '\\"{"', '{"a":1}', "[", '{"a" ', '{"a":NaN,', '{"a":"\\u', '{"winner":"A"}x{"'),
    *("9", '"', "<think>", "</think>\n", "```json\n", '{"winner":"A"},', '{"winner":"A","winner":'),
]
numbers = st.integers() | st.floats() | st.booleans() | st.none() | st.text(max_size=3)
verdicts = st.fixed_dictionaries(
    {},
    optional={
        "winner": st.sampled_from(["A", "b", "Tie", "both bad", "BOTH_BAD", "C", 1, None]),
        "score_a": numbers,
        "score_b": numbers,
        "reason": st.text() | st.none() | st.integers(),
        "extra": st.recursive(numbers, lambda inner: st.lists(inner, max_size=3)),
    },
)
replies = st.lists(
    verdicts.map(json.dumps) | st.sampled_from(NASTY) | st.text(max_size=20), max_size=6
).map("".join)
ballots = st.sampled_from([ALL, ("A", "B"), ("A", "B", "both_bad"), ("A", "B", "tie")])


def said(reply, ballot=ALL):
    return parse_verdict(reply, JudgeQuestion(ballot))


def refused(reply, ballot=ALL):
    with pytest.raises(ReplyUnreadable) as unreadable:
        parse_verdict(reply, JudgeQuestion(ballot))
    assert str(unreadable.value).isprintable()
    return str(unreadable.value)


def test_a_whole_verdict():
    reply = '{"winner": "A", "score_a": 8, "score_b": 6.5, "reason": "Fuller."}'
    assert said(reply) == ParsedVerdict("A", 8.0, 6.5, "Fuller.")


@pytest.mark.parametrize(
    "reply",
    [
        '{"winner":"B"}',
        '```json\n{"winner":"B"}\n```',
        'The second. {"winner":"B"}',
        '{"winner":"B"} That is all.',
        '\n\n{\n  "winner" :\t"B"\n}\n',
        '<think>{"winner":"A"}</think>{"winner":"B"}',
        'I thought {"winner":"A"}\n</think>\n{"winner":"B"}',
        'First I said {"winner":"A"}. No: {"winner":"B"}',
        'Use {winner} and {score}, \\frac{1}{2}, {{x}}: {"winner":"B"}',
        '{"winner": ... , "reason": ...} is asked for: {"winner":"B"}',
        '{"winner": "A" or "B"}\n{"winner":"B"}',
        '{"verdict": {"winner":"A"}, oops}\n{"winner":"B"}',
        '["A"] {"winner":"B"}',
        '\ufeff{"winner":"B"}',
    ],
)
def test_the_last_object_is_the_verdict(reply):
    assert said(reply) == ParsedVerdict("B")


def test_braces_and_quotes_in_a_text_are_text():
    reason = 'It has {"winner": "B"} and } and { and \\" in it.'
    assert said(json.dumps({"winner": "A", "reason": reason})).reason == reason


@pytest.mark.parametrize(
    "winner, choice",
    [
        *(("A", "A"), ("b", "B"), ("TIE", "tie"), ("Tie", "tie"), (" a\n", "A"), ("output b", "B")),
        *(("both_bad", "both_bad"), ("Both bad", "both_bad"), ("BOTH_BAD", "both_bad")),
        *((1, "A"), (2, "B"), ("1", "A"), ("first", "A"), ("The second", "B"), ("draw", "tie")),
        *(("Response A", "A"), ("assistant b", "B"), ("Model 2", "B"), ("first response", "A")),
        *(("neither", "both_bad"), ("Equal", "tie"), ("[[B]]", "B"), ("A>B", "A"), ("A << B", "B")),
    ],
)
def test_a_winner_in_any_case(winner, choice):
    assert said(json.dumps({"winner": winner})).winner == choice


@pytest.mark.parametrize(
    "winner",
    [
        *("C", "", "AB", "A or B", "Output C", "both-bad", "bothbad", "both  bad", "\u0430", "0"),
        *("both", "none", "3", "third", "[[C]]", "A>B>A", "not A", "A, but B is close"),
    ],
)
def test_another_winner_is_never_guessed(winner):
    reason = refused(json.dumps({"winner": winner}))
    assert reason.endswith("must be one of A, B, tie, both_bad")


@pytest.mark.parametrize("winner", [0, 3, 1.0, None, True, ["A"], {"A": 1}])
def test_a_winner_is_a_text(winner):
    assert "winner" in refused(json.dumps({"winner": winner}))


def test_a_winner_must_be_there():
    assert refused('{"score_a": 1}') == "its JSON object has no winner: '{\"score_a\": 1}'"
    assert refused('{"winner":"A"} {}') == "its JSON object has no winner: '{}'"


@pytest.mark.parametrize(
    "reply",
    [
        '{"Winner": "B"}',
        '{"verdict": "B"}',
        '{"Verdict": "Response B"}',
        '{"winner": "B", "verdict": "It is fuller."}',
        '{"evaluation": {"winner": "B", "reason": "Fuller."}}',
        '{"verdict": {"winner": "B"}}',
        '{"result": "{\\"winner\\": \\"B\\"}"}',
        json.dumps('{"winner": "B"}'),
        "```json\n" + json.dumps('{"winner": "B"}') + "\n```",
        "[[B]]",
        "**[[B]]**",
        "B",
        "B.",
        '"B"',
        "```\nB\n```",
        "Output B",
        "[[B>A]]",
        "The second is fuller. [[B]]",
        "The second is fuller.\n\n[[B>>A]]",
        "It is fuller. Therefore, my final verdict is: [[B]]",
        "Hm.\nMy final verdict is:\n[[B]]",
        "It is fuller.\nWinner: B",
        "It is fuller.\n\n**Final verdict:** Output B.",
        "Both try.\nThe winner is B",
    ],
)
def test_a_plain_verdict_is_one(reply):
    assert said(reply)[:3] == ("B", None, None)


@pytest.mark.parametrize(
    "reply",
    [
        # Quoted, and nothing of the judge's own.
        "Output A contains [[A]]",
        "Output A contains '[[A]]'",
        "Output A says:\n[[A]]",
        "Output A ends with its own verdict:\n[[A]]",
        "Output A ends with:\n```\n[[A]]\n```",
        "Output A ends with:\nWinner: A",
        "> [[A]]",
        "Output A claims its verdict: [[A]]",
        # Not at its end, or not alone.
        "[[A]] is what output A asks me to say, which I will not.",
        "[[A]]\nOn the whole it is hard to say.",
        "Winner: A\nOr is it?",
        "[[A]] or [[B]]",
        "The first says [[A]]. I say [[B]]",
        "Winner: A\nWinner: B",
        "Winner: A\n[[B]]",
        "A or B",
        "A\nB",
        "A is better",
        "[[C]]",
        "1",
    ],
)
def test_a_verdict_that_is_quoted_or_not_the_only_one_is_none(reply):
    assert refused(reply).startswith("it has no JSON object: ")


@pytest.mark.parametrize(
    "reply, why",
    [
        ('{"winner": "A", "verdict": "B"}', "its JSON object says A and B"),
        ('{"a": {"winner": "A"}, "b": {"winner": "B"}}', "its JSON object says A and B"),
        ('{"winner": "A"}\nNo.\n[[B]]', "it says A, and something else at its end"),
        ('{"winner": "C", "verdict": "B"}', "the winner 'C' must be one of"),
        ('{"verdict": "It is fuller."}', "the winner 'It is fuller.' must be one of"),
        ('{"x": {"winner": "A", "winner": "B"}}', "a key is given twice"),
    ],
)
def test_verdicts_that_contradict_each_other_are_none(reply, why):
    assert refused(reply).startswith(why)


def test_what_the_reason_or_a_draft_quotes_is_no_second_verdict():
    assert said('{"winner": "A", "reason": "B ends with [[B]]"}').winner == "A"
    assert said('At first [[B]]. {"winner": "A"}\nDone.').winner == "A"


def test_neither_is_better_where_nobody_asks_whether_both_are_bad():
    assert said('{"winner": "neither"}', ("A", "B", "tie")).winner == "tie"
    assert "not on the ballot" in refused('{"winner": "neither"}', ("A", "B"))


def test_a_winner_must_be_on_the_ballot():
    reason = refused('{"winner":"Tie"}', ("A", "B", "both_bad"))
    assert reason == "the winner 'Tie' is not on the ballot (A, B, both_bad)"


@pytest.mark.parametrize("score", ["0", "10", "7.25", "1e1", "-0.0", "null", "1E-5"])
def test_scores_that_can_be(score):
    verdict = said(f'{{"winner":"A","score_a":{score}}}')
    assert verdict.score_a == (None if score == "null" else float(score))
    assert verdict.score_b is None


@pytest.mark.parametrize("key", ["score_a", "score_b"])
@pytest.mark.parametrize(
    "score",
    [
        *("-1", "10.001", "11", "-0.1", "1e400", "-Infinity", "Infinity", "NaN", "9" * 5000),
        *('"8 of 10"', "true", "false", "[8]", '{"of": 8}', '""'),
    ],
)
def test_a_score_that_cannot_be_is_none_and_the_winner_stands(score, key):
    assert said(f'{{"winner":"A","{key}":{score},"reason":"Fuller."}}') == ParsedVerdict(
        "A", None, None, "Fuller."
    )


@pytest.mark.parametrize(
    "written, read",
    [
        ("one\ntwo", "one"),
        ("\n\n  one \t line\r\nand more", "one line"),
        ("a\x00b\x07c\u202ed\u200b", "abcd"),
        ("", ""),
        (" \n ", ""),
        ("é 漢 😀", "é 漢 😀"),
        ("half \ud83d", "half"),
        ("x" * 501, "x" * 500),
        (None, ""),
    ],
)
def test_a_reason_is_one_short_line(written, read):
    assert said(json.dumps({"winner": "A", "reason": written})).reason == read


def test_a_reason_is_text():
    assert refused('{"winner":"A","reason":["x"]}') == "its reason is not text"


@pytest.mark.parametrize("reply", ["", " \n", "<think>Hm.</think> ", '<think>{"winner":"A"}'])
def test_nothing_but_thinking_is_empty(reply):
    assert refused(reply) in {"the reply is empty", "the reply is nothing but thinking"}


@pytest.mark.parametrize(
    "reply",
    ["I cannot compare these.", '["A"]', "{winner: A}", "winner = {A}", "1", "null"],
)
def test_no_json_object_is_a_refusal_and_is_quoted(reply):
    reason = refused(reply)
    assert reason == f"it has no JSON object: '{reply}'"


@pytest.mark.parametrize(
    "reply",
    [
        '{"winner": "A", "reason": "and th',
        '{"winner": "A"',
        "{",
        '{"winner": "A",,}',
        "{'winner': 'A', \"score_a\": 1}{\"",
        '{"winner": "A" "score_a": 1}',
        '{"winner": "A", "score_a": 08}',
        '{"winner": "A"} or rather {"winner": "B"',
        '{"outer": {"winner": "A"}',
    ],
)
def test_a_last_object_that_is_broken_is_malformed_whatever_stands_before(reply):
    reason = refused(reply)
    assert reason.startswith("its last JSON object is broken: ")


@pytest.mark.parametrize("reply", ['{"winner":"A","winner":"B"}', '{"winner":"A","winner":"A"}'])
def test_a_key_that_stands_twice_is_malformed(reply):
    assert refused(reply) == "a key is given twice in its JSON object"


def test_a_key_that_stands_twice_in_a_draft_is_only_a_draft():
    assert said('{"winner":"A","winner":"B"} {"winner":"B"}').winner == "B"


def test_deep_nesting_is_malformed():
    deep = '{"a":' * 100_000
    assert refused(deep) == "its JSON is nested too deeply"
    assert refused('{"winner":"A","x":' + "[" * 100_000) == "its JSON is nested too deeply"


def test_keys_nobody_asked_for_are_ignored():
    assert said('{"confidence":{"a":1},"winner":"A","scores":[1,2]}').winner == "A"


@given(replies, ballots)
def test_whatever_comes_it_is_read_or_refused(reply, ballot):
    try:
        verdict = parse_verdict(reply, JudgeQuestion(ballot))
    except ReplyUnreadable:
        return
    assert verdict.winner in ballot
    assert all(score is None or 0 <= score <= 10 for score in (verdict.score_a, verdict.score_b))
    assert len(verdict.reason) <= 500
    assert verdict.reason == "" or verdict.reason.isprintable()


@given(verdicts, st.text(alphabet=st.characters(exclude_characters='{}"<')), ballots)
def test_prose_and_fences_around_change_nothing(verdict, prose, ballot):
    def outcome(reply):
        try:
            return parse_verdict(reply, JudgeQuestion(ballot))
        except ReplyUnreadable as unreadable:
            return str(unreadable)

    bare = json.dumps(verdict)
    assert outcome(f"{prose}\n```json\n{bare}\n```\n{prose}") == outcome(bare)


PASS_FLAG = JudgeQuestion(["pass", "flag"], "pass_flag")
GRADED = JudgeQuestion(["pass", "flag"], "pass_flag", is_graded=True)
RATING = JudgeQuestion(list("12345"), "rating")
LABELS = JudgeQuestion(["rude", "Too long", "wrong"], "labels")


@pytest.mark.parametrize(
    "asked, reply, answer",
    [
        (PASS_FLAG, '{"answer": "pass"}', "pass"),
        (PASS_FLAG, "pass", "pass"),
        (PASS_FLAG, '{"Verdict": "flag"}', "flag"),
        (PASS_FLAG, "It is rude. [[flag]]", "flag"),
        (RATING, '{"evaluation": {"rating": 4}}', "4"),
        (RATING, "It is good.\nRating: [[4]]", "4"),
        (PASS_FLAG, 'Hm. {"answer": " FLAG\\n", "reason": "Dull.", "score": 9}', "flag"),
        (JudgeQuestion(["Off topic", "fine"], "category"), '{"answer": "off TOPIC"}', "Off topic"),
        (JudgeQuestion(["Us", "us"], "category"), '{"answer": "us"}', "us"),
        (RATING, '{"answer": "4"}', "4"),
        (RATING, '{"answer": 4}', "4"),
        (LABELS, '{"answer": ["wrong", "rude"]}', "rude;wrong"),
        (LABELS, '{"answer": ["too long", "Too long"]}', "Too long"),
        (LABELS, '{"answer": []}', "none"),
    ],
)
def test_what_a_judge_answers_of_a_single_item(asked, reply, answer):
    assert parse_verdict(reply, asked)[:3] == (answer, None, None)


@pytest.mark.parametrize(
    "asked, reply, why",
    [
        (PASS_FLAG, '{"winner": "pass"}', "no answer"),
        (PASS_FLAG, '{"answer": "maybe"}', "'maybe' must be one of pass, flag"),
        (PASS_FLAG, '{"answer": ["pass"]}', "not text"),
        (PASS_FLAG, '{"answer": true}', "not text"),
        (PASS_FLAG, "I would rather not say.", "no JSON object"),
        (JudgeQuestion(["Us", "us"], "category"), '{"answer": "US"}', "must be one of"),
        (RATING, '{"answer": 6}', "'6' must be one of 1, 2, 3, 4, 5"),
        (RATING, '{"answer": 4.5}', "not text"),
        (LABELS, '{"answer": "rude"}', "not a list of labels"),
        (LABELS, '{"answer": ["rude", "silly"]}', "'silly' must be one of"),
        (LABELS, '{"answer": [null]}', "not text"),
    ],
)
def test_another_answer_is_never_guessed(asked, reply, why):
    with pytest.raises(ReplyUnreadable, match=why):
        parse_verdict(reply, asked)


def test_a_graded_answer_has_a_score_that_goes_with_it():
    assert parse_verdict('{"answer": "pass", "score": 0.5}', GRADED)[:2] == ("pass", 0.5)
    assert parse_verdict('{"answer": "flag", "score": 0}', GRADED)[:2] == ("flag", 0.0)
    for said, why in (
        ({"answer": "pass"}, "no score"),
        ({"answer": "pass", "score": 0.49}, "does not go with pass"),
        ({"answer": "flag", "score": 0.5}, "does not go with flag"),
        ({"answer": "pass", "score": 8}, "not between 0 and 1"),
        ({"answer": "pass", "score": "1"}, "not a number"),
    ):
        with pytest.raises(ReplyUnreadable, match=why):
            parse_verdict(json.dumps(said), GRADED)


@given(replies | st.builds(lambda a: json.dumps({"answer": a}), numbers | st.lists(numbers)))
def test_whatever_comes_of_a_single_item_is_read_or_refused(reply):
    for asked in (PASS_FLAG, GRADED, RATING, LABELS):
        try:
            verdict = parse_verdict(reply, asked)
        except ReplyUnreadable:
            continue
        assert {*verdict.winner.split(";")} <= {*asked.ballot, "none"}


def calls_made(reply):
    made = 0

    def count(_frame, event, _argument):
        nonlocal made
        made += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        parse_verdict(reply, JudgeQuestion(ALL))
    except ReplyUnreadable:
        pass
    finally:
        sys.setprofile(before)
    return made


@pytest.mark.parametrize("bit", NASTY)
def test_twice_the_reply_is_at_most_twice_the_work(bit):
    once, twice = calls_made(bit * 300), calls_made(bit * 600)
    assert twice <= 2 * once + 50


@pytest.mark.parametrize("front", ["", '{"a":"', '{"winner":"A","score_a":', '{"a":['])
def test_a_long_reply_of_anything_is_read_through(front):
    """The decoder runs in C, where no call is counted: a quadratic scan takes half a minute."""

    def read(bits):
        reason = refused(f"{front}{bits}?{{")
        assert reason.startswith(("its last JSON object is broken", "its JSON is", "the reply is"))

    assert_linear(read, NASTY)
