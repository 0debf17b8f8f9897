from django.urls import path

from humanjudge.http import on_demand
from judge_eval.pages import (
    board,
    draft,
    findings,
    models,
    pairs,
    progress,
    reveal,
    runs,
)

# Computes with NumPy, which no other page needs.
_alt = "judge_eval.pages.alt_test"

urlpatterns = [
    path("", runs.home, name="home"),
    # Where browsers look on pages that name no icon, as those of the admin.
    path("favicon.ico", runs.favicon, name="favicon"),
    path("runs/", runs.runs, name="runs"),
    path("runs/new/", draft.new_run, name="new-run"),
    path("runs/new/config/", draft.new_run, {"as_config": True}, name="new-run-config"),
    path("runs/<uuid:run_id>/", board.run_board, name="run"),
    path("runs/<uuid:run_id>/draft/", draft.run_draft, name="run-draft"),
    path("runs/<uuid:run_id>/draft/try", draft.try_judge, name="try-judge"),
    path("runs/<uuid:run_id>/draft/delete", draft.delete_draft, name="delete-draft"),
    path("runs/<uuid:run_id>/progress/", progress.run_progress, name="run-progress"),
    path("runs/<uuid:run_id>/start", runs.start_run, name="start-run"),
    path("runs/<uuid:run_id>/stop", runs.stop_run, name="stop-run"),
    path("runs/<uuid:run_id>/resume", runs.resume_run, name="resume-run"),
    path("runs/<uuid:run_id>/retry", runs.retry_run, name="retry-run"),
    path("runs/<uuid:run_id>/duplicate", runs.duplicate_run, name="duplicate-run"),
    path("runs/<uuid:run_id>/calls/", progress.run_calls, name="run-calls"),
    path("runs/<uuid:run_id>/calls/<int:call_id>/", progress.run_call, name="run-call"),
    path("runs/<uuid:run_id>/pairs/", pairs.run_pairs, name="run-pairs"),
    path("runs/<uuid:run_id>/pairs/<uuid:item_id>/", pairs.run_pair, name="run-pair"),
    path("runs/<uuid:run_id>/alt-test/", on_demand(f"{_alt}.run_alt_test"), name="run-alt-test"),
    path(
        "runs/<uuid:run_id>/alt-test/items/",
        on_demand(f"{_alt}.run_items_needed"),
        name="run-items-needed",
    ),
    path("runs/<uuid:run_id>/models/", models.run_models, name="run-models"),
    path(
        "runs/<uuid:run_id>/tables/<slug:table>.<slug:form>",
        findings.run_table,
        name="run-table",
    ),
    path("runs/<uuid:run_id>/charts/<slug:chart>.svg", findings.run_chart, name="run-chart"),
    path("runs/<uuid:run_id>/vote/", runs.run_voting, name="run-voting"),
    path("runs/<uuid:run_id>/vote/me", runs.vote_as_user, name="vote-as-user"),
    path(
        "runs/<uuid:run_id>/vote/invites/<uuid:invite_id>/withdraw",
        runs.withdraw_invite,
        name="withdraw-invite",
    ),
    path("reveal/<uuid:vote_uid>/", reveal.reveal, name="reveal"),
]
