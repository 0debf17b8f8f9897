"""What every test shares. Rows are made by the plain functions of tests.makers."""

import hypothesis
from django.conf import settings

# A slow machine is no failure; what failed is printed so that it can be run again.
hypothesis.settings.register_profile("humanjudge", deadline=None, print_blob=True)
# For `make test-fast`.
hypothesis.settings.register_profile("fast", deadline=None, print_blob=True, max_examples=20)
hypothesis.settings.load_profile("humanjudge")


def pytest_configure():
    # Pages name their stylesheets without a manifest, which only a collected STATIC_ROOT has.
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = settings.STORAGES | {"staticfiles": plain}
    settings.STATIC_ROOT.mkdir(exist_ok=True)
