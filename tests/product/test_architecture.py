"""The picture of the house in docs/architecture.md shows every room, and imports go down in it."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.helpers.addresses import page_addresses

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
ROOF = {
    "humanjudge.api",
    "humanjudge.notebook",
    "humanjudge.server.backup",
    "humanjudge.server.checks",
    "humanjudge.server.health",
}
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
FOLDERS = sorted(
    child for app in APPS for child in GRAPH.find_children(app) if child.split(".")[1] not in WIRING
)


def floor_of(module):
    """The line of a module: its own, else that of its name in any folder, else its folder's."""
    app, *parts = module.split(".")
    names = [f"{app}.{'.'.join(parts[:end])}" for end in range(len(parts), 1, -1)]
    names += [f"{app}.*.{part}" for part in parts[1:]]
    names += [f"{app}.{parts[0]}"] if parts else []
    return next((FLOOR[name] for name in names if name in FLOOR), len(FLOOR))


def upward_imports(folder):
    for importer in {folder, *GRAPH.find_descendants(folder)} - ROOF:
        for imported in GRAPH.find_modules_directly_imported_by(importer) - GROUND:
            if floor_of(imported) < floor_of(importer):
                yield f"{importer} -> {imported}"


def test_every_folder_is_drawn_and_what_is_drawn_stands():
    assert [folder for folder in FOLDERS if folder not in FLOOR] == []
    assert [room for room in FLOOR if "*" not in room and room not in GRAPH.modules] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_go_down(folder):
    assert list(upward_imports(folder)) == []


def test_no_modules_need_each_other():
    imports = {name: GRAPH.find_modules_directly_imported_by(name) for name in GRAPH.modules}
    TopologicalSorter(imports).prepare()


def test_every_address_has_its_place_in_the_table():
    text = (ROOT / "docs/architecture.md").read_text().split("## Where every address stands")[1]
    rows = [line for line in text.split("\n## ")[0].splitlines() if line.startswith("| ")]
    told = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)]
    assert sorted(told) == sorted(pattern.name for _, pattern in page_addresses())
