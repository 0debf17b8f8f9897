"""Export on the page: every format with what it is for, for evaluators alone."""

import pytest

from humanjudge.cli import commands
from judge_eval.exports.files import FORMATS
from tests.helpers.imports import imported, pair, vote
from tests.helpers.pages import text_of
from tests.makers import make_run, user_client
from voting.models import Exposure

pytestmark = pytest.mark.django_db


def test_every_format_is_one_click_away_and_says_what_it_is_for():
    run, client = imported(pair(1), vote(1, "zzz-ann", "A")), user_client()
    page = client.get(f"/runs/{run.pk}/data/")
    for name, chosen in FORMATS.items():
        assert chosen.purpose in text_of(page)
        assert f'href="/runs/{run.pk}/export/{name}" download' in page.content.decode()
        file = client.get(f"/runs/{run.pk}/export/{name}")
        assert (file.status_code, file.headers["Content-Type"]) == (200, chosen.content_type)
        assert file.headers["Content-Disposition"].endswith(f'{chosen.ending}"')
        assert b"zzz" not in b"".join(file.streaming_content)
    for link in (f"/runs/{run.pk}/scores/", f"/runs/{run.pk}/tables/board.csv"):
        assert f'href="{link}"' in page.content.decode()
    assert client.get(f"/runs/{run.pk}/export/xml").status_code == 404


def test_the_command_line_has_every_format():
    assert {*commands.FORMATS} == {*FORMATS}


def test_a_format_that_would_be_empty_is_not_offered():
    item = {"item": "i1", "output": "An answer"}
    for kind, said, offered in (("pass_flag", "pass", {"kto"}), ("category", "spam", set())):
        run = imported(item, {"item": "i1", "voter": "ann", "vote": said}, vote_kind=kind)
        page = user_client().get(f"/runs/{run.pk}/data/").content.decode()
        links = {name for name in FORMATS if f"/export/{name}" in page}
        assert {*FORMATS} - links == {"dpo", "kto"} - offered


def test_who_has_exported_a_run_has_seen_it():
    run, client = make_run(pairs=2), user_client()
    client.get(f"/runs/{run.pk}/data/")
    assert not Exposure.objects.exists()
    client.get(f"/runs/{run.pk}/export/csv")
    assert Exposure.objects.filter(voter__user__username="owner").count() == 2
