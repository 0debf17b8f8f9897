"""Calls that are no rows have a place among those that a provider takes at once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judge_eval", "0006_verdict_cost")]

    operations = [
        migrations.AddField(
            model_name="provider",
            name="guests",
            field=models.JSONField(default=list, editable=False),
        ),
    ]
