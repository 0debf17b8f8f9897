"""What the environment says of a deployment: what is refused, what is off until asked for."""

import json
import logging
import re
import subprocess
import sys
from uuid import uuid4

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tests.process.up import ROOT, environment, try_up

pytestmark = pytest.mark.process

PRODUCTION = {
    "HTTPS": "true",
    "SECRET_KEY": "q8Zr-" * 15 + "no one knows",
    "ALLOWED_HOSTS": "judge.example.org",
    "CSRF_TRUSTED_ORIGINS": "https://judge.example.org",
}
HSTS = ["SECURE_HSTS_SECONDS", "SECURE_HSTS_INCLUDE_SUBDOMAINS", "SECURE_HSTS_PRELOAD"]
# Settings are read anew for each set of variables.
READ = f"""
import importlib, json, os, sys
from humanjudge import settings
before = dict(os.environ)
for more in json.loads(sys.argv[1]):
    os.environ.clear()
    os.environ.update(before | more)
    importlib.reload(settings)
    print(json.dumps([getattr(settings, name) for name in {HSTS}]))
"""


def run(tmp_path, *command, **more):
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment(tmp_path, **more),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_hsts_is_for_a_year_and_for_this_host_alone_unless_it_is_asked_for(tmp_path):
    expected = [
        ({}, [31_536_000, False, False]),
        ({"HSTS_SECONDS": "0"}, [0, False, False]),
        ({"HSTS_SECONDS": "9", "HSTS_SUBDOMAINS": "true"}, [9, True, False]),
        ({"HSTS_SECONDS": "9", "HSTS_PRELOAD": "true"}, [9, False, True]),
        ({"HTTPS": "false"}, [0, False, False]),
    ]
    asked = json.dumps([more for more, _ in expected])
    read = run(tmp_path, "-c", READ, asked, **PRODUCTION)
    assert [json.loads(line) for line in read.stdout.splitlines()] == [
        settings for _, settings in expected
    ], read.stderr


@pytest.mark.parametrize("more", [{}, {"HSTS_SUBDOMAINS": "true"}], ids=["this host", "subdomains"])
def test_production_settings_pass_the_check_of_a_deployment(tmp_path, more):
    command = ("manage.py", "check", "--deploy", "--fail-level", "WARNING")
    checked = run(tmp_path, *command, **PRODUCTION | more)
    assert checked.returncode == 0, checked.stderr


WRONG = [
    ({"SVG_RENDERER": "inkscape"}, "SVG_RENDERER is 'inkscape'"),
    ({"JUDGING_THREADS": 0}, "JUDGING_THREADS is 0: at least 1"),
    ({"VOTES_BURST": 0}, "VOTES_BURST is 0: at least 1"),
    ({"VOTES_PER_SECOND": 0.0}, "VOTES_PER_SECOND is 0.0: it must be above 0"),
    ({"PASSWORD_LOGIN": False}, "without OIDC_ISSUER nobody can log in"),
    ({"OIDC_ISSUER": "https://id.example"}, "OIDC_CLIENT_ID is not"),
    ({"OIDC_ISSUER": "http://id.example", "OIDC_CLIENT_ID": "x"}, "an https address"),
]


@pytest.mark.parametrize("changes, words", WRONG, ids=[words for _, words in WRONG])
def test_a_setting_that_would_hang_the_work_is_an_error(settings, changes, words):
    assert run_checks() == []
    for name, value in changes.items():
        setattr(settings, name, value)
    [error] = run_checks()
    assert error.is_serious()
    assert words in error.msg


OTHER_VERSIONS = {
    "one with a migration for every change": [("voting", "0014_answers_wrong")],
    "the one before items": [("voting", "0001_initial"), ("judge_eval", "0001_initial")],
    "a later one": [("judge_eval", "0002_more")],
}
HINTS = {"a later one": "Run the version that made it"}


@pytest.mark.django_db
@pytest.mark.parametrize("version", OTHER_VERSIONS)
def test_a_database_of_another_version_is_refused(version):
    def refused():
        return run_checks(tags=["database"], databases=["default"])

    assert refused() == []
    recorder = MigrationRecorder(connection)
    if version not in HINTS:
        recorder.migration_qs.filter(app__in=["voting", "judge_eval", "reports"]).delete()
    for app, name in OTHER_VERSIONS[version]:
        recorder.record_applied(app, name)
    [error] = refused()
    assert error.id == "humanjudge.E004"
    assert HINTS.get(version, "Commit 0c489a9b is the last that reads it") in error.hint


def test_nothing_starts_with_a_renderer_that_is_not_there(tmp_path):
    tried = try_up(tmp_path, 1, SVG_RENDERER="inkscape")
    assert tried.returncode != 0
    assert "SVG_RENDERER is 'inkscape'" in tried.stderr


def test_the_example_names_every_setting_and_no_other():
    code = (ROOT / "humanjudge" / "settings.py").read_text()
    read = set(re.findall(r'\benv\.\w+\(\s*"(\w+)"', code))
    named = set(
        re.findall(r"^#?([A-Z][A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    )
    assert read - {"SCORER_MODULES"} <= named
    assert named - read == {"HOST", "PORT", "HUMANJUDGE_DATA"}


@pytest.mark.django_db
def test_refusals_are_not_logged_and_errors_are(client, caplog):
    assert client.get("/nothing/").status_code == 404
    assert client.get(f"/vote/{uuid4()}/ballot").status_code == 405
    assert caplog.text == ""
    assert logging.getLogger("django.request").isEnabledFor(logging.ERROR)
