"""Judges that know nothing: the floor under every board.

A judge that does not beat *longer wins* has learned nothing. Baselines answer in the same orders
as the run's judges, and are scored alike: asked in both, *always first* contradicts itself on every
pair.
"""

from collections.abc import Callable
from random import Random
from typing import Final, Literal, NamedTuple

from voting.pictures.screening import element_count


class Opinion(NamedTuple):
    """What a baseline says of a pair as it is shown, A first, and the one line of why."""

    winner: Literal["A", "B", "tie"]
    reason: str


def always_first(output_a: str, output_b: str, seed: str) -> Opinion:
    return Opinion("A", "It stands first.")


def random_choice(output_a: str, output_b: str, seed: str) -> Opinion:
    """Toss a coin that always falls the same way for the same seed: a run can be replayed."""
    return Opinion("A" if Random(seed).random() < 0.5 else "B", "A coin was tossed.")  # noqa: S311


def longer_wins(output_a: str, output_b: str, seed: str) -> Opinion:
    """Pick the longer text; equal lengths are a tie.

    Examples
    --------
    >>> longer_wins("long", "sh", "")
    Opinion(winner='A', reason='4 characters against 2.')
    """
    return _more(len(output_a), len(output_b), "characters")


def more_elements_wins(output_a: str, output_b: str, seed: str) -> Opinion:
    """Pick the SVG with more elements; equal counts are a tie."""
    return _more(element_count(output_a), element_count(output_b), "elements")


def _more(of_a: int, of_b: int, unit: str) -> Opinion:
    if of_a == of_b:
        return Opinion("tie", f"{of_a:,} {unit} each.")
    larger, smaller = max(of_a, of_b), min(of_a, of_b)
    return Opinion("A" if of_a > of_b else "B", f"{larger:,} {unit} against {smaller:,}.")


BASELINES: Final[dict[str, Callable[[str, str, str], Opinion]]] = {
    "always-first": always_first,
    "random": random_choice,
    "longer-wins": longer_wins,
    "more-elements-wins": more_elements_wins,
}
# These do not look at what they judge.
BLIND: Final = frozenset({"always-first", "random"})


def names_for(kind: str) -> list[str]:
    return [name for name in BASELINES if kind == "svg" or name != "more-elements-wins"]
