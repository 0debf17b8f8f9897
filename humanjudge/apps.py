from django.apps import AppConfig


class HumanJudgeConfig(AppConfig):
    name = "humanjudge"

    def ready(self) -> None:
        from humanjudge.server import checks  # noqa: F401  they register themselves
