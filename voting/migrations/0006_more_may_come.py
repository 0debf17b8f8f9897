from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("voting", "0005_entry_of_item"),
    ]

    operations = [
        migrations.AddField(
            model_name="invite",
            name="guests",
            field=models.ManyToManyField(
                blank=True, editable=False, related_name="+", to="voting.voter"
            ),
        ),
        migrations.AddField(
            model_name="picture",
            name="is_refused",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="queue",
            name="more_may_come",
            field=models.BooleanField(default=False, editable=False),
        ),
    ]
