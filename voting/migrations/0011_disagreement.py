from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Cast, Coalesce, NullIf

ANSWERS = F("answers_a") + F("answers_b") + F("answers_tie") + F("answers_both_bad")
COMPARED = F("votes") * ANSWERS
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
        ("voting", "0010_picture_left_out"),
    ]

    operations = [
        *(
            migrations.AddField(
                model_name="comparison",
                name=f"answers_{choice}",
                field=models.PositiveIntegerField(default=0, editable=False),
            )
            for choice in ("a", "b", "tie", "both_bad")
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
