"""Read the demo's prompts, outputs and rubrics from the files beside this module.

Each kind has a folder: ``index.json`` fixes the order and the tags, ``rubric.txt`` is what
voters are asked, and each prompt is a folder with ``prompt.txt`` and one file per generator. Jokes
are short: ``jokes.jsonl`` has one for each prompt, as it could be imported too. ``published`` has
the labels of a public test set without its texts, as ``docs/published_labels.py`` makes them.
"""

import csv
import json
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, Literal, NamedTuple

Kind = Literal["svg", "text"]
Folder = Kind | Literal["jokes", "published"]

PUBLISHED_JUDGES: Final = ("gpt-3.5-turbo", "pandalm-7b")
SUFFIX: Final[dict[Kind, str]] = {"svg": ".svg", "text": ".md"}


@dataclass(frozen=True, slots=True)
class DemoOutput:
    """What one generator answered."""

    generator: str
    output: str


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """A prompt and every generator's answer to it, sorted by generator."""

    slug: str
    text: str
    kind: Kind
    tags: tuple[str, ...]
    outputs: tuple[DemoOutput, ...]


class Labelled(NamedTuple):
    """A pair of outputs without their texts, and what each person and judge said of it.

    ``prompt`` stands for the instruction, ``lengths`` are those of the outputs in characters.
    """

    id: str
    prompt: str
    models: tuple[str, str]
    lengths: tuple[int, int]
    people: dict[str, str]
    judges: dict[str, str]


def load(kind: Kind) -> tuple[DemoPrompt, ...]:
    """Return the prompts of one kind in their fixed order.

    Parameters
    ----------
    kind : {"svg", "text"}
        Which demo: drawings or Markdown answers.

    Returns
    -------
    tuple of DemoPrompt
        Ten prompts, each with three outputs.

    Examples
    --------
    >>> [output.generator for output in load("svg")[0].outputs]
    ['atelier-1', 'doodle-nano', 'sketch-mini']
    """
    folder = _folder(kind)
    index = json.loads(folder.joinpath("index.json").read_text(encoding="utf-8"))
    return tuple(_prompt(folder, kind, entry["slug"], tuple(entry["tags"])) for entry in index)


def jokes() -> tuple[DemoPrompt, ...]:
    """Return thirty jokes of one line, each the only output for its prompt.

    Examples
    --------
    >>> [(joke.text, len(joke.outputs)) for joke in jokes()][0]
    ('Tell a one-line joke about printers.', 1)
    """
    lines = _text(_folder("jokes").joinpath("jokes.jsonl")).splitlines()
    return tuple(_joke(json.loads(line)) for line in lines)


def _joke(row: dict[str, Any]) -> DemoPrompt:
    output = DemoOutput(generator=row["model"], output=row["output"])
    return DemoPrompt(
        slug=row["id"],
        text=row["prompt"],
        kind="text",
        tags=tuple(row["tags"]),
        outputs=(output,),
    )


def published() -> tuple[Labelled, ...]:
    """Return the labels of the PandaLM test set.

    Examples
    --------
    >>> len(published()), published()[0].judges
    (999, {'gpt-3.5-turbo': 'A', 'pandalm-7b': 'B'})
    """
    lines = _text(_folder("published").joinpath("pandalm.csv")).splitlines()
    return tuple(map(_labelled, csv.DictReader(lines)))


def _labelled(row: dict[str, str]) -> Labelled:
    return Labelled(
        id=row["pair"],
        prompt=row["instruction"],
        models=(row["model_a"], row["model_b"]),
        lengths=(int(row["length_a"]), int(row["length_b"])),
        people={who: label for who, label in row.items() if who.startswith("annotator")},
        judges={name: row[name] for name in PUBLISHED_JUDGES},
    )


def source() -> str:
    """Return where the published labels come from, who made them and under which licence."""
    return _text(_folder("published").joinpath("source.txt"))


def rubric(kind: Folder) -> str:
    """Return what voters on this kind are asked, without a trailing newline.

    Examples
    --------
    >>> rubric("svg").startswith("Which drawing")
    True
    """
    return _text(_folder(kind).joinpath("rubric.txt"))


def _prompt(folder: Traversable, kind: Kind, slug: str, tags: tuple[str, ...]) -> DemoPrompt:
    prompt = folder.joinpath(slug)
    outputs = sorted(
        (file for file in prompt.iterdir() if file.name.endswith(SUFFIX[kind])),
        key=lambda file: file.name,
    )
    return DemoPrompt(
        slug=slug,
        text=_text(prompt.joinpath("prompt.txt")),
        kind=kind,
        tags=tags,
        outputs=tuple(
            DemoOutput(generator=file.name.removesuffix(SUFFIX[kind]), output=_text(file))
            for file in outputs
        ),
    )


def _folder(kind: Folder) -> Traversable:
    return files(__package__).joinpath(kind)


def _text(file: Traversable) -> str:
    return file.read_text(encoding="utf-8").rstrip("\n")
