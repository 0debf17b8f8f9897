"""What users brought is proposed by the page as it is imported, with at most two answers asked."""

from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.helpers.proposals import check_proposal
from tests.makers import user_client

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases"
FILES = [
    path
    for folder in ("field", "exchange")
    for path in sorted((CASES / folder).glob("*/*"))
    if path.name != "README.md"
]

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.django_db,
    pytest.mark.usefixtures("forked_previews"),
    pytest.mark.skipif(not FILES, reason="not run: no ../shared/cases"),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_case_comes_as_the_page_shows_it(path):
    check_proposal(user_client(), SimpleUploadedFile(path.name, path.read_bytes()))
