"""The REST API: one OpenAPI document, errors as JSON that say what is wrong."""

from __future__ import annotations

from ninja import NinjaAPI

from judge_eval.api import router as runs

api = NinjaAPI(
    title="HumanJudge",
    version="1",
    description="Runs, votes and judge standings. Send an API key as `Authorization: Bearer …`.",
    urls_namespace="api",
    docs_url="/docs",
)
api.add_router("/runs", runs)
