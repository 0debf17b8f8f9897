from django.db import migrations, models
from django.db.models import Q

KINDS = ("vote", "retraction", "verdicts", "decision", "parameters", "erasure", "object")


class Migration(migrations.Migration):
    dependencies = [("voting", "0005_members_identities_audit")]

    operations = [
        migrations.AddField(
            model_name="item",
            name="is_coupled",
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.RemoveConstraint(model_name="entry", name="entry_shape"),
        migrations.AlterField(
            model_name="entry",
            name="kind",
            field=models.CharField(
                choices=[(kind, kind.capitalize()) for kind in KINDS], max_length=10
            ),
        ),
        migrations.AddConstraint(
            model_name="entry",
            constraint=models.CheckConstraint(
                name="entry_shape",
                condition=Q(
                    Q(kind="vote", voter__isnull=False, rubric__isnull=False, item__isnull=False)
                    & (~Q(choice="") | Q(payload__isnull=False))
                    & (
                        Q(value__isnull=True)
                        | Q(value__lte=1_000_000) & Q(choice__in=("pass", "flag"))
                    )
                )
                | Q(kind="retraction", voter__isnull=False, target__isnull=False)
                | Q(kind="verdicts", item__isnull=False, payload__isnull=False)
                | Q(
                    kind__in=["decision", "parameters", "erasure", "object"], payload__isnull=False
                ),
            ),
        ),
    ]
