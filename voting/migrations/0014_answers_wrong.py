from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Cast, Coalesce, NullIf

COMPARED = F("votes") * (
    F("answers_a") + F("answers_b") + F("answers_tie") + F("answers_both_bad") + F("answers_wrong")
)
DIFFERING = (
    COMPARED
    - F("votes_a") * F("answers_a")
    - F("votes_b") * F("answers_b")
    - F("votes_tie") * F("answers_tie")
    - F("votes_both_bad") * F("answers_both_bad")
)
DISAGREEMENT = Coalesce(
    Cast(DIFFERING, models.FloatField()) / NullIf(Cast(COMPARED, models.FloatField()), 0.0), -1.0
)


class Migration(migrations.Migration):
    dependencies = [
        ("voting", "0013_handing_out"),
    ]

    # What a column is computed from cannot be altered, so both are made anew.
    operations = [
        migrations.RemoveIndex(model_name="comparison", name="comparison_disputed"),
        migrations.RemoveField(model_name="comparison", name="disagreement"),
        migrations.RemoveField(model_name="comparison", name="differing"),
        migrations.AddField(
            model_name="comparison",
            name="answers_wrong",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="comparison",
            name="differing",
            field=models.GeneratedField(
                db_persist=True, expression=DIFFERING, output_field=models.IntegerField()
            ),
        ),
        migrations.AddField(
            model_name="comparison",
            name="disagreement",
            field=models.GeneratedField(
                db_persist=True, expression=DISAGREEMENT, output_field=models.FloatField()
            ),
        ),
        migrations.AddIndex(
            model_name="comparison",
            index=models.Index(
                fields=["queue", "-disagreement", "-differing", "position"],
                name="comparison_disputed",
            ),
        ),
    ]
