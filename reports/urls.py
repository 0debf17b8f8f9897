from django.urls import path

from humanjudge.core.http import on_demand
from reports.grandjury import views
from reports.projects.views import audit, home, people, settings
from reports.quality import views as quality
from reports.report.views import shared_report, shares
from reports.review import views as review
from reports.webhooks import views as webhooks

# These pages know every scorer or draw ranks with NumPy, which no other page needs.
_composites, _scores = "reports.composite.views", "reports.scores.views"
_pages = "projects/<uuid:project_id>"
_project = f"{_pages}/quality"
_run, _zip = "runs/<uuid:run_id>", "scores/<uuid:report_id>/download"

urlpatterns = [
    path("", home.home, name="home"),
    # Where browsers look on pages that name no icon, as those of the admin.
    path("favicon.ico", home.favicon, name="favicon"),
    path("projects/", quality.projects, name="projects"),
    path("projects/new/", quality.new_project, name="new-project"),
    path(f"{_project}/", quality.project_quality, name="project-quality"),
    path(f"{_project}/settings", quality.change_settings, name="change-quality-settings"),
    path(f"{_pages}/people/", people.people, name="project-people"),
    path(f"{_pages}/people/add", people.add_member, name="add-member"),
    path(f"{_pages}/members/<int:member_id>", people.change_member, name="change-member"),
    path(f"{_pages}/voters/<uuid:voter_id>", people.change_reputation, name="change-reputation"),
    path(f"{_pages}/audit/", audit.audit, name="project-audit"),
    path(f"{_pages}/settings/", settings.settings, name="project-settings"),
    path(f"{_pages}/settings/save", settings.save_settings, name="save-project-settings"),
    path(f"{_pages}/keys/", settings.keys, name="project-keys"),
    path(f"{_pages}/keys/new", settings.make_key, name="make-project-key"),
    path(f"{_pages}/keys/<int:key_id>", settings.revoke_key, name="revoke-project-key"),
    path(f"{_run}/quality/", quality.run_quality, name="run-quality"),
    path("review/", review.review_list, name="review"),
    path("review/decide", review.decide_many, name="decide-many"),
    path("review/<uuid:item_id>/", review.review_item, name="review-item"),
    path("review/<uuid:item_id>/decide", review.decide_one, name="decide"),
    path("review/decisions/<uuid:uid>/reverse", review.reverse_decision, name="reverse-decision"),
    path(f"{_run}/composite/", on_demand(f"{_composites}.run_composite"), name="run-composite"),
    path(
        f"{_run}/composite/save", on_demand(f"{_composites}.save_composite"), name="save-composite"
    ),
    path(f"{_run}/scores/", on_demand(f"{_scores}.run_scores"), name="run-scores"),
    path(f"{_run}/scores/ask", on_demand(f"{_scores}.request_scores_page"), name="ask-for-scores"),
    path("models/", views.models_page, name="traced-models"),
    path("models/new", views.make_model, name="make-model"),
    path("models/keys/new", views.make_person_key, name="make-person-key"),
    path("models/keys/<int:key_id>/revoke", views.revoke_person_key, name="revoke-person-key"),
    path("models/<uuid:model_id>/key", views.renew_model_key, name="renew-model-key"),
    path("models/<uuid:model_id>/revoke", views.revoke_model_key, name="revoke-model-key"),
    path("models/benchmarks/<int:benchmark_id>", views.open_benchmark, name="open-benchmark"),
    path(f"{_run}/share/", shares.run_shares, name="run-shares"),
    path("projects/<uuid:project_id>/share/", shares.project_shares, name="project-shares"),
    path("projects/<uuid:project_id>/webhooks/", webhooks.webhooks, name="webhooks"),
    path("webhooks/<uuid:webhook_id>/<str:action>", webhooks.change_webhook, name="change-webhook"),
    path("webhooks/deliveries/<uuid:delivery_id>/again", webhooks.send_again, name="send-again"),
    path("shares/<int:share_id>/revoke", shares.revoke, name="revoke-share"),
    path("r/<str:token>/", shared_report.shared_report, name="shared-report"),
    path("r/<str:token>/bundle.zip", shared_report.shared_bundle, name="shared-bundle"),
    path("r/<str:token>/<str:name>", shared_report.shared_file, name="shared-file"),
    path(f"{_run}/{_zip}", on_demand(f"{_scores}.download_scores"), name="download-scores"),
]
