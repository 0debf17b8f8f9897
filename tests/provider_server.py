"""The server of the local model provider: OpenAI's protocol on asyncio streams.

What it answers is in tests.provider_behaviour; tests hold it by tests.provider.
"""

import asyncio
import contextlib
import hashlib
import json
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from http import HTTPMethod

from tests.provider_behaviour import MODES, Conduct, answer, fate
from tests.provider_models import Answer, Request, error, reply

HOST = "127.0.0.1"
# Bodies of the newest requests are kept to be looked at; the rest of the log is short.
BODIES_KEPT = 200


class Gauge:
    """How many requests are being answered, and the most there ever were."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.peak: Counter[str] = Counter()

    @contextlib.contextmanager
    def counting(self, names: set[str]) -> Iterator[None]:
        for name in names:
            self.now[name] += 1
            self.peak[name] = max(self.peak[name], self.now[name])
        try:
            yield
        finally:
            self.now.subtract(names)

    def forget_peaks(self) -> None:
        self.peak = +self.now


class Server:
    """The protocol over keep-alive connections, on one event loop."""

    def __init__(self, key: str | None = None, **conduct) -> None:
        self.key = key
        self.conduct = Conduct(**conduct)
        self.gauge = Gauge()
        self.connections = 0
        self._forget()

    def _forget(self) -> None:
        self.requests: list[dict] = []
        self.counts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.modes: Counter[str] = Counter()
        self.gauge.forget_peaks()

    async def run(
        self,
        stop: asyncio.Event,
        ready: Callable[[int], None],
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Listen until told to stop; the end of the loop cancels what is under way."""
        listening = await asyncio.start_server(self._converse, HOST, port, backlog=1024, ssl=tls)
        try:
            ready(listening.sockets[0].getsockname()[1])
            await stop.wait()
        finally:
            listening.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._serve(await _receive(reader), writer):
                pass
            writer.close()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            # The other side hung up, or this one stops: no time for a farewell, as TLS would have.
            writer.transport.abort()
        finally:
            self.connections -= 1

    async def _serve(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; say whether the connection can go on."""
        if request.path == "/_control":
            return await _send(writer, self._set(request.body), 0)
        if request.path == "/_log":
            return await _send(writer, reply(self.log()), 0)
        with self.gauge.counting({"", request.model}):
            came = time.monotonic()
            made, digest = self._decide(request)
            wait_ms = self.conduct.latency_ms if made.wait_ms is None else made.wait_ms
            if wait_ms:
                # What it took to think of an answer is a part of the wait.
                await asyncio.sleep(came + wait_ms / 1000 - time.monotonic())
            open_still = await _send(writer, made, self.conduct.drip_ms / 1000)
            self.answered[digest] += made.status == 200 and made.how == "whole"
            return open_still

    def _set(self, wanted: dict) -> Answer:
        if wanted.pop("reset", False):
            self._forget()
        if "mode" in wanted:
            wanted.setdefault("times", None)
        unknown = wanted.keys() - {field.name for field in fields(Conduct)}
        modes = {wanted.get("mode", "ok"), *wanted.get("rates", {})}
        if unknown or not modes <= MODES.keys():
            return error(400, f"unknown: {sorted(unknown | (modes - MODES.keys()))}")
        self.conduct = replace(self.conduct, **wanted)
        return reply(asdict(self.conduct))

    def _decide(self, request: Request) -> tuple[Answer, str]:
        digest = hashlib.sha256(request.content).hexdigest()
        self.counts[digest] += 1
        mode = fate(self.conduct, request.model, digest, self.counts[digest])
        if mode == self.conduct.mode and self.conduct.times is not None:
            mode = mode if self.conduct.times > 0 else "ok"
            self.conduct.times -= 1
        self.modes[mode] += 1
        expected = f"Bearer {self.key}" if self.key else request.authorization
        authorized = bool(request.authorization) and request.authorization == expected
        self._note(request, digest, mode, authorized=authorized)
        if self.key and not authorized:
            return error(401, "Incorrect API key provided.", "invalid_api_key"), digest
        return answer(request, self.conduct, mode), digest

    def _note(self, request: Request, digest: str, mode: str, *, authorized: bool) -> None:
        self.requests.append(
            {
                "path": request.path,
                "model": request.model,
                "hash": digest,
                "mode": mode,
                "authorized": authorized,
                "headers": request.headers,
                "body": request.body,
            }
        )
        if len(self.requests) > BODIES_KEPT:
            self.requests[-BODIES_KEPT - 1].pop("body", None)

    def log(self) -> dict:
        models = {name: count for name, count in self.gauge.peak.items() if name}
        return {
            "requests": self.requests,
            "counts": self.counts,
            "answered": +self.answered,
            "modes": self.modes,
            "now": self.gauge.now[""],
            "peak": self.gauge.peak[""],
            "peaks": models,
            "connections": self.connections,
        }


async def _receive(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    key = headers.pop("api-key", "")
    authorization = headers.pop("authorization", f"Bearer {key}" if key else "")
    body = json.loads(content) if content and method == HTTPMethod.POST else {}
    return Request(path, content, authorization, headers, body)


async def _send(writer: asyncio.StreamWriter, made: Answer, pause: float) -> bool:
    headers = {"Content-Type": "application/json", "Content-Length": str(len(made.content))}
    lines = [f"{name}: {value}" for name, value in (headers | made.headers).items()]
    head = "\r\n".join([f"HTTP/1.1 {made.status} {made.phrase}", *lines, "", ""]).encode()
    if made.how == "cut":
        writer.write(head + made.content[: len(made.content) // 2])
        await writer.drain()
        return False
    quick, slow = head + made.content, b""
    if made.how == "drip":
        quick, slow = head, made.content
    elif made.how == "drip_head":
        quick, slow = b"", head + made.content
    writer.write(quick)
    for byte in slow:
        await asyncio.sleep(pause)
        writer.write(bytes([byte]))
        await writer.drain()
    await writer.drain()
    return True
