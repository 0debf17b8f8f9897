"""Code on the pages where it is judged: coloured for people, plain for judges."""

import pytest

from judge_eval.judging.requests import question_of
from judge_eval.models import Call, Provider
from tests.helpers.run_maker import make_judging
from tests.makers import make_run, make_voter, pairs_of, user_client, voter_client
from tests.provider import provider
from voting.models import Inference

pytestmark = pytest.mark.django_db
CODE = "def f():\n    return '<b>'\n"
MARKED = '<span class="hl-k">def</span>'


def code_run():
    run = make_run(pairs=1)
    Inference.objects.update(kind="code", output=CODE, metadata={"language": "python"})
    return run


def test_voters_and_readers_see_it_coloured_and_escaped():
    run = code_run()
    pages = [
        voter_client(make_voter(run)).get(f"/vote/{run.queue_id}/"),
        user_client().get(f"/runs/{run.pk}/pairs/{pairs_of(run)[0].pk}/"),
        user_client().get(f"/review/{pairs_of(run)[0].pk}/"),
    ]
    for page in pages:
        text = page.content.decode()
        assert text.count(MARKED) == 2
        assert "<b>" not in text


def test_judges_get_the_plain_text():
    with provider() as at:
        make_judging(at, kind="code")
        Inference.objects.update(output=CODE)
        call = Call.objects.filter(purpose="judge").select_related("run__queue__rubric").first()
        question = question_of(call, Provider.objects.get())
    assert CODE.strip() in str(question.request.messages[1]["content"]).replace("\\n", "\n")
    assert "hl-" not in str(question.request.messages)
