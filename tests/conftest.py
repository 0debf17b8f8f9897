"""What every test shares. Rows are made by the plain functions of tests.makers."""

import os
import sys

import hypothesis
import pytest
from django.db import transaction

from humanjudge.server import metrics
from tests.provider import provider

pytest_plugins = ["tests.process.fixtures", "tests.browser.fixtures"]

# Other examples are tried each time; what failed is printed so that it can be run again. On CI they
# follow from the tests, so that what is merged fails by its own changes and never by chance.
# Whoever changes what is computed asks for more: make test ARGS='--hypothesis-profile many'.
EXAMPLES = {"fast": 10, "humanjudge": 15, "ci": 15, "many": 50, "thorough": 1000}
for name, examples in EXAMPLES.items():
    # A slow machine is no failure.
    hypothesis.settings.register_profile(
        name, deadline=None, print_blob=True, max_examples=examples, derandomize=name == "ci"
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "humanjudge"))


@pytest.fixture(scope="session", autouse=True)
def nothing_is_flushed_beside_a_test():
    """What a test counts is handed over when it is asked for, and not by a thread in between."""
    metrics._flushing = os.getpid()


@pytest.fixture(scope="module")
def module_db(django_db_setup, django_db_blocker):
    """A database for scenes that are made once for a file; what its tests change is taken back.

    Tests get the rows as the scene has left them, and should read them anew where they change them.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="session")
def live_server(django_db_setup, live_server):
    """The server, started when the tests' database is known: else it shares one connection.

    Until then the database is said to be in memory, and connections to that are handed on.
    """
    return live_server


@pytest.fixture
def at():
    """A model provider on this machine, which answers well until it is told otherwise."""
    with provider() as running:
        yield running


@pytest.fixture
def forked_previews(monkeypatch):
    """Previews of files are forked from this process, in place of half a second of imports each."""
    # Not above: it needs Django's settings.
    from tests.helpers.forked_preview import fork_previews

    fork_previews(monkeypatch)


LIMITS = {
    "voting.access.login": ["BY_ADDRESS", "BY_BOTH", "BY_ACCOUNT"],
    "judge_eval.runs.api_access": ["WRONG_KEYS"],
    "reports.report.views.shared_report": ["LIMIT"],
    "voting.ballot.views": ["WRONG_LINKS", "JOINS"],
}


@pytest.fixture(autouse=True)
def nobody_has_tried_anything():
    """All tests come from one address: what some have got wrong is not held against the next."""
    for module, names in LIMITS.items():
        for name in names if module in sys.modules else ():
            getattr(sys.modules[module], name)._buckets.clear()
