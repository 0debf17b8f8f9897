from django.urls import path

from humanjudge.http import on_demand

# These pages know every scorer or draw ranks with NumPy, which no other page needs.
_composite, _scores = "reports.composite.views", "reports.scores.views"

urlpatterns = [
    path(
        "runs/<uuid:run_id>/composite/",
        on_demand(f"{_composite}.run_composite"),
        name="run-composite",
    ),
    path(
        "runs/<uuid:run_id>/composite/save",
        on_demand(f"{_composite}.save_composite"),
        name="save-composite",
    ),
    path("runs/<uuid:run_id>/scores/", on_demand(f"{_scores}.run_scores"), name="run-scores"),
    path(
        "runs/<uuid:run_id>/scores/ask",
        on_demand(f"{_scores}.ask_for_scores"),
        name="ask-for-scores",
    ),
    path(
        "runs/<uuid:run_id>/scores/<uuid:report_id>/download",
        on_demand(f"{_scores}.download_scores"),
        name="download-scores",
    ),
]
