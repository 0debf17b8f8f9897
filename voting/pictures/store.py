"""SVG to PNG, once per content hash: the people and the judges are shown the same bytes."""

import logging
from collections.abc import Iterable
from datetime import timedelta
from hashlib import sha256
from io import BytesIO

from django.conf import settings
from django.core.files.storage import default_storage
from django.db.models import QuerySet

from humanjudge.core import leases
from voting.models import Inference, Picture
from voting.pictures.rendering import RenderedPicture, RendererMissing, render
from voting.pictures.screening import RenderingFailed

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)
# Twice the size at which lists show them, for dense screens.
THUMBNAIL = (128, 96)


def source_address(source: str) -> str:
    return sha256(source.encode()).hexdigest()


def stored_path(png_sha256: str, suffix: str = "png") -> str:
    """Return where the picture of this hash is kept; with "webp", its thumbnail."""
    return f"{png_sha256[:2]}/{png_sha256}.{suffix}"


def render_picture(picture_id: int) -> None:
    """Render a picture that is waiting. Safe to repeat: the same source gives the same bytes."""
    waiting = Picture.objects.filter(pk=picture_id, state=Picture.State.WAITING)
    if not leases.renew(waiting, LEASE):
        return
    source = Inference.objects.filter(picture=picture_id).values_list("output", flat=True)[:1].get()
    try:
        rendered = render(source, renderer=settings.SVG_RENDERER)
    except RendererMissing as missing:
        # Nothing is wrong with the drawing: it is tried again when the lease has run out.
        logger.error("picture %s waits: %s", picture_id, missing)  # noqa: TRY400  no bug of ours
        waiting.update(error=str(missing))
    except RenderingFailed as failure:
        waiting.update(
            state=Picture.State.FAILED, error=str(failure), is_refused=failure.is_refused
        )
    else:
        keep_rendered(waiting, rendered)


def keep_rendered(pictures: QuerySet[Picture], rendered: RenderedPicture) -> None:
    pictures.update(
        state=Picture.State.DONE,
        error="",
        png_sha256=store(rendered.png),
        width=rendered.width,
        height=rendered.height,
        renderer=rendered.renderer,
        left_out=", ".join(rendered.left_out),
    )


def store(png: bytes) -> str:
    """Keep the bytes under their own hash; the row that names them is written only after."""
    address = sha256(png).hexdigest()
    for suffix, data in (("png", png), ("webp", thumbnail(png))):
        path = stored_path(address, suffix)
        if not default_storage.exists(path):
            default_storage.save(path, BytesIO(data))
    return address


def forget(addresses: Iterable[str]) -> None:
    """Delete stored pictures that no drawing has any more."""
    addresses = set(addresses)
    pictures = Picture.objects.filter(png_sha256__in=addresses)
    for address in addresses - set(pictures.values_list("png_sha256", flat=True)):
        for suffix in ("png", "webp"):
            default_storage.delete(stored_path(address, suffix))


def thumbnail(png: bytes) -> bytes:
    """Return a small picture for lists, of a PNG that `canonical` has checked."""
    from PIL import Image  # not in the web processes, which draw nothing

    with Image.open(BytesIO(png), formats=["PNG"]) as picture:
        small = picture.convert("RGB")
    small.thumbnail(THUMBNAIL)
    buffer = BytesIO()
    small.save(buffer, "WEBP", quality=80)
    return buffer.getvalue()
