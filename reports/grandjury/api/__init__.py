"""The GrandJury protocol over HTTP, as the public client `grandjury` speaks it: `/api/v1`."""

from typing import Final

from reports.grandjury.api.figures import figures, scoring
from reports.grandjury.api.models import models, traces
from reports.grandjury.api.results import leaderboards, results

ROUTERS: Final = (figures, scoring, traces, models, results, leaderboards)
