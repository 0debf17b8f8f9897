"""A panel below the board: on how many items each judge came to a verdict."""

from judge_eval.extensions import Bar, Panel, PanelChart, PanelTable, ResultsPanel, RunFindings


class Coverage(ResultsPanel):
    id = "coverage-at-a-glance"
    title = "Coverage at a glance"
    version = "1.0"
    description = "The share of items on which each judge came to a verdict."

    def panel(self, findings: RunFindings) -> Panel | None:
        shares = {judge.name: judge.coverage.value for judge in findings.judges}
        if not shares:
            return None
        return Panel(
            title=self.title,
            paragraphs=(f"{len(shares)} judges were asked. <b>Nothing here is HTML.</b>",),
            table=PanelTable(heads=("Judge", "Coverage"), rows=tuple(shares.items())),
            chart=PanelChart(
                title="Coverage",
                unit="share",
                bars=tuple(Bar(name=name, value=share) for name, share in shares.items()),
            ),
        )
