from django.apps import AppConfig


class JudgeEvalConfig(AppConfig):
    name = "judge_eval"
    verbose_name = "Judge evaluation"
