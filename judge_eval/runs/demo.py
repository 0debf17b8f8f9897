"""The demo: two runs of pairs and one of single items, made beforehand, and no votes at all."""

import json
import secrets
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.urls import reverse

from judge_eval.baselines import names_for, names_for_single
from judge_eval.demo import content
from judge_eval.models import Run
from judge_eval.services import create_run
from voting.choices import CHOICES, DEFAULT_BALLOT, PASS_FLAG
from voting.keys import create_key
from voting.models import ApiKey, Invite, Project, Queue
from voting.voters import invite_token

PROJECT = "Demo"
SCOPES = [ApiKey.Scope.READ, ApiKey.Scope.VOTE]
RUNS = {"svg": "Drawings", "text": "Answers"}
# A project of its own and its run: a quality score is a project's.
JOKES = "Jokes"
FLAG_CATEGORIES = ("not funny", "not for work", "heard before", "makes no sense", "other")
# What is made along with the demo is called so.
FIRST_START = "made on first start"


def load(access_file: Path) -> bool:
    """Load the demo once, and write down how to get in. Return whether anything was loaded."""
    with transaction.atomic():
        # Projects may be renamed or cleared away; a key is only ever revoked.
        if ApiKey.objects.filter(name=FIRST_START).exists():
            return False
        project = Project.objects.create(name=PROJECT)
        runs = [make_run(project, kind, name) for kind, name in RUNS.items()]
        runs.append(make_jokes(Project.objects.create(name=JOKES)))
        access = {
            "board": [{"name": r.name, "path": reverse("run", args=[r.pk])} for r in runs],
            "invites": [{"name": r.name, "path": _invite(r)} for r in runs],
            "admin": {**_admin(), "path": reverse("admin:index")},
            "api_key": create_key(FIRST_START, SCOPES)[1],
            "api_key_scopes": SCOPES,
            "cli_key": create_key("the command line on this machine", list(ApiKey.Scope))[1],
        }
        # Inside the transaction: no demo without its keys, no keys without the demo.
        access_file.touch(mode=0o600)
        access_file.write_text(json.dumps(access, indent=1), encoding="utf-8")
    return True


def make_run(project: Project, kind: Any, name: str) -> Run:
    return create_run(
        project,
        name,
        content.load(kind),
        rubric=content.rubric(kind),
        baselines=names_for(kind),
        ballot=CHOICES if kind == "text" else DEFAULT_BALLOT,
    )


def make_jokes(project: Project) -> Run:
    return create_run(
        project,
        JOKES,
        content.jokes(),
        rubric=content.rubric("jokes"),
        baselines=names_for_single(Queue.Kind.PASS_FLAG, PASS_FLAG),
        kind=Queue.Kind.PASS_FLAG,
        ballot=PASS_FLAG,
        options={"flag_categories": FLAG_CATEGORIES},
    )


def _invite(run: Run) -> str:
    invite = Invite.objects.create(queue=run.queue, label=FIRST_START)
    return reverse("join", args=[invite_token(invite)])


def _admin() -> dict[str, str | None]:
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return {"username": None, "password": None}
    password = secrets.token_urlsafe(12)
    users.create_superuser("admin", password=password)
    return {"username": "admin", "password": password}
