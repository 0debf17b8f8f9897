"""People, models with keys, and votes on what they log, for tests of the GrandJury protocol."""

from django.contrib.auth.models import User

from reports.grandjury import services
from reports.grandjury.services import PERSON_SCOPES
from reports.models import Trace
from tests.makers import key_client
from voting.ballot.assignment import ballot_for
from voting.ballot.services import cast_vote
from voting.items.kinds import MILLION, VoteDetails
from voting.models import Voter


def post(client, path, body=None):
    return client.post(f"/api/v1/{path}", body or {}, content_type="application/json")


def get(client, path, **query):
    return client.get(f"/api/v1/{path}", query)


def rows(client, path, **query):
    response = get(client, path, **query)
    assert response.status_code == 200, response.content
    return response.json()


class Person:
    """An evaluator with a key of their own."""

    def __init__(self, name="ada", scopes=PERSON_SCOPES, project=None):
        self.user, _ = User.objects.update_or_create(username=name, defaults={"is_superuser": True})
        _, self.token = services.create_person_key(self.user, "a script", scopes, project)
        self.client = key_client(self.token)

    def model(self, name="Bot", project=None, **more):
        return Model(*services.create_model(self.user, project, name, **more))


class Model:
    def __init__(self, row, secret):
        self.row = row
        self.secret = secret
        self.client = key_client(secret)
        self.benchmark = row.enrollments.get().benchmark

    @property
    def path(self):
        return f"models/{self.row.slug}/evaluations"

    def log(self, trace_id="t-1", output="An answer", **more):
        body = {"gj_inference_id": trace_id, "input": "A question", "output": output} | more
        return post(self.client, "traces/ingest", body)

    def logged(self, *names):
        """Log traces and return their items."""
        for name in names:
            assert self.log(name).status_code == 201
        return [self.item(name) for name in names]

    def item(self, name="t-1"):
        return (
            Trace.objects.select_related("item__queue")
            .get(trace_id=name, enrollment__model=self.row)
            .item
        )


def make_voter(project, name="Vera", **more):
    return Voter.objects.create(project=project, name=name, **more)


def vote(voter, item, choice="pass", *, category="", comment=""):
    further = VoteDetails(MILLION if choice == "pass" else 0, category, comment)
    return cast_vote(ballot_for(voter, item.queue, item), choice, left="", details=further)
