from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("judge_eval", "0010_imports"),
    ]

    operations = [
        migrations.AlterField(
            model_name="verdict",
            name="winner",
            field=models.CharField(
                blank=True,
                choices=[
                    ("A", "A is better"),
                    ("B", "B is better"),
                    ("tie", "tie"),
                    ("both_bad", "both bad"),
                    ("wrong", "wrong"),
                ],
                max_length=8,
            ),
        ),
    ]
