"""A result can be cited: on a run's pages and on its report, and no name breaks the BibTeX."""

import html
import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.test import Client

from humanjudge.core.citation import Citation, version
from judge_eval.board import cache
from judge_eval.models import Findings
from reports.report.views.shares import make_share
from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all, user_client

ROOT = Path(__file__).resolve().parents[3]
AT = datetime(2026, 11, 3, tzinfo=UTC)


def cited(title, address="https://x.example/r/1/"):
    return Citation(title, address, AT, 412, "3f9ac0de5b7d" + 52 * "0", "0.1.0")


@pytest.mark.parametrize(
    "title, written",
    [
        ("A & B_2: 50%", r"A \& B\_2: 50\%"),
        ("}, note = {evil", r"\}, note = \{evil"),
        ("a\\input{x}\n\t@misc", r"a\textbackslash{}input\{x\} @misc"),
        ("~^$#", r"\textasciitilde{}\textasciicircum{}\$\#"),
        ("Bär 猫", "Bär 猫"),
    ],
)
def test_a_title_stays_inside_its_field(title, written):
    bibtex = cited(title).bibtex
    assert f"  title = {{{{{written}}}}},\n" in bibtex
    # Every brace that is not escaped is closed, and the entry ends where it should.
    plain = re.sub(r"\\[{}]", "", bibtex)
    depth = [plain[: n + 1].count("{") - plain[: n + 1].count("}") for n in range(len(plain))]
    assert (depth[-1], min(depth[:-1])) == (0, 0)
    assert depth.index(1) < depth.index(0, depth.index(1)) == len(plain) - 1


def test_an_address_cannot_end_its_field():
    assert "url = {https://x.example/%7D%5C%7B}" in cited("x", "https://x.example/}\\{").bibtex


def test_the_product_itself_can_be_cited_by_the_version_that_it_has():
    stated = (ROOT / "CITATION.cff").read_text()
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {packaged}\n" in stated


@pytest.mark.django_db
def test_pages_of_a_run_and_its_report_say_how_to_cite_it():
    run = make_run(shared=True)
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    Findings.objects.get_or_create(run=run, part="")
    cache.compute(run.pk, "")
    project, client = run.queue.project, user_client()
    short = project.ledger_head[:12]
    _, token = make_share(project, run, None)
    for who, path, address in (
        (client, f"/runs/{run.pk}/", f"/runs/{run.pk}/"),
        (client, f"/runs/{run.pk}/data/", f"/runs/{run.pk}/"),
        (Client(), f"/r/{token}/", f"/r/{token}/"),
    ):
        page = html.unescape(who.get(path).content.decode())
        said = re.search(r'<textarea id="cite-text".*?>(.*?)</textarea>', page, re.DOTALL)[1]
        end = f"Ledger entry {project.head_seq}, head {short}. http://testserver{address}"
        assert said.startswith(f"{run.name}. HumanJudge {version()}, ")
        assert said.endswith(end)
        assert f"@misc{{humanjudge-{short}," in page
