"""No provider goes by a name that stands for judges that are asked nowhere."""

import pytest
from django.core.exceptions import ValidationError

from judge_eval.models import RESERVED_NAMES, Judge, Provider

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", RESERVED_NAMES)
def test_it_is_refused(name):
    provider = Provider(name=name, base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ValidationError, match=f"{name} is what judges that are not asked go by"):
        provider.full_clean()


def test_these_are_all_and_others_are_taken():
    assert set(RESERVED_NAMES) == {Judge.BASELINE, Judge.IMPORTED}
    Provider(name="imports", base_url="http://127.0.0.1:1/v1").full_clean()
