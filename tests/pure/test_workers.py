"""Which worker of `make run` does what."""

from django.conf import settings

from humanjudge.celery import app
from humanjudge.management.commands import up


def queues_of(program):
    [queues] = [
        b for a, b in zip(program.command, program.command[1:], strict=False) if a == "--queues"
    ]
    return set(queues.split(","))


def test_votes_are_sealed_by_a_worker_that_nothing_long_can_fill():
    sealer = queues_of(up.worker("sealer", up.QUEUES_OF_VOTES))
    worker = queues_of(up.worker("worker", up.QUEUES_OF_WORK))
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
    both = set(up.QUEUES_OF_VOTES.split(",")) | set(up.QUEUES_OF_WORK.split(","))
    assert queues_of(up.worker()) == both
