"""Every address of the product, with rows behind it: for what must be true of all pages."""

from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.urls import get_resolver, reverse

from judge_eval.models import Call, DisagreementTag, Import, Judge, Run
from judge_eval.workshop import services
from reports.models import ScoreReport
from reports.report.views.shares import make_share
from reports.scores import views
from tests.helpers.run_findings import compute, voted_run
from tests.helpers.run_rows import make_calls, make_draft, make_provider
from tests.makers import (
    make_invite,
    make_picture,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    voter_client,
)
from voting.models import Inference, Project, Queue, Voter
from voting.people.voters import invite_token

# What everything is called: as an element of a page it would show up as one, and do something.
HOSTILE = """<img src=x onerror=alert(1)>'"><script>alert(1)</script>"""
# Rows with a name, and what their project is of them.
OWN = {
    Project: "pk",
    Queue: "project",
    Run: "queue__project",
    Judge: "run__queue__project",
    Voter: "project",
}
# Beside the pages of the product: what it answers where there is none, and what Django brings.
OTHERS = {
    "not found": "/nothing-here/",
    "api docs": "/api/docs",
    "api document": "/api/openapi.json",
    "grandjury docs": "/api/v1/docs",
    "grandjury document": "/api/v1/openapi.json",
    "admin": "/admin/",
    "admin list": "/admin/voting/voter/",
    "admin form": "/admin/voting/project/{project_id}/change/",
    "admin add": "/admin/voting/invite/add/",
    "admin password": "/admin/password_change/",
}


class EveryPage:
    """Whoever may see everything, and where each page is.

    A page with a new kind of argument is added by saying here what the argument stands for.
    """

    def __init__(self):
        run = voted_run(pairs=8, computed=False)
        voted = make_run(pairs=3)
        projects = [each.queue.project_id for each in (run, voted)]
        # Not those of others: tests in a browser share a product.
        for model, project in OWN.items():
            model._default_manager.filter(**{f"{project}__in": projects}).update(name=HOSTILE)
        outputs = Inference.objects.filter(project__in=projects)
        outputs.update(prompt=HOSTILE, output=HOSTILE, metadata={"<b>": HOSTILE})
        outputs.filter(generator="generator-0").update(generator=HOSTILE)
        compute(run)
        run.refresh_from_db()
        pictured = outputs.filter(project=run.queue.project, generator="generator-1")
        picture = make_picture("teal", inferences=pictured)
        [call, *_] = make_calls(run)
        asked = make_provider(name="every-page")
        tuned = make_run(pairs=4, judges=2, baselines=())
        person = make_voter(tuned)
        for pair in pairs_of(tuned):
            make_vote(person, pair, "B")
        seal_all(tuned.queue.project)
        services.open_for_tuning(tuned)
        tuned.judges.update(is_tuned=True)
        # The first has said A of each.
        variant, rubric = tuned.judges.get(position=0), tuned.queue.rubric
        for verdict in variant.verdicts.filter(item__is_held_out=False):
            DisagreementTag.objects.create(verdict=verdict, tag="rubric_unclear", rubric=rubric)
        about = {"judge": variant, "provider": "default", "model": HOSTILE, "state": "done"}
        Call.objects.create(run=tuned, purpose="suggest", reply=HOSTILE, **about)
        report = ScoreReport.objects.create(run=run, state="done", table={})
        views.path_of(report).parent.mkdir(parents=True, exist_ok=True)
        views.path_of(report).write_bytes(b"a zip")
        _, share = make_share(run.queue.project, run, None, label=HOSTILE)
        invite = make_invite(run, label=HOSTILE)
        voter = make_voter(voted)
        vote = make_vote(voter, pairs_of(voted)[0])
        seal_all(voted.queue.project)
        self.values = {
            "run_id": run.pk,
            "project_id": run.queue.project_id,
            "item_id": pairs_of(run)[1].pk,
            "call_id": call.pk,
            "queue_id": voted.queue_id,
            "import_id": Import.objects.create(project=run.queue.project, form={}).pk,
            "report_id": report.pk,
            "invite_id": invite.pk,
            "png_sha256": picture.png_sha256,
            "table": "board",
            "chart": "agreement",
            "form": "csv",
            # Of what is only posted, so that any will do.
            **dict.fromkeys(("voter_id", "decision_id", "uid", "model_id", "judge_id"), uuid4()),
            **dict.fromkeys(("webhook_id", "delivery_id"), uuid4()),
            **dict.fromkeys(("share_id", "key_id", "benchmark_id", "member_id"), 1),
            "action": "off",
            "extension_id": "random",
            "provider_id": asked.pk,
        }
        self.of_pages = {
            "reveal": {"vote_uid": vote.uid},
            "run-workshop": {"run_id": tuned.pk},
            "run-draft": {"run_id": make_draft().pk},
            "join": {"token": invite_token(invite)},
            "shared-report": {"token": share},
            "shared-bundle": {"token": share},
            "shared-file": {"token": share, "name": "report.html"},
            "try-provider": {"name": asked.name},
        }
        self.client = voter_client(voter)
        name = f"all-{uuid4().hex[:8]}"
        self.client.force_login(
            User.objects.create(username=name, is_staff=True, is_superuser=True)
        )

    @property
    def cookies(self):
        return {name: cookie.value for name, cookie in self.client.cookies.items()}

    def addresses(self):
        """The name and the address of each page."""
        known = get_resolver().reverse_dict
        pages = {name: known.getlist(name)[0][0][0] for name in known if isinstance(name, str)}
        found = {name: self._address(name, wanted) for name, (_, wanted) in sorted(pages.items())}
        others = {name: path.format(**self.values) for name, path in OTHERS.items()}
        return found | others

    def _address(self, name, wanted):
        values = self.values | self.of_pages.get(name, {})
        missing = set(wanted) - values.keys()
        assert not missing, f"{name}: say in {__name__} what {missing} stands for"
        return reverse(name, kwargs={key: values[key] for key in wanted})

    def html(self):
        """Those addresses at which there is a page of HTML for a browser to show."""
        for name, address in self.addresses().items():
            answer = read(self.client.get(address, SERVER_NAME=settings.ALLOWED_HOSTS[0]))
            is_shown = "attachment" not in answer.get("Content-Disposition", "")
            is_html = "html" in answer.get("Content-Type", "") and not answer.streaming
            is_page = is_html and is_shown and b"<html" in answer.content
            if is_page and answer.status_code in (200, 404):
                yield name, address


def read(response):
    """Read a file to its end, so that it is closed."""
    if response.streaming:
        for _ in response.streaming_content:
            pass
    return response
