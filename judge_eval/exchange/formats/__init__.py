"""Ready-made readers of public formats, and how a file is known to be of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO, Final, Literal

from judge_eval.exchange.formats import alttest, mtbench, pandalm, pathscore
from judge_eval.exchange.formats.common import holds
from judge_eval.exchange.rows import Item

PublicFormat = Literal["mtbench", "pandalm", "alttest", "pathscore"]

READERS: Final[Mapping[PublicFormat, Callable[[BinaryIO, str], Iterator[Item]]]] = {
    "mtbench": mtbench.rows,
    "pandalm": pandalm.rows,
    "alttest": alttest.rows,
    "pathscore": pathscore.rows,
}


def detect(name: str, first_records: Sequence[Mapping[str, object]]) -> PublicFormat | None:
    """Tell which public format a file has.

    Parameters
    ----------
    name : str
        The file's name.
    first_records : sequence of mapping
        The values of its first few records; none for Alt-Test, whose files are not made of
        records and are known by their names.

    Returns
    -------
    str or None
        A key of `READERS`, where every one of the records fits it.

    Examples
    --------
    >>> detect("human.jsonl", [dict.fromkeys(mtbench.COLUMNS, "")])
    'mtbench'
    >>> detect("votes.csv", [{"pair": "7"}]) is None
    True
    """
    if not first_records:
        return "alttest" if alttest.by_judges(name) is not None else None
    fits: dict[PublicFormat, Callable[[Mapping[str, object]], bool]] = {
        "mtbench": lambda record: holds(record, mtbench.COLUMNS),
        "pandalm": lambda record: (
            holds(record, (*pandalm.TEXTS, *pandalm.PEOPLE))
            or ("idx" in record and pandalm.judge_prefix(record) is not None)
        ),
        "pathscore": lambda record: (
            "verdicts" in record and ("human_winner" in record or "gen_a_id" in record)
        ),
    }
    return next((name for name, fit in fits.items() if all(map(fit, first_records))), None)
