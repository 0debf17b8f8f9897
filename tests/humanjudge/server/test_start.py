"""What a start prints, and how the parts of a test run find their servers."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.conf import settings

from humanjudge.management.commands.up import base_url, is_well, summary
from tests.plugin import numbered_broker

ACCESS = {
    "board": [{"name": "Drawings", "path": "/runs/1/"}, {"name": "Answers", "path": "/runs/2/"}],
    "invites": [{"name": "Drawings", "path": "/join/x/"}, {"name": "Jokes", "path": "/join/y/"}],
    "admin": {"username": "admin", "password": "secret", "path": "/admin/"},
    "api_key": "hj_key",
    "api_key_scopes": ["read", "vote"],
    "cli_key": "hj_other",
}


def test_the_summary_names_every_way_in():
    text = summary(ACCESS, "http://127.0.0.1:8000")
    for wanted in (
        "Board               Drawings         http://127.0.0.1:8000/runs/1/\n",
        "                    Answers          http://127.0.0.1:8000/runs/2/\n",
        "Vote                Drawings         http://127.0.0.1:8000/join/x/\n",
        "                    Jokes            http://127.0.0.1:8000/join/y/\n",
        "user admin, password secret\n",
        "API key             hj_key\n",
        "may read and vote; for one that may manage runs too:\n",
        "                    http://127.0.0.1:8000/admin/voting/apikey/add/\n",
        "Command line        .venv/bin/humanjudge --help\n",
        f"{settings.DATA}/access.txt\n",
    ):
        assert wanted in text


def test_the_summary_without_a_demo_still_says_where():
    text = summary({}, "http://127.0.0.1:8000")
    assert "http://127.0.0.1:8000/admin/" in text
    assert "password" not in text


def test_the_summary_leaves_out_a_password_it_does_not_know():
    admin = {"username": None, "password": None, "path": "/admin/"}
    assert "None" not in summary({**ACCESS, "admin": admin}, "http://x")


@pytest.mark.parametrize(
    "host,url",
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
        ("judge.example.org", "http://judge.example.org:80"),
    ],
)
def test_the_address_for_a_browser_on_this_machine(host, url):
    assert base_url(host, 80) == url


@pytest.mark.parametrize(
    "url,numbered",
    [
        ("redis+socket:///tmp/s?virtual_host=0", "redis+socket:///tmp/s?virtual_host=3"),
        ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379/3"),
        ("redis://:secret@127.0.0.1:6379/2", "redis://:secret@127.0.0.1:6379/5"),
    ],
)
def test_each_worker_of_a_test_run_has_a_broker_database_of_its_own(url, numbered):
    assert numbered_broker(url, 3) == numbered


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()
        self.wfile.write(b'{"status": "ok"}')

    def log_message(self, *_):
        pass


def test_a_proxy_is_not_asked_whether_the_server_of_this_machine_is_well(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with HTTPServer(("127.0.0.1", 0), Healthy) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = base_url("127.0.0.1", server.server_port)
        assert is_well(url)
        thread.join()
    assert not is_well(url)
