"""Drawings by models as pictures: screened, rendered in a limited process, checked."""


class RenderingFailed(Exception):
    """There is no picture; the text is a sentence that a person can read."""

    # Screening refused the drawing, so no other try can bring a picture of it.
    is_refused = False

    def __init__(self, reason: str) -> None:
        super().__init__(one_line(reason))


def one_line(text: str) -> str:
    """Return on one line, with nothing invisible, what may quote a drawing, which is hostile."""
    return "".join(filter(str.isprintable, " ".join(text.split())))
