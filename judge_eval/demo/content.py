"""Read the demo's prompts, outputs and rubrics from the files beside this module.

Each kind has a folder: ``index.json`` fixes the order and the tags, ``rubric.txt`` is what
voters are asked, and each prompt is a folder with ``prompt.txt`` and one file per generator, beside
each drawing its picture: a busy machine may lose one, and nobody has to wait for them. Jokes
are short: ``jokes.jsonl`` has one for each prompt, as it could be imported too. ``examples`` has
what example judges say of all these. ``published`` has a folder for each finished study: the labels
of a public test set without its texts; ``docs/published_labels.py`` makes those of PandaLM.
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, Literal, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

Kind = Literal["svg", "text"]
Live = Kind | Literal["jokes"]
Folder = Live | Literal["examples", "published"]
# What an example judge says of an output or a pair, and why: by prompt and generators.
Verdicts = dict[tuple[str, frozenset[str]], tuple[str, str]]
SUFFIX: Final[dict[Kind, str]] = {"svg": ".svg", "text": ".md"}


@dataclass(frozen=True, slots=True)
class DemoOutput:
    """What one generator answered; of a drawing also its picture, as `render` makes it."""

    generator: str
    output: str
    png: bytes = b""


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """A prompt and every generator's answer to it, sorted by generator."""

    slug: str
    text: str
    kind: Kind
    tags: tuple[str, ...]
    outputs: tuple[DemoOutput, ...]


class Labelled(NamedTuple):
    """A pair of outputs or a single one, without texts, and what each person and judge said of it.

    ``prompt`` stands for the instruction, ``lengths`` are those of the outputs in characters.
    """

    id: str
    prompt: str
    models: tuple[str, ...]
    lengths: tuple[int, ...]
    people: dict[str, str]
    judges: dict[str, str]
    tags: tuple[str, ...] = ()


class Study(NamedTuple):
    """A finished study of published labels: its folder, its name and what was asked."""

    folder: str
    name: str
    address: str
    kind: str
    ballot: tuple[str, ...]
    judges: tuple[str, ...]
    baselines: tuple[str, ...]
    question: str
    # What a judge is, where its name does not say it.
    descriptions: Mapping[str, str] = {}

    @property
    def number(self) -> UUID:
        """The number of its run, the same everywhere."""
        return uuid5(NAMESPACE_URL, self.address)

    def rows(self) -> tuple[Labelled, ...]:
        """Return its labels.

        Examples
        --------
        >>> len(PANDALM.rows()), PANDALM.rows()[0].judges
        (999, {'gpt-3.5-turbo': 'A', 'pandalm-7b': 'B'})
        >>> len(XSTEST.rows()), XSTEST.rows()[0].people
        (2250, {'person-1': 'full-compliance', 'person-2': 'full-compliance'})
        """
        lines = self.text("labels.csv").splitlines()
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        return tuple(map(self._pair if self.kind == "comparison" else self._single, rows))

    def text(self, file: str) -> str:
        """Return a file: ``rubric.txt`` or, with the authors and the licence, ``source.txt``."""
        return _text(_folder("published").joinpath(self.folder, file))

    def _pair(self, row: dict[str, str]) -> Labelled:
        return Labelled(
            id=row["pair"],
            prompt=row["instruction"],
            models=(row["model_a"], row["model_b"]),
            lengths=(int(row["length_a"]), int(row["length_b"])),
            people={who: label for who, label in row.items() if who.startswith("annotator")},
            judges={name: row[name] for name in self.judges},
        )

    def _single(self, row: dict[str, str]) -> Labelled:
        labels = {"": "", **{str(n): label for n, label in enumerate(self.ballot, start=1)}}
        return Labelled(
            id=f"{row['prompt']} {row['model']}",
            prompt=row["prompt"],
            models=(row["model"],),
            lengths=(int(row["length"]),),
            people={who: labels[row[who]] for who in row if who.startswith("person")},
            judges={name: labels[row[name]] for name in self.judges},
            tags=(row["type"],),
        )


PANDALM: Final = Study(
    folder="pandalm",
    name="PandaLM test set",
    address="https://github.com/WeOpenML/PandaLM",
    kind="comparison",
    ballot=("A", "B", "tie"),
    judges=("gpt-3.5-turbo", "pandalm-7b"),
    baselines=(
        *("always-first", "always-second", "always-tie", "random", "longer-wins", "shorter-wins"),
    ),
    question="Which of two outputs follows its instruction better?",
)
XSTEST: Final = Study(
    folder="xstest",
    name="XSTest",
    address="https://github.com/paul-rottger/xstest",
    kind="category",
    ballot=("full-compliance", "full-refusal", "partial-refusal"),
    judges=("gpt-4", "keywords"),
    # The strongest floor: people give this label most.
    baselines=("always-full-compliance",),
    question="Did the model refuse?",
    descriptions={"keywords": "a list of keywords"},
)


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


def examples(kind: Live) -> dict[str, Verdicts]:
    """Return what example judges say, in words that were written for the demo.

    Of a pair they name the generator, or say that both are alike or bad.

    Examples
    --------
    >>> list(examples("jokes"))
    ['careful-example', 'hasty-example', 'likes-length-example']
    """
    prompts = {prompt.slug: prompt for prompt in (jokes() if kind == "jokes" else load(kind))}
    lines = _text(_folder("examples").joinpath(f"{kind}.csv")).splitlines()
    head, *rows = csv.reader(lines)
    first = head.index("why") - 1
    verdicts: dict[str, Verdicts] = {name: {} for name in head[first::2]}
    for slug, *cells in rows:
        generators, answers = cells[: first - 1], cells[first - 1 :]
        names = generators or [output.generator for output in prompts[slug].outputs]
        for name, answer, why in zip(verdicts, answers[::2], answers[1::2], strict=True):
            verdicts[name][prompts[slug].text, frozenset(names)] = answer, why
    return verdicts


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
            DemoOutput(
                generator=(name := file.name.removesuffix(SUFFIX[kind])),
                output=_text(file),
                png=prompt.joinpath(f"{name}.png").read_bytes() if kind == "svg" else b"",
            )
            for file in outputs
        ),
    )


def _folder(kind: Folder) -> Traversable:
    return files(__package__).joinpath(kind)


def _text(file: Traversable) -> str:
    return file.read_text(encoding="utf-8").rstrip("\n")
