"""The Celery application; every setting of it stands in settings.py under CELERY_."""

import os

from celery import Celery

from humanjudge.heartbeat import Heartbeat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")

app = Celery("humanjudge")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add(Heartbeat)
