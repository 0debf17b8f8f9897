from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject


class ReportsConfig(AppConfig):
    name = "reports"

    def ready(self) -> None:
        for module in settings.SCORER_MODULES:
            import_module(module)


def run_tabs(request: HttpRequest) -> dict[str, tuple[tuple[object, ...], ...]]:
    """Tell every template which pages are here, as those below cannot know.

    Of a run: key, title, page, is it for readers. Of the whole site: title, page, how much waits.
    """
    from reports.review.views import count_waiting  # models are not loaded before

    # Asked for where a page shows it, so that other answers cost no query.
    waiting = SimpleLazyObject(lambda: count_waiting(request.user))
    composite = ("composite", "Composite", "run-composite", True)
    is_superuser = getattr(request, "user", None) and request.user.is_superuser
    of_runs = (("quality", "Quality", "run-quality", False), composite)
    return {
        "run_tabs": (
            *of_runs,
            ("scores", "Score files", "run-scores", False),
            ("share", "Share", "run-shares", False),
        ),
        "site_pages": (
            ("Projects", "projects", 0),
            ("Keys", "traced-models", 0),
            ("Providers", "providers", 0),
            ("Review", "review", waiting),
            *([("Extensions", "extensions", 0)] if is_superuser else []),
        ),
    }
