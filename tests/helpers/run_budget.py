"""Runs with a budget: what they may spend, what they have spent, and a look at both meanwhile."""

from judge_eval.judging import worker
from judge_eval.models import Run
from judge_eval.runs import state
from tests.helpers.run_maker import PRICES, time_passes

NAMES = ("model-a", "model-b", "judge-long")
MANY = [f"Say {n}." for n in range(8)]
ONE_JUDGE = {"judges": ["judge-long"], "prompts": MANY}
# Short answers, so that what may come is not far from what does.
SHORT = {"generation": {"max_tokens": 60}, "judging": {"max_tokens": 60}}


def priced(**more):
    return {"prices": dict.fromkeys(NAMES, PRICES)} | more


def money(run):
    run.refresh_from_db()
    return run.spent_nano, run.reserved_nano


def within_budget(run, seen):
    """For each look of a crew whether to stop: a look at the purse besides."""

    def look():
        run.refresh_from_db()
        seen.append((run.spent_nano + run.reserved_nano, run.budget_nano))
        return time_passes()

    return look


def work_within(run):
    """Do what the workers would; return the most that was ever spent and set aside."""
    seen = []
    for _ in range(20):
        state.advance(run.pk)
        run.refresh_from_db()
        if run.state not in Run.AT_WORK:
            break
        worker.work(should_stop=within_budget(run, seen))
    assert all(spent <= budget for spent, budget in seen)
    return max((spent for spent, _ in seen), default=0)
