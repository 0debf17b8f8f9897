"""Starts the real servers before Django reads its settings, once for all workers of a test run.

TEST_DATABASE=sqlite|postgresql chooses the database (default: postgresql). The broker is always a
real Valkey or Redis, where each worker has a numbered database of its own; HUMANJUDGE_DATA is a
temp folder for each worker. TEST_DATABASE_URL and TEST_REDIS_URL name servers that run already.
"""

import atexit
import contextlib
import importlib
import os
import shutil
import signal
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests import chromium, progress, servers, workers
from tests.needs import DATABASE, NEEDS, is_marked, need_of
from tests.server_programs import ServerError, only_wheels

# As in the settings: plugins of pytest load numpy before these are read.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_BROKER = "HUMANJUDGE_TEST_BROKER"
QUICK_TESTS_OF_A_FILE = 1
# For modules that make their tests when they are imported.
IS_THOROUGH = "--thorough" in sys.argv
_HEADER = pytest.StashKey[list[str]]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config, parser, args):
    options = parser.parse_known_args(args)
    if options.help or options.version:
        return (yield)
    # A shell ignores it for what runs in the background, and so would every process of a test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    early_config.stash[_HEADER] = _start_servers(early_config)
    _environment_of(0)
    result = yield
    if os.environ["DATABASE_URL"].startswith("sqlite"):
        _sqlite_in_a_file()
    return result


def pytest_report_header(config):
    return config.stash.get(_HEADER, None)


class QuickTests:
    """Of a file that needs a database its first test, and no slow one: every file, but not all."""

    # Before they are shuffled.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        seen = Counter()
        for item in items[:]:
            is_counted = need_of(item.path) == DATABASE and "thorough" not in item.keywords
            seen[item.path] += is_counted
            if seen[item.path] > QUICK_TESTS_OF_A_FILE:
                items.remove(item)


def pytest_ignore_collect(collection_path, config):
    """Import no file whose need was not asked for, nor one of PostgreSQL alone on SQLite."""
    if not collection_path.name.startswith("test_"):
        return None
    needs = config.getoption("--needs")
    if needs and need_of(collection_path) not in needs.split(","):
        return True
    on_sqlite = os.environ["DATABASE_URL"].startswith("sqlite")
    # To collect some of them, as the document of the API, takes seconds.
    return True if on_sqlite and is_marked(collection_path, "postgresql_only") else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what is not asked for or not possible here, and begin with what takes long."""
    left_out = set() if config.getoption("--thorough") else {"thorough"}
    if config.getoption("--quick"):
        left_out.add("slow")
    if os.environ["DATABASE_URL"].startswith("sqlite"):
        left_out.add("postgresql_only")
    deselected = [item for item in items if any(map(item.get_closest_marker, left_out))]
    if deselected:
        gone = set(deselected)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=deselected)
    items.sort(key=_place_in_line)


# Groups of tests that share a running product.
BROWSER, PRODUCT = "browser", "process with a product"


def _place_in_line(item: pytest.Item) -> int:
    """What one worker has to do alone comes first: nobody waits for it at the end."""
    group = group_of(item)
    if group in (BROWSER, PRODUCT):
        return (BROWSER, PRODUCT).index(group)
    return 2 if item.get_closest_marker("slow") else 3


def group_of(item: pytest.Item) -> str:
    """What one worker does, so that what its tests share is made once: all tests of a file.

    So do all files that share a running product. Most tests of processes share nothing, and some
    wait for minutes: each goes where there is room.
    """
    need = need_of(item.path)
    if need == BROWSER:
        return BROWSER
    if need != "process":
        return str(item.path)
    return PRODUCT if "up" in getattr(item, "fixturenames", ()) else item.nodeid


def pytest_addoption(parser):
    parser.addoption("--workers", type=int, default=1, help="processes that run tests")
    parser.addoption("--thorough", action="store_true", help="also what is marked thorough")
    parser.addoption("--needs", default="", help=f"files that need this alone: {','.join(NEEDS)}")
    parser.addoption("--quick", action="store_true", help="what takes a minute: make test-fast")


def pytest_configure(config):
    _adapt_settings()
    if config.getoption("--quick"):
        config.pluginmanager.register(QuickTests())
    count = config.getoption("--workers")
    adopt = partial(_become_worker, config)
    config.pluginmanager.register(workers.Distribution(count, group_of=group_of, adopt=adopt))
    if pipe := os.environ.pop(progress.PROGRESS, ""):
        config.pluginmanager.register(progress.Costs())
        config.pluginmanager.register(progress.Progress(int(pipe)), "progress")


def pytest_terminal_summary(terminalreporter):
    chromium.say_if_missing(terminalreporter)


def _start_servers(config) -> list[str]:
    stack = contextlib.ExitStack()
    # Both: a run that fails while it is configured never reaches its cleanups.
    config.add_cleanup(stack.close)
    atexit.register(stack.close)
    folder = servers.short_folder("hj-tests-")
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    os.environ[servers.FOLDER] = str(folder)
    try:
        return [_start_database(stack), _start_broker(stack)]
    except ServerError as error:
        raise pytest.UsageError(str(error)) from None


def _start_database(stack: contextlib.ExitStack) -> str:
    kind = os.environ.get("TEST_DATABASE") or "postgresql"
    if kind == "sqlite":
        os.environ["DATABASE_URL"] = "sqlite://:memory:"
        return "database of this run: SQLite"
    if kind != "postgresql":
        raise ServerError(f"TEST_DATABASE is {kind!r}: sqlite or postgresql")
    given = os.environ.get("TEST_DATABASE_URL")
    if given and not only_wheels():
        os.environ["DATABASE_URL"] = given
        return "database of this run: PostgreSQL (TEST_DATABASE_URL)"
    server = stack.enter_context(servers.postgres_server())
    os.environ["DATABASE_URL"] = server.url
    return f"database of this run: {server.programs}"


def _start_broker(stack: contextlib.ExitStack) -> str:
    given = os.environ.get("TEST_REDIS_URL")
    if given and not only_wheels():
        os.environ[_BROKER] = given
        return "broker of this run: TEST_REDIS_URL"
    server = stack.enter_context(servers.valkey_server())
    os.environ[_BROKER] = server.url
    return f"broker of this run: {server.programs}"


def _environment_of(worker: int) -> None:
    """Name a data folder and a database of the broker: 0 for who collects, 1 and on for workers."""
    data = Path(os.environ[servers.FOLDER], f"worker-{worker}")
    data.mkdir(mode=0o700)
    # A .env file of this folder does not override what is set here.
    os.environ |= {"HUMANJUDGE_DATA": str(data), "DEBUG": "false", "HTTPS": "false"}
    os.environ["REDIS_URL"] = numbered_broker(os.environ[_BROKER], worker)


def _become_worker(config: pytest.Config, number: int) -> None:
    """Give a forked worker what is its own: a data folder, databases, a place for files."""
    from celery import current_app
    from django.conf import settings
    from django.test import override_settings

    _environment_of(number + 1)
    module = importlib.import_module(settings.SETTINGS_MODULE)
    before = vars(module).copy()
    now = vars(importlib.reload(module))
    changed = {name: now[name] for name in before if name.isupper() and now[name] != before[name]}
    del changed["DATABASES"]
    override_settings(**changed).enable()
    _adapt_settings()
    current_app.conf.broker_url = settings.CELERY_BROKER_URL
    if os.environ["DATABASE_URL"].startswith("sqlite"):
        _sqlite_in_a_file()
    # As pytest-django asks it of its workers, to name a database for each.
    config.workerinput = {"workerid": f"worker_{number}"}
    files = config._tmp_path_factory
    files._given_basetemp, files._basetemp = files.getbasetemp() / f"worker-{number}", None


def _adapt_settings() -> None:
    from django.conf import settings

    # Pages name their stylesheets without a manifest, which only a collected STATIC_ROOT has.
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = settings.STORAGES | {"staticfiles": plain}
    settings.STATIC_ROOT.mkdir(exist_ok=True)
    # Users of tests are many, and nobody guesses their passwords.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def numbered_broker(url: str, number: int) -> str:
    """The URL of the broker's database that is `number` places after the one in `url`."""
    parts = urlsplit(url)
    if parts.scheme == "redis+socket":
        # Not by urlunsplit: it leaves out the two slashes before an empty host.
        return f"{url.partition('?')[0]}?virtual_host={number}"
    first = int(parts.path.strip("/") or 0)
    return urlunsplit(parts._replace(path=f"/{first + number}"))


def _sqlite_in_a_file() -> None:
    """Threads and processes of a test must meet in one database, as they do in production."""
    from django.db import connections

    name = Path(os.environ["HUMANJUDGE_DATA"], "test.sqlite3")
    connections.settings["default"]["TEST"]["NAME"] = str(name)
