"""The tables of the findings' pages as plain rows, for files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from humanjudge.lib.text import harmless
from judge_eval.stats.estimate import best_first

Data = Mapping[str, Any]
Row = dict[str, Any]

_SHARE: Final = ("value", "low", "high", "successes", "trials")


def board_rows(data: Data, elo: Mapping[str, float]) -> list[Row]:
    """Return a line for each judge by overall agreement, and one for people.

    Parameters
    ----------
    data : mapping
        Findings of a run, or of a part of it.
    elo : mapping of str to float
        ELO of the moment by a judge's identifier; empty for a part, which has none.
    """
    order = best_first([judge["overall"]["value"] for judge in data["judges"]])
    judges = [data["judges"][place] for place in order]
    rows = [_judge_row(judge, elo.get(judge["id"])) for judge in judges]
    people = dict.fromkeys(rows[0] if rows else _judge_row(_NOBODY, None))
    people |= {"name": "people among themselves", "kind": "people"}
    people |= _share("agreement", data["among_people"]["pairs"])
    people |= _share("first_position", data["people_first_position"])
    return [*rows, people]


_NO_SHARE: Final = dict.fromkeys(_SHARE)
_NOBODY: Final[Data] = {
    "id": None,
    "name": "",
    "is_baseline": False,
    "ties": "",
    "rating": dict.fromkeys(("value", "low", "high", "rank", "best_rank", "worst_rank")),
    "order_luck": None,
    **dict.fromkeys(("overall", "agreement", "coverage"), _NO_SHARE),
    **dict.fromkeys(("per_answer", "consistency", "first_position"), _NO_SHARE),
    **dict.fromkeys(("cost_per_verdict_usd", "cost_per_correct_usd", "seconds_per_verdict")),
}


def _judge_row(judge: Data, elo: float | None) -> Row:
    rating = judge["rating"]
    return {
        "judge_id": judge["id"],
        "name": judge["name"],
        "kind": "baseline" if judge["is_baseline"] else "judge",
        **_share("overall_agreement", judge["overall"]),
        "ties": judge["ties"],
        "elo": elo,
        "elo_order_luck": judge["order_luck"],
        "bradley_terry": rating["value"],
        "bradley_terry_low": rating["low"],
        "bradley_terry_high": rating["high"],
        "bradley_terry_rank": rating["rank"],
        "bradley_terry_best_rank": rating["best_rank"],
        "bradley_terry_worst_rank": rating["worst_rank"],
        **_share("agreement", judge["agreement"]),
        **_share("coverage", judge["coverage"]),
        **_share("consistency", judge["consistency"]),
        **_share("agreement_per_answer", judge["per_answer"]),
        **_share("first_position", judge["first_position"]),
        "cost_per_verdict_usd": judge["cost_per_verdict_usd"],
        "cost_per_correct_usd": judge["cost_per_correct_usd"],
        "seconds_per_verdict": judge["seconds_per_verdict"],
    }


def _share(name: str, share: Data) -> Row:
    value, low, high, successes, trials = (share[part] for part in _SHARE)
    return {
        name: value,
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_successes": successes,
        f"{name}_n": trials,
    }


def alt_test_rows(data: Data) -> list[Row]:
    """Return a line for each judge, with its winning rate at every epsilon."""
    judges = (data.get("alt_test") or {"judges": []})["judges"]
    keys = sorted({key for judge in judges for key in judge["winning_rates"] or {}})
    rows = []
    for judge in judges:
        rates, interval = judge["winning_rates"] or {}, judge["advantage_interval"]
        low, high = interval or (None, None)
        rows.append(
            {
                "judge_id": judge["id"],
                "name": judge["name"],
                "kind": "baseline" if judge["is_baseline"] else "judge",
                "people_tested": sum(human["why"] is None for human in judge["humans"]),
                "advantage": judge["advantage"],
                "advantage_low": low,
                "advantage_high": high,
                **{f"winning_rate_{key}": rates.get(key) for key in keys},
            }
        )
    return rows


def models_rows(data: Data) -> list[Row]:
    """Return a line for each model on each board: that of people first, then those of judges."""
    models = data.get("models") or {"names": [], "boards": []}
    return [
        {
            "board": board["by"],
            "board_name": board["name"],
            "model": name,
            "rank": rating["rank"],
            "best_rank": rating["best_rank"],
            "worst_rank": rating["worst_rank"],
            "ties": ties,
            "rating": rating["value"],
            "rating_low": rating["low"],
            "rating_high": rating["high"],
            "pairs": rating["comparisons"],
        }
        for board in models["boards"]
        for name, rating, ties in zip(models["names"], board["ratings"], board["ties"], strict=True)
    ]


ROWS: Final[Mapping[str, Callable[[Data], Sequence[Row]]]] = {
    "alt-test": alt_test_rows,
    "models": models_rows,
}
BOARD: Final = "board"


def as_csv(rows: Sequence[Row]) -> str:
    r"""Write rows under the names of their columns; what is missing stays empty.

    Examples
    --------
    >>> as_csv([{"name": "=1", "elo": 1016.0, "rank": None}])
    "name,elo,rank\r\n'=1,1016.0,\r\n"
    """
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]) if rows else [])
    if rows:
        writer.writeheader()
    writer.writerows(
        {name: harmless(value) if isinstance(value, str) else value for name, value in row.items()}
        for row in rows
    )
    return file.getvalue()
