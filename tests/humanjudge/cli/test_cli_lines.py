"""What the command line prints: short lines that a script can split, whatever names hold."""

import json

import pytest

from humanjudge.cli import lines

RUN = {
    "id": "51b04665-6f2a-4c56-8d35-0f8f6f3b5c11",
    "name": "Cats",
    "state": "voting",
    "note": "",
    "simulated": False,
    "total": 2,
    "done": 0,
    "progress": {
        "outputs": {"done": 4, "failed": 0, "waiting": 0, "total": 4},
        "calls": {"done": 4, "failed": 0, "waiting": 0, "total": 4},
    },
}
VERDICTS = [
    {"judge_model": "m/x", "winner": "A", "score_a": 8.0, "score_b": 6.0, "feedback": "."},
    {"judge_model": "m/y", "winner": None, "error": "no answer"},
    {"judge_model": "random", "winner": "both_bad", "score_a": None, "score_b": None},
]
TASK = {
    "id": "90fc7a19-0000-4000-8000-000000000000",
    "prompt_text": "A cat",
    "verdicts": json.dumps(VERDICTS),
}


def pending(*tasks, total=2, done=0):
    return {"tasks": list(tasks), "total": total, "done": done, "pending": total - done}


def test_a_status_is_the_run_the_next_pair_and_what_the_judges_say():
    assert list(lines.status_lines(RUN, pending(TASK))) == [
        "run|51b04665",
        "state|voting",
        "total|2|done|0|pending|2",
        "next-task|90fc7a19|prompt:A cat",
        "m/x|winner:A|scores:8v6",
        "m/y|winner:err|scores:-",
        "random|winner:both_bad|scores:-",
    ]


def test_without_a_pair_there_is_no_next_one():
    said = list(lines.status_lines(RUN | {"state": "complete"}, pending(done=2)))
    assert said == ["run|51b04665", "state|complete", "total|2|done|2|pending|0"]


def test_a_blind_status_names_the_pair_alone():
    blind = {name: value for name, value in TASK.items() if name != "verdicts"}
    assert list(lines.status_lines(RUN, pending(blind)))[-1] == "next-task|90fc7a19|prompt:A cat"


def test_what_is_unusual_has_lines_of_its_own():
    calls = {"done": 1, "failed": 1, "waiting": 2, "total": 4}
    run = RUN | {"state": "stopped", "note": "Stopped\nby hand.", "simulated": True}
    run["progress"] = RUN["progress"] | {"calls": calls}
    assert list(lines.status_lines(run, pending()))[1:5] == [
        "state|stopped",
        "note|Stopped by hand.",
        "simulated|1",
        "calls|8|done|5|failed|1|waiting|2",
    ]


@pytest.mark.parametrize("text", ["a|b\tc", "a\nb c", "a \x1b b\x00c", "\u202ea\u2028b\rc\x85"])
def test_nothing_in_a_name_breaks_a_line(text):
    for made in (
        lines.line("run", text, 1),
        lines.verdict_line({"judge_model": text, "winner": "A"}),
        next(lines.result_lines({"leaderboard": [row(judge=text)]})).replace("\t", "|"),
        lines.run_line(RUN | {"name": text}),
        *list(lines.status_lines(RUN, pending(TASK | {"prompt_text": text})))[3:4],
    ):
        assert made.isprintable()
    assert lines.line("run", text, 1).count("|") == 2


def test_a_long_prompt_is_cut_to_one_short_line():
    long = TASK | {"prompt_text": "word " * 100}
    line = list(lines.status_lines(RUN, pending(long)))[3]
    assert line.startswith("next-task|90fc7a19|prompt:word word")
    assert len(line.partition("prompt:")[2]) <= lines.LONGEST_PROMPT


@pytest.mark.parametrize(
    "scores, shown",
    [((8.0, 6.5), "8v6.5"), ((0.0, 10.0), "0v10"), ((None, 3.0), "-"), ((7.25, 7.0), "7.25v7")],
)
def test_scores_are_as_short_as_they_can_be(scores, shown):
    verdict = {"judge_model": "m", "winner": "A", "score_a": scores[0], "score_b": scores[1]}
    assert lines.verdict_line(verdict) == f"m|winner:A|scores:{shown}"


def row(**fields):
    return {
        "rank": 1,
        "judge": "m/x",
        "elo": 1031,
        "agree_rate": 66.666,
        "agree": 2,
        "disagree": 1,
        "total": 3,
        "overall_agreement": 50.04,
        "overall_low": 20.0,
        "overall_high": None,
        "elo_other_orders_low": 925.3,
        "elo_other_orders_high": 1130.4,
        "elo_note": "",
    } | fields


def test_results_are_a_row_of_tabs_for_each_judge():
    idle = row(rank=2, judge="idle", elo=1000, agree_rate=None, agree=0, total=0)
    none = dict.fromkeys(("elo", "elo_other_orders_low", "elo_other_orders_high"))
    rows = [row(), idle | none | {"overall_agreement": None, "elo_note": "no other judge"}]
    as_of = {"votes": 40, "newer": 3}
    assert list(lines.result_lines({"leaderboard": rows, "overall_as_of": as_of})) == [
        "1\tm/x\t1031\t66.7\t2\t3\t50.0\t20.0\t-\t925\t1130\t-",
        "2\tidle\t-\t-\t0\t0\t-\t20.0\t-\t-\t-\tno other judge",
        "as-of-vote|40|newer|3",
    ]


def test_votes_are_counted_and_one_that_was_not_blind_says_so():
    assert lines.voted_line(2, 0) == "voted|2|skipped|0"
    assert lines.voted_line(1, 0, unblinded=True) == "voted|1|skipped|0|unblinded|1"


def test_a_list_of_runs_is_a_line_for_each():
    assert lines.run_line(RUN | {"simulated": True}) == (
        "run|51b04665|voting|total|2|done|0|simulated|1|name:Cats"
    )


REPORT = {
    "run_id": RUN["id"],
    "runs": [RUN["id"]],
    "new": {"pairs": 2, "judges": 1, "verdicts": 2, "voters": 0, "votes": 0},
    "errors": [{"file": "v.csv", "row": 7, "field": None, "why": "too\nshort"}],
    "more_errors": 0,
    "left_out": [{"file": "v.csv", "row": 9, "why": "turn 2"}],
    "more_left_out": 0,
    "notes": ["Voting is closed."],
}


def test_an_import_says_what_came_and_what_did_not():
    assert list(lines.report_lines(REPORT)) == [
        "imported|51b04665|pairs|2|judges|1|verdicts|2|voters|0|votes|0",
        "error|v.csv|7|-|too short",
        "left-out|v.csv|9|-|turn 2",
        "note|Voting is closed.",
    ]


def test_an_import_of_several_runs_names_each_and_counts_what_is_not_listed():
    report = REPORT | {"runs": [RUN["id"], TASK["id"]], "more_errors": 5, "more_left_out": 6}
    said = list(lines.report_lines(report))
    assert said[1] == "imported|90fc7a19"
    assert {"more-errors|5", "more-left-out|6"} <= set(said)


def test_a_refusal_is_one_line_whatever_is_wrong():
    config = [{"path": "models[1].id", "message": "is empty"}, {"path": "", "message": "a\nb"}]
    assert lines.refusal({"detail": config}) == "models[1].id: is empty; a b"
    assert lines.refusal({"detail": "no\x1b[31m such"}) == "no [31m such"
    rows = [{"file": "v.csv", "row": n, "field": "vote", "why": "is empty"} for n in range(9)]
    said = lines.refusal({"detail": "9 errors", "errors": rows})
    assert said.startswith("9 errors: v.csv: vote: is empty; v.csv:1: vote")
    assert said.count("is empty") == lines.MOST_ROWS


def test_a_refusal_names_no_file_where_none_is_meant_and_tells_the_notes():
    nothing = {"file": "", "row": 0, "field": None, "why": "no row names a pair"}
    said = lines.refusal({"detail": "1 error", "errors": [nothing], "notes": ["v.csv: not read"]})
    assert said == "1 error: no row names a pair; v.csv: not read"


def test_findings_are_the_words_and_a_row_for_each_judge_as_the_server_wrote_it():
    rows = [["a | a", "66.7", "-", "1-2"], ["never\tasked", "-", "-", "ab"]]
    found = {
        "words": "A | beats\nB.",
        "more": ["So."],
        "as_of": {"votes": 40},
        "newer": 3,
        "rows": rows,
    }
    assert list(lines.findings_lines(found)) == [
        "words|A beats B.",
        "more|So.",
        "as-of-vote|40|newer|3",
        "a a\t66.7\t-\t1-2",
        "never asked\t-\t-\tab",
    ]


def test_no_figure_is_minus_zero():
    row = dict.fromkeys(("rank", "judge", "agree", "total"), 1)
    row |= {"elo": -0.4, "agree_rate": -0.04, "elo_note": ""}
    row |= dict.fromkeys(("overall_agreement", "overall_low", "overall_high"), -0.0)
    row |= dict.fromkeys(("elo_other_orders_low", "elo_other_orders_high"), -0.4)
    reply = {"leaderboard": [row], "overall_as_of": {"votes": 1, "newer": 0}}
    fields = next(lines.result_lines(reply)).split("\t")[2:]
    assert fields == ["0", "0.0", "1", "1", *["0.0"] * 3, "0", "0", "-"]


def test_a_conversation_is_named_by_what_the_user_said_last():
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    task = TASK | {"prompt_text": json.dumps([*turns, {"role": "user", "content": "Why | so?"}])}
    assert "next-task|90fc7a19|prompt:Why so?" in list(lines.status_lines(RUN, pending(task)))
