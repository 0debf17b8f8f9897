"""Judges that know nothing: the floor under every board.

A judge that does not beat *longer wins* has learned nothing. Every judge is held against baselines
that answer in the orders in which it was asked itself, and are scored alike: asked in both, *always
first* contradicts itself on every pair. Where judges of a run are asked in different orders, it has
each baseline once for every way of asking.

Of single items the floor is whoever always gives the same answer. Which label people give most is
known only after they have voted, and a verdict must depend on no vote; so there is a baseline for
each label, and always to say the most frequent one is the best of them, whichever it turns out to
be. Ratings are compared by their order, in which all that always give the same one are alike: so
there is one of them, and *longer-higher*, which rates longer texts higher.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from random import Random
from typing import Final, NamedTuple

from humanjudge.core.extensions import Extension, Registry
from voting.items.choices import DEFAULT_BALLOT, SWAPPED
from voting.items.conversations import assistant_text
from voting.items.kinds import joined
from voting.pictures.screening import element_count


class Opinion(NamedTuple):
    """What a baseline says of an item, of a pair as it is shown, A first; and why, in one line."""

    winner: str
    reason: str
    # Of a rating, from 0 to 1: decides between equal ones.
    score: float | None = None


# It differs from *random* where a judge is asked in both orders.
RANDOM_OUTPUT: Final = "random-output"
_ALWAYS_SAID: Final = "It always says so."

# What an output may be that is kept as text; a picture is kept as pixels alone.
OF_TEXT: Final = ("svg", "text", "code")
OF_ANY: Final = (*OF_TEXT, "image")


class Baseline(Extension):
    """A judge of pairs that asks nobody: it says A, B or tie of two outputs as they are shown."""

    kind = "baseline"
    # The kinds of outputs that it can judge.
    of: tuple[str, ...] = OF_TEXT
    # What it always says, where that is no side: it has no place where people cannot say it.
    always: str = ""

    def __call__(self, output_a: str, output_b: str, seed: str) -> Opinion:
        """Judge a pair; `seed` is the same for the same pair in the same order."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


def random_choice(output_a: str, output_b: str, seed: str) -> Opinion:
    """Toss a coin that always falls the same way for the same seed: a run can be replayed."""
    return Opinion("A" if Random(seed).random() < 0.5 else "B", "A coin was tossed.")  # noqa: S311


def random_output(output_a: str, output_b: str, seed: str) -> Opinion:
    """Toss a coin for the pair and keep to it, whichever output is shown first.

    >>> [random_output("", "", f"pair-1 {order}").winner for order in ("AB", "BA")]
    ['B', 'A']
    """
    pair, _, order = seed.rpartition(" ")
    winner, reason, _ = random_choice(output_a, output_b, pair)
    return Opinion(winner if order == "AB" else SWAPPED[winner], reason)


def longer_wins(output_a: str, output_b: str, seed: str) -> Opinion:
    """Pick the longer text, of a conversation what the assistant wrote; equal lengths are a tie.

    >>> longer_wins("long", "sh", "").reason
    '4 characters against 2.'
    """
    return _more(len(assistant_text(output_a)), len(assistant_text(output_b)), "characters")


def shorter_wins(output_a: str, output_b: str, seed: str) -> Opinion:
    """Pick the shorter text, as `longer_wins` picks the longer one."""
    winner, reason, _ = longer_wins(output_a, output_b, seed)
    return Opinion(SWAPPED[winner], reason)


def more_elements_wins(output_a: str, output_b: str, seed: str) -> Opinion:
    """Pick the SVG with more elements; equal counts are a tie."""
    return _more(element_count(output_a), element_count(output_b), "elements")


def _more(of_a: int, of_b: int, unit: str) -> Opinion:
    if of_a == of_b:
        return Opinion("tie", f"{of_a:,} {unit} each.")
    larger, smaller = max(of_a, of_b), min(of_a, of_b)
    return Opinion("A" if of_a > of_b else "B", f"{larger:,} {unit} against {smaller:,}.")


def _constant(winner: str) -> Callable[[str, str, str], Opinion]:
    return lambda output_a, output_b, seed: Opinion(winner, _ALWAYS_SAID)


class _BuiltInBaseline(Baseline):
    version = "2"

    def __init__(
        self,
        name: str,
        description: str,
        judge: Callable[[str, str, str], Opinion],
        *,
        of: tuple[str, ...] = Baseline.of,
        always: str = "",
    ) -> None:
        self.id, self.title, self.description = (
            name,
            name.replace("-", " ").capitalize(),
            description,
        )
        self.of, self.always, self._judge = of, always, judge

    def __call__(self, output_a: str, output_b: str, seed: str) -> Opinion:
        return self._judge(output_a, output_b, seed)


BASELINES: Final = Registry[Baseline](
    Baseline,
    _BuiltInBaseline("always-first", "Says what stands first.", _constant("A"), of=OF_ANY),
    _BuiltInBaseline("always-second", "Says what stands second.", _constant("B"), of=OF_ANY),
    _BuiltInBaseline("always-tie", "Says tie.", _constant("tie"), of=OF_ANY, always="tie"),
    _BuiltInBaseline(
        "always-both-bad",
        "Says that both are bad.",
        _constant("both_bad"),
        of=OF_ANY,
        always="both_bad",
    ),
    _BuiltInBaseline("random", "Tosses a coin.", random_choice, of=OF_ANY),
    _BuiltInBaseline(RANDOM_OUTPUT, "Tosses a coin and keeps to it.", random_output, of=OF_ANY),
    _BuiltInBaseline("longer-wins", "Picks the longer text.", longer_wins),
    _BuiltInBaseline("shorter-wins", "Picks the shorter text.", shorter_wins),
    _BuiltInBaseline(
        "more-elements-wins", "Picks the drawing of more parts.", more_elements_wins, of=("svg",)
    ),
)


# These do not look at what they judge.
BLIND: Final = frozenset(
    {"always-first", "always-second", "always-tie", "always-both-bad", "random", RANDOM_OUTPUT}
)


def names_for(kind: str, ballot: Iterable[str] = DEFAULT_BALLOT) -> list[str]:
    """Name the baselines of pairs of this kind of output, with these choices.

    >>> names_for("image", ["A", "B", "tie"])
    ['always-first', 'always-second', 'always-tie', 'random', 'random-output']
    """
    offered = {*ballot, ""}
    return [
        name
        for name, baseline in BASELINES.items()
        if kind in baseline.of and baseline.always in offered
    ]


def names_asked(names: Sequence[str], orders: str) -> list[str]:
    """Name those that differ in these orders: asked once, *random-output* is a second coin.

    >>> [names_asked(["random", "random-output"], orders) for orders in ("both", "AB")]
    [['random', 'random-output'], ['random']]
    """
    is_once = orders in ("AB", "BA", "random")
    return [name for name in names if name != RANDOM_OUTPUT or not is_once]


# --- single items -------------------------------------------------------------------------------

RANDOM: Final = "random"
LONGER_HIGHER: Final = "longer-higher"
# A text of so many characters is rated in the middle.
_MIDDLE: Final = 1_000
# In a run's config: a baseline for every label of the ballot.
MOST_FREQUENT: Final = "most-frequent"
_ALWAYS: Final = "always-"
# Of so many labels there is a baseline for every set.
_MOST_WITH_ALL_SETS: Final = 3
_BY_LOT: Final = "It was drawn by lot."


def is_baseline(name: str) -> bool:
    """Say whether no model can be called this, as a baseline of pairs or single items is.

    >>> is_baseline("longer-wins"), is_baseline("always-flag"), is_baseline("gpt-5")
    (True, True, False)
    """
    others = (MOST_FREQUENT, LONGER_HIGHER)
    return name in BASELINES or name in others or name.startswith(_ALWAYS)


def always(choice: str) -> str:
    """Name the baseline that always gives this answer.

    >>> always("flag")
    'always-flag'
    """
    return f"{_ALWAYS}{choice}"


def is_constant(name: str) -> bool:
    return name.startswith(_ALWAYS)


def most_over_floor(baselines: Iterable[str], *, by_order: bool) -> float:
    """Return by how much a judge can be ahead of all baselines on a prompt.

    Ranked by order, who always gives the same answer has half of every prompt.
    """
    return 0.5 if by_order and any(map(is_constant, baselines)) else 1.0


def constants_for(kind: str, ballot: Sequence[str]) -> list[str]:
    """Name the baselines that always give the same answer; of ratings one.

    Of labels each set, or where these are many each label, none of them and all of them.

    >>> constants_for("pass_flag", ["pass", "flag"]), constants_for("rating", ["1", "2", "3"])
    (['always-pass', 'always-flag'], ['always-2'])
    >>> constants_for("labels", ["rude", "long"])
    ['always-none', 'always-rude', 'always-long', 'always-long;rude']
    """
    if kind == "rating":
        return [always(word) for word in ballot[(len(ballot) - 1) // 2 :][:1]]
    if kind != "labels":
        return [*map(always, ballot)]
    all_sizes = range(len(ballot) + 1)
    sizes = all_sizes if len(ballot) <= _MOST_WITH_ALL_SETS else (0, 1, len(ballot))
    return [always(joined(label_set)) for size in sizes for label_set in combinations(ballot, size)]


def names_for_single(kind: str, ballot: Sequence[str]) -> list[str]:
    """Name all baselines of single items of this kind with these choices.

    >>> names_for_single("pass_flag", ["pass", "flag"])
    ['always-pass', 'always-flag', 'random']
    """
    return [*constants_for(kind, ballot), *([LONGER_HIGHER] if kind == "rating" else []), RANDOM]


def opinion_of_single(
    name: str, kind: str, ballot: Sequence[str], seed: str, output: str = ""
) -> Opinion | None:
    """Return what a baseline says of a single item; None: there is no such baseline.

    *random* says each of the choices equally often, or each of all sets of labels; the same for the
    same seed. Only *longer-higher* looks at the output.

    >>> opinion_of_single("always-flag", "pass_flag", ["pass", "flag"], "seed").winner
    'flag'
    >>> opinion_of_single("longer-higher", "rating", ["1", "2", "3"], "seed", "x" * 3000)
    Opinion(winner='3', reason='3,000 characters.', score=0.75)
    """
    if is_constant(name):
        # A run from before may have one for each rating.
        is_possible = name in (*map(always, ballot), *constants_for(kind, ballot))
        return Opinion(name.removeprefix(_ALWAYS), _ALWAYS_SAID) if is_possible else None
    if name not in names_for_single(kind, ballot):
        return None
    if name == LONGER_HIGHER:
        length = len(assistant_text(output))
        score = length / (length + _MIDDLE)
        word = ballot[int(score * len(ballot))]
        return Opinion(word, f"{length:,} characters.", score)
    chance = Random(seed)  # noqa: S311  no secret
    if kind == "labels":
        return Opinion(joined(word for word in ballot if chance.random() < 0.5), _BY_LOT)
    return Opinion(chance.choice(ballot), _BY_LOT)
