"""Rows by the first characters of their identifier."""

from uuid import UUID

import pytest

from judge_eval.runs.queries import Ambiguous, by_prefix
from voting.models import Project

pytestmark = pytest.mark.django_db

FIRST = UUID("6f1c2a34-9b1e-4b6e-8f77-0d1c2b3a4f5e")
NEAR = UUID("6f1c2a34-9b1f-4b6e-8f77-0d1c2b3a4f5e")
FAR = UUID("ffffffff-ffff-ffff-ffff-ffffffffffff")


def projects(*identifiers):
    for pk in identifiers:
        Project.objects.create(pk=pk, name=str(pk))
    return Project.objects.all()


@pytest.mark.parametrize(
    "text",
    [
        str(FIRST),
        FIRST.hex,
        str(FIRST).upper(),
        "6f1c2a34",
        "6F1C2A34",
        "6f1c2a34-9b1e",
        "6f1c2a349b1e4b6e8f770d1c2b3a4f5",
    ],
)
def test_a_row_is_found_by_eight_digits_or_more(text):
    assert by_prefix(projects(FIRST, FAR), text).pk == FIRST


def test_the_last_identifier_of_all_is_found():
    assert by_prefix(projects(FIRST, FAR), "ffffffff").pk == FAR


@pytest.mark.parametrize(
    "text",
    [
        "",
        "6f1c2a5",
        "6f1c2a35",
        "6f1c2a3g",
        f"{FIRST}0",
        "-" * 36,
        "6f1c2a34%",
        "6f1c2a34\n",
        "٦f1c2a34",
        "\x00" * 8,
    ],
)
def test_everything_else_finds_nothing(text):
    assert by_prefix(projects(FIRST, FAR), text) is None


def test_what_begins_two_rows_is_ambiguous():
    rows = projects(FIRST, NEAR)
    with pytest.raises(Ambiguous, match="more than one begins with '6f1c2a34'"):
        by_prefix(rows, "6f1c2a34")
    assert by_prefix(rows, "6f1c2a34-9b1e").pk == FIRST


def test_only_the_given_rows_count():
    rows = projects(FIRST, NEAR).exclude(pk=NEAR)
    assert by_prefix(rows, "6f1c2a34").pk == FIRST
