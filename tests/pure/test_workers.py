"""Which worker of `make run` does what."""

from django.conf import settings

from humanjudge.celery import app
from humanjudge.launcher import programs


def queues_of(program):
    return set(program[program.index("--queues") + 1].split(","))


def test_votes_are_sealed_by_a_worker_that_nothing_long_can_fill():
    sealer = queues_of(programs.WORKERS["sealer"]())
    worker = queues_of(programs.WORKERS["worker"]())
    assert not sealer & worker
    app.loader.import_default_modules()
    own = [name for name in app.tasks if not name.startswith("celery.")]
    routes = {name: settings.CELERY_TASK_ROUTES.get(name, {}).get("queue", "votes") for name in own}
    assert {"voting.tasks.seal", "judge_eval.tasks.work"} <= set(routes)
    assert set(routes.values()) <= sealer | worker
    # What it does besides asks rows what is to be done, and lets the other one do it.
    assert {name for name, queue in routes.items() if queue in sealer} == {
        "voting.tasks.seal",
        "voting.tasks.sweep",
        "judge_eval.tasks.advance",
        "judge_eval.tasks.sweep",
        "reports.tasks.sweep",
    }


def test_a_worker_by_itself_does_everything():
    sealer, *others = (queues_of(each()) for each in programs.WORKERS.values())
    assert queues_of(programs.worker()) == sealer.union(*others)


def test_workers_of_one_queue_each_do_what_the_worker_of_both_does():
    one, other, both = (
        queues_of(programs.WORKERS[name]()) for name in ("judging", "rendering", "worker")
    )
    assert one | other == both
    assert not one & other
