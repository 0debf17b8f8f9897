"""What a person needs after a start: where the board is, how to vote, how to get in."""

from pathlib import Path
from typing import Any

WIDTH = 78


def summary(access: dict[str, Any], url: str, data: Path) -> str:
    """The framed text that ends a start; `access` is what load_demo wrote to access.json."""
    lines = [("HumanJudge runs at", f"{url}/"), ("", "")]
    lines += _links("Board", access.get("board", []), url)
    lines += _links("Vote", access.get("invites", []), url)
    lines += _admin(access.get("admin") or {"path": "/admin/"}, url)
    if access.get("api_key"):
        lines += _api_key(access, url)
    lines += [("API docs", f"{url}/api/docs")]
    if access.get("cli_key"):
        lines += [("Command line", ".venv/bin/humanjudge --help")]
    lines += [("", "")]
    lines += [("Data and logs", str(data)), ("This again", str(data / "access.txt"))]
    lines += [("Stop", "Ctrl-C")]
    rule = "─" * WIDTH
    body = "\n".join(f"  {label:<19} {value}".rstrip() for label, value in lines)
    return f"\n{rule}\n{body}\n{rule}\n"


def _links(label: str, items: list[dict[str, str]], url: str) -> list[tuple[str, str]]:
    labels = [label] + [""] * len(items)
    return [
        (label, f"{item['name']:<10} {url}{item['path']}")
        for label, item in zip(labels, items, strict=False)
    ]


def _api_key(access: dict[str, Any], url: str) -> list[tuple[str, str]]:
    lines = [("API key", access["api_key"])]
    if scopes := access.get("api_key_scopes"):
        lines += [("", f"may {' and '.join(scopes)}; for one that may manage runs too:")]
        lines += [("", f"{url}/admin/voting/apikey/add/")]
    return lines


def _admin(admin: dict[str, str | None], url: str) -> list[tuple[str, str]]:
    lines = [("Admin", f"{url}{admin['path']}")]
    if admin.get("password"):
        lines += [("", f"user {admin['username']}, password {admin['password']}")]
    return lines
