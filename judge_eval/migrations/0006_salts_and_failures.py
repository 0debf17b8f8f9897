from django.db import migrations, models

import judge_eval.models


def give_each_run_its_own(apps, schema_editor):
    """The new columns have one default for all rows that are there."""
    for run in apps.get_model("judge_eval", "Run").objects.only("pk"):
        run.salt, run.private_salt = judge_eval.models.new_salt(), judge_eval.models.new_salt()
        run.save(update_fields=["salt", "private_salt"])


class Migration(migrations.Migration):
    dependencies = [("judge_eval", "0005_extensions_retention")]

    operations = [
        migrations.AddField(
            model_name="findings",
            name="attempts",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="findings",
            name="error",
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AddField(
            model_name="run",
            name="salt",
            field=models.CharField(
                default=judge_eval.models.new_salt, editable=False, max_length=32
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="private_salt",
            field=models.CharField(
                blank=True, default=judge_eval.models.new_salt, editable=False, max_length=32
            ),
        ),
        migrations.RunPython(give_each_run_its_own, migrations.RunPython.noop),
    ]
