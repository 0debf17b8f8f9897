"""Requests that vote, made beforehand: through the page's ballots and through the API."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bench.lib.clients import form, request

if TYPE_CHECKING:
    from tests.helpers.scene import Scene
    from voting.models import Voter


def through_the_page(scene: Scene, port: int, voter: int, pairs: Iterable[int]) -> list[bytes]:
    """One voter's requests: the ballots of these pairs, posted as the page posts them."""
    from voting.ballot import signed_form

    cookies, token = _open_page(scene, port, scene.voters[voter])
    path = f"/vote/{scene.queue.pk}/ballot"
    return [
        form(
            path,
            {
                "csrfmiddlewaretoken": token,
                "ballot": signed_form.issue(scene.ballot(voter, pair)),
                "choice": "left" if pair % 3 else "right",
                "elapsed_ms": "1234",
            },
            Cookie=cookies,
        )
        for pair in pairs
    ]


def _open_page(scene: Scene, port: int, voter: Voter) -> tuple[str, str]:
    """Open the voting page as this voter; the cookies and the form's CSRF token."""
    from django.http import HttpResponse

    from voting.people.voters import remember

    identity = next(iter(remember(HttpResponse(), voter).cookies.values()))
    cookie = f"{identity.key}={identity.coded_value}"
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("GET", f"/vote/{scene.queue.pk}/", headers={"Cookie": cookie})
    reply = client.getresponse()
    page = reply.read().decode()
    client.close()
    if reply.status != 200:
        raise RuntimeError(f"the voting page answered {reply.status}")
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    csrf = re.search(r"csrftoken=(\w+)", reply.headers["Set-Cookie"])
    if token is None or csrf is None:
        raise RuntimeError("the voting page has no CSRF token")
    return f"{cookie}; csrftoken={csrf[1]}", token[1]


def through_the_api(scene: Scene, key: str, pairs: Iterable[int]) -> list[bytes]:
    """One key's requests to vote on these pairs."""
    path = f"/api/runs/{scene.run.pk}/judge-eval/vote"
    return [
        request(
            "POST",
            path,
            json.dumps(
                {"task_id": str(scene.pairs[pair].pk), "winner": "A" if pair % 3 else "B"}
            ).encode(),
            Content_Type="application/json",
            Authorization=f"Bearer {key}",
        )
        for pair in pairs
    ]
