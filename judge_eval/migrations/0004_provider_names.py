"""No provider is named like judges that are asked nowhere."""

from django.db import migrations, models

import judge_eval.models


class Migration(migrations.Migration):
    dependencies = [("judge_eval", "0003_findings")]

    operations = [
        migrations.AlterField(
            model_name="provider",
            name="name",
            field=models.CharField(
                max_length=50,
                unique=True,
                validators=[judge_eval.models.validate_provider_name],
            ),
        ),
    ]
