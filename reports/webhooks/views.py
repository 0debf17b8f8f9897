"""The page of a project's webhooks: made, tried, turned off and deleted, with what was sent."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from humanjudge.core.http import Context, Problem
from humanjudge.core.text import duration
from reports.models import Delivery, Webhook
from reports.webhooks import services
from reports.webhooks.addresses import AddressRefused
from voting.access.roles import require, require_login, user_of
from voting.models import Project

NEWEST = 10


class WebhookForm(forms.Form):
    url = forms.CharField(
        max_length=500, label="Address", widget=forms.URLInput, help_text="It begins with https://"
    )
    events = forms.MultipleChoiceField(
        label="Events",
        choices=services.EVENTS.items(),
        widget=forms.CheckboxSelectMultiple(attrs={"class": "one-per-line"}),
    )
    line = forms.FloatField(
        min_value=0,
        max_value=100,
        required=False,
        label="Score threshold (%)",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )

    def clean(self) -> None:
        fields = self.cleaned_data
        if "score.crossed" in fields.get("events", ()) and fields.get("line") is None:
            self.add_error("line", "Enter a threshold.")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: HttpRequest, project_id: UUID) -> HttpResponse:
    require(request, "manage", project_id)
    project = get_object_or_404(Project, pk=project_id)
    form = WebhookForm(request.POST if request.method == "POST" else None, label_suffix="")
    context: Context = {"project": project, "form": form}
    if form.is_valid():
        fields, origin = form.cleaned_data, request.build_absolute_uri("/").rstrip("/")
        line = None if fields["line"] is None else fields["line"] / 100
        try:
            webhook = services.make_webhook(
                project, fields["url"], fields["events"], line, origin, user_of(request)
            )
            context |= {"told": webhook, "secret": services.secret_of(webhook)}
            context["form"] = WebhookForm(label_suffix="")
        except (AddressRefused, services.TooManyWebhooks) as error:
            form.add_error("url", str(error))
    return _page(request, context, status=422 if form.errors else 200)


def _page(request: HttpRequest, context: Context, status: int = 200) -> HttpResponse:
    newest = Delivery.objects.order_by("-made_at")[:NEWEST]
    rows = Webhook.objects.filter(project=context["project"]).order_by("-created_at")
    rows = rows.prefetch_related(Prefetch("deliveries", newest, to_attr="newest"))
    context["webhooks"] = [
        (webhook, _event_words(webhook), [(row, _state(row)) for row in webhook.newest])
        for webhook in rows
    ]
    context["tab"] = "webhooks"
    return render(request, "reports/webhooks/webhooks.html", context, status=status)


def _event_words(webhook: Webhook) -> list[str]:
    line = f": {webhook.line:.1%}" if webhook.line is not None else ""
    return [
        words + (line if event == "score.crossed" else "")
        for event, words in services.EVENTS.items()
        if event in webhook.events
    ]


def _state(delivery: Delivery) -> str:
    tries = f"{delivery.tries} tr{'y' if delivery.tries == 1 else 'ies'}"
    if delivery.state == Delivery.State.DELIVERED:
        return f"delivered, after {tries}" if delivery.tries > 1 else "delivered"
    if delivery.state == Delivery.State.FAILED:
        return f"given up after {tries}"
    if not delivery.tries:
        return "waiting"
    left = (delivery.next_try_at - timezone.now()).total_seconds()
    return f"failed after {tries}, next one in {duration(left)}" if left > 0 else "next try is due"


def _find(request: HttpRequest, webhook_id: UUID) -> Webhook:
    require_login(request)
    webhook = get_object_or_404(Webhook.objects.select_related("project"), pk=webhook_id)
    require(request, "manage", webhook.project)
    return webhook


@never_cache
@require_POST
def change_webhook(request: HttpRequest, webhook_id: UUID, action: str) -> HttpResponse:
    webhook = _find(request, webhook_id)
    if action == "secret":
        secret = services.renew_secret(webhook, user_of(request))
        form = WebhookForm(label_suffix="")
        context = {"project": webhook.project, "form": form, "told": webhook, "secret": secret}
        return _page(request, context)
    if action == "test":
        services.ping(webhook)
        messages.success(request, "Test sent; the result appears below.")
    elif action in ("on", "off"):
        services.turn(webhook, is_active=action == "on", actor=user_of(request))
    elif action == "delete":
        services.delete(webhook, user_of(request))
        messages.success(request, f"The webhook to {webhook.url} was deleted.")
    else:
        raise Problem(404, "There is no such action.")
    return redirect("webhooks", webhook.project_id)


@never_cache
@require_POST
def send_again(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
    require_login(request)
    delivery = get_object_or_404(Delivery.objects.select_related("webhook"), pk=delivery_id)
    require(request, "manage", delivery.webhook.project_id)
    services.send_again(delivery)
    return redirect("webhooks", delivery.webhook.project_id)
