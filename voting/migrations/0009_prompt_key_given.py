from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Apart from the filling: PostgreSQL alters no table with changed rows in one transaction."""

    dependencies = [("voting", "0008_prompt_key")]

    operations = [
        migrations.AddConstraint(
            model_name="comparison",
            constraint=models.CheckConstraint(
                condition=~Q(prompt_key=""), name="comparison_of_a_prompt"
            ),
        ),
        migrations.AddIndex(
            model_name="comparison",
            index=models.Index(fields=["queue", "prompt_key"], name="comparison_prompts"),
        ),
    ]
