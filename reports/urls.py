from django.urls import path

from reports import composite_views, score_views

urlpatterns = [
    path("runs/<uuid:run_id>/composite/", composite_views.run_composite, name="run-composite"),
    path(
        "runs/<uuid:run_id>/composite/save", composite_views.save_composite, name="save-composite"
    ),
    path("runs/<uuid:run_id>/scores/", score_views.run_scores, name="run-scores"),
    path("runs/<uuid:run_id>/scores/ask", score_views.ask_for_scores, name="ask-for-scores"),
    path(
        "runs/<uuid:run_id>/scores/<uuid:report_id>/download",
        score_views.download_scores,
        name="download-scores",
    ),
]
