"""A run with three voters, the command that scores it, and its files read back."""

import csv
import json
from contextlib import nullcontext
from html.parser import HTMLParser
from io import StringIO
from unittest.mock import patch

from django.core.management import call_command

from judge_eval.stats import Estimate, Scorer
from reports.scores import files
from tests.helpers.imports import imported, pair, verdict, vote

ACCURACY = "classification_accuracy_1tasks_978f6f60_single"


class MoreAs(Scorer):
    """How many more "A"s does the judge write than the people do? As in docs/results.md."""

    figure_names = ("more_as",)
    best = "nearest_zero"

    def __init__(self):
        super().__init__("more_as")

    def can_score_task(self, sample_label):
        return isinstance(sample_label, str)

    async def compute_score_async(
        self, judge_data, human_data, task_name, judge_id, aggregation_mode
    ):
        about = judge_id, task_name, aggregation_mode
        wrote = judge_data.by_item
        both = [(wrote[row.item], row.label) for row in human_data if row.item in wrote]
        if not both:
            return self.no_result(*about, "no item has a text of the judge and of a person")
        more = sum(judge.count("A") - human.count("A") for judge, human in both)
        return self.result(*about, {"more_as": Estimate(more / len(both), n=len(both))})

    def aggregate_results(self, results, scores_dir, unique_name):
        text = " ".join(f"{result.judge_id}={result.scores['more_as']}" for result in results)
        (scores_dir / self.scorer_name / unique_name / "all_judges.txt").write_text(text)


VOTES = {
    "ann": ("A", "A", "B", "tie"),
    "ben": ("A", "B", "B", "tie"),
    "cem": ("A", "A", "A", "tie"),
}
# One judge right on 3, 2 and 2 of 4; the other, which failed once, on 3, 2 and 2 of 3.
VERDICTS = {"gpt": ("A", "A", "B", "B"), "llama": (None, "A", "B", "tie")}


def voted_run(verdicts=None, votes=None, name="A study"):
    said, voted = verdicts or VERDICTS, votes or VOTES
    numbers = range(1, 1 + len(next(iter(said.values()))))
    return imported(
        *(pair(n) for n in numbers),
        *(
            vote(n, human, choice, labels={"rejection": choice.upper()})
            for human, choices in voted.items()
            for n, choice in zip(numbers, choices, strict=True)
        ),
        *(
            verdict(n, judge, winner, labels={"rejection": winner})
            if winner
            else verdict(n, judge, None, error="no answer came")
            for judge, winners in said.items()
            for n, winner in zip(numbers, winners, strict=True)
        ),
        name=name,
    )


def scored(run, out, metrics=None, *more, has_charts=False, **config):
    """Run the command, without charts, which take most of its time; return what it prints."""
    printed = StringIO()
    if metrics is not None:
        path = out.parent / "metrics.json"
        path.write_text(json.dumps({"metrics": metrics} | config), "utf-8")
        more = ("--config", str(path), *more)
    without = patch.object(files, "write_charts", lambda *_: [])
    with nullcontext() if has_charts else without:
        call_command("score", str(run.pk)[:8], "--out", str(out), *more, stdout=printed)
    return printed.getvalue()


def files_in(out):
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def read_csv(out):
    with (out / "scores" / "score_report.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


class Page(HTMLParser):
    """The tags, the texts and the scripts of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.inline, self.open = [], [], {}, ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open = tag

    def handle_endtag(self, tag):
        self.open = ""

    def handle_data(self, data):
        if self.open in ("script", "style"):
            self.inline[self.open] = self.inline.get(self.open, "") + data
        elif data.strip():
            self.texts.append(" ".join(data.split()))


def page_of(out):
    return Page((out / "scores" / "score_report.html").read_text("utf-8"))
