"""A person without JavaScript's help: opens the pages over HTTP and posts what they contain."""

from __future__ import annotations

import re

import httpx


class HttpVoter:
    """Joins by an invite link, then votes with the ballots of the voting page."""

    def __init__(self, url: str, invite: str) -> None:
        self.client = httpx.Client(base_url=url, follow_redirects=True, timeout=30)
        self.client.post(invite, data={"csrfmiddlewaretoken": self._token(invite), "name": "P"})
        self.page = self._open(invite)

    def close(self) -> None:
        self.client.close()

    def _open(self, path: str) -> str:
        """Follow the link to the voting page, and remember where that is."""
        reply = self.client.get(path)
        reply.raise_for_status()
        self.queue = reply.url.path
        return reply.text

    def _token(self, path: str) -> str:
        reply = self.client.get(path)
        reply.raise_for_status()
        return re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', reply.text)[1]

    def ballots(self) -> list[str]:
        """The ballots of the pairs that the page shows now, each once."""
        self.page = self._open(self.queue)
        return list(dict.fromkeys(re.findall(r'name="ballot" value="([^"]+)"', self.page)))

    def vote(self, ballot: str, choice: str = "left", timeout: float = 30) -> httpx.Response:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.page)[1]
        return self.client.post(
            f"{self.queue}ballot",
            data={"csrfmiddlewaretoken": token, "ballot": ballot, "choice": choice},
            headers={"HX-Request": "true"},
            timeout=timeout,
        )
