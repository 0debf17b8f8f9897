from django.apps import AppConfig


class JudgeEvalConfig(AppConfig):
    name = "judge_eval"
    verbose_name = "Judge evaluation"

    def ready(self) -> None:
        from judge_eval.extensions.loading import load  # models are not loaded before

        load()
