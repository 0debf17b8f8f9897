from django.db import migrations, models

from voting.order import fresh_turn


def fill(apps, schema_editor):
    """Put all pairs in the order of the keyed hash, as if nobody had begun a prompt."""
    pairs = apps.get_model("voting", "Comparison").objects
    chunk = []
    for pk, queue, prompt in pairs.order_by().values_list("pk", "queue", "prompt_key").iterator():
        chunk.append(pairs.model(pk=pk, turn=fresh_turn(queue, prompt)))
        if len(chunk) == 1000:
            pairs.bulk_update(chunk, ["turn"])
            chunk = []
    pairs.bulk_update(chunk, ["turn"])


class Migration(migrations.Migration):
    dependencies = [("voting", "0011_disagreement")]

    operations = [
        migrations.AddField(
            model_name="comparison",
            name="turn",
            field=models.BigIntegerField(default=0, editable=False),
            preserve_default=False,
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
