"""Templates of an app include, extend and link only downward: what is below knows nothing above."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# From the bottom to the top; what is in no folder of an app is humanjudge's.
APPS = ["humanjudge", "voting", "judge_eval", "reports"]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def floor(folder):
    return APPS.index(folder) if folder in APPS else 0


PAGES = {
    name: floor(app)
    for app in APPS
    for name in re.findall(r'name="([\w-]+)"', (ROOT / app / "urls.py").read_text())
}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_knows_only_what_is_below(template):
    own = floor(template.relative_to(ROOT / "templates").parts[0])
    text = template.read_text()
    parts = re.findall(r"{%-? *(?:include|extends) +[\"']([^\"']+)", text)
    links = re.findall(r"{%-? *url +[\"']([^\"']+)", text)
    assert [part for part in parts if floor(part.split("/")[0]) > own] == []
    assert [link for link in links if PAGES.get(link, 0) > own] == []
    assert {"run", "runs", "vote", "login"} <= set(PAGES)


def test_voting_knows_nothing_of_runs():
    for template in (ROOT / "templates/voting").rglob("*.html"):
        assert ".run" not in template.read_text(), template.name
