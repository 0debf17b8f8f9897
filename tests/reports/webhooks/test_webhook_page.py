"""The page of webhooks: for owners, secrets shown once, deliveries in words, a fixed cost."""

import pytest

from reports.models import Delivery, Webhook
from reports.webhooks import sending, services
from tests.helpers.pages import queries_of, text_of
from tests.helpers.receiver import Receiver
from tests.makers import make_project, member_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(settings):
    settings.WEBHOOK_ALLOW_PRIVATE = ["127.0.0.0/8"]
    with Receiver() as running:
        yield running


@pytest.fixture
def project():
    return make_project()


def page_of(project):
    return f"/projects/{project.pk}/webhooks/"


def make(client, project, url, **given):
    return client.post(page_of(project), {"url": url, "events": ["run.complete"], **given})


def test_a_webhook_is_made_tried_turned_off_and_deleted(receiver, project):
    owner = member_client(project, "owner")
    answer = make(owner, project, receiver.url, events=["score.crossed"], line="62.5")
    webhook = Webhook.objects.get()
    secret = services.secret_of(webhook)
    assert secret in answer.content.decode()
    assert "A quality score crosses a line: 62.5%" in text_of(answer)
    assert webhook.line == 0.625
    assert secret not in owner.get(page_of(project)).content.decode()

    def change(action):
        return owner.post(f"/webhooks/{webhook.pk}/{action}", follow=True)

    change("test")
    sending.deliver(webhook.pk)
    assert len(receiver.came) == 1
    assert "This is a test: the webhook works." in text_of(owner.get(page_of(project)))
    renewed = change("secret").content.decode()
    webhook.refresh_from_db()
    assert secret not in renewed
    assert services.secret_of(webhook) in renewed
    owner.post(f"/webhooks/deliveries/{Delivery.objects.get().pk}/again")
    assert Delivery.objects.get().state == "waiting"
    change("off")
    sending.deliver(webhook.pk)
    assert len(receiver.came) == 1
    change("on")
    assert change("nonsense").status_code == 404
    change("delete")
    assert not Webhook.objects.exists()


@pytest.mark.parametrize(
    "given, why",
    [
        ({"url": "https://127.0.0.1/"}, "leads to 127.0.0.1, which is a loopback address"),
        ({"url": "http://169.254.169.254/latest"}, "link-local"),
        ({"url": "ftp://example.org/"}, "begins with https://"),
        ({"url": "https://h.example.org/", "events": []}, "This field is required"),
        ({"url": "https://h.example.org/", "events": ["score.crossed"]}, "Enter a threshold."),
        ({"url": "https://h.example.org/", "events": ["other"]}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(project, given, why):
    answer = member_client(project, "owner").post(
        page_of(project), {"events": ["run.complete"], **given}
    )
    assert answer.status_code == 422
    assert why in text_of(answer)
    assert not Webhook.objects.exists()


def test_the_page_costs_the_same_for_many(receiver, project):
    owner = member_client(project, "owner")
    make(owner, project, receiver.url)
    services.ping(Webhook.objects.get())
    few = queries_of(owner, page_of(project))
    for _ in range(4):
        make(owner, project, receiver.url)
    for webhook in [*Webhook.objects.all()] * 4:
        services.ping(webhook)
    assert queries_of(owner, page_of(project)) == few


def test_how_a_delivery_gets_on_is_said(receiver, project):
    owner = member_client(project, "owner")
    make(owner, project, receiver.url)
    receiver.mode = "error"
    services.ping(webhook := Webhook.objects.get())
    sending.deliver(webhook.pk)
    said = text_of(owner.get(page_of(project)))
    assert "failed after 1 try, next one in 60 s" in said
    assert "status 500" in said
    Delivery.objects.update(state="failed", tries=10)
    assert "given up after 10 tries" in text_of(owner.get(page_of(project)))
