"""Finding extensions, once for each process, before its first request or task."""

from django.conf import settings

from humanjudge.core import extensions
from judge_eval.imports import formats  # noqa: F401

# Each makes the registry of a kind.
from judge_eval.judging import baselines  # noqa: F401
from judge_eval.judging.config import judge_types, modes  # noqa: F401
from judge_eval.judging.providers import protocols  # noqa: F401
from judge_eval.stats import registry  # noqa: F401


def load() -> None:
    extensions.load(settings.HUMANJUDGE_EXTENSIONS)
