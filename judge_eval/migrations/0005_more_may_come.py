"""Queues of runs that are drafted or at work are told so."""

from django.db import migrations


def say_so(apps, schema_editor):
    runs = apps.get_model("judge_eval", "Run").objects
    filling = runs.filter(state__in=["draft", "generating", "judging"]).values("queue")
    queues = apps.get_model("voting", "Queue").objects
    queues.filter(pk__in=filling).update(more_may_come=True)


class Migration(migrations.Migration):
    dependencies = [("judge_eval", "0004_provider_names"), ("voting", "0006_more_may_come")]

    operations = [migrations.RunPython(say_so, migrations.RunPython.noop)]
