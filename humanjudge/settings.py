"""Settings, all from the environment (see .env.example). There is no second settings file."""

import gc
import os
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONE, SELF
from environs import Env

from humanjudge.core import environment
from humanjudge.server.launcher import embedded

BASE_DIR = environment.ROOT

# What one machine keeps: the embedded database, pictures, the broker's log, the secret key.
# Processes started from here need the environment too, and the keys of providers are read from
# nowhere else.
DATA = embedded.data_folder(environment.load())
env = Env()
# Matrices here are many and small: threads within one would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

DEBUG = env.bool("DEBUG", False)
SECRET_KEY = env.str("SECRET_KEY", "") or embedded.secret_key(DATA)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", [])
# Behind a proxy that speaks HTTPS: secure cookies, redirects, and its word for the scheme.
HTTPS = env.bool("HTTPS", False)

INSTALLED_APPS = [
    "reports",
    "judge_eval",
    "voting",
    "humanjudge",
    "ninja",
    "csp",
    "django_htmx",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "humanjudge.server.metrics.RequestMetrics",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "humanjudge.core.http.CompressionMiddleware",
    "humanjudge.core.http.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "humanjudge.core.http.ProblemMiddleware",
]

ROOT_URLCONF = "humanjudge.urls"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # In a wheel they are the app's own, as are the static files.
        "DIRS": [BASE_DIR / "templates"] if environment.IS_CHECKOUT else [],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "voting.ballot.views.go_on_voting",
                "voting.access.roles.may_here",
                "reports.apps.site_context",
            ],
            "builtins": [
                "django_htmx.templatetags.django_htmx",
                "humanjudge.core.code",
                "humanjudge.core.markdown",
                "judge_eval.runs.run_page",
                "reports.projects.page_header",
                "voting.items.turns",
            ],
        },
    }
]

# Sealing and replaying make rows by the thousand, none of them in a cycle: looking for cycles
# every 700 objects, as Python does by default, took a sixth of their time.
gc.set_threshold(20_000, 20, 50)

_embedded = {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA / "humanjudge.sqlite3"}
_database: dict[str, Any] = (
    env.dj_db_url("DATABASE_URL") if env.str("DATABASE_URL", "") else _embedded
)
if _database["ENGINE"] == "django.db.backends.sqlite3":
    # The one writer takes the lock at BEGIN: no upgrade from reader to writer can deadlock. FULL
    # makes a commit survive a power cut, as an acknowledged vote must. Who has waited 8 s for the
    # lock is answered with 503 before the voting page gives up, and the page sends its vote again.
    _database["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 8,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
    # Whoever closes the file last writes its log back into it, which took longer than a vote.
    _database["CONN_MAX_AGE"] = None
else:
    _database["CONN_MAX_AGE"] = 0
    _database.setdefault("OPTIONS", {})["pool"] = {
        "min_size": 1,
        "max_size": env.int("DATABASE_POOL", 12),
        "timeout": 3,
        # Pauses between tries double until this time is over, and then begin anew: after an outage
        # of any length, a new try is never more than a second or two away.
        "reconnect_timeout": 2,
    }
    # How often a hand-written statement runs on a connection before PostgreSQL keeps its plan.
    # A pooler that hands one connection to many clients may not know prepared statements.
    _database["OPTIONS"]["prepare_threshold"] = 5 if env.bool("DATABASE_PREPARE", True) else None
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
STATIC_ROOT = env.str("STATIC_ROOT", "") or DATA / "static"
STATICFILES_DIRS = [BASE_DIR / "static"] if environment.IS_CHECKOUT else []
# Pictures: a folder that all machines share, or a bucket (`pip install humanjudge[s3]`).
_bucket = env.str("PICTURES_BUCKET", "")
_pictures: dict[str, Any] = {
    "BACKEND": "django.core.files.storage.FileSystemStorage",
    "OPTIONS": {"location": DATA / "pictures"},
}
if _bucket:
    _pictures = {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": _bucket,
            "endpoint_url": env.str("PICTURES_ENDPOINT", "") or None,
            "default_acl": "private",
        },
    }
STORAGES = {
    "default": _pictures,
    "staticfiles": {"BACKEND": "humanjudge.core.static_files.ReadableStaticFiles"},
}
# Pictures and uploads: Django's own default lets everybody on the machine read them.
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
SVG_RENDERER = env.str("SVG_RENDERER", "resvg")

CELERY_BROKER_URL = env.str("REDIS_URL", "") or f"redis+socket://{embedded.broker_socket(DATA)}"
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# The rows say what is left to do and a sweep asks for it again; Redis need not remember for long.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 60,
    # One try to publish: what is not published now, the sweep publishes.
    "max_retries": 0,
    "interval_start": 0,
    "socket_connect_timeout": 1,
    "socket_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 10,
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_DEFAULT_QUEUE = "votes"
CELERY_TASK_ROUTES = {
    "judge_eval.tasks.render": {"queue": "rendering"},
    "judge_eval.tasks.work": {"queue": "judging"},
    "judge_eval.tasks.try_provider": {"queue": "judging"},
    "judge_eval.tasks.import_next": {"queue": "judging"},
    "judge_eval.tasks.compute_findings": {"queue": "judging"},
    "judge_eval.tasks.refresh_findings": {"queue": "judging"},
    "judge_eval.tasks.remove_old_replies": {"queue": "judging"},
    "judge_eval.tasks.ask_anchors": {"queue": "judging"},
    "reports.tasks.make_score_files": {"queue": "judging"},
    "reports.tasks.publish_heads": {"queue": "judging"},
    "reports.tasks.deliver": {"queue": "judging"},
}
CELERY_WORKER_CONSUMER = "humanjudge.server.celery_consumer:Consumer"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULER = "humanjudge.celery:Clock"
CELERY_BEAT_SCHEDULE = {
    "seal what a lost task left behind": {"task": "voting.tasks.sweep", "schedule": 3.0},
    "go on with runs": {"task": "judge_eval.tasks.sweep", "schedule": 5.0},
    "compute what is behind": {"task": "judge_eval.tasks.refresh_findings", "schedule": 2.0},
    "make score files that were lost": {"task": "reports.tasks.sweep", "schedule": 15.0},
    # More often than daily: the clock begins anew with each start.
    "remove old replies": {"task": "judge_eval.tasks.remove_old_replies", "schedule": 3600.0},
    "ask anchors again": {"task": "judge_eval.tasks.ask_anchors", "schedule": 300.0},
    "publish heads of ledgers": {"task": "reports.tasks.publish_heads", "schedule": 600.0},
}

# The endpoint named "default", unless the admin has one of that name; see .env.example.
PROVIDER_BASE_URL = env.str("PROVIDER_BASE_URL", "")
PROVIDER_KEY_VARIABLE = env.str("PROVIDER_KEY_VARIABLE", "")
# The most calls that one worker process makes at once: fewer than the files that most systems let
# a process open. Below that, providers say how many; threads are started as they are needed.
JUDGING_THREADS = env.int("JUDGING_THREADS", 512)

IMPORT_MAX_FILES = 50
IMPORT_MAX_MB = env.int("IMPORT_MAX_MB", 64)
# All files together.
IMPORT_MAX_TOTAL_MB = 4 * IMPORT_MAX_MB
IMPORT_MAX_UNPACKED_MB = env.int("IMPORT_MAX_UNPACKED_MB", 1024)
IMPORT_MAX_ROWS = env.int("IMPORT_MAX_ROWS", 500_000)
# Of a processor, for reading; for each MB of the files there are 10 more.
IMPORT_MAX_SECONDS = env.int("IMPORT_MAX_SECONDS", 120)

# Modules with scorers of one's own, imported when a process starts: each registers its scorers,
# which reports then take by name, over the web too.
SCORER_MODULES: list[str] = env.list("SCORER_MODULES", [])

# Extensions by their dotted names, beside those that installed packages bring: docs/extending.md.
HUMANJUDGE_EXTENSIONS: list[str] = env.list("HUMANJUDGE_EXTENSIONS", [])

# Votes younger than this wait for the next round, so that a batch is in the order of its times.
SEAL_WINDOW_MS = 40
SEAL_BATCH = 1000
LEDGER_PROJECTIONS = [
    "voting.ledger.groups.VoterGroups",
    "voting.ballot.tuning.Halves",
    "voting.ledger.counts.VoteCounts",
    "judge_eval.ledger.projection.JudgeElo",
    "reports.quality.projection.QualityScore",
    "reports.review.projection.ReviewList",
    "judge_eval.ledger.objects.Objects",
    "reports.report.stored.StoredFigures",
]

VOTES_PER_SECOND = env.float("VOTES_PER_SECOND", 10.0)
VOTES_BURST = env.int("VOTES_BURST", 60)
# So many a page holds, the one on the screen included.
PAIRS_HELD = 6
LEASE_MINUTES = 5
# What voting pages link to in the app above theirs: functions of that app return the addresses.
BOARD_ADDRESS = "judge_eval.runs.access.board_address"
REVEAL_ADDRESS = "judge_eval.runs.access.reveal_address"
# What is told of an item that a voter has flagged.
FLAGGED = "reports.review.services.flagged"
# What says why a run must not be deleted, where the app above needs it.
RUN_IN_USE = "reports.grandjury.queries.deletion_obstacle"
# What is told of what happens in a project: see humanjudge.core.domain_events.
ANNOUNCE = "reports.webhooks.services.announce"
# Who writes it into the ledger when the settings of queues, or their project's name, are changed.
RECORD_QUEUES = "judge_eval.ledger.objects.record_changed_queues"

# Networks with private addresses that webhooks may be sent to, without TLS too.
WEBHOOK_ALLOW_PRIVATE: list[str] = env.list("WEBHOOK_ALLOW_PRIVATE", [])

# Where the heads of ledgers are told daily: `log`, and addresses of mail.
LEDGER_HEADS_TO: list[str] = env.list("LEDGER_HEADS_TO", [])
EMAIL_HOST, EMAIL_PORT = env.str("EMAIL_HOST", "localhost"), env.int("EMAIL_PORT", 25)
EMAIL_HOST_USER = env.str("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = env.str("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS, EMAIL_TIMEOUT = env.bool("EMAIL_USE_TLS", False), 10
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", "humanjudge@localhost")

# What waits for its body takes no thread: see humanjudge.server.rsgi.
WEB_THREADS = env.int("WEB_THREADS", 4)
WEB_PROCESSES = env.int("WEB_PROCESSES", 2)
BODY_SECONDS = env.float("BODY_SECONDS", 10.0)
# The most that an import takes, with the form around it.
MOST_BODY = (IMPORT_MAX_TOTAL_MB + 2) << 20
UPLOADS_AT_ONCE = 8

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "connect-src": [SELF],
        "font-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
CSRF_FAILURE_VIEW = "humanjudge.core.http.csrf_failure"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|metrics)$"]
# Subdomains are often somebody else's, and a browser that has heard of HSTS cannot be told
# otherwise until its time is up: without being asked for they are left out, which is no fault.
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", 31_536_000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("HSTS_SUBDOMAINS", False)
SECURE_HSTS_PRELOAD = env.bool("HSTS_PRELOAD", False)
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}Validator"}
    for name in ("UserAttributeSimilarity", "MinimumLength", "CommonPassword", "NumericPassword")
]
# Limits on guessing passwords: see voting.access.login.
AUTHENTICATION_BACKENDS = ["voting.access.login.LimitedBackend"]
# The team's own identity provider, for voting.access.openid; without an issuer there is none.
OIDC_ISSUER, OIDC_CLIENT_ID = env.str("OIDC_ISSUER", ""), env.str("OIDC_CLIENT_ID", "")
OIDC_CLIENT_SECRET = env.str("OIDC_CLIENT_SECRET", "")
# What the button says; the host of the issuer unless it is named.
OIDC_NAME = env.str("OIDC_NAME", "") or urlsplit(OIDC_ISSUER).netloc
OIDC_SCOPE = env.str("OIDC_SCOPE", "") or "openid email profile"
# Whoever is in this group of the provider administers this server, and nobody else of it does.
OIDC_ADMIN_GROUP = env.str("OIDC_ADMIN_GROUP", "")
OIDC_GROUPS_CLAIM = env.str("OIDC_GROUPS_CLAIM", "") or "groups"
PASSWORD_LOGIN = env.bool("PASSWORD_LOGIN", True)
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False

# Who may read `/metrics` from elsewhere; without it, only this machine may.
METRICS_TOKEN = env.str("METRICS_TOKEN", "")

LOG_FORMAT = env.str("LOG_FORMAT", "") or "lines"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "lines": {
            "()": "humanjudge.server.logs.Lines",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        },
        "json": {"()": "humanjudge.server.logs.Json"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            # A wrong name is refused by a check.
            "formatter": LOG_FORMAT if LOG_FORMAT == "json" else "lines",
        }
    },
    "root": {"handlers": ["console"], "level": env.str("LOG_LEVEL", "WARNING")},
    # An address that is not there, or a form that is refused, is no event of this server's.
    "loggers": {"django.request": {"level": "ERROR"}},
}
