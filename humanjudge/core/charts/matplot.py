"""Pictures by Matplotlib, for files: only a worker imports this.

Matplotlib keeps its settings for a whole process, so one picture is drawn at a time. The same
input gives the same bytes: only the fonts shipped here are used, and no file has a date.
"""

import logging
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from threading import RLock
from typing import Final, Literal, TypeAlias, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.rcsetup import cycler

from humanjudge.core.charts.labels import clean
from humanjudge.core.charts.style import CYCLE, GivenStyle, StyleRefused, colours, settings_of

Theme: TypeAlias = Literal["light", "dark"]
Form: TypeAlias = Literal["png", "svg"]

_FONTS: Final = Path(__file__).parents[3] / "voting" / "pictures" / "fonts"
# The letters of other scripts, whatever the style says of the first ones.
FALLBACK: Final = (
    *("Liberation Sans", "DejaVu Sans", "Droid Sans Fallback"),
    *("Noto Sans Thai", "Noto Sans Devanagari", "Noto Emoji"),
)
MOST_PIXELS: Final = 12_000_000
_TITLE_LETTERS: Final = 70
_PER_INCH: Final = 100
# As in static/css/site.css: paper, ink, soft ink, lines, and the colours of judges.
_COLOURS: Final[Mapping[Theme, tuple[str, str, str, str, str]]] = {
    "light": (
        *("#ffffff", "#1c1c1a", "#5b5b56", "#dcdcd6"),
        "#2b49c4 #b3541e #2e7d32 #8e24aa #00717b #ad1457 #6d4c41 #5f6b00",
    ),
    "dark": (
        *("#161615", "#ecece8", "#a8a8a1", "#363633"),
        "#86bdf7 #f0a36b #7ccf81 #d59be8 #5cc6d0 #f08bb2 #c4a393 #c5cf5f",
    ),
}
_OURS: Final = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "x",
    "axes.spines.bottom": False,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": _PER_INCH,
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["Liberation Sans"],
    "font.size": 9,
    "axes.labelsize": 8.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "savefig.dpi": 2 * _PER_INCH,
    "svg.fonttype": "none",
    "svg.hashsalt": "humanjudge",
    # A name with two dollars is no formula.
    "text.parse_math": False,
    "xtick.bottom": False,
    "xtick.labelsize": 8.5,
    "ytick.left": False,
}
# Neither when a picture was made nor by which version.
_METADATA: Final[Mapping[Form, dict[str, None]]] = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None},
}
_DOTS: Final = ("figure.dpi", "savefig.dpi")
# Its own type knows each key; those of a style are looked up.
_PARAMETERS = cast("MutableMapping[str, object]", mpl.rcParams)
_lock = RLock()


@dataclass(frozen=True)
class Chart:
    """A chart: how it is drawn, how many pixels high it is, and its words for who cannot see it."""

    title: str
    words: str
    height: int
    draw: Callable[[Axes], None]
    width: int = 640


def pictures(
    chart: Chart, forms: Iterable[Form], style: GivenStyle = "", theme: Theme = "light"
) -> dict[Form, bytes]:
    """Draw a chart in each form; a style lies over ours, key by key. Raises StyleRefused."""
    with _settings(style, theme), warnings.catch_warnings():
        # Of letters that no font has, and of labels that a style leaves no room for.
        warnings.simplefilter("ignore")
        try:
            figure = Figure(figsize=_size_of(chart, style), layout="constrained")
            FigureCanvasAgg(figure)
            chart.draw(figure.add_subplot())
            lines = textwrap.wrap(clean(chart.title), _TITLE_LETTERS, max_lines=3, placeholder=" …")
            figure.suptitle("\n".join(lines), x=0.01, horizontalalignment="left")
            return {form: _saved(figure, form) for form in forms}
        except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
            if not style or isinstance(error, StyleRefused):
                raise
            reason = " ".join(str(error).split())[:300]
            raise StyleRefused(f"no chart can be drawn with it: {reason}") from error


def _saved(figure: Figure, form: Form) -> bytes:
    file = BytesIO()
    figure.savefig(file, format=form, metadata=_METADATA[form])
    return file.getvalue()


def _size_of(chart: Chart, style: GivenStyle) -> tuple[float, float]:
    """Return the width and the height in inches, or raise StyleRefused for too many pixels."""
    width, height = chart.width / _PER_INCH, chart.height / _PER_INCH
    if any(setting.key == "figure.figsize" for setting in settings_of(style)):
        width, height = mpl.rcParams["figure.figsize"]
    # Those of a file may be "figure".
    dots = [dpi for name in _DOTS if isinstance(dpi := mpl.rcParams[name], int | float)]
    if not 0 < width * height * max(dots) ** 2 <= MOST_PIXELS:
        raise StyleRefused(f"a picture has at most {MOST_PIXELS:,} pixels")
    return width, height


@contextmanager
def _settings(style: GivenStyle, theme: Theme) -> Iterator[None]:
    """Let ours and then those of a style be the settings, whatever this machine has."""
    with _lock, mpl.rc_context():
        _use_shipped_fonts()
        mpl.rcdefaults()
        _PARAMETERS.update(_OURS | _theme_settings(theme))
        for setting in settings_of(style):
            is_cycle = setting.key == CYCLE
            try:
                _PARAMETERS[setting.key] = (
                    cycler(color=colours(setting)) if is_cycle else setting.value
                )
            except KeyError as error:
                raise setting.refused("Matplotlib has no such key") from error
            except (ValueError, TypeError) as error:
                raise setting.refused(" ".join(str(error).split())[:300]) from error
        mpl.rcParams["font.family"] = [*mpl.rcParams["font.family"], *FALLBACK]
        yield


def _theme_settings(theme: Theme) -> dict[str, object]:
    paper, ink, soft, line, judges = _COLOURS[theme]
    return {
        "axes.edgecolor": line,
        "axes.facecolor": paper,
        "axes.labelcolor": soft,
        "axes.prop_cycle": cycler(color=judges.split()),
        "figure.facecolor": paper,
        "grid.color": line,
        "text.color": ink,
        "xtick.color": soft,
        "ytick.color": ink,
    }


@cache
def _use_shipped_fonts() -> None:
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    bundled = Path(mpl.get_data_path())
    fontManager.ttflist = [
        font for font in fontManager.ttflist if Path(font.fname).is_relative_to(bundled)
    ]
    for path in sorted(_FONTS.glob("*.[ot]tf")):
        if "Color" not in path.name:
            fontManager.addfont(path)
