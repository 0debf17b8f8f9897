"""ELO among judges: what earlier versions stored of runs with baselines beside judges is replaced."""

from contextlib import suppress
from typing import Any

from django.db import migrations


def rate_again(apps: Any, schema_editor: Any) -> None:
    if not apps.get_model("judge_eval", "Board").objects.filter(votes__gt=0).exists():
        return
    # By the code of today, so this migration must stay behind all that changes these tables.
    from judge_eval.ratings.projection import JudgeElo
    from voting.models import Project

    for project in Project.objects.all():
        # Of a ledger that this version cannot read, the pages say so.
        with suppress(KeyError):
            JudgeElo(project).rebuild(write=True)
    # They are computed anew, and what they claimed is compared with what was claimed before.
    apps.get_model("judge_eval", "Findings").objects.update(computed_at=None)


class Migration(migrations.Migration):
    dependencies = [
        ("judge_eval", "0006_salts_and_failures"),
        ("voting", "0006_objects_and_couples"),
    ]

    operations = [migrations.RunPython(rate_again, migrations.RunPython.noop)]
