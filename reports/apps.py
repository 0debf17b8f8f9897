from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse


class ReportsConfig(AppConfig):
    name = "reports"

    def ready(self) -> None:
        for module in settings.SCORER_MODULES:
            import_module(module)


def run_tabs(request: HttpRequest) -> dict[str, tuple[tuple[str, str, str, bool], ...]]:
    """Tell every template the tabs of a run that are here: key, title, page, is it for readers."""
    composite = ("composite", "Composite", "run-composite", True)
    return {"run_tabs": (composite, ("scores", "Score files", "run-scores", False))}


def site_pages(request: HttpRequest) -> dict[str, tuple[tuple[str, str], ...]]:
    """Tell every template the pages of an evaluator that are here: title and address."""
    return {"site_pages": (("Models", reverse("traced-models")),)}
