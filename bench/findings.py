"""The findings of a run from its database rows: a million votes, 50,000 comparisons, 20 judges.

Reading, all figures with 1,000 resamples, the Alt-Test and writing them down, as a worker does it.
"""

from __future__ import annotations

import os
import resource
import time

from bench.lib.installation import installation
from bench.lib.report import figure, note

COMPARISONS = int(os.environ.get("BENCH_FINDINGS_COMPARISONS", "50000"))
VOTERS = int(os.environ.get("BENCH_FINDINGS_VOTERS", "20"))
JUDGES = int(os.environ.get("BENCH_FINDINGS_JUDGES", "20"))

_OUTPUTS = """
    INSERT INTO voting_inference (id, project_id, prompt, output, kind, generator, tags, metadata,
                                  created_at)
    SELECT gen_random_uuid(), %(project)s, 'prompt ' || n / 2, 'output ' || n, 'text',
           'model ' || (n / 2 + n %% 2 * (1 + n / 16 %% 7)) %% 8,
           jsonb_build_array('tag ' || n / 2 %% 5), jsonb_build_object('n', n), now()
    FROM generate_series(0, 2 * %(comparisons)s - 1) AS n
"""
_PAIRS = """
    INSERT INTO voting_item (id, queue_id, position, prompt_key, turn, a_id, b_id,
                                   votes_wanted, votes, votes_a, votes_b, votes_tie,
                                   votes_both_bad, votes_sided, votes_left, answers_a, answers_b,
                                   answers_tie, answers_both_bad, answers_wrong,
                                   opened_at, unusable, extra_votes, votes_pass, votes_flag,
                                   value_sum, value_squares, answers_pass, answers_flag, is_coupled)
    SELECT gen_random_uuid(), %(queue)s, (a.metadata->>'n')::int / 2, a.prompt,
           (a.metadata->>'n')::int / 2, a.id, b.id, 20,
           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, now(), '', 0, 0, 0, 0, 0, 0, 0, false
    FROM voting_inference AS a
    JOIN voting_inference AS b ON (b.metadata->>'n')::int = (a.metadata->>'n')::int + 1
    WHERE (a.metadata->>'n')::int %% 2 = 0
"""
_VERDICTS = """
    INSERT INTO judge_eval_verdict (judge_id, item_id, state, "order", winner, consistent,
                                    picks, first_picks, feedback, error, latency_ms, decided_at)
    SELECT judge.id, pair.id, 'done', 'both',
           CASE WHEN random() < 0.25 + judge.position * 0.025 THEN 'A'
                ELSE (ARRAY['A', 'B', 'tie', 'both_bad'])[1 + floor(random() * 4)::int] END,
           random() < 0.8, '["A", "B"]', 1, '', '', 100, now()
    FROM judge_eval_judge AS judge, voting_item AS pair
"""
_OPENED = """
    INSERT INTO voting_entry (uid, project_id, kind, at, queue_id, item_id, seq, hash, payload)
    SELECT gen_random_uuid(), %(project)s, 'verdicts', now(), %(queue)s, pair.id,
           row_number() OVER (), '\\x00',
           jsonb_build_object('prompt', pair.prompt_key, 'votes_wanted', %(voters)s,
                              'verdicts', said.all_)
    FROM voting_item AS pair
    JOIN (SELECT item_id, jsonb_agg(jsonb_build_object(
              'judge', judge.id, 'position', judge.position, 'fingerprint', judge.fingerprint,
              'winner', verdict.winner, 'consistent', verdict.consistent)) AS all_
          FROM judge_eval_verdict AS verdict
          JOIN judge_eval_judge AS judge ON judge.id = verdict.judge_id
          GROUP BY item_id) AS said ON said.item_id = pair.id
"""
_VOTES = """
    INSERT INTO voting_entry (uid, project_id, kind, at, queue_id, item_id, voter_id, choice,
                              left_side, rubric_id, elapsed_ms, seq, hash)
    SELECT gen_random_uuid(), %(project)s, 'vote', now(), %(queue)s, pair.id, voter.id,
           (ARRAY['A', 'A', 'A', 'A', 'B', 'tie', 'both_bad'])[1 + floor(random() * 7)::int], 'A',
           %(rubric)s, 1500, row_number() OVER () + %(comparisons)s, '\\x00'
    FROM voting_voter AS voter, voting_item AS pair
"""
_TALLIES = """
    UPDATE voting_item AS pair SET votes = counted.votes, votes_a = counted.a,
        votes_b = counted.b, votes_tie = counted.tie, votes_both_bad = counted.both_bad,
        votes_sided = counted.a + counted.b, votes_left = counted.a
    FROM (SELECT item_id, count(*) AS votes, count(*) FILTER (WHERE choice = 'A') AS a,
                 count(*) FILTER (WHERE choice = 'B') AS b,
                 count(*) FILTER (WHERE choice = 'tie') AS tie,
                 count(*) FILTER (WHERE choice = 'both_bad') AS both_bad
          FROM voting_entry WHERE kind = 'vote' GROUP BY item_id) AS counted
    WHERE counted.item_id = pair.id
"""


def main() -> None:
    with installation():
        measure()


def measure() -> None:
    from django.db import connection

    from judge_eval.board import cache
    from judge_eval.models import Board, Findings, Run
    from tests.makers import make_judges, make_queue, make_voter

    queue = make_queue()
    run = Run.objects.create(queue=queue, name="A large run", state="voting")
    make_judges(run, [f"judge {n}" for n in range(JUDGES)])
    run.judges.filter(position__gt=0).update(provider="imported")
    for _ in range(VOTERS):
        make_voter(run)
    names = {
        "voters": VOTERS,
        "project": queue.project_id,
        "queue": queue.pk,
        "rubric": queue.rubric_id,
        "comparisons": COMPARISONS,
    }
    with connection.cursor() as cursor:
        for statement in (_OUTPUTS, _PAIRS, _VERDICTS, _OPENED, _VOTES, _TALLIES):
            cursor.execute(statement, names if "%(" in statement else None)
            cursor.execute("VACUUM ANALYZE")
    Board.objects.create(run=run, votes=COMPARISONS * VOTERS, seq=COMPARISONS * (VOTERS + 1))
    Findings.objects.create(run=run)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    before = peak_mb()
    began, used = time.perf_counter(), time.process_time()
    cache.compute(run.pk, "")
    seconds = time.perf_counter() - began
    found = Findings.objects.get(run=run)
    assert found.data is not None
    note(found.data["words"])
    tested = found.data["alt_test"]
    note(f"Alt-Test: {JUDGES} judges, {tested['humans']} people, {tested['items']:,} pairs")
    note(f"processor time {time.process_time() - used:.1f} s; {before:,.0f} MB stood there before")
    figure(f"findings of {COMPARISONS * VOTERS:,} votes, rows to rows", seconds, "s")
    figure("peak memory", peak_mb(), "MB", "under 1,000")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
