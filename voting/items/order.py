"""What keyed chance decides, so that it is fair and can be checked: the order of pairs, sides, and
which pairs several people vote on.

None has to do with who is right.
"""

import hmac
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import sha256
from typing import Final, TypeVar

from voting.items.choices import Side

Pair = TypeVar("Pair", bound=Hashable)

# Pairs of prompts that nobody has voted on wait behind this number, in the order of the keyed
# hash. As soon as a prompt is begun its pairs get the number of that batch in the ledger.
FRESH: Final = 2**62
# A prompt that nothing else decides about is held out from this number on.
COIN: Final = 2**61
# So many prompts are shuffled for each voter.
SHUFFLED_PROMPTS: Final = 10


def keyed_number(key: str, *parts: object) -> int:
    """Return a 64-bit number that only the holder of the key can predict."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hmac.digest(key.encode(), text.encode(), sha256)[:8], "big")


def left_side(key: str, voter: object, item: object) -> Side:
    """Decide which stored output a voter sees on the left, always the same for the same two."""
    return "B" if keyed_number(key, "side", voter, item) & 1 else "A"


def wants_overlap(key: str, item: object, share: float) -> bool:
    """Say whether an item is one of the share that several people vote on; always the same."""
    return keyed_number(key, "overlap", item) < share * 2**64


def prompt_order(queue: object, prompt_key: str) -> int:
    """Return where a prompt stands among the prompts of its queue: from 0, below `FRESH`.

    It is an HMAC-SHA-256 of the prompt's key, keyed by the queue's identifier: fixed before the
    first vote, the same on every machine, and whatever the order of an imported file.

    >>> sorted(["fox", "cat", "owl"], key=lambda key: prompt_order("a queue", key))
    ['owl', 'cat', 'fox']
    """
    return keyed_number(str(queue), "prompt", prompt_key) >> 2


def fresh_turn(queue: object, prompt_key: str) -> int:
    """Return the turn of a pair on whose prompt nobody has voted yet."""
    return FRESH + prompt_order(queue, prompt_key)


def half_number(queue: object, prompt_key: str) -> int:
    """Return by which number a prompt falls into one half of its queue or the other: below 2**62.

    It has nothing to do with the order in which prompts enter.
    """
    return keyed_number(str(queue), "half", prompt_key) >> 2


def held_out_half(queue: object, voted: Mapping[str, int]) -> set[str]:
    """Return the prompts to hold out, so that both halves have about as many items with votes.

    `voted` has their number by prompt. Of each two that follow each other by it, the one with the
    larger `half_number` is held out; one that is left over draws its own coin.

    >>> sizes = {"a": 10, "b": 1, "c": 9, "d": 1, "e": 1}
    >>> sorted(held_out_half("a queue", sizes))
    ['a', 'd', 'e']
    """
    line = sorted(voted, key=lambda key: (-voted[key], prompt_order(queue, key)))
    numbers = {key: half_number(queue, key) for key in line}
    held_out = {
        max(pair, key=numbers.__getitem__) for pair in zip(line[::2], line[1::2], strict=False)
    }
    alone = line[-1:] if len(line) % 2 else []
    return held_out | {key for key in alone if numbers[key] >= COIN}


def couples(prompts: Sequence[str], waiting: str = "") -> dict[str, str]:
    """Couple prompts of one item: the first with the second, the third with the fourth …

    `prompts` are their keys in keyed order, and `waiting` is the one that was left over before.
    Returned is, by the key of each prompt, that of the first of its couple; the last may be alone,
    and waits for the next.

    >>> couples(["cat", "dog", "owl"]), couples(["cat", "dog"], waiting="ant")
    ({'cat': 'cat', 'dog': 'cat', 'owl': 'owl'}, {'ant': 'ant', 'cat': 'ant', 'dog': 'dog'})
    """
    line = [waiting, *prompts] if waiting else list(prompts)
    return {prompt: line[place - place % 2] for place, prompt in enumerate(line)}


def arrange(
    pairs: Sequence[tuple[str, Pair]],
    chance: Callable[[Hashable], float],
    limit: int,
    last: str = "",
) -> list[Pair]:
    """Shuffle the pairs of the first ten prompts for one voter.

    No prompt is overtaken by one that stands ten places or more behind it, and one prompt does
    not come twice in a row where that can be avoided. `pairs` are keys of prompts with pairs, in
    the order of the prompts; `chance` is a number in [0, 1) for a prompt or a pair, always the same
    for one voter; `last` is the key of the prompt that the first pair comes after.

    >>> arrange([("p", 1), ("p", 2), ("q", 3), ("r", 4)], lambda _: 0.5, limit=4)
    [1, 3, 2, 4]
    """
    prompts: dict[str, list[Pair]] = {}
    for prompt, pair in pairs:
        prompts.setdefault(prompt, []).append(pair)
    first = list(prompts)[:SHUFFLED_PROMPTS]
    place = {prompt: n + SHUFFLED_PROMPTS * chance(prompt) for n, prompt in enumerate(first)}
    left = {
        prompt: sorted(prompts[prompt], key=chance)
        for prompt in sorted(first, key=place.__getitem__)
    }
    arranged: list[Pair] = []
    while left and len(arranged) < limit:
        total = sum(map(len, left.values()))
        others = [prompt for prompt in left if prompt != last] or [last]
        # Of one with more than half of all that is left a pair is due: put off, it would come
        # twice in a row in the end.
        last = next((prompt for prompt in others if 2 * len(left[prompt]) > total), others[0])
        arranged.append(left[last].pop(0))
        if not left[last]:
            del left[last]
    return arranged
