"""What a log never tells, in lines and as JSON."""

import json
import logging
import sys

import pytest

from humanjudge.server.logs import HIDDEN, Json, Lines, without_secrets

FORMATS = [Lines("{levelname} {name}: {message}", style="{"), Json()]
SECRETS = {
    "a key of ours": "the key hj_6e337562_yEzlFXdf-S0c3KhE was refused",
    "a key of a model": "gj_sk_6e337562_yEzlFXdf",
    "a key of a provider": "Incorrect API key provided: sk-proj-yEzlFXdf_12345",
    "a header": "Authorization: Bearer yEzlFXdf.12345",
    "basic": "{'authorization': 'Basic yEzlFXdfOjEyMzQ1'}",
    "a cookie": "Cookie: sessionid=yEzlFXdf12345; csrftoken=yEzlFXdf",
    "a header of a reply": '"Set-Cookie": "voter=yEzlFXdf12345; HttpOnly"',
    "a database": "connection to postgresql://humanjudge:yEzlFXdf12345@db/humanjudge failed",
    "a broker": "redis://:yEzlFXdf12345@broker:6379/0",
    "an invite": "Not Found: /join/yEzlFXdf12345:abc/",
    "a password": "{'username': 'ann', 'password': 'yEzlFXdf 12345'}",
    "an address": "GET /x?api_key=yEzlFXdf12345&a=1",
    "a setting": "SECRET_KEY=yEzlFXdf12345",
}


def logged(formatter, message, *arguments, error=None):
    record = logging.LogRecord("voting", logging.ERROR, __file__, 1, message, arguments, error)
    return formatter.format(record)


@pytest.mark.parametrize("formatter", FORMATS, ids=["lines", "json"])
@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_keys_tokens_and_cookies_never_appear(formatter, text):
    for line in (logged(formatter, text), logged(formatter, "it said: %s", text)):
        assert "yEzlFXdf" not in line
        assert HIDDEN in line


@pytest.mark.parametrize("formatter", FORMATS, ids=["lines", "json"])
def test_nor_do_they_in_tracebacks(formatter):
    try:
        int(SECRETS["a key of a provider"])
    except ValueError:
        line = logged(formatter, "failed", error=sys.exc_info())
    assert "ValueError" in line
    assert "yEzlFXdf" not in line


@pytest.mark.parametrize("formatter", FORMATS, ids=["lines", "json"])
def test_secrets_of_the_environment_never_appear_wherever_they_stand(
    formatter, settings, monkeypatch
):
    monkeypatch.setenv("EXAMPLE_API_KEY", "plain words, and long")
    settings.METRICS_TOKEN = "another-one-1234"
    line = logged(formatter, f"x{settings.SECRET_KEY}y another-one-1234 plain words, and long")
    assert line.count(HIDDEN) == 3


def test_what_is_no_secret_stays():
    for text in (
        "the database is busy: database is locked",
        "picture 5 waits: no renderer",
        "1,000 tokens in 3 calls of the judge sk",
        "GET /vote/0d1e/ballot 405",
        "redis://broker:6379/0 does not answer",
    ):
        assert without_secrets(text) == text


def test_json_is_one_object_a_line():
    line = logged(Json(), 'two\nlines of %s "ü"', "text")
    assert "\n" not in line
    said = json.loads(line)
    assert (said["level"], said["logger"]) == ("ERROR", "voting")
    assert said["message"] == 'two\nlines of text "ü"'
    assert said["time"].endswith("+00:00")
