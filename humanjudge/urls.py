"""Every address of the product."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from humanjudge.api import api, grandjury_api
from humanjudge.health import healthz, metrics

# Addresses are tried one after another: what is asked for most stands first.
urlpatterns = [
    path("api/v1/", grandjury_api.urls),
    path("api/", api.urls),
    path("", include("voting.urls")),
    path("", include("judge_eval.urls")),
    path("", include("reports.urls")),
    path("login/", auth.LoginView.as_view(template_name="login.html"), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("healthz", healthz, name="healthz"),
    path("metrics", metrics, name="metrics"),
]

handler400 = "humanjudge.http.bad_request"
handler403 = "humanjudge.http.permission_denied"
handler404 = "humanjudge.http.not_found"
handler500 = "humanjudge.http.server_error"
