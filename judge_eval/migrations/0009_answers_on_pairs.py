from collections import Counter, defaultdict

from django.db import migrations


def count_answers(apps, schema_editor):
    """Verdicts that were sealed before are counted here; later ones as they are sealed."""
    verdict, comparison = (
        apps.get_model("judge_eval", "Verdict"),
        apps.get_model("voting", "Comparison"),
    )
    answers = defaultdict(Counter)
    done = verdict.objects.filter(state="done").exclude(judge__provider="baseline")
    for pair, winner in done.values_list("comparison", "winner").iterator():
        answers[pair][f"answers_{winner.lower()}"] += 1
    for pair, numbers in answers.items():
        comparison.objects.filter(pk=pair).update(**numbers)


class Migration(migrations.Migration):
    dependencies = [
        ("judge_eval", "0008_models_are_paused"),
        ("voting", "0011_disagreement"),
    ]

    operations = [
        migrations.RunPython(count_answers, migrations.RunPython.noop),
    ]
