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


def run_tabs(request: HttpRequest) -> dict[str, object]:
    """Tell every template which pages are here, as those below cannot know.

    Of a run: key, title, page, what one must be allowed, is it for readers of a shared run too. Of
    the whole site: title, page, how much waits.
    """
    # Asked for where a page shows it, so that other answers cost no query.
    return {
        "run_tabs": (
            ("quality", "Quality", "run-quality", "see", False),
            ("composite", "Composite", "run-composite", "see", True),
            ("scores", "Score files", "run-scores", "see calls", False),
            ("share", "Share", "run-shares", "share", False),
        ),
        "site_pages": SimpleLazyObject(lambda: _site_pages(request)),
    }


def _site_pages(request: HttpRequest) -> tuple[tuple[str, str, object], ...]:
    from reports.review.views import count_waiting  # models are not loaded before
    from voting.access import can_anywhere

    user = request.user
    waiting = SimpleLazyObject(lambda: count_waiting(user))
    providers = (("Providers", "providers", 0),) if can_anywhere(user, "run") else ()
    review = (("Review", "review", waiting),) if can_anywhere(user, "see people") else ()
    more = (("Extensions", "extensions", 0),) if user.is_superuser else ()
    usual = (("Runs", "runs", 0), ("Projects", "projects", 0), ("Keys", "traced-models", 0))
    return (*usual, *providers, *review, *more)
