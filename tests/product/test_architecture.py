"""The picture of the house in docs/architecture.md shows every room, and imports go down in it."""

import re
from pathlib import Path

import grimp
import pytest
from django.urls import URLPattern, get_resolver

ROOT = Path(__file__).resolve().parents[2]
APPS = ("reports", "judge_eval", "voting", "humanjudge")
# Django looks for these by name; they wire an app together and are imported by nothing else.
WIRING = {
    "__main__",
    "admin",
    "apps",
    "celery",
    "checks",
    "management",
    "migrations",
    "settings",
    "urls",
}
# The addresses and the health of the whole product: above every app.
ROOF = {f"humanjudge.{room}" for room in "api backup checks health notebook".split()}
# Made of the standard library and what every app uses: whoever verifies a ledger, or names a choice
# or a conversation, may use them.
GROUND = {"voting.items.choices", "voting.items.conversations", "voting.ledger.chain"}


def floors():
    """Return the rooms of each line of the picture, the highest first."""
    [picture] = re.findall(
        r"```house\n(.+?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL
    )
    app = ""
    for line in picture.splitlines():
        named, rooms = line[:12].strip(), line[12:].split()
        app = named or app
        if rooms:
            yield [f"{app}.{room}" for room in rooms]


FLOOR = {room: floor for floor, rooms in enumerate(floors()) for room in rooms}
GRAPH = grimp.build_graph(*APPS, cache_dir=None)


def room_of(module):
    return ".".join(module.split(".")[:2])


def upward_imports(room):
    for importer in {room, *GRAPH.find_descendants(room)} - ROOF:
        for imported in GRAPH.find_modules_directly_imported_by(importer) - GROUND:
            if FLOOR.get(room_of(imported), len(FLOOR)) < FLOOR[room]:
                yield f"{importer} -> {imported}"


def test_every_room_is_drawn():
    children = {child for app in APPS for child in GRAPH.find_children(app)}
    assert {child for child in children if child.split(".")[1] not in WIRING} == set(FLOOR)


@pytest.mark.parametrize("room", sorted(FLOOR))
def test_imports_go_down(room):
    assert list(upward_imports(room)) == []


def test_every_address_has_its_place_in_the_table():
    text = (ROOT / "docs/architecture.md").read_text().split("## Where every address stands")[1]
    rows = [line for line in text.split("\n## ")[0].splitlines() if line.startswith("| ")]
    told = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)]
    assert sorted(told) == sorted(names_of(get_resolver().url_patterns))


def names_of(patterns):
    """Return the names of all addresses but those of the admin and of the APIs."""
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name
        elif not pattern.namespace:
            yield from names_of(pattern.url_patterns)
