"""Makes a small installation that has rows of most kinds, and writes a backup of it.

It is a process of its own because its settings are those of that installation.
"""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")
django.setup()

from django.core.management import call_command  # noqa: E402

from tests.helpers.scene import make_scene  # noqa: E402
from tests.makers import (  # noqa: E402
    make_exposure,
    make_invite,
    make_key,
    make_many_votes,
    make_picture,
    seal_all,
)
from voting.ballot.services import undo_last_vote  # noqa: E402

# Their votes are more rows than a backup is read in at once.
PAIRS, VOTERS = 270, 8


def main(file):
    call_command("migrate", verbosity=0, interactive=False)
    scene = make_scene(pairs=PAIRS, voters=VOTERS)
    scene.run.config = {"b": [1, 2.5, None, "ü \u2028"], "a": {"z": True}}
    scene.run.save()
    votes = [(voter, pair, "AB"[pair.pk.int % 2]) for voter in scene.voters for pair in scene.pairs]
    make_many_votes(scene.run, votes)
    seal_all(scene.project)
    undo_last_vote(scene.voters[0], scene.queue)
    seal_all(scene.project)
    make_exposure(scene.voters[0], scene.pairs[0])
    make_invite(scene.run)
    make_key("read", project=scene.project)
    for colour in ("red", "blue"):
        make_picture(colour)
    call_command("backup", file)


if __name__ == "__main__":
    main(*sys.argv[1:])
