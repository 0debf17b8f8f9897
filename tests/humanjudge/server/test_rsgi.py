"""What stands between the server and Django: bodies are read in time, answers are passed on."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from granian.rsgi import ProtocolClosed

from humanjudge.core.http import REFUSED
from humanjudge.server import rsgi

FORM = b"application/x-www-form-urlencoded"


class Headers(list):
    def items(self):
        return self


def scope(path="/somewhere", method="POST", **headers):
    named = [(name.replace("_", "-"), str(value)) for name, value in headers.items()]
    return SimpleNamespace(
        http_version="1.1", scheme="http", method=method, path=path, query_string="a=1",
        server="127.0.0.1:8000", client="127.0.0.9:1234", headers=Headers(named),
    )  # fmt: skip


class Protocol:
    """Sends a body in pieces. `then` says what the client does after the last: end, wait, go."""

    def __init__(self, *pieces, then="end", seconds=0):
        self.pieces, self.then, self.seconds = pieces, then, seconds
        self.answer = None

    async def __call__(self):
        return b"".join([piece async for piece in self])

    async def __aiter__(self):
        for piece in self.pieces:
            await asyncio.sleep(self.seconds)
            yield piece
        if self.then == "wait":
            await asyncio.Future()

    def response_bytes(self, status, headers, body):
        self.answer = status, dict(headers), body

    def response_stream(self, status, headers):
        self.response_bytes(status, headers, b"")
        return self

    async def send_bytes(self, piece):
        if self.then == "go":
            raise ProtocolClosed
        status, headers, body = self.answer
        self.answer = status, headers, body + piece


@pytest.fixture(scope="module")
def server():
    loop = asyncio.new_event_loop()
    application = rsgi.Application()
    application.__rsgi_init__(loop)
    yield application, loop
    loop.close()


@pytest.fixture
def ask(server):
    """Send a request with its body in pieces; what came back, None if that was nothing."""

    application, loop = server

    def ask(asked, *pieces, **client):
        length = sum(map(len, pieces))
        if length and not {"content-length", "transfer-encoding"} & dict(asked.headers).keys():
            asked.headers.append(("content-length", str(length)))
        protocol = Protocol(*pieces, **client)
        loop.run_until_complete(application.__rsgi__(asked, protocol))
        return protocol.answer

    return ask


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

    monkeypatch.setattr(rsgi, "_django", echo)
    return asked


def test_a_body_in_pieces_arrives_whole(ask, environs):
    large = rsgi.IN_MEMORY
    assert ask(scope(content_type=FORM), b"ab", b"", b"cd")[2] == b"abcd"
    assert ask(scope(content_type=FORM), b"a" * large, b"b")[2] == b"a" * large + b"b"
    assert [environ == "closed" or environ["CONTENT_LENGTH"] for environ in environs] == [
        *("4", True),
        *(str(large + 1), True),
    ]


def test_a_request_is_told_as_it_came(ask, environs):
    asked = scope("/café/x", cookie="a=1", host="here", accept="text/html")
    asked.headers += [("cookie", "b=2"), ("accept", "*/*"), ("x_forwarded_proto", "https")]
    ask(asked)
    [environ, _] = environs
    expected = {
        "REQUEST_METHOD": "POST", "PATH_INFO": "/cafÃ©/x", "QUERY_STRING": "a=1",
        "REMOTE_ADDR": "127.0.0.9", "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8000",
        "HTTP_COOKIE": "a=1; b=2", "HTTP_ACCEPT": "text/html,*/*", "HTTP_HOST": "here",
    }  # fmt: skip
    assert expected.items() <= environ.items()
    # Only a proxy may say it, and it says it with `-`.
    assert "HTTP_X_FORWARDED_PROTO" not in environ


def test_a_body_that_trickles_has_no_more_time_than_one_that_stops(ask, settings):
    settings.BODY_SECONDS = 0.05
    pieces = [b"a" * rsgi.IN_MEMORY, *[b"b"] * 2_000]
    status, *_ = ask(scope("/api/runs"), *pieces, seconds=0.01)
    assert status == 408


@pytest.mark.parametrize("length", [50, 500_000])
def test_a_body_that_comes_too_slowly_is_refused(ask, settings, length):
    settings.BODY_SECONDS = 0.05
    asked = scope("/api/runs", content_length=length)
    status, headers, body = ask(asked, b"some", then="wait")
    assert (status, headers["content-type"]) == (408, "application/json")
    assert "not all here" in json.loads(body)["detail"]
    asked = scope("/login/", content_type=FORM, content_length=length)
    status, headers, body = ask(asked, b"some", then="wait")
    assert (status, b"<h1>Too slow</h1>" in body) == (408, True)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "set-cookie" not in headers


def test_a_large_body_that_comes_steadily_gets_more_time(ask, settings, environs, monkeypatch):
    settings.BODY_SECONDS = 0.05
    monkeypatch.setattr(rsgi, "IN_MEMORY", 100)
    monkeypatch.setattr(rsgi, "BYTES_A_SECOND", 1)
    ask(scope(), *[b"x" * 100] * 3, seconds=0.04)
    assert environs[0]["CONTENT_LENGTH"] == "300"


def test_a_body_that_is_too_large_is_refused_before_it_is_here(ask, settings):
    settings.MOST_BODY = 2**20
    status, _, body = ask(scope("/api/runs", content_length=2**20 + 1), b"x", then="wait")
    assert status == 413
    assert json.loads(body) == {"detail": "A request may have at most 1 MB."}


def test_a_body_without_a_length_is_refused_since_it_may_be_cut_off(ask):
    asked = scope("/api/runs", transfer_encoding="chunked")
    status, _, body = ask(asked, b"x", then="wait")
    assert (status, "Content-Length" in json.loads(body)["detail"]) == (411, True)


def test_only_so_many_uploads_fill_the_disk_at_once(ask, settings, environs):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE, settings.UPLOADS_AT_ONCE = 1000, 1
    assert ask(scope(), b"x" * 2000)[0] == 200
    rsgi._uploads.add(object())
    try:
        ask(scope(), b"x" * 2000)
        ask(scope(), b"x" * 1000)
    finally:
        rsgi._uploads.clear()
    _, _, refused, _, small, _ = environs
    assert refused[REFUSED][0] == 503
    assert REFUSED not in small


@pytest.mark.parametrize("length", [50, 500_000])
def test_a_body_that_was_cut_off_goes_nowhere(ask, environs, length):
    assert ask(scope(content_length=length), b"half") is None
    assert environs == []


def test_a_request_without_a_body_does_not_wait_for_one(ask, environs):
    assert ask(scope(method="GET"), then="wait")[0] == 200
    assert ask(scope(), then="wait")[0] == 200


@pytest.mark.parametrize("then, sent", [("end", b"onetwo"), ("go", b"")])
def test_an_answer_in_pieces_is_sent_piece_by_piece_and_closed(ask, monkeypatch, then, sent):
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

    monkeypatch.setattr(rsgi, "_django", streaming)
    assert ask(scope(method="GET"), then=then)[2] == sent
    assert closed == [True]


def test_a_failure_of_ours_is_logged_and_left_to_the_server(ask, monkeypatch, caplog):
    def broken(environ, start_response):
        raise ZeroDivisionError

    monkeypatch.setattr(rsgi, "_django", broken)
    assert ask(scope(method="GET")) is None
    assert "a request was not answered" in caplog.text
