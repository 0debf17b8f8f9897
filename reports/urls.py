from django.urls import path

from humanjudge.http import on_demand
from reports.grandjury import pages

# These pages know every scorer or draw ranks with NumPy, which no other page needs.
_made, _scores = "reports.composite.views", "reports.scores.views"
_run, _zip = "runs/<uuid:run_id>", "scores/<uuid:report_id>/download"

urlpatterns = [
    path(f"{_run}/composite/", on_demand(f"{_made}.run_composite"), name="run-composite"),
    path(f"{_run}/composite/save", on_demand(f"{_made}.save_composite"), name="save-composite"),
    path(f"{_run}/scores/", on_demand(f"{_scores}.run_scores"), name="run-scores"),
    path(f"{_run}/scores/ask", on_demand(f"{_scores}.ask_for_scores"), name="ask-for-scores"),
    path("models/", pages.models_page, name="traced-models"),
    path("models/new", pages.make_model, name="make-model"),
    path("models/keys/new", pages.make_person_key, name="make-person-key"),
    path("models/keys/<int:key_id>/revoke", pages.revoke_person_key, name="revoke-person-key"),
    path("models/<uuid:model_id>/key", pages.renew_model_key, name="renew-model-key"),
    path("models/<uuid:model_id>/revoke", pages.revoke_model_key, name="revoke-model-key"),
    path("models/benchmarks/<int:benchmark_id>", pages.open_benchmark, name="open-benchmark"),
    path(f"{_run}/{_zip}", on_demand(f"{_scores}.download_scores"), name="download-scores"),
]
