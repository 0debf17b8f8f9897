"""The page of the models that wrote the outputs, ranked by people and by each judge."""

from django.http import HttpResponse

from humanjudge.core.http import Context, HtmxRequest
from judge_eval.board.cache import FindingsRequest
from judge_eval.board.corrected_table import corrected_rates
from judge_eval.board.few import findings_for
from judge_eval.board.generator_boards import boards_of, pass_rates_table
from judge_eval.board.pictures import MODEL_RATES, MODEL_RATINGS, on_page
from judge_eval.board.views.findings import findings_context, findings_version, live_page
from judge_eval.judging.config.modes import wants_votes
from judge_eval.models import Judge, Run
from judge_eval.runs.run_page import run_page


@run_page("see")
def run_generators(request: HtmxRequest, run: Run) -> HttpResponse:
    """The boards; htmx asks for them again while votes come in."""
    requested = findings_for(request, run, request.GET.get("part", ""))
    return live_page(
        request,
        "models",
        findings_version(run, requested),
        lambda: _context(request, run, requested),
    )


def _context(request: HtmxRequest, run: Run, requested: FindingsRequest) -> Context:
    figures = requested.findings
    models, reason = (figures.models, figures.models_why) if figures else (None, None)
    examples = run.judges.filter(model=Judge.EXAMPLE)
    tags = {str(judge.pk): judge.tag for judge in examples} if figures else {}
    unvoted = "Nobody has voted on pairs of two generators yet"
    alone = unvoted if wants_votes(run.config) else "People do not vote in this run"
    board_id = request.GET.get("by", "")
    return findings_context(run, requested, "models") | {
        "pass_rates": pass_rates_table(figures, tags) if figures and figures.pass_rates else None,
        "rates_chart": on_page(figures, MODEL_RATES) if figures else "",
        "ratings_chart": on_page(figures, MODEL_RATINGS) if figures else "",
        "models": boards_of(models, board_id, tags) if models else None,
        "corrected": corrected_rates(figures, board_id) if figures else None,
        "why": reason or "Neither people nor judges have compared two generators here yet.",
        "alone": f"{alone}: these are the judges’ boards alone.",  # noqa: RUF001
    }
