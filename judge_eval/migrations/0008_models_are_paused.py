"""A model is left alone for a while, and no longer its provider with all models."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("judge_eval", "0007_provider_guests"),
    ]

    operations = [
        migrations.RemoveField(
            model_name="provider",
            name="paused_until",
        ),
        migrations.AddField(
            model_name="provider",
            name="pauses",
            field=models.JSONField(default=dict, editable=False),
        ),
    ]
