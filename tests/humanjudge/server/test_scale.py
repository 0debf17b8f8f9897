"""The simulation of many projects, held against what is known of queues."""

from statistics import mean

import pytest

from bench.scale import Costs, queue_delay, simulate

# Every vote is a batch of its own, sealed in 10 ms: as many servers as sealers, no window.
ALONE = Costs(seal=0.01, seal_database=0.0, batch=0.0, batch_database=0.0, window=0.0)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_sealer_of_many_quiet_projects_is_the_queue_that_has_a_closed_form(load):
    rate = load / ALONE.seal
    found = simulate(2000, rate / 2000, 1, ALONE, seconds=400)
    assert mean(found.delays) == pytest.approx(queue_delay(rate, ALONE.seal), rel=0.1)
    assert found.utilisation == pytest.approx(load, rel=0.05)


def test_more_sealers_are_each_less_busy_and_votes_wait_less():
    one, two = (simulate(100, 5, n, Costs(batch=1.2e-3), seconds=10) for n in (1, 2))
    assert two.utilisation == pytest.approx(one.utilisation / 2, rel=0.1)
    assert two.p99 < one.p99
    assert len(one.delays) == len(two.delays)


def test_a_busy_project_is_sealed_in_larger_batches_so_that_a_vote_costs_less():
    quiet, busy = (simulate(10, rate, 1, Costs(), seconds=20) for rate in (5, 500))
    assert len(busy.delays) > 90 * len(quiet.delays)
    assert busy.utilisation < 30 * quiet.utilisation
