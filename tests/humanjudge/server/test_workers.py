"""Which worker of `make run` does what."""

import logging
from types import SimpleNamespace

import pytest
import time_machine
from django.conf import settings
from kombu.message import Message
from redis.exceptions import TimeoutError as BrokerTimeout

from humanjudge import celery
from humanjudge.celery import app
from humanjudge.server.celery_consumer import Consumer
from humanjudge.server.launcher import programs


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


def test_beat_goes_on_where_the_clock_of_the_machine_goes_back(monkeypatch):
    monkeypatch.setattr(celery, "say_alive", lambda names: None)
    sent = []
    monkeypatch.setattr(celery.Clock, "apply_entry", lambda self, entry, **_: sent.append(entry))
    schedule = {"sweep": {"task": "voting.tasks.sweep", "schedule": 3.0}}
    with time_machine.travel(1_800_000_000, tick=False) as machine:
        beat = celery.Clock(app)
        beat.data.clear()
        beat.update_from_dict(schedule)
        for hours, sends in ((0, 1), (-1, 2), (1, 3)):
            machine.shift(3600 * hours)
            assert beat.tick() <= celery.ALIVE_SECONDS
            machine.shift(4)
            beat.tick()
            assert len(sent) >= sends


class Silent:
    """The channel of a broker that does not answer."""

    no_ack_consumers = None

    def basic_ack(self, *_, **__):
        raise BrokerTimeout


def test_a_task_that_cannot_be_acknowledged_ends_the_connection():
    """Celery would go on, with one task less that it ever takes."""
    worker = Consumer.__new__(Consumer)
    # The loop that takes tasks.
    worker.hub = SimpleNamespace(call_soon=lambda operation: operation())
    message = Message(channel=Silent(), delivery_tag="1")
    with pytest.raises(BrokerTimeout):
        worker.call_soon_ack(message.ack_log_error, logging.getLogger("test"), (BrokerTimeout,))


class HalfClosed:
    """A lost connection that Kombu can no longer close."""

    connection_errors = channel_errors = ()

    def collect(self, **_):
        pass

    def close(self):
        raise AttributeError("'NoneType' object has no attribute 'hostname'")


def test_a_lost_connection_that_cannot_be_closed_does_not_end_the_worker():
    worker = Consumer.__new__(Consumer)
    worker.app, worker.connection = app, HalfClosed()
    worker.on_connection_error_after_connected(BrokerTimeout())
    assert worker.connection is None
