"""Figures of votes in a file, as `POST /api/v1/verdict/…` answers them."""

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from judge_eval.imports.containers import Format, UnknownFormat
from judge_eval.imports.row_models import RowError
from judge_eval.imports.sources import Record, records
from reports.grandjury import analysis
from reports.grandjury.analysis import Row, VoteInvalid

Figure = Callable[[Iterator[Row], Namespace], object]
FIGURES: Final[dict[str, Figure]] = {
    "histogram": lambda votes, options: analysis.histogram(
        votes, options.minutes, gross=not options.per_item
    ),
    "completeness": lambda votes, options: analysis.completeness(
        votes, options.voters, options.items, options.gross
    ),
    "population-confidence": lambda votes, options: analysis.population_confidence(
        votes, options.voters, options.items
    ),
    "majority-good": lambda votes, options: analysis.majority_good(
        votes, options.good_vote, options.threshold
    ),
    "votes-distribution": lambda votes, options: analysis.votes_distribution(votes, options.items),
}
names = partial(str.split, sep=",")


class Command(BaseCommand):
    help = (
        "Print a figure of votes in a CSV, JSON, JSON Lines or Parquet file with inference_id, "
        "voter_id, vote and vote_time, as JSON; see docs/grandjury.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("figure", choices=FIGURES)
        parser.add_argument("file", type=Path)
        parser.add_argument("--format", choices=get_args(Format), help="if the name does not tell")
        parser.add_argument("--minutes", type=int, default=60, help="of a histogram's stretches")
        parser.add_argument("--per-item", action="store_true", help="a histogram for each item")
        parser.add_argument("--voters", type=names, default=[], help="who was asked: 101,102,103")
        parser.add_argument("--items", type=names, help="items to look at: 1,2,3")
        parser.add_argument("--gross", action="store_true", help="one share over all these items")
        parser.add_argument("--good-vote", default="true", help="which vote is a good one")
        parser.add_argument("--threshold", type=float, default=0.5, help="of the good votes' share")

    def handle(self, *args: Any, **given: Any) -> None:
        options = Namespace(**given)
        path: Path = options.file
        line = 0

        def rows(stream: BinaryIO) -> Iterator[Row]:
            nonlocal line
            for record in records(stream, path.name, options.format):
                if isinstance(record, RowError):
                    raise CommandError(str(record))
                if isinstance(record, Record):
                    line = record.line
                    yield record.values

        try:
            with path.open("rb") as stream:
                figure = FIGURES[options.figure](rows(stream), options)
        except VoteInvalid as invalid:
            # Rows are read as they are counted: the last one is the one that is wrong.
            wrong = RowError(path.name, line, invalid.field, invalid.message)
            raise CommandError(str(wrong)) from invalid
        except (OSError, UnknownFormat, ValueError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(figure))
