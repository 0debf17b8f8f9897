"""The WSGI application that granian serves."""

import os

from django.core.wsgi import get_wsgi_application
from kombu.transport import redis  # noqa: F401  loaded here, not while the first vote waits

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")

application = get_wsgi_application()
