from django.urls import include, path
from django.views.generic import RedirectView

from humanjudge.core.http import on_demand
from judge_eval.board.views import board, findings, invites, models, pairs, people, reveal
from judge_eval.extensions import views
from judge_eval.imports import views as imports_views
from judge_eval.judging.views import calls, providers
from judge_eval.runs import lifecycle
from judge_eval.runs.views import draft, run

# Of what the page of exports showed; its files stay where they were.
_moved = RedirectView.as_view(
    pattern_name="run-data", permanent=True, http_method_names=["get", "head"]
)
# They compute with NumPy, which no other page needs.
_alt = "judge_eval.board.views.alt_test"
_workshop = "judge_eval.workshop.views"

of_a_run = [
    path("", board.run_board, name="run"),
    path("draft/", draft.run_draft, name="run-draft"),
    path("draft/try", draft.try_judge, name="try-judge"),
    path("draft/delete", draft.delete_draft, name="delete-draft"),
    path("progress/", run.run_progress, name="run-progress"),
    path("start", run.act, {"action": lifecycle.start}, name="start-run"),
    path("stop", run.act, {"action": lifecycle.stop}, name="stop-run"),
    path("resume", run.resume_run, name="resume-run"),
    path("retry", run.retry_run, name="retry-run"),
    path("judges", run.add_judges, name="add-judges"),
    path("workshop/", on_demand(f"{_workshop}.run_workshop"), name="run-workshop"),
    path("workshop/open", on_demand(f"{_workshop}.open_tuning"), name="open-tuning"),
    path("workshop/end", on_demand(f"{_workshop}.end_tuning"), name="end-tuning"),
    path("workshop/add", on_demand(f"{_workshop}.add_variant"), name="add-variant"),
    path("workshop/<uuid:judge_id>/ask", on_demand(f"{_workshop}.ask_variant"), name="ask-variant"),
    path("workshop/<uuid:judge_id>/look", on_demand(f"{_workshop}.look"), name="look-held-out"),
    path("workshop/<uuid:judge_id>/use", on_demand(f"{_workshop}.use_judge"), name="use-judge"),
    path("workshop/<uuid:judge_id>/drop", on_demand(f"{_workshop}.drop"), name="drop-variant"),
    path("workshop/<uuid:judge_id>/tag", on_demand(f"{_workshop}.tag"), name="tag-disagreement"),
    path(
        "workshop/<uuid:judge_id>/suggest",
        on_demand(f"{_workshop}.suggest_wording"),
        name="suggest-wording",
    ),
    path("anchors", run.change_anchors, name="change-anchors"),
    path("leave-out", run.leave_out, name="leave-out-judge"),
    path("judges/<uuid:judge_id>/include", run.include, name="include-judge"),
    path("duplicate", run.act, {"action": lifecycle.duplicate}, name="duplicate-run"),
    path("archive", run.act, {"action": lifecycle.archive}, name="archive-run"),
    path("unarchive", run.act, {"action": lifecycle.unarchive}, name="unarchive-run"),
    path("delete/", run.delete_run, name="delete-run"),
    path("calls/", calls.run_calls, name="run-calls"),
    path("calls/<int:call_id>/", calls.run_call, name="run-call"),
    path("pairs/", pairs.run_pairs, name="run-pairs"),
    path("pairs/<uuid:item_id>/", pairs.run_pair, name="run-pair"),
    path("alt-test/", on_demand(f"{_alt}.run_alt_test"), name="run-alt-test"),
    path("alt-test/items/", on_demand(f"{_alt}.run_items_needed"), name="run-items-needed"),
    path("models/", models.run_generators, name="run-models"),
    path("tables/<slug:table>.<slug:form>", findings.run_table, name="run-table"),
    path("charts/<slug:chart>.svg", findings.run_chart, name="run-chart"),
    path("people/", people.run_people, name="run-people"),
    path("people/question", people.change_question, name="change-question"),
    path("people/votes-wanted", people.change_votes_per_item, name="change-votes-wanted"),
    path("people/<uuid:voter_id>/group", people.change_group, name="change-group"),
    path("people/<uuid:voter_id>/exclude", people.exclude, name="exclude-voter"),
    path("people/decisions/<uuid:decision_id>/take-back", people.take_back, name="take-back"),
    path("vote/", people.make_invite, name="make-invite"),
    path("figures", board.see_figures, name="see-figures"),
    path("vote/me", invites.vote_as_user, name="vote-as-user"),
    path("vote/personal", people.make_personal_invites, name="make-personal-invites"),
    path("vote/invites/<uuid:invite_id>/qr.svg", invites.invite_qr, name="invite-qr"),
    path("vote/invites/<uuid:invite_id>/withdraw", invites.withdraw_invite, name="withdraw-invite"),
    path("import/", imports_views.upload_files, name="run-import"),
    path("data/", imports_views.run_data, name="run-data"),
    path("export/", _moved, name="run-export"),
    path("export/<slug:form>", imports_views.run_file, name="run-file"),
]
urlpatterns = [
    path("planner/", on_demand("judge_eval.planner.views.planner"), name="planner"),
    path("runs/", run.runs, name="runs"),
    path("runs/new/", draft.new_run, name="new-run"),
    path("runs/new/config/", draft.new_run, {"as_config": True}, name="new-run-config"),
    path("runs/import/", imports_views.upload_files, name="import-files"),
    path("imports/<uuid:import_id>/", imports_views.import_page, name="import"),
    path("imports/<uuid:import_id>/stop", imports_views.stop_import, name="stop-import"),
    path("imports/<uuid:import_id>/discard", imports_views.discard_import, name="discard-import"),
    path("runs/<uuid:run_id>/", include(of_a_run)),
    path("providers/", providers.provider_list, name="providers"),
    path("providers/new/", providers.edit_provider, name="new-provider"),
    path("providers/<int:provider_id>/", providers.edit_provider, name="change-provider"),
    path("providers/<path:name>/try", providers.try_provider, name="try-provider"),
    path("extensions/", views.extension_list, name="extensions"),
    path("extensions/<str:extension_id>", views.switch_extension, name="switch-extension"),
    path("reveal/<uuid:vote_uid>/", reveal.reveal, name="reveal"),
]
