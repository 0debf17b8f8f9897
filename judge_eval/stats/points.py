"""What leads the points of a board, and which of them another wording of a judge may mend."""

from typing import Final, NamedTuple

FLOOR: Final = "Floor"
CONTRADICTION: Final = "Changes its mind"
SELF_AGREEMENT: Final = "Self-agreement"
MOST_POINTS: Final = 3
# A longer headline is no longer read at a glance.
MOST_WORDS: Final = 40


class BoardPoint(NamedTuple):
    """What may need somebody's hand, behind the words that lead it."""

    lead: str
    text: str
    asks_for_wording: bool = False


def read_point(sentence: str, *, is_above_floor: bool) -> BoardPoint:
    """Return a point as findings store it; that on the floor asks where a judge is not above it.

    Examples
    --------
    >>> read_point("Floor: It beats the baselines.", is_above_floor=True).asks_for_wording
    False
    >>> read_point("Self-agreement: Asked again: 80 %.", is_above_floor=True)
    BoardPoint(lead='Self-agreement', text='Asked again: 80 %.', asks_for_wording=True)
    """
    lead, _, text = sentence.partition(": ")
    is_weak = lead == FLOOR and not is_above_floor
    return BoardPoint(lead, text, is_weak or lead in (CONTRADICTION, SELF_AGREEMENT))
