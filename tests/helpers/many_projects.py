"""An installation with as many projects as one likes: copies of all rows that one has."""

from django.apps import apps
from django.core.management.color import no_style
from django.db import connection, models
from django.db.models import Max
from django.utils import timezone

from humanjudge.celery import app
from judge_eval.models import Extension, Findings, Provider
from voting.models import Picture

# Of the whole installation, not of a project.
SHARED = {Picture, Provider, Extension}


def beat_tasks():
    """All tasks that beat publishes, by their names."""
    app.loader.import_default_modules()
    names = {entry["task"] for entry in app.conf.beat_schedule.values()}
    return {name: app.tasks[name] for name in sorted(names)}


def settle():
    """Let beat's tasks do what is left to do, so that nothing happens the next time."""
    for _ in range(3):
        Findings.objects.update(not_before=timezone.now())
        for task in beat_tasks().values():
            task()


def copy_everything(times):
    """Copy each row of every project so many times on PostgreSQL, as rows of further projects."""
    copied = {
        model
        for app in ("voting", "judge_eval", "reports")
        for model in apps.get_app_config(app).get_models()
        if model not in SHARED and not model._meta.proxy
    }
    numbered = [model for model in copied if isinstance(model._meta.pk, models.AutoField)]
    numbers = (model._base_manager.aggregate(last=Max("pk"))["last"] for model in numbered)
    stride = max(filter(None, numbers))
    with connection.cursor() as cursor:
        # Rows may come before those that they refer to.
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        for model in copied:
            fields = [field for field in model._meta.local_fields if not field.generated]
            columns = ", ".join(f'"{field.column}"' for field in fields)
            values = ", ".join(_of_copy(field, copied, stride) for field in fields)
            cursor.execute(
                f'INSERT INTO "{model._meta.db_table}" ({columns}) SELECT {values}'
                f' FROM "{model._meta.db_table}", generate_series(1, %s) AS n',
                [times],
            )
        for statement in connection.ops.sequence_reset_sql(no_style(), list(copied)):
            cursor.execute(statement)


def _of_copy(field, copied, stride):
    """Return what stands in this field of the n-th copy of a row."""
    column, holds = f'"{field.column}"', field
    if field.remote_field and field.remote_field.model not in copied:
        return column
    while holds.remote_field:
        holds = holds.remote_field.model._meta.pk
    if isinstance(holds, models.UUIDField):
        return f"md5({column}::text || n * {stride})::uuid"
    if isinstance(holds, models.AutoField):
        return f"{column} + {stride} * n"
    return f"left(n * {stride} || '-' || {column}, {field.max_length})" if field.unique else column
