from django.urls import path, re_path

from voting.ballot import views

_PICTURE = "^pictures/(?P<png_sha256>[0-9a-f]{64})"

urlpatterns = [
    path("vote/<uuid:queue_id>/ballot", views.vote, name="cast-vote"),
    path("vote/<uuid:queue_id>/", views.vote_page, name="vote"),
    path("vote/<uuid:queue_id>/pairs", views.more_pairs, name="more-pairs"),
    path("vote/<uuid:queue_id>/leave", views.leave, name="leave"),
    path("vote/<uuid:queue_id>/undo", views.undo, name="undo"),
    path("vote/<uuid:queue_id>/skip", views.skip, name="skip"),
    path("vote/<uuid:queue_id>/flag", views.flag, name="flag"),
    path("vote/<uuid:queue_id>/mine", views.my_votes, name="my-votes"),
    path("join/<str:token>/", views.join_by_invite, name="join"),
    re_path(rf"{_PICTURE}\.png$", views.picture, {"suffix": "png"}, name="picture"),
    re_path(rf"{_PICTURE}\.webp$", views.picture, {"suffix": "webp"}, name="thumbnail"),
]
