"""Pictures that are brought: pixels alone are kept, what is no picture is refused by its row."""

import io
import json
import struct
import zipfile
import zlib
from base64 import b64encode
from hashlib import sha256

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from humanjudge.core.validation import validated
from judge_eval.exports.export import export_run
from judge_eval.exports.files import FORMATS
from judge_eval.imports import import_jobs
from judge_eval.imports.import_jobs import SourceFile
from judge_eval.judging.config.run_config import JoiningJudges
from judge_eval.judging.requests import png_bytes, question_of
from judge_eval.models import Call, Import, Provider
from judge_eval.runs import lifecycle, state
from tests.helpers.bundles import as_file, changed, restore, restored
from tests.helpers.pages import text_of
from tests.helpers.run_rows import make_provider
from tests.makers import make_project, make_voter, user_client, voter_client
from voting.models import Inference, Item, Picture
from voting.pictures.images import MAX_SIDE, NoPicture, data_url, reencoded
from voting.pictures.rendering import _chunk
from voting.pictures.store import stored_path

pytestmark = pytest.mark.process

PNG = b"\x89PNG\r\n\x1a\n"


def picture(mode="RGB", size=(40, 20), colour=None, form="PNG", **more):
    file = io.BytesIO()
    Image.new(mode, size, colour or 0).save(file, form, **more)
    return file.getvalue()


def pixels(png):
    return Image.open(io.BytesIO(png))


# --- one picture ----------------------------------------------------------------------------------


def with_gps():
    exif = Image.Exif()
    exif[0x0112] = 6  # it is to be turned
    exif[0x010E] = "the secret description"
    exif.get_ifd(0x8825)[2] = (52.0, 31.0, 12.0)
    return picture(form="JPEG", exif=exif, comment=b"the secret comment")


def test_metadata_goes_and_the_picture_is_turned_as_it_says():
    png = reencoded(with_gps())
    assert pixels(png).size == (20, 40)
    assert not pixels(png).getexif()
    assert b"secret" not in png
    assert [kind for kind in (b"eXIf", b"tEXt", b"iCCP", b"tIME") if kind in png] == []
    assert reencoded(png) == png


def test_what_stands_behind_a_picture_goes():
    polyglot = picture(colour="red") + b"PK\x03\x04<script>alert(1)</script>"
    assert b"script" not in reencoded(polyglot)


@pytest.mark.parametrize(
    "data, pixel",
    [
        (picture("CMYK", colour=(0, 255, 255, 0), form="JPEG", quality=95), (254, 0, 0)),
        (picture("I;16", colour=0x8000), (128, 128, 128)),
        (picture("1", colour=1), (255, 255, 255)),
        (picture("LA", colour=(0, 0)), (255, 255, 255)),
        (picture("RGBA", colour=(255, 0, 0, 0)), (255, 255, 255)),
        (picture("RGB", colour=(9, 8, 7), form="WEBP", lossless=True), (9, 8, 7)),
    ],
    ids=["CMYK", "16 bit", "1 bit", "clear grey", "clear", "WebP"],
)
def test_every_mode_becomes_rgb_on_white(data, pixel):
    png = pixels(reencoded(data))
    assert png.mode == "RGB"
    assert all(abs(a - b) <= 2 for a, b in zip(png.getpixel((3, 3)), pixel, strict=True))


def test_of_what_moves_the_first_frame_is_kept():
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    assert pixels(reencoded(file.getvalue())).getpixel((0, 0)) == (255, 0, 0)


def test_a_large_picture_is_made_smaller():
    png = pixels(reencoded(picture(size=(4000, 1000), colour="green")))
    assert png.size == (MAX_SIDE, MAX_SIDE // 4)


def bomb():
    """A PNG of a few hundred bytes whose header promises 40,000 by 40,000 pixels."""
    header = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" * 100_000)
    chunks = ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))
    return PNG + b"".join(_chunk(*each) for each in chunks)


def huge_gif():
    return b"GIF89a" + struct.pack("<HH", 65_535, 65_535) + b"\x80\0\0" + b"\0" * 6 + b";"


@pytest.mark.parametrize(
    "data, why",
    [
        (bomb(), "40000 by 40000 pixels; at most 40,000,000 are taken"),
        (huge_gif(), "65535 by 65535 pixels|damaged|no PNG"),
        (picture(size=(900, 900), colour="red", form="JPEG")[:2000], "cut short"),
        (picture(size=(90, 90))[:60], "cut short|no PNG"),
        (b"", "no PNG, JPEG, GIF or WebP"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no PNG, JPEG, GIF or WebP"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "no PNG, JPEG, GIF or WebP"),
        (picture(form="TIFF"), "no PNG, JPEG, GIF or WebP"),
        (PNG + _chunk(b"IHDR", b"\xff" * 13), "no PNG|pixels|damaged"),
        (b"\0" * (33 << 20), "more than 32 MB"),
    ],
    ids=["bomb", "gif", "jpeg cut", "png cut", "empty", "svg", "eps", "tiff", "header", "large"],
)
def test_what_is_no_picture_is_refused_with_the_reason(data, why):
    with pytest.raises(NoPicture, match=why):
        reencoded(data)


# --- pictures of an import ------------------------------------------------------------------------


def url(data):
    return f"data:image/png;base64,{b64encode(data).decode()}"


def zipped(members, **how):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def bring(records, *zips, options=None, **where):
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    files = [SourceFile("rows.jsonl", io.BytesIO(text.encode()))]
    files += [SourceFile(f"pictures-{n}.zip", io.BytesIO(data)) for n, data in enumerate(zips)]
    where = where or {"project": make_project(), "name": "Pictures"}
    job = Import(is_local=True, form=import_jobs.form_of(files, options or {}, None, None), **where)
    import_jobs.submit(job, files)
    return import_jobs.run(import_jobs.claim(job.pk))


def pair(output_a, output_b, name="p1"):
    return {
        "pair": name,
        "prompt": "A cat",
        "kind": "image",
        "output_a": output_a,
        "output_b": output_b,
        "generator_a": "a",
        "generator_b": "b",
    }


RED, BLUE = picture(colour="red"), picture(colour="blue", form="JPEG")


@pytest.mark.django_db
def test_pictures_of_a_column_and_of_a_zip_are_shown_as_judges_get_them():
    job = bring([pair(url(RED), "cats/blue.jpg")], zipped({"cats/blue.jpg": BLUE, "x/": b""}))
    assert (job.state, job.detail) == ("done", "")
    a, b = Inference.objects.order_by("generator")
    assert (a.kind, a.picture.state, a.picture.width, a.picture.height) == ("image", "done", 40, 20)
    assert a.output == f"sha256:{a.picture.png_sha256}"
    assert sha256(png_bytes(a.picture.png_sha256)).hexdigest() == a.picture.png_sha256
    assert pixels(png_bytes(b.picture.png_sha256)).getpixel((3, 3))[2] > 250
    page = voter_client(make_voter(job.run)).get(f"/vote/{job.run.queue_id}/").content.decode()
    assert f"/pictures/{b.picture.png_sha256}.png" in page
    assert "sha256:" not in page
    again = bring([pair(url(RED), url(BLUE))], run=job.run, project=job.project)
    assert again.report["already"]["pairs"] == 1
    assert (Inference.objects.count(), Picture.objects.count()) == (2, 2)


@pytest.mark.django_db
def test_judges_that_join_are_sent_the_same_bytes():
    make_provider()
    run = bring([pair(url(RED), url(BLUE))]).run
    lifecycle.add_judges_to(run.pk, validated(JoiningJudges, {"judges": ["judge-long"]}))
    state.advance(run.pk)
    call = Call.objects.filter(purpose="judge").select_related("run__queue__rubric").first()
    content = question_of(call, Provider.objects.get()).request.messages[1]["content"]
    sent = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    stored = Picture.objects.values_list("png_sha256", flat=True)
    assert sorted(sent) == sorted(url(png_bytes(png)) for png in stored)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "output, members, why",
    [
        (url(bomb()), {}, "40000 by 40000 pixels"),
        ("data:image/png;base64,!!!", {}, "no base64"),
        ("cat.png", {}, "neither a data URL nor a file beside it, as there is no zip"),
        ("../../etc/passwd", {"a.png": RED}, "nor a file in the zip"),
        ("../up.png", {"../up.png": b"not a picture"}, "no PNG"),
        ("z.png", {"z.png": b"\0" * 1_000_000}, "compressed more than any picture"),
    ],
    ids=["bomb", "base64", "no zip", "traversal", "text", "ratio"],
)
def test_what_is_no_picture_is_refused_by_row_and_column(output, members, why):
    zips = [zipped(members, compression=zipfile.ZIP_DEFLATED)] if members else []
    unique = picture(size=(17, 19), colour="#123456")
    job = bring([pair(url(unique), url(RED), "p0"), pair(url(RED), output)], *zips)
    assert (job.state, job.status) == ("refused", 422)
    [error] = job.report["errors"]
    assert (error["file"], error["row"], error["field"]) == ("rows.jsonl", 2, "output_b")
    assert why in error["why"]
    assert not Item.objects.exists()
    assert not default_storage.exists(stored_path(sha256(reencoded(unique)).hexdigest()))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "data, why", [(b"PK no zip", "no zip that can be read"), (None, "more than 2 files")]
)
def test_a_zip_that_cannot_be_taken_is_refused(monkeypatch, data, why):
    monkeypatch.setattr("judge_eval.imports.containers.MOST_MEMBERS", 2)
    job = bring([pair(url(RED), url(RED))], data or zipped(dict.fromkeys("abc", b"")))
    assert (job.state, job.status) == ("refused", 422)
    [error] = job.report["errors"]
    assert error["file"] == "pictures-0.zip"
    assert why in error["why"]


@pytest.mark.django_db
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_damaged_member_of_a_zip_is_refused_by_row_and_column(method):
    data = bytearray(zipped({"a.png": RED}, compression=method))
    packed = 30 + len("a.png")  # what is packed begins behind the header and the name
    data[packed + 9 : packed + 40] = b"\xff" * 31
    job = bring([pair(url(RED), "a.png")], bytes(data))
    assert (job.state, job.status) == ("refused", 422)
    [error] = job.report["errors"]
    assert (error["row"], error["field"]) == (1, "output_b")
    assert "'a.png' cannot be unpacked" in error["why"]


@pytest.mark.django_db
def test_a_member_without_a_name_does_no_harm():
    # A name ends where it has a null byte.
    data = zipped({"no name": b"", "a.png": BLUE}).replace(b"no name", b"\0o name")
    job = bring([pair(url(RED), "a.png")], data)
    assert (job.state, job.detail) == ("done", "")


@pytest.mark.django_db
def test_a_zip_may_not_unpack_to_more_than_an_import(settings):
    settings.IMPORT_MAX_UNPACKED_MB = 0
    job = bring([pair("a.png", "a.png")], zipped({"a.png": RED}))
    assert (job.status, job.detail) == (413, "The pictures are more than an import may unpack.")


@pytest.mark.django_db
def test_a_bundle_brings_its_pictures_byte_for_byte():
    job = bring([pair(url(RED), url(BLUE))])
    told = {row.generator: row.output for row in Inference.objects.all()}
    lines = list(export_run(job.run))
    for address in told.values():
        default_storage.delete(stored_path(address.removeprefix("sha256:")))
    png_bytes.cache_clear()
    [copy] = restored(lines, make_project("Elsewhere"))
    rows = Inference.objects.filter(project=copy.queue.project).select_related("picture")
    assert {row.generator: row.output for row in rows} == told
    assert all(png_bytes(row.picture.png_sha256) for row in rows)
    wrong = changed(lines, "inference", output="data:image/png;base64,AAAA")
    report = restore(as_file(wrong), "run.jsonl", make_project("Third"))
    assert [(error.field, "no proper picture" in error.why) for error in report.errors] == [
        ("output", True)
    ]


@pytest.mark.django_db
def test_pictures_go_to_annotation_tools_and_are_no_text_to_train_on():
    vote = {"pair": "p1", "voter": "ann", "vote": "A"}
    run = bring([pair(url(RED), url(BLUE)), vote]).run
    names = ("dpo", "kto", "label-studio", "argilla")
    files = {name: "".join(FORMATS[name].pieces(run)) for name in names}
    assert files["dpo"] == files["kto"] == ""
    [task], [record] = json.loads(files["label-studio"]), json.loads(files["argilla"])
    for text in (task["data"]["left"], record["fields"]["response_a"]):
        assert text == data_url(run.queue.items.get().a.output)
        assert text.startswith("data:image/png;base64,")


@pytest.mark.django_db
def test_pictures_are_brought_on_the_page_and_a_zip_does_not_come_alone():
    client, zip_file = user_client(), zipped({"1.png": RED, "2.jpg": BLUE})
    archive = SimpleUploadedFile("pictures.zip", zip_file)
    alone = client.post("/runs/import/", {"file": [archive]})
    assert "no file holds rows" in text_of(client.get(alone.headers["Location"]))
    import_jobs.discard(Import.objects.get())
    archive.seek(0)
    rows = SimpleUploadedFile("cats.jsonl", json.dumps(pair("1.png", "2.jpg")).encode())
    brought = client.post("/runs/import/", {"file": [rows, archive]})
    page = client.get(brought.headers["Location"])
    assert "1.png" in text_of(page)
    sent = {"project": make_project().pk, "name": "Cats", "do": "import"}
    client.post(brought.headers["Location"], sent)
    job = Import.objects.get()
    assert job.state == "waiting", text_of(client.get(brought.headers["Location"]))
    import_jobs.run(import_jobs.claim(job.pk))
    assert Picture.objects.filter(state="done").count() == 2
