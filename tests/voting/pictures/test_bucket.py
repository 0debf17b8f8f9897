"""Pictures in a bucket, on a real S3 server, with the settings that an administrator sets."""

from hashlib import sha256

import boto3
import httpx
import pytest
from moto.server import ThreadedMotoServer

from tests.makers import make_inference, make_project
from tests.process.processes import Site, test_database_url
from voting.models import Picture

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.postgresql_only,
    pytest.mark.django_db(transaction=True),
]
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><circle r="9"/></svg>'
RENDER_AND_BACK_UP = """
from django.core.management import call_command
from voting.pictures.store import render_picture
render_picture({!r})
call_command("backup", {!r})
"""
MIGRATE_AND_RESTORE = """
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
call_command("restore", {!r})
"""
KEYS = {
    "AWS_ACCESS_KEY_ID": "a-key",
    "AWS_SECRET_ACCESS_KEY": "a-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture
def bucket(monkeypatch):
    """An empty bucket, its server's address, and what the product is told of both."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    try:
        bucket = boto3.resource("s3", endpoint_url=address).Bucket("pictures")
        bucket.create()
        yield bucket, {"PICTURES_BUCKET": "pictures", "PICTURES_ENDPOINT": address, **KEYS}
        bucket.meta.client.close()
    finally:
        server.stop()


def test_drawings_are_kept_in_a_bucket_and_served_and_backed_up_from_it(
    tmp_path, bucket, static, settings
):
    kept, variables = bucket
    picture = make_picture_that_waits()
    with Site(tmp_path, test_database_url(), settings.CELERY_BROKER_URL, **variables) as site:
        site.serve_static(static)
        backup = str(tmp_path / "a.backup")
        code = RENDER_AND_BACK_UP.format(picture.pk, backup)
        site.manage("shell", "--no-imports", "-c", code)
        picture.refresh_from_db()
        address = picture.png_sha256
        names = sorted(each.key for each in kept.objects.all())
        assert names == [f"{address[:2]}/{address}.png", f"{address[:2]}/{address}.webp"]
        assert not (tmp_path / "data" / "pictures").exists()

        site.web()
        shown = httpx.get(f"{site.url}/pictures/{address}.png")
        assert shown.status_code == 200, shown.text
        assert sha256(shown.content).hexdigest() == address
        assert httpx.get(f"{site.url}/pictures/{'0' * 64}.png").status_code == 404

        # Whoever takes it away behind the product's back is told so, and no page breaks.
        kept.objects.delete()
        assert httpx.get(f"{site.url}/pictures/{address}.png").status_code == 404
        site.environment["DATABASE_URL"] = f"sqlite:///{tmp_path}/restored.sqlite3"
        site.manage("shell", "--no-imports", "-c", MIGRATE_AND_RESTORE.format(backup))
        assert sorted(each.key for each in kept.objects.all()) == names


def make_picture_that_waits():
    picture = Picture.objects.create(source_sha256=sha256(DRAWING.encode()).hexdigest())
    make_inference(make_project(), output=DRAWING, kind="svg", picture=picture)
    return picture
