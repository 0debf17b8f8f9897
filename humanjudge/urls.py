from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from django.views.generic import RedirectView

from humanjudge.api import api, grandjury_api
from humanjudge.core.http import on_demand
from humanjudge.server.health import healthz, metrics
from voting.access.login import LoginPage

_openid, _PROVIDER = "voting.access.openid", "OIDC_ISSUER"

# Addresses are tried one after another: what is asked for most stands first.
urlpatterns = [
    path("api/v1/", grandjury_api.urls),
    path("api/", api.urls),
    path("", include("voting.urls")),
    path("", include("judge_eval.urls")),
    path("", include("reports.urls")),
    path("login/", LoginPage.as_view(), name="login"),
    path(
        "login/provider/", on_demand(f"{_openid}.start", only_with=_PROVIDER), name="provider-login"
    ),
    path(
        "login/provider/callback",
        on_demand(f"{_openid}.callback", only_with=_PROVIDER),
        name="provider-callback",
    ),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    # One page to log in, whatever it leads to.
    path(
        "admin/login/",
        RedirectView.as_view(pattern_name="login", query_string=True),
        name="admin-login",
    ),
    path("admin/", admin.site.urls),
    path("healthz", healthz, name="healthz"),
    path("metrics", metrics, name="metrics"),
]

handler400 = "humanjudge.core.http.bad_request"
handler403 = "humanjudge.core.http.permission_denied"
handler404 = "humanjudge.core.http.no_such_page"
handler500 = "humanjudge.core.http.server_error"
