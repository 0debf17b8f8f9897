"""From a run to its score files: computed, drawn, and written into a folder.

A chart lies beside the results that it shows, in the folder of its metric, and is called after the
metric: `accuracy_scores`, or `<scorer>_<figure>_scores` where a scorer has several. The tree is
MetaEvaluator's, so that what reads one reads the other.
"""

import json
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Final, TypeAlias

from django.db.models import Count, Q
from django.utils import timezone
from django.utils.text import capfirst

from humanjudge.core.charts.graphs import Curve, IntervalRow, Level, ends_of
from humanjudge.core.charts.labels import SCORE, Axis
from humanjudge.core.charts.matplot import Chart, pictures
from humanjudge.core.charts.score_charts import Versus, bars, grouped, lines
from humanjudge.core.charts.style import GivenStyle, StyleRefused
from humanjudge.core.validation import ConfigInvalid
from judge_eval.board.load import RunLabels, labels_of
from judge_eval.board.model import WINNER
from judge_eval.models import Run, Verdict
from judge_eval.stats import (
    PASSES,
    AltTestScorer,
    MetricConfig,
    Results,
    ScoreResult,
    among_people,
    score,
)
from judge_eval.stats.labels import kind_of
from reports.report.model import PEOPLE, ScoreSource
from reports.scores.config import NOTHING, Reach, default_metrics, parse
from reports.scores.page import Drawing, as_html
from reports.scores.table import ScoreResults, in_words, is_of_people, table_csv
from voting.ledger.counts import counted_in
from voting.models import Entry, Queue

MANIFEST: Final = "report.json"
PRODUCT_MARK: Final = "HumanJudge scores"
# A chart takes about half a second.
MOST_SECONDS: Final = 300.0
Named: TypeAlias = Iterator[tuple[str, Chart | None]]
# Why votes and verdicts are not counted.
_ENDS: Final = {
    "retracted": "{was} taken back",
    "left_out": "{was} excluded by a curator",
    "seen": "{was} not blind, or {is_} not of this run's kind",
    "unsealed": "{was} not yet sealed when this was made",
    Verdict.State.FAILED: "failed",
    Verdict.State.WAITING: "{is_} not yet there",
}


class ScoringFailed(ValueError):
    """A scorer could not do its work, or its result cannot be written; the message says why."""


def make_report(run: Run, data: object, folder: Path, reach: Reach = NOTHING) -> ScoreResults:
    """Compute a run's figures and write them into an empty folder.

    `data` is the configuration as it was read. Raises ConfigInvalid and ScoringFailed.
    """
    project = run.queue.project
    labels = labels_of(run, up_to=project.head_seq)
    ordered = {
        task
        for task in labels.tasks
        if {kind_of(x) for person in labels.humans.values() for x in person.get(task, {}).values()}
        == {"number"}
    }
    ordered |= {WINNER} if run.queue.kind == Queue.Kind.RATING else set()
    config = parse(data, labels.tasks, reach, ordered)
    if config.part.kind:
        labels = labels_of(run, config.part, up_to=project.head_seq)
    metrics = config.metrics or default_metrics(len(labels.humans), reach.off, ordered)
    names = judge_names(labels.names)
    scores_folder = folder / "scores"
    for metric in metrics:
        _folder_of(metric, scores_folder).mkdir(parents=True)
    results, among = _scored(metrics, names, labels, scores_folder)
    winners = [tasks[WINNER] for tasks in labels.humans.values() if WINNER in tasks]
    source = ScoreSource(
        run_id=str(run.pk),
        run_name=run.name,
        made_at=timezone.now(),
        ledger_seq=project.head_seq,
        ledger_head=project.ledger_head,
        is_simulated=run.queue.is_simulated,
        part=config.part.in_words,
        people=len(labels.humans),
        votes=sum(map(len, winners)),
        pairs=len({item for labels in winners for item in labels}),
        not_counted=_not_counted(run),
    )
    baselines = frozenset(names[judge] for judge in labels.baselines)
    judges = {name: judge for judge, name in names.items()}
    scores = ScoreResults(source, judges, metrics, results, among, baselines)
    try:
        drawings = write_charts(scores, scores_folder, config.style)
    except StyleRefused as refused:
        raise ConfigInvalid.at("style", str(refused)) from refused
    _write(scores, source, folder, drawings)
    return scores


def _scored(
    metrics: tuple[MetricConfig, ...], names: dict[str, str], labels: RunLabels, folder: Path
) -> tuple[Results, dict[str, ScoreResult]]:
    judges = {names[judge]: tasks for judge, tasks in labels.judges.items()}
    among = {}
    try:
        results = score(metrics, judges, labels.humans, folder)
        for metric in metrics:
            figures = (f for result in results[metric.unique_name] for f in result.figures.values())
            has_value = any(figure.value is not None for figure in figures)
            if has_value or is_of_people(metric.scorer):
                among[metric.unique_name] = among_people(metric, labels.humans)
    except Exception as error:
        place = "; ".join(getattr(error, "__notes__", []))
        raise ScoringFailed(f"{place + ': ' if place else ''}{error}") from error
    return results, {name: result for name, result in among.items() if result}


def _not_counted(run: Run) -> list[tuple[int, str, str]]:
    stands = Q(retracted_seq__isnull=True, seq__isnull=False)
    votes = Entry.objects.filter(queue=run.queue_id, kind=Entry.Kind.VOTE).aggregate(
        retracted=Count("pk", Q(retracted_seq__isnull=False, retracted_after_reveal=False)),
        left_out=Count("pk", stands & Q(excluded=True)),
        seen=Count("pk", stands & Q(excluded=False) & ~counted_in(run.queue)),
        unsealed=Count("pk", Q(seq__isnull=True)),
    )
    verdicts = Verdict.objects.filter(judge__run=run).exclude(state=Verdict.State.DONE)
    ended = verdicts.values_list("judge__name", "state").annotate(count=Count("pk"))
    rows = [(count, "vote", "", reason) for reason, count in votes.items() if count]
    rows += [
        (count, "verdict", f" of {judge}", state)
        for judge, state, count in ended.order_by("judge__position", "state")
    ]
    singular, plural = {"was": "was", "is_": "is"}, {"was": "were", "is_": "are"}
    return [
        (
            count,
            f"{noun}{'s' * (count > 1)}{suffix}",
            _ENDS[reason].format(**plural if count > 1 else singular),
        )
        for count, noun, suffix, reason in rows
    ]


def _folder_of(config: MetricConfig, scores_folder: Path) -> Path:
    return scores_folder / config.scorer.scorer_name / config.unique_name


def _write(
    scores: ScoreResults, source: ScoreSource, folder: Path, drawings: list[Drawing]
) -> None:
    used_names, iso_time = set[str](), source.made_at.isoformat()
    files = {judge: file_name(judge, used_names) for judge in scores.judges}
    scores_folder = folder / "scores"
    for config in scores.configs:
        for result in scores.results[config.unique_name]:
            about = result.as_dict(iso_time) | {"judge_uuid": scores.judges[result.judge_id]}
            path = _folder_of(config, scores_folder) / f"{files[result.judge_id]}_result.json"
            try:
                _write_json(path, about)
            except (TypeError, ValueError) as error:
                place = f"{config.unique_name} of {result.judge_id}"
                raise ScoringFailed(f"{place} cannot be written as JSON: {error}") from error
    table = table_csv(scores.table, scores.judges)
    (scores_folder / "score_report.csv").write_text(table, "utf-8", newline="")
    (scores_folder / "score_report.html").write_text(as_html(scores, drawings), "utf-8")
    manifest = {
        "made_by": PRODUCT_MARK,
        "run": {"id": source.run_id, "name": source.run_name},
        "made_at": iso_time,
        "ledger": {"seq": source.ledger_seq, "head": source.ledger_head},
        "labels": {"people": source.people, "votes": source.votes, "pairs": source.pairs},
        "is_simulated": source.is_simulated,
        "part": source.part,
        "not_counted": [f"{count:,} {noun} {reason}" for count, noun, reason in source.not_counted],
        "judges": dict(scores.judges),
        "metrics": [
            {
                "name": config.unique_name,
                "scorer_name": config.scorer.scorer_name,
                "task_names": list(config.task_names),
                "task_strategy": config.task_strategy,
                "annotator_aggregation": config.annotator_aggregation,
            }
            for config in scores.configs
        ],
        "files": sorted({*(path.name for path in folder.iterdir()), MANIFEST}),
    }
    _write_json(folder / MANIFEST, manifest)


def _write_json(path: Path, value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    path.write_text(f"{text}\n", "utf-8")


# --- charts --------------------------------------------------------------------------------------


def write_charts(
    report: ScoreResults, scores_folder: Path, style: GivenStyle = ""
) -> list[Drawing]:
    """Write each chart as PNG and as SVG beside its results; return what a page may hold of them.

    Nothing is written outside the folders of the metrics. A metric without judges has no chart. A
    style of Matplotlib's lies over ours. Raises StyleRefused.
    """
    drawings, started = [], monotonic()
    for config in report.configs:
        folder = _folder_of(config, scores_folder)
        folder.mkdir(parents=True, exist_ok=True)
        # A scorer of one's own may have drawn there already.
        used_names = {_key(path.stem) for path in folder.iterdir()}
        is_alt_test = isinstance(config.scorer, AltTestScorer)
        for stem, chart in (_alt_test if is_alt_test else _figures)(config, report):
            if chart is None:
                continue
            if monotonic() - started > MOST_SECONDS:
                raise StyleRefused(f"its charts take more than {MOST_SECONDS:.0f} seconds to draw")
            name, files = file_name(stem, used_names), pictures(chart, ("png", "svg"), style)
            for form, content in files.items():
                (folder / f"{name}.{form}").write_bytes(content)
            dark = None if style else pictures(chart, ("svg",), theme="dark")["svg"]
            drawings.append(Drawing(chart.words, chart.width, files["svg"], dark))
    return drawings


def _row(report: ScoreResults, result: ScoreResult, name: str) -> IntervalRow:
    figure, is_baseline = result.figures.get(name), result.judge_id in report.baselines
    if figure is None:
        return IntervalRow(result.judge_id, None, is_baseline=is_baseline)
    return IntervalRow(result.judge_id, figure.value, figure.interval, is_baseline=is_baseline)


def _figures(config: MetricConfig, report: ScoreResults) -> Named:
    results, among = report.results[config.unique_name], report.among.get(config.unique_name)
    metric = config.scorer.scorer_name.removeprefix("classification_")
    figures = list(dict.fromkeys(name for result in results for name in result.figures))
    for figure in figures:
        is_named = len(figures) == 1 or metric.startswith(figure)
        full_name = metric if is_named else f"{metric}_{figure}"
        measured, beside = results, None
        if is_of_people(config.scorer, figure):
            measured = [replace(among or results[0], judge_id=PEOPLE)]
        elif among and (people := among.figures.get(figure)) and people.value is not None:
            beside = Level(PEOPLE, people.value, people.interval)
        rows = [_row(report, result, figure) for result in measured]
        axis = _axis(f"{in_words(full_name)}{_aggregation_words(config, results)}", rows)
        yield (
            f"{full_name}_scores",
            bars(rows, title=_title(config, full_name), axis=axis, reference=beside),
        )


def _alt_test(config: MetricConfig, report: ScoreResults) -> Named:
    results = report.results[config.unique_name]
    title, rates = _title(config, "winning rate"), replace(SCORE, words="winning rate")
    curves = []
    for result in results:
        rates_at = result.series.get("winning_rate", {})
        points = [(float(epsilon), rate.value) for epsilon, rate in rates_at.items()]
        curves.append(Curve(result.judge_id, points, result.judge_id in report.baselines))
    passes = Level(f"passes from {PASSES}", PASSES)
    chart = lines(curves, title=title, x=Axis("epsilon"), y=rates, threshold=passes)
    yield "aggregate_winning_rates", chart
    rows = [_row(report, result, "advantage_probability") for result in results]
    title = _title(config, "advantage probability")
    axis = replace(SCORE, words="advantage probability")
    yield "aggregate_advantage_probabilities", bars(rows, title=title, axis=axis)
    pairs = [
        Versus(result.judge_id, *row, result.judge_id in report.baselines)
        for result in results
        for row in list(_advantages(result.metadata)) or [("people", None, None)]
    ]
    title = _title(config, "advantage probability of judges and of people")
    yield "aggregate_human_vs_llm_advantage", grouped(pairs, title=title, axis=axis)


def _advantages(metadata: Mapping[str, object]) -> Iterator[tuple[str, float | None, float | None]]:
    people, tasks = metadata.get("human_advantage_probabilities"), metadata.get("tasks")
    if isinstance(people, Mapping):
        for person, (of_judge, of_person) in people.items():
            yield str(person), of_judge, of_person
    if isinstance(tasks, Mapping):
        for task, task_metadata in tasks.items():
            for person, of_judge, of_person in _advantages(task_metadata):
                yield f"{person}, {task}", of_judge, of_person


def _axis(words: str, rows: Sequence[IntervalRow]) -> Axis:
    """Return an axis up to 1 for what may be a share or a coefficient, else as far as it goes."""
    ends = [end for end in ends_of(rows) if end is not None]
    furthest = max(map(abs, ends), default=0.0)
    if furthest <= 1:
        return Axis(words, ".2f", 0.0, 1.0)
    return Axis(words, ".2f" if furthest < 10 else ".1f" if furthest < 1000 else ",.0f")


def _title(config: MetricConfig, metric: str) -> str:
    return f"{capfirst(in_words(metric))}: {config.display_name or ', '.join(config.task_names)}"


def _aggregation_words(config: MetricConfig, results: Sequence[ScoreResult]) -> str:
    tasks = len(config.task_names)
    over_people = results[0].metadata.get("scoring_method") == "average_across_humans"
    parts = ["mean over people"] * over_people
    parts += [f"mean over {tasks} tasks"] * (config.task_strategy == "multitask")
    parts += ["against the consensus"] * (results[0].annotator_aggregation == "majority_vote")
    return "".join(f", {part}" for part in parts)


# --- names and folders ---------------------------------------------------------------------------


def judge_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return what each judge, by its id, is called where it is alone with that name."""
    count, used_names = Counter(_key(name) for name in names.values()), set[str]()
    return {
        judge: _unique(name if count[_key(name)] == 1 else f"{name} ({judge[:8]})", used_names)
        for judge, name in names.items()
    }


def file_name(name: str, used_names: set[str]) -> str:
    """Return the beginning of a file name that leaves no folder; it joins `used_names`.

    Examples
    --------
    >>> [file_name(name, set()) for name in ("gpt-4.1", "../../etc/passwd", "a/b")]
    ['gpt-4.1', 'etc_passwd-3754d6cb', 'a_b-c14cddc0']
    """
    plain = re.sub(r"[^\w.+-]+", "_", unicodedata.normalize("NFC", name)).strip("._-+")
    # A file system takes 255 bytes; some are needed for what stands behind.
    cut = plain.encode("utf-8", "ignore")[:180].decode("utf-8", "ignore")
    if not cut or cut != name:
        # What was replaced could make two names one; a hash tells them apart.
        digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        cut = f"{cut or 'judge'}-{digits}"
    return _unique(cut, used_names)


def _unique(base: str, used_names: set[str]) -> str:
    name, number = base, 2
    while _key(name) in used_names:
        name, number = f"{base}-{number}", number + 1
    used_names.add(_key(name))
    return name


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


class FolderTaken(ValueError):
    """There is something in the folder that is not ours."""


@contextmanager
def replacing(place: Path, *, force: bool = False) -> Iterator[Path]:
    """Give out an empty folder, and put it in the place of another report when all went well.

    Where something else is there, raise FolderTaken; with `force` it is moved aside, to the same
    name with ``.before-`` and a number behind it, so that nothing of it is lost.
    """
    place = place.resolve()
    is_foreign = place.exists() and not _is_ours(place)
    if is_foreign and not force:
        raise FolderTaken(
            f"{place} holds something that is no report of ours: give another folder, or --force, "
            "which moves it aside"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    number = token_hex(4)
    new_folder = place.with_name(f"{place.name}.new-{number}")
    aside = place.with_name(f"{place.name}.before-{number}")
    new_folder.mkdir()
    try:
        yield new_folder
        if place.exists():
            place.rename(aside)
        try:
            new_folder.rename(place)
        except OSError:
            if aside.exists():
                aside.rename(place)
            raise
        if not is_foreign:
            shutil.rmtree(aside, ignore_errors=True)
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)


def _is_ours(place: Path) -> bool:
    """Say whether nothing would be lost: it is empty, or holds what we wrote and nothing else."""
    try:
        names = {path.name for path in place.iterdir()}
        if not names:
            return True
        manifest = json.loads((place / MANIFEST).read_text("utf-8"))
        return manifest["made_by"] == PRODUCT_MARK and names <= set(map(str, manifest["files"]))
    except (OSError, ValueError, LookupError, TypeError):
        return False
