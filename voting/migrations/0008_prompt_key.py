from hashlib import sha256

from django.db import migrations, models


def fill(apps, schema_editor):
    """Name the prompt of every pair as an import or a run would name it now."""
    pairs = apps.get_model("voting", "Comparison").objects
    names = pairs.order_by().values_list("pk", "a__prompt", "a__metadata")
    chunk = []
    for pk, prompt, metadata in names.iterator():
        known = metadata.get("prompt_id") or (sha256(prompt.encode()).hexdigest() if prompt else pk)
        chunk.append(pairs.model(pk=pk, prompt_key=str(known)))
        if len(chunk) == 1000:
            pairs.bulk_update(chunk, ["prompt_key"])
            chunk = []
    pairs.bulk_update(chunk, ["prompt_key"])


class Migration(migrations.Migration):
    dependencies = [("voting", "0007_history_as_text")]

    operations = [
        migrations.AddField(
            model_name="comparison",
            name="prompt_key",
            field=models.CharField(default="", max_length=200),
            preserve_default=False,
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
