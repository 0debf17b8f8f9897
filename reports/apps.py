from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject


class ReportsConfig(AppConfig):
    name = "reports"

    def ready(self) -> None:
        # Models are not loaded before.
        from judge_eval.workshop.services import tuning_opens
        from reports.report.before_tuning import keep_reports

        tuning_opens.connect(keep_reports)
        for module in settings.SCORER_MODULES:
            import_module(module)


def site_context(request: HttpRequest) -> dict[str, object]:
    """Tell every template which pages are here, as those below cannot know.

    Of tabs of a run the parts that are made here, as `judge_eval.runs.run_page.FOLDS` has them. Of
    the whole site: title, page, how much waits, and whether it is in the menu.
    """
    # Asked for where a page shows it, so that other answers cost no query.
    return {
        "run_folds": (
            ("models", "composite", "Composite", "run-composite", "see", True),
            ("data", "share", "Share links", "run-shares", "share", False),
            ("data", "scores", "Score files", "run-scores", "see calls", False),
        ),
        "site_pages": SimpleLazyObject(lambda: _site_pages(request)),
    }


def _site_pages(request: HttpRequest) -> tuple[tuple[str, str, object, bool], ...]:
    from reports.review.views import count_waiting  # models are not loaded before
    from voting.access.roles import can_anywhere

    user = request.user
    waiting = SimpleLazyObject(lambda: count_waiting(request))
    pages = (
        ("Runs", "runs", 0, False, True),
        ("Projects", "projects", 0, False, True),
        ("Review", "review", waiting, False, can_anywhere(user, "see people")),
        ("Keys", "traced-models", 0, True, True),
        ("Providers", "providers", 0, True, can_anywhere(user, "run")),
        ("Extensions", "extensions", 0, True, user.is_superuser),
    )
    return tuple(page[:4] for page in pages if page[4])
