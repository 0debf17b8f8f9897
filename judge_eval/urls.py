from django.urls import path

from judge_eval import views

urlpatterns = [
    path("", views.home, name="home"),
    path("runs/", views.runs, name="runs"),
    path("runs/<uuid:run_id>/", views.run_board, name="run"),
    path("runs/<uuid:run_id>/pairs/", views.run_pairs, name="run-pairs"),
    path("runs/<uuid:run_id>/pairs/<uuid:comparison_id>/", views.run_pair, name="run-pair"),
    path("runs/<uuid:run_id>/vote/", views.run_voting, name="run-voting"),
    path("runs/<uuid:run_id>/vote/me", views.vote_as_user, name="vote-as-user"),
    path("reveal/<uuid:vote_uid>/", views.reveal, name="reveal"),
]
