"""A view stands in the folder that its address names, so that it is found without a search."""

import re

from tests.helpers.addresses import page_addresses

# Words of addresses for a folder or a screen that has another name, and why.
OTHER_WORDS = {
    "vote": {"ballot", "people", "invites"},  # voters cast ballots; people of a run are invited
    "join": {"ballot"},  # it leads to the voting page
    "models": {"grandjury"},  # models that are traced by that protocol
    "figures": {"board"},  # a button there
    "tables": {"findings"},  # what the board's findings are written as
    "charts": {"findings"},  # what they are drawn as
    "data": {"imports"},  # the tab for all that goes in and out
    "export": {"imports"},  # on that tab
    "projects": {"quality"},  # the list of projects shows their scores
    "r": {"shared"},  # short, as it is sent around
    "login": {"openid"},  # with an identity provider
}
# Addresses without a view of ours, or without a word.
EXCEPTIONS = {
    "home": "the first page has no word in its address",
    "favicon": "asked for by browsers, beside the first page",
    "run": "the board is the first page of a run",
    "picture": "of an output, shown where one votes",
    "thumbnail": "beside the picture",
    "run-export": "leads to the tab Data",
    "logout": "Django's own",
    "admin-login": "leads to the login",
    "healthz": "the name that machines ask for",
    "metrics": "beside the product's health",
}


def singular(words):
    return {word.removesuffix("s") for word in words if word}


def misplaced():
    for address, pattern in page_addresses():
        words = re.split(r"[/_.\-]", re.sub(r"<.*?>", "", address))
        named = set(words).union(*(OTHER_WORDS.get(word, set()) for word in words))
        _, *folders = pattern.callback.__module__.split(".")
        if not singular(named) & singular("_".join(folders).split("_")):
            yield pattern.name


def test_each_view_stands_in_the_folder_that_its_address_names():
    assert sorted(misplaced()) == sorted(EXCEPTIONS)
