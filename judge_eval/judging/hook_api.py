"""What the hooks of extensions are given in the place of rows: thin functions over the services.

What a hook asks for is a call like any other: leased, paid from the run's budget, made again where
it failed, and answered from storage where the same was asked before.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from humanjudge.core.extensions import Extension, HookFailed, storable
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import StorableJson
from judge_eval.judging.config.judge_types import Answer
from judge_eval.judging.config.modes import Output
from judge_eval.judging.config.run_config import JudgePart
from judge_eval.judging.requests import png_bytes
from judge_eval.models import Call, ExtensionValue, Run
from voting.models import Inference, Item

MOST_EMITTED = 500
MOST_STORED = 100_000
MOST_NAME = 200
_JSON: TypeAdapter[JsonObject] = TypeAdapter(StorableJson)


class AnswersMissing(Exception):
    """A hook needs what was not asked yet; it is called anew once these models have answered."""

    def __init__(self, models: Sequence[JudgePart]) -> None:
        super().__init__(", ".join(model.id for model in models))
        self.models = models


def output_of(inference: Inference) -> Output:
    return Output(
        inference.pk, inference.prompt, inference.generator, inference.kind, inference.output
    )


@dataclass
class RunHelpers:
    """What every hook may use. What is emitted and stored is written by `write`, once."""

    run: Run
    extension: Extension
    emitted: list[tuple[str, JsonObject]] = field(default_factory=list)
    stored_values: JsonObject = field(default_factory=dict)

    def emit(self, text: str, **data: Any) -> None:
        self.emitted.append((storable(text, MOST_EMITTED), _plain(data)))

    def store(self, name: str, value: Any) -> None:
        self.stored_values[storable(name, MOST_NAME)] = _plain(value)

    def stored(self, name: str) -> Any:
        if name in self.stored_values:
            return self.stored_values[name]
        mine = ExtensionValue.objects.filter(run=self.run, extension=self.extension.id, name=name)
        return mine.values_list("value", flat=True).first()

    def render(self, output: Output) -> bytes | None:
        inference = Inference.objects.select_related("picture").get(pk=output.id)
        picture = inference.picture
        return png_bytes(picture.png_sha256) if picture and picture.png_sha256 else None

    def write(self) -> None:
        for text, data in self.emitted:
            self.run.record("extension", text, extension=self.extension.id, **data)
        ExtensionValue.objects.bulk_create(
            [
                ExtensionValue(run=self.run, extension=self.extension.id, name=name, value=value)
                for name, value in self.stored_values.items()
            ],
            update_conflicts=True,
            unique_fields=["run", "extension", "name"],
            update_fields=["value"],
        )


def _plain(value: Any) -> Any:
    text = json.dumps(value, allow_nan=False)
    if len(text) > MOST_STORED:
        raise ValueError(f"has {len(text):,} characters as JSON; the most is {MOST_STORED:,}")
    return _JSON.validate_python({"value": json.loads(text)})["value"]


@dataclass
class RunPlanHelpers(RunHelpers):
    """What a mode plans with; `calls` are to be made."""

    calls: dict[tuple[str, int], Call] = field(default_factory=dict)

    def generate(self, model: str, prompt: int) -> None:
        config = self.run.config or {}
        names = [model_entry["id"] for model_entry in config["models"]]
        if model not in names or not 0 <= prompt < len(config["prompts"]):
            raise ValueError(f"the config has no model {model!r} and prompt {prompt}")
        self.calls[model, prompt] = Call(
            run=self.run,
            purpose=Call.Purpose.GENERATE,
            provider=config["provider"],
            model=model,
            prompt=prompt,
        )


@dataclass
class RunJudgeHelpers(RunHelpers):
    """What a judge judges one item with; `answered` is what its models have said of it so far."""

    item: Item | None = None
    models: Sequence[JudgePart] = ()
    answered: Mapping[JudgePart, Callable[[], Answer]] = field(default_factory=dict)

    @property
    def outputs(self) -> Sequence[Output]:
        assert self.item is not None
        return [output_of(row) for row in (self.item.a, self.item.b) if row is not None]

    @property
    def choices(self) -> Sequence[str]:
        assert self.item is not None
        return tuple(self.item.queue.ballot)

    def judge(self, *models: JudgePart) -> list[Answer]:
        if strangers := [model.id for model in models if model not in self.models]:
            raise HookFailed(f"The judge is not made of {', '.join(strangers)}.")
        if missing := [model for model in models if model not in self.answered]:
            raise AnswersMissing(missing)
        return [self.answered[model]() for model in models]
