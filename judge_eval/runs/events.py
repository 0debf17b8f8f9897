"""What happened to a run, in the order it happened: written here, followed by whoever asks."""

from __future__ import annotations

from typing import Any

from judge_eval.models import Run, RunEvent


def record(run: Run, kind: str, text: str, **data: Any) -> None:
    RunEvent.objects.create(run=run, kind=kind, text=text, data=data)
