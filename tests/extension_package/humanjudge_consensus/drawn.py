"""A run mode that compares only what could be drawn."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from judge_eval.extensions import Helpers, Output, RunConfig, RunMode


class Drawn(RunMode):
    id = "drawn"
    title = "Drawn"
    version = "1.0"
    description = "Compares the drawings that can be shown, and says how many cannot."

    def check(self, config: RunConfig) -> Iterable[tuple[str, str]]:
        if config.kind != "svg":
            yield "kind", "must be svg: this mode compares drawings"

    def pair(
        self, config: RunConfig, outputs: Sequence[Output], helpers: Helpers
    ) -> Iterable[Sequence[Output]]:
        drawn = [output for output in outputs if helpers.render(output) is not None]
        helpers.emit(f"{len(drawn)} of {len(outputs)} outputs could be drawn.")
        return combinations(drawn, 2)
