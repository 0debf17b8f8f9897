"""A receiver of webhooks on loopback: it keeps what came, and answers as it is told to."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode = "ok"
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/hook"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.append((dict(self.headers), body))
        getattr(self, self.server.mode)()

    def ok(self):
        self._answer(204)

    def error(self):
        self._answer(500, b"it broke\x00 here " + b"x" * 5000)

    def late(self):
        """The head of an answer, and its body a moment later, from a server that then hangs up."""
        self.send_response(500)
        self.end_headers()
        self.wfile.flush()
        time.sleep(0.1)
        self.wfile.write(b'{"it": "broke"}')

    def slow(self):
        time.sleep(1)
        self._answer(204)

    def redirect(self):
        self._answer(302, Location=self.server.url)

    def disconnect(self):
        self.connection.close()

    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

    def do_GET(self):
        raise AssertionError("a redirect was followed")
