"""Lists on pages: sorted, searched and turned over as the address says, whatever they are of."""

from dataclasses import dataclass

import pytest

from humanjudge.core.http import Problem
from humanjudge.core.listing import Column, Listing, both_ways
from humanjudge.core.tables import Cell, name_cell


@dataclass
class Fruit:
    name: str
    weight: int | None = None


FRUIT = [Fruit("Apple", 3), Fruit("pear", None), Fruit("Plum", 1)]
LIST = Listing[Fruit](
    "Fruit",
    [
        Column("Name", lambda fruit: name_cell(fruit.name), orders=both_ways("name", "name")),
        Column(
            "Weight",
            lambda fruit: str(fruit.weight or ""),
            css="num",
            orders=both_ways("grams", "weight", largest_first=True),
        ),
        Column("", lambda fruit: Cell("Eat", action=f"/eat/{fruit.name}", css="")),
    ],
    usual="name",
    search=("name",),
    per_page=2,
    row_css=lambda fruit: "" if fruit.weight else "left-out",
)


def names(**params):
    return [row.name for row in LIST.context(FRUIT, params)["table"].rows]


@pytest.mark.parametrize(
    "params, expected",
    [
        ({}, ["Apple", "Plum"]),
        ({"page": "2"}, ["pear"]),
        ({"page": "99"}, ["pear"]),
        *(({"page": odd}, ["Apple", "Plum"]) for odd in ("0x", "x", "")),
        ({"sort": ""}, ["Apple", "Plum"]),
        ({"sort": "-name"}, ["pear", "Plum"]),
        # What has no value comes last in both directions.
        ({"sort": "grams"}, ["Plum", "Apple"]),
        ({"sort": "-grams"}, ["Apple", "Plum"]),
        ({"sort": "grams", "page": "2"}, ["pear"]),
        ({"q": " P"}, ["Apple", "Plum"]),
        ({"q": "PEA\0"}, ["pear"]),
        ({"q": "fig"}, []),
    ],
)
def test_the_address_says_which_rows_and_in_which_order(params, expected):
    assert names(**params) == expected


def test_an_order_that_there_is_not_is_refused_with_those_there_are():
    with pytest.raises(Problem, match="sort: must be one of name, -name, -grams, grams"):
        names(sort="colour")


def test_each_head_leads_to_its_other_order_from_the_first_row_on():
    table = LIST.table(FRUIT, {"sort": "grams", "q": "p", "page": "2"})
    assert [(head.href, head.sorted) for head in table.heads] == [
        ("?q=p", ""),
        ("?q=p&sort=-grams", "ascending"),
        ("", ""),
    ]


def test_cells_are_labelled_by_their_columns_and_are_text():
    [row, *_] = LIST.table([Fruit("<b>")]).rows
    head, weight, button = map(str, row.cells)
    assert (row.css, head) == ("left-out", '<th scope="row">&lt;b&gt;</th>')
    assert weight == '<td class="num" data-label="Weight"></td>'
    assert 'form="row-form" formaction="/eat/&lt;b&gt;"' in button
