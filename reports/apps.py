from importlib import import_module

from django.apps import AppConfig
from django.conf import settings


class ReportsConfig(AppConfig):
    name = "reports"

    def ready(self) -> None:
        for module in settings.SCORER_MODULES:
            import_module(module)
