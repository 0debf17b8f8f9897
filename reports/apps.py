from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.http import HttpRequest


class ReportsConfig(AppConfig):
    name = "reports"

    def ready(self) -> None:
        for module in settings.SCORER_MODULES:
            import_module(module)


def run_tabs(request: HttpRequest) -> dict[str, tuple[tuple[str | bool, ...], ...]]:
    """Tell every template which pages are here, as those below cannot know.

    Of a run: key, title, page, is it for readers. Of the whole site: title and page.
    """
    composite = ("composite", "Composite", "run-composite", True)
    of_runs = (("quality", "Quality", "run-quality", False), composite)
    return {
        "run_tabs": (*of_runs, ("scores", "Score files", "run-scores", False)),
        "site_pages": (("Projects", "projects"),),
    }
