"""A run mode that compares each model with the next alone, and counts what it paired."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from judge_eval.extensions import Helpers, Output, Part, RunConfig, RunMode


class _Options(Part):
    most_prompts: int = 100


class Neighbours(RunMode):
    id = "neighbours"
    title = "Neighbours"
    version = "1.0"
    description = "Compares each model with the next one alone; nobody votes."
    wants_votes = False
    Options = _Options

    def check(self, config: RunConfig) -> Iterable[tuple[str, str]]:
        most = _Options.model_validate(config.mode_options).most_prompts
        if len(config.prompts) > most:
            yield "prompts", f"has {len(config.prompts)}, the most is {most}"

    def pair(
        self, config: RunConfig, outputs: Sequence[Output], helpers: Helpers
    ) -> Iterable[Sequence[Output]]:
        in_order = {model.id: place for place, model in enumerate(config.models)}
        ordered = sorted(outputs, key=lambda output: in_order[output.generator])
        helpers.store("paired", (helpers.stored("paired") or 0) + max(len(ordered) - 1, 0))
        return pairwise(ordered)

    def completed(self, config: RunConfig, helpers: Helpers) -> None:
        helpers.emit(f"{helpers.stored('paired')} neighbours were compared.")
