from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("voting", "0006_more_may_come"),
    ]

    operations = [
        migrations.AlterField(
            model_name="entry",
            name="history",
            field=models.TextField(editable=False, null=True),
        ),
    ]
