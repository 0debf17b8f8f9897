"""A model provider on this machine: OpenAI's protocol, every fault on demand, no network.

In the process of a test, or in one of its own (a bench, or a test that takes it away):

    with provider() as model:
        endpoint = Endpoint("local", model.base_url, "sk-any")
        model.control(mode="429", retry_after=1, times=2)
        ...
        assert model.log()["counts"]

    with provider_process() as model:
        model.kill()
        model.start()  # on the same port, with nothing remembered

`python -m tests.provider --port-file F` is the same by hand. Its modes and settings are in
tests.provider_behaviour, what its models say is in tests.provider_models. Standard library only.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import queue
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.provider_server import HOST, Server

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 180


class Provider:
    """A provider that runs, in this process or in another: what tests and benches hold."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.port}/v1"

    def control(self, **conduct) -> dict:
        """Set how it behaves; what is not named stays. `reset=True` empties the log."""
        return self._ask("POST", "/_control", conduct)

    def answers(self, body: object, *, status: int = 200, headers: dict | None = None) -> None:
        """Give this very reply from now on."""
        canned = {"status": status, "headers": headers or {}, "body": body}
        self.control(mode="canned", canned=canned)

    def log(self) -> dict:
        """Return requests (without keys), counts by hash of the body, modes met and gauges."""
        return self._ask("GET", "/_log")

    @property
    def requests(self) -> list[dict]:
        return self.log()["requests"]

    def _ask(self, method: str, path: str, body: dict | None = None) -> dict:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=START_SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body) if body is not None else None)
            answered = connection.getresponse()
            told = answered.read().decode()
            if answered.status != 200:
                raise ValueError(told)
            return json.loads(told)


@contextlib.contextmanager
def provider(
    key: str | None = None, tls: ssl.SSLContext | None = None, **conduct
) -> Iterator[Provider]:
    """Run a provider in a thread of this process. With a key it refuses every other.

    With `tls` it answers on https://localhost, and cannot be controlled once it runs.
    """
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    ports: queue.Queue[int] = queue.Queue()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(Server(key, **conduct).run(stop, ports.put, tls=tls))

    thread = threading.Thread(target=run, name="provider", daemon=True)
    thread.start()
    try:
        yield Provider(ports.get(timeout=START_SECONDS))
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


class ProviderProcess(Provider):
    """A provider in a process of its own, to be taken away and brought back on its port."""

    def __init__(self, key: str | None = None, **conduct) -> None:
        super().__init__(0)
        self._options = ["--conduct", json.dumps(conduct), *(["--key", key] if key else [])]
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        from tests.servers import lifeline  # what it imports, the provider itself does not need

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "port")
            place = ["--port", str(self.port), "--port-file", str(file)]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.provider", *place, *self._options],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            lifeline().add(self._process.pid)
            deadline = time.monotonic() + START_SECONDS
            while not file.exists():
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the provider does not start")
                time.sleep(0.01)
            self.port = int(file.read_text())

    def kill(self) -> None:
        """End it as a power cut would; nothing when it does not run."""
        from tests.servers import lifeline

        if self._process:
            self._process.kill()
            self._process.wait()
            lifeline().remove(self._process.pid)
            self._process = None

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid


@contextlib.contextmanager
def provider_process(key: str | None = None, **conduct) -> Iterator[ProviderProcess]:
    """Run a provider in a process of its own."""
    process = ProviderProcess(key, **conduct)
    process.start()
    try:
        yield process
    finally:
        process.kill()


async def _main(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def ready(port: int) -> None:
        if options.port_file:
            # Whoever waits for the file must not find it empty.
            half = options.port_file.with_suffix(".half")
            half.write_text(str(port))
            half.replace(options.port_file)
        else:
            print(f"http://{HOST}:{port}/v1", flush=True)

    await Server(options.key, **json.loads(options.conduct)).run(stop, ready, options.port)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path)
    parser.add_argument("--key", help="refuse every other key")
    parser.add_argument("--conduct", default="{}", help="settings as JSON, as for /_control")
    asyncio.run(_main(parser.parse_args()))
