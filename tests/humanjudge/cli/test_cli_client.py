"""How the command line finds its server and key, and what it makes of servers that misbehave."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import humanjudge
from humanjudge.cli import client
from humanjudge.cli.client import Client, Code, Failed
from humanjudge.cli.main import complete, main
from humanjudge.core import environment


@contextmanager
def server(answer):
    """A web server; `answer` gets each request's handler. Yields its URL and the paths asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            answer(self)

        do_POST = do_GET  # noqa: N815  http.server names it so

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}", asked
        finally:
            httpd.shutdown()
            thread.join()


def replying(status, body, **headers):
    def answer(handler):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def failure(answer):
    with server(answer) as (url, _), pytest.raises(Failed) as failed:
        Client(url, "hj_key").get("/runs")
    return failed.value.code, str(failed.value).replace(url, "URL")


@pytest.mark.parametrize(
    "answer, code, words",
    [
        (replying(200, b"<html>"), Code.UNREACHABLE, "no HumanJudge answers at URL"),
        (replying(404, b"<html>"), Code.MISSING, "Not Found"),
        (replying(500, b"<html>"), Code.UNREACHABLE, "500: Internal Server Error"),
        (replying(503, b'{"detail": "later"}'), Code.UNREACHABLE, "503: later"),
        (replying(429, b'{"detail": "slower"}'), Code.REFUSED, "429: slower"),
        (replying(401, b'{"detail": "Unauthorized"}'), Code.NOT_ALLOWED, "Unauthorized"),
        (replying(413, b'{"detail": "too large"}'), Code.INVALID, "too large"),
        (replying(409, b"[]"), Code.CONFLICT, "Conflict"),
        (lambda handler: handler.wfile.write(b"hello?\r\n\r\n"), Code.UNREACHABLE, "cannot reach"),
        (lambda handler: None, Code.UNREACHABLE, "cannot reach URL: "),
    ],
)
def test_whatever_a_server_says_has_a_code_and_words(answer, code, words):
    said = failure(answer)
    assert said[0] == code
    assert words in said[1]


def test_a_reply_that_breaks_off_is_no_reply():
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b'{"runs"')

    assert failure(answer)[0] == Code.UNREACHABLE


def test_a_server_that_says_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(client, "SECONDS", 0.2)
    over = threading.Event()
    try:
        with server(lambda handler: over.wait(30)) as (url, _):
            with pytest.raises(Failed, match="timed out"):
                Client(url, "hj_key")._json("GET", "/runs", seconds=0.2)
            over.set()
    finally:
        over.set()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_key_is_not_carried_to_where_a_redirect_leads(status):
    with server(replying(200, b"{}")) as (elsewhere, asked_there):
        moved = replying(status, b"", Location=f"{elsewhere}/api/runs")
        with server(moved) as (url, asked), pytest.raises(Failed, match="has moved to"):
            Client(url, "hj_key").post("/runs", {})
    assert [key for _, key in asked] == ["Bearer hj_key"]
    assert asked_there == []


def test_a_proxy_is_not_asked_for_a_server_of_this_machine(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with server(replying(200, b"{}")) as (url, _):
        assert Client(url, "hj_key").get("/runs") == {}


def test_the_parts_of_a_form_arrive_as_they_were_sent(tmp_path):
    file = tmp_path / 'a "file", ü.csv'
    file.write_bytes(b"x" * 100_000)
    received = []

    def answer(handler):
        received.append(handler.rfile.read(int(handler.headers["Content-Length"])))
        replying(200, b"{}")(handler)

    with server(answer) as (url, _):
        Client(url, "hj_key").upload("/runs/import", [file, file], {"name": "É|"})
    [body] = received
    assert body.count(b"x" * 100_000) == 2
    assert 'filename="a %22file%22, ü.csv"'.encode() in body
    assert 'name="name"\r\n\r\nÉ|\r\n'.encode() in body


def test_nothing_of_the_server_is_loaded_for_it():
    """It starts in a moment, and runs where there is no database."""
    code = "import sys, humanjudge.cli.main; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=environment.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {
        "django",
        "celery",
        "ninja",
        "judge_eval",
        "reports",
        "httpx2",
        "httpcore2",
    }


# --- where --------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project without a server, in an environment that says nothing of one."""
    plain = {name: text for name, text in os.environ.items() if "HUMANJUDGE" not in name}
    monkeypatch.setattr(os, "environ", plain)
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    return tmp_path


def leave(data, url="http://127.0.0.1:8000", **access):
    data.mkdir(exist_ok=True)
    (data / "url").write_text(f"{url}\n")
    (data / "access.json").write_text(json.dumps(access))


def found():
    there = client.connect()
    return there.url, there._http.headers["Authorization"].removeprefix("Bearer ")


def test_what_a_start_left_is_found(root):
    leave(root / "var", api_key="hj_votes", cli_key="hj_all")
    assert found() == ("http://127.0.0.1:8000", "hj_all")


@pytest.mark.parametrize("folder", ["elsewhere", "deep/er"])
def test_the_data_folder_may_be_another(root, folder):
    (root / "deep").mkdir()
    leave(root / folder, cli_key="hj_there")
    os.environ["HUMANJUDGE_DATA"] = folder
    assert found()[1] == "hj_there"


def test_the_environment_comes_first_and_the_env_file_before_what_was_left(root):
    leave(root / "var", cli_key="hj_left")
    (root / ".env").write_text("HUMANJUDGE_API_KEY=hj_file\nHUMANJUDGE_DATA=nowhere\n")
    os.environ["HUMANJUDGE_URL"] = "https://judge.example.org/"
    assert found() == ("https://judge.example.org", "hj_file")
    os.environ["HUMANJUDGE_API_KEY"] = "hj_given"
    assert found()[1] == "hj_given"


def test_the_key_of_this_machine_is_for_this_machine(root):
    leave(root / "var", cli_key="hj_left")
    os.environ["HUMANJUDGE_URL"] = "https://judge.example.org"
    with pytest.raises(Failed, match="HUMANJUDGE_API_KEY must be set too"):
        found()
    os.environ["HUMANJUDGE_URL"] = "http://127.0.0.1:8000/"
    assert found()[1] == "hj_left"
    (root / "var" / "url").unlink()
    with pytest.raises(Failed, match="HUMANJUDGE_API_KEY must be set too"):
        found()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cli_key": 5}'])
def test_a_file_of_keys_that_holds_none_is_said(root, text):
    leave(root / "var")
    (root / "var" / "access.json").write_text(text)
    with pytest.raises(Failed, match="set HUMANJUDGE_API_KEY") as failed:
        found()
    assert failed.value.code == Code.USAGE


@pytest.mark.parametrize("url", ["judge", "ftp://x", "http://", "file:///etc/passwd", "http://[x"])
def test_an_address_that_is_none_is_said(root, url):
    os.environ |= {"HUMANJUDGE_URL": url, "HUMANJUDGE_API_KEY": "hj_key"}
    with pytest.raises(Failed, match="HUMANJUDGE_URL"):
        found()


@pytest.mark.parametrize("key", ["hj_ü", "hj_\n", "hj_a\r\nHost: b"])
def test_a_key_that_no_header_can_hold_is_refused(root, key):
    os.environ |= {"HUMANJUDGE_URL": "http://127.0.0.1", "HUMANJUDGE_API_KEY": key}
    with pytest.raises(Failed, match="HUMANJUDGE_API_KEY"):
        found()


def test_an_accident_is_one_line_too(root, monkeypatch, capsys):
    monkeypatch.setattr("humanjudge.cli.commands.connect", lambda: 1 // 0)
    assert main(["list-runs"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "",
        "error|ZeroDivisionError: integer division or modulo by zero\n",
    )


def test_it_says_its_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"humanjudge {humanjudge.__version__}\n"


def test_a_shell_completes_commands(monkeypatch, capsys):
    assert complete("bash_source") == 0
    assert "complete" in capsys.readouterr().out
    monkeypatch.setenv("COMP_WORDS", "humanjudge variant-a")
    monkeypatch.setenv("COMP_CWORD", "1")
    complete("bash_complete")
    assert capsys.readouterr().out.split() == ["plain,variant-add", "plain,variant-ask"]


def test_a_mistyped_command_names_the_nearest(capsys):
    assert main(["import-ru"]) == 2
    assert "Did you mean 'import'?" in capsys.readouterr().err
