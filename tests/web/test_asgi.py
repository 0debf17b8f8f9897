"""What stands between the server and Django: bodies are read in time, answers are passed on."""

import asyncio
import json

import pytest

from humanjudge import asgi
from humanjudge.http import REFUSED

FORM = b"application/x-www-form-urlencoded"


def scope(path="/somewhere", method="POST", **headers):
    named = [(name.replace("_", "-").encode(), str(v).encode()) for name, v in headers.items()]
    return {
        "type": "http", "http_version": "1.1", "scheme": "http", "method": method, "path": path,
        "query_string": b"a=1", "server": ("127.0.0.1", 8000), "client": ("127.0.0.9", 1234),
        "headers": named,
    }  # fmt: skip


def ask(asked, *pieces, then=None):
    """Send a request with its body in pieces; what came back, None if that was nothing.

    `then` says what the client does after its last piece: nothing, or hang up.
    """
    waiting = [
        {"type": "http.request", "body": piece, "more_body": then is not None or n < len(pieces)}
        for n, piece in enumerate(pieces or (b"",), 1)
    ]
    sent = []

    async def receive():
        if waiting:
            return waiting.pop(0)
        if then == "hang up":
            return {"type": "http.disconnect"}
        return await asyncio.Future()

    async def send(message):
        sent.append(message)

    asyncio.run(asgi.application(asked, receive, send))
    if not sent:
        return None
    assert [message["more_body"] for message in sent[1:]][-1] is False
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message["body"] for message in sent[1:])


@pytest.fixture
def environs(monkeypatch):
    """A Django that keeps what it was asked and answers with the body."""
    asked = []

    class Echo(list):
        streaming = False

        def close(self):
            asked.append("closed")

    def echo(environ, start_response):
        asked.append(environ)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return Echo([environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))])

    monkeypatch.setattr(asgi, "_django", echo)
    return asked


def test_a_body_in_pieces_arrives_whole_whatever_its_length_was_said_to_be(environs):
    assert ask(scope(content_type=FORM), b"ab", b"", b"cd")[2] == b"abcd"
    environ, closed = environs
    assert (environ["CONTENT_LENGTH"], closed) == ("4", "closed")


def test_a_request_is_told_as_it_came(environs):
    asked = scope("/café/x", cookie="a=1", host="here", accept="text/html")
    asked["headers"] += [(b"cookie", b"b=2"), (b"accept", b"*/*"), (b"x_forwarded_proto", b"https")]
    ask(asked, b"")
    [environ, _] = environs
    expected = {
        "REQUEST_METHOD": "POST", "PATH_INFO": "/cafÃ©/x", "QUERY_STRING": "a=1",
        "REMOTE_ADDR": "127.0.0.9", "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8000",
        "HTTP_COOKIE": "a=1; b=2", "HTTP_ACCEPT": "text/html,*/*", "HTTP_HOST": "here",
    }  # fmt: skip
    assert expected.items() <= environ.items()
    # Only a proxy may say it, and it says it with `-`.
    assert "HTTP_X_FORWARDED_PROTO" not in environ


def test_a_body_that_comes_too_slowly_is_refused(settings):
    settings.BODY_SECONDS = 0.05
    status, headers, body = ask(scope("/api/runs"), b"some", then="nothing")
    assert (status, headers["content-type"]) == (408, "application/json")
    assert "not all here" in json.loads(body)["detail"]
    status, headers, body = ask(scope("/login/", content_type=FORM), b"some", then="nothing")
    assert (status, b"<h1>Too slow</h1>" in body) == (408, True)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "set-cookie" not in headers


def test_a_large_body_that_comes_steadily_gets_more_time(settings, environs, monkeypatch):
    settings.BODY_SECONDS = 0.05
    monkeypatch.setattr(asgi, "BYTES_A_SECOND", 1)
    pieces = iter([b"x" * 100] * 3 + [None])

    async def receive():
        await asyncio.sleep(0.04)
        piece = next(pieces)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def send(message):
        pass

    asyncio.run(asgi.application(scope(), receive, send))
    assert environs[0]["CONTENT_LENGTH"] == "300"


@pytest.mark.parametrize(
    "headers", [{"content_length": 2**20 + 1}, {"transfer_encoding": "chunked"}]
)
def test_a_body_that_is_too_large_is_refused_before_it_is_all_here(settings, headers):
    settings.MOST_BODY = 2**20
    status, _, body = ask(scope("/api/runs", **headers), b"x" * (2**20 + 1), then="nothing")
    assert status == 413
    assert json.loads(body) == {"detail": "A request may have at most 1 MB."}


def test_only_so_many_uploads_fill_the_disk_at_once(settings, environs):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE, settings.UPLOADS_AT_ONCE = 1000, 1
    assert ask(scope(content_length=2000), b"x" * 2000)[0] == 200
    asgi._uploads.add(object())
    try:
        ask(scope(content_length=2000), b"x" * 2000)
        ask(scope(content_length=1000), b"x" * 1000)
    finally:
        asgi._uploads.clear()
    _, _, refused, _, small, _ = environs
    assert refused[REFUSED][0] == 503
    assert REFUSED not in small


def test_a_client_who_hangs_up_is_not_answered(environs):
    assert ask(scope(), b"half", then="hang up") is None
    assert environs == []


def test_a_request_without_a_body_does_not_wait_for_one(environs):
    assert ask(scope(method="GET"), then="nothing")[0] == 200


def test_an_answer_in_pieces_is_sent_piece_by_piece_and_closed(monkeypatch):
    closed = []

    class Stream:
        streaming = True

        def __iter__(self):
            yield b"one"
            yield b"two"

        def close(self):
            closed.append(True)

    def streaming(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return Stream()

    monkeypatch.setattr(asgi, "_django", streaming)
    assert ask(scope(method="GET"))[2] == b"onetwo"
    assert closed == [True]
