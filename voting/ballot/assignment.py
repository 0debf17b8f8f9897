"""Which pairs a voter gets next, and the leases that keep two people off the last one.

Leased is what a voter has on the screen and the next two pairs. What a page holds beyond that is
there for speed only: whoever asks first gets it, and the page that held it is told.
"""

from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction

from voting.ballot.signed_form import Ballot
from voting.items.order import (
    FRESH,
    SHUFFLED_PROMPTS,
    arrange,
    keyed_number,
    left_side,
    prompt_order,
)
from voting.ledger.bulk_sql import key, prepared
from voting.models import Assignment, Item, Queue, Voter

# What a voter has on the screen, and the next two.
LEASED = 3
# Pairs are looked at in portions, each of which begins with another prompt.
PORTION = 50

# What `selectors.open_to` says, as SQL: for Django to write it costs more than to run it. Votes are
# counted, since PostgreSQL would gather all votes of a voter for a NOT EXISTS before it begins, and
# compared by size: of an equality it expects so few rows that it sorts all pairs to find them.
_OPEN = """
    pair.queue_id = %(queue)s AND pair.opened_at IS NOT NULL AND pair.unusable = ''
    AND pair.votes < pair.votes_wanted AND NOT pair.lacks_output
    AND 1 > (SELECT COUNT(*) FROM voting_entry AS own
             WHERE own.voter_id = %(voter)s AND own.item_id = pair.id
               AND own.kind = 'vote' AND NOT own.retracted)
"""
# Votes of a pair, those too that are not sealed yet: looked up by the pair, whatever else waits.
_CAST = """
    pair.votes + (SELECT COUNT(*) FROM voting_entry AS vote
                  WHERE vote.item_id = pair.id AND COALESCE(vote.seq, 0) = 0
                    AND vote.kind = 'vote' AND NOT vote.retracted)
"""
# Somebody else has the pair before them: leased, and not voted on.
_LOOKS = """
    other.item_id = pair.id AND other.voter_id <> %(voter)s
    AND other.leased_until > %(now)s
    AND NOT EXISTS (SELECT 1 FROM voting_entry AS theirs
                    WHERE theirs.voter_id = other.voter_id AND theirs.item_id = pair.id
                      AND theirs.kind = 'vote' AND NOT theirs.retracted)
"""
# Not all votes that the pair wants are cast, or about to be cast.
_FREE = f"""
    pair.votes_wanted > {_CAST}
        + (SELECT COUNT(*) FROM voting_assignment AS other WHERE {_LOOKS})
"""  # noqa: S608  these are texts of our own, values travel beside them
_COLUMNS = "pair.prompt_key, pair.id, pair.turn, pair.is_coupled"
_SELECT = f"SELECT {_COLUMNS} FROM voting_item AS pair"  # noqa: S608
_MINE = """
    JOIN voting_assignment AS mine ON mine.item_id = pair.id AND mine.voter_id = %(voter)s
"""
_NEXT = f"""
    {_SELECT} WHERE {_OPEN} AND {_FREE} AND pair.turn >= %(turn)s
    AND NOT EXISTS (SELECT 1 FROM voting_assignment AS mine
                    WHERE mine.voter_id = %(voter)s AND mine.item_id = pair.id
                      AND mine.skips > 0)
    ORDER BY pair.turn, pair.position LIMIT %(limit)s
"""  # noqa: S608
_SKIPPED_ONCE = f"""
    {_SELECT} {_MINE} WHERE mine.skips = 1 AND {_OPEN} AND {_FREE}
    ORDER BY pair.turn, pair.position LIMIT %(limit)s
"""
# The few pairs first: PostgreSQL would look at all open pairs of the queue to find them.
_STILL_THEIRS = f"""
    WITH pair AS MATERIALIZED (SELECT * FROM voting_item WHERE id IN ({{have}}))
    SELECT {_COLUMNS} FROM pair {_MINE}
    WHERE mine.skips < 2 AND {_OPEN} AND (mine.leased_until > %(now)s OR {_FREE})
"""  # noqa: S608
_LONGEST_LEASED = f"""
    {_SELECT} JOIN voting_assignment AS other ON {_LOOKS}
    WHERE {_OPEN} AND pair.votes_wanted > {_CAST}
    AND NOT EXISTS (SELECT 1 FROM voting_assignment AS mine
                    WHERE mine.voter_id = %(voter)s AND mine.item_id = pair.id
                      AND mine.skips > 1)
    GROUP BY {_COLUMNS}
    ORDER BY COUNT(*), MIN(other.leased_until) LIMIT 1
"""  # noqa: S608
# Two voters who ask at once must not both be given the last pair.
# Others wait for the lock, and not for the disk: leases that a crash of PostgreSQL forgets are only
# of its last moments, and a page that asks again has them again.
_LOCK = """
    SELECT set_config('synchronous_commit', 'off', true) FROM voting_queue
    WHERE id = %(queue)s FOR NO KEY UPDATE
"""
_LEASE = """
    INSERT INTO voting_assignment (voter_id, item_id, leased_until, skips) VALUES {rows}
    ON CONFLICT (voter_id, item_id) DO UPDATE SET leased_until = excluded.leased_until
"""
_END_LEASES = """
    UPDATE voting_assignment SET leased_until = %(now)s
    WHERE voter_id = %(voter)s AND leased_until > %(now)s {but_these}
    AND EXISTS (SELECT 1 FROM voting_item AS pair
                WHERE pair.id = item_id AND pair.queue_id = %(queue)s)
"""


Values: TypeAlias = dict[str, UUID | str | int]


class _OpenItem(NamedTuple):
    prompt_key: str
    pk: UUID
    turn: int
    is_coupled: bool


def _rows(sql: str, values: Values) -> list[_OpenItem]:
    with prepared() as cursor:
        cursor.execute(sql, values)
        return [_OpenItem(prompt, UUID(str(pk)), *rest) for prompt, pk, *rest in cursor.fetchall()]


def _time(moment: datetime) -> str:
    return str(connection.ops.adapt_datetimefield_value(moment))


def _placeholders(values: Values) -> str:
    return ", ".join(f"%({name})s" for name in values)


def next_pairs(
    voter: Voter, queue: Queue, have: Sequence[UUID], page_size: int, now: datetime
) -> tuple[list[Item], list[UUID]]:
    """Hand out so many pairs that the voter's page holds `page_size`, and lease the first three.

    `have` are those that it holds already, in its order: returned are new ones, and which of these
    are not the voter's any more. A page that holds none, since it was just loaded, goes on with
    what the last one held. Both items of a couple are handed out and leased together.
    Nobody is idle because others look at what is left: then the pair that
    was leased longest ago is handed out.
    """
    if not queue.is_open or queue.is_simulated:
        return [], []
    about: Values = {"voter": key(voter.pk), "queue": key(queue.pk), "now": _time(now)}
    with transaction.atomic():
        if connection.vendor == "postgresql":  # on SQLite the transaction is the lock
            with prepared() as cursor:
                cursor.execute(_LOCK, about)
        # What the last page held, in its order, is among what was voted on just before.
        on_page = have or list(
            Assignment.objects.filter(voter=voter, skips=0)
            .order_by("-leased_until", "pk")
            .values_list("item_id", flat=True)[: 2 * page_size]
        )
        page_rows = _still_theirs(about, on_page)
        page = _first_rows(list(page_rows.values()), page_size)
        if len(page_rows) < page_size:
            page += _choose(voter, queue, about, page_rows, on_page, page_size - len(page_rows))
        _lease(about, page, now + timedelta(minutes=settings.LEASE_MINUTES))
    new = [row.pk for row in page if row.pk not in have]
    pairs = Item.objects.select_related("a__picture", "b__picture").in_bulk(new)
    return [pairs[pk] for pk in new], [pk for pk in have if pk not in page_rows]


def give_back(voter: Voter, queue: Queue, pairs: Sequence[UUID], now: datetime) -> None:
    leases = Assignment.objects.filter(voter=voter, leased_until__gt=now, item__queue=queue)
    leases.filter(item__in=pairs).update(leased_until=now)


def _lease(about: Values, page: list[_OpenItem], until: datetime) -> None:
    # All are written down: they were handed out, so their verdicts stay closed.
    items: Values = {f"pair_{n}": key(row.pk) for n, row in enumerate(page)}
    leased = dict(list(items.items())[: len(_first_rows(page, LEASED))])
    these = f"AND item_id NOT IN ({_placeholders(leased)})" if leased else ""
    rows = ", ".join(
        f"(%(voter)s, %({name})s, {'%(until)s' if name in leased else '%(now)s'}, 0)"
        for name in items
    )
    with prepared() as cursor:
        cursor.execute(_END_LEASES.format(but_these=these), about | leased)
        if rows:
            values = about | items | {"until": _time(until)}
            cursor.execute(_LEASE.format(rows=rows), values)


def _first_rows(rows: list[_OpenItem], number: int) -> list[_OpenItem]:
    """Return so many of the rows, and one more rather than half of a couple."""
    edge = rows[number - 1 : number + 1]
    is_cut = all(row.is_coupled for row in edge) and len({row.prompt_key for row in edge}) == 1
    return rows[: number + is_cut]


def _still_theirs(about: Values, on_page: Sequence[UUID]) -> dict[UUID, _OpenItem]:
    # A pair beyond the leased ones may have got its votes by now, or be on another screen.
    if not on_page:
        return {}
    items: Values = {f"pair_{n}": key(pk) for n, pk in enumerate(on_page)}
    rows = _rows(_STILL_THEIRS.format(have=_placeholders(items)), about | items)
    by_pk = {row.pk: row for row in rows}
    return {pk: by_pk[pk] for pk in on_page if pk in by_pk}


def _choose(
    voter: Voter,
    queue: Queue,
    about: Values,
    page_rows: dict[UUID, _OpenItem],
    on_page: Sequence[UUID],
    limit: int,
) -> list[_OpenItem]:
    free = _first_prompts(about, PORTION + len(on_page))
    rows = [row for row in free if row.pk not in on_page]
    rows.sort(key=lambda row: (row.turn >= FRESH, prompt_order(queue.pk, row.prompt_key)))

    def chance(thing: Hashable) -> float:
        return keyed_number(settings.SECRET_KEY, "shuffle", voter.pk, thing) / 2**64

    last = list(page_rows.values())[-1].prompt_key if page_rows else ""
    # A couple is arranged as one, so that it is handed out one item after the other.
    together: dict[UUID | str, list[_OpenItem]] = {}
    for row in rows:
        together.setdefault(row.prompt_key if row.is_coupled else row.pk, []).append(row)
    units = [(same[0].prompt_key, unit) for unit, same in together.items()]
    new_rows = [row for unit in arrange(units, chance, limit, last) for row in together[unit]]
    new_rows = _first_rows(new_rows, limit)
    if len(rows) < limit:
        # What the voter skipped comes back once, at the end.
        again = _rows(_SKIPPED_ONCE, about | {"limit": limit + len(on_page)})
        new_rows += [row for row in again if row.pk not in on_page][: limit - len(new_rows)]
    if not new_rows and not page_rows:
        new_rows = _rows(_LONGEST_LEASED, about)
    return new_rows


def _first_prompts(about: Values, portion: int) -> list[_OpenItem]:
    rows: list[_OpenItem] = []
    turn = 0
    while True:
        new = _rows(_NEXT, about | {"turn": turn, "limit": portion})
        rows += new
        if len(new) < portion or len({row.prompt_key for row in rows}) >= SHUFFLED_PROMPTS:
            return rows
        turn = new[-1].turn + 1


def ballot_for(voter: Voter, queue: Queue, item: Item) -> Ballot:
    return Ballot(
        uid=uuid4(),
        project=queue.project_id,
        queue=queue.pk,
        item=item.pk,
        voter=voter.pk,
        rubric=queue.rubric_id,
        left=left_side(settings.SECRET_KEY, voter.pk, item.pk) if item.b_id else "",
        choices=tuple(queue.ballot),
        kind=queue.kind,
        options=queue.options,
    )
