"""What a verdict cost is kept with it where its calls were made elsewhere."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judge_eval", "0005_more_may_come")]

    operations = [
        migrations.AddField(
            model_name="verdict",
            name="cost_nano",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="verdict",
            name="unpriced",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
