"""Pictures are PNG bytes under their own hash, and drawings are never sent as they were written."""

from hashlib import sha256
from io import BytesIO

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from PIL import Image

from tests.makers import make_picture, make_run, make_voter, pairs_of, user_client, voter_client
from voting.pictures.store import store, stored_path

pytestmark = pytest.mark.django_db


def get(address, ending="png"):
    response = Client().get(f"/pictures/{address}.{ending}")
    return response, b"".join(response.streaming_content) if response.streaming else b""


def test_the_bytes_are_those_that_were_stored_under_their_hash():
    picture = make_picture("red")
    response, body = get(picture.png_sha256)
    assert response.status_code == 200
    assert response["Content-Type"] == "image/png"
    assert sha256(body).hexdigest() == picture.png_sha256
    assert body.startswith(b"\x89PNG")


def test_lists_get_a_small_picture_under_the_same_hash():
    drawn = Image.new("RGB", (1024, 512), "red")
    buffer = BytesIO()
    drawn.save(buffer, "PNG")
    response, body = get(store(buffer.getvalue()), "webp")
    assert response["Content-Type"] == "image/webp"
    with Image.open(BytesIO(body)) as small:
        assert (small.format, small.size) == ("WEBP", (128, 64))
        assert small.getpixel((64, 32))[0] > 240


@pytest.mark.parametrize("ending", ["png", "webp"])
def test_a_picture_may_be_kept_for_ever(ending):
    response, _ = get(make_picture("red").png_sha256, ending)
    assert set(response["Cache-Control"].split(", ")) == {"max-age=31536000", "public", "immutable"}
    assert "Cookie" not in response.get("Vary", "")
    assert not response.cookies


def test_no_browser_may_guess_another_type():
    response, _ = get(make_picture("red").png_sha256)
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in response["Content-Security-Policy"]


@pytest.mark.parametrize(
    "address", ["0" * 64, "F" * 64, "0" * 63, "0" * 65, "..%2F..%2Fhumanjudge.sqlite3", "x"]
)
@pytest.mark.parametrize("ending", ["png", "webp"])
def test_everything_else_is_not_found(address, ending):
    response, _ = get(address, ending)
    assert response.status_code == 404
    assert "immutable" not in response.get("Cache-Control", "")


@pytest.mark.parametrize("ending", ["svg", "html", "png/", ""])
def test_no_other_ending_is_served(ending):
    picture = make_picture("red")
    assert Client().get(f"/pictures/{picture.png_sha256}.{ending}").status_code == 404


def test_only_to_be_read():
    picture = make_picture("red")
    assert Client().post(f"/pictures/{picture.png_sha256}.png").status_code == 405
    response = Client().head(f"/pictures/{picture.png_sha256}.png")
    response.close()
    assert response.status_code == 200


def test_the_name_of_the_file_says_nothing_but_the_hash():
    picture = make_picture("red")
    assert default_storage.exists(stored_path(picture.png_sha256))
    response, _ = get(picture.png_sha256)
    assert response["Content-Disposition"] == f'inline; filename="{picture.png_sha256}.png"'


def test_a_drawing_is_shown_as_its_picture_and_never_inlined():
    run = make_run(shared=True)
    pair = pairs_of(run)[0]
    picture = make_picture("red", inferences=[pair.a, pair.b])
    voter = voter_client(make_voter(run))
    pages = [
        (voter.get(f"/vote/{run.queue_id}/"), "png"),
        (user_client().get(f"/runs/{run.pk}/pairs/"), "webp"),
        (user_client().get(f"/runs/{run.pk}/pairs/{pair.pk}/"), "png"),
    ]
    for response, ending in pages:
        body = response.content.decode()
        assert f"/pictures/{picture.png_sha256}.{ending}" in body
        assert "<!--red-->" not in body
        assert "data:image" not in body
