from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("voting", "0009_prompt_key_given")]

    operations = [
        migrations.AddField(
            model_name="picture",
            name="left_out",
            field=models.TextField(blank=True, default=""),
        ),
    ]
