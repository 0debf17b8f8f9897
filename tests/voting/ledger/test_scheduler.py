"""A burst of votes asks the workers once, and a broker that is down stops nothing."""

import threading
from uuid import UUID

from tests.helpers.waiting import PATIENCE
from voting.ledger.scheduler import CROWD, CROWD_WINDOWS, Nudger

WAIT = PATIENCE


class Broker:
    """Takes tasks down, and fails as often as it is told to."""

    def __init__(self, failures=0):
        self.published = []
        self.failures = failures
        self.heard = threading.Semaphore(0)

    def __call__(self, project):
        self.published.append(project)
        self.heard.release()
        if self.failures:
            self.failures -= 1
            raise OSError("connection refused")

    def wait(self):
        assert self.heard.acquire(timeout=WAIT)


ONE, OTHER = UUID(int=1), UUID(int=2)


def test_a_burst_is_one_task_for_each_project():
    broker = Broker()
    nudge = Nudger(broker, window=0.2)
    for _ in range(50):
        nudge(ONE)
        nudge(OTHER)
    broker.wait()
    broker.wait()
    # A vote that came just after the first was taken is in a second round at most.
    assert set(broker.published) == {ONE, OTHER}
    assert len(broker.published) <= 4


def test_every_later_vote_is_asked_for_again():
    broker = Broker()
    nudge = Nudger(broker, window=0.0)
    for _ in range(5):
        nudge(ONE)
        broker.wait()
    assert broker.published == [ONE] * 5


def test_while_a_crowd_votes_the_windows_are_longer():
    window, votes, slept, over = 0.1, [CROWD, CROWD, 1, 0], [], threading.Event()

    def publish(project):
        for _ in range(votes.pop(0)):
            nudge(project)
        if not votes:
            over.set()

    nudge = Nudger(publish, window, sleep=slept.append)
    nudge(ONE)
    assert over.wait(WAIT)
    assert slept == [window, CROWD_WINDOWS * window, CROWD_WINDOWS * window, window]


def test_a_broker_that_fails_is_said_once_and_asked_again(caplog):
    broker = Broker(failures=3)
    nudge = Nudger(broker, window=0.0)
    for _ in range(5):
        nudge(ONE)
        broker.wait()
    assert broker.published == [ONE] * 5
    assert [record.message for record in caplog.records].count(
        "broker unreachable, the sweep will seal: connection refused"
    ) == 1


def test_a_vote_does_not_wait_for_the_broker():
    gate = threading.Event()
    nudge = Nudger(lambda project: gate.wait(WAIT), window=0.0)
    for _ in range(100):
        nudge(ONE)  # returns although the broker hangs
    gate.set()
