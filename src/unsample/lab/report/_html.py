"""One self-contained page: style, figures and tables inside, nothing fetched from elsewhere."""

from __future__ import annotations

from unsample.lab.report._agreement import agreements
from unsample.lab.report._figures import (
    distribution_figures,
    error_figures,
    sample_size_figures,
    sweep_figures,
)
from unsample.lab.report._results import Results, in_dataset_order
from unsample.lab.report._summary import rerun_command, setting_lines, summarise
from unsample.lab.report._tables import (
    ENOUGH,
    accuracy_tables,
    protocol_name,
    statistics_lines,
    sweep_tables,
    winner_tables,
)
from unsample.pages import templates as environment

_VERDICTS = {
    True: ("holds", "✓ holds"),
    False: ("fails", "✗ does not hold"),
    None: ("unknown", "– not checked"),  # noqa: RUF001
}


def reproduction_html(results: Results) -> str:
    """Return the whole report as one HTML page; same results, same bytes."""
    templates = environment()
    templates.filters["protocol_name"] = protocol_name
    template = templates.get_template("reproduction.html")
    page: str = template.render(
        summary=summarise(results),
        agreements=agreements(results.accuracy),
        statistics=statistics_lines(results.statistics),
        accuracy=accuracy_tables(results.accuracy),
        winners=winner_tables(results.winners),
        errors=error_figures(results),
        distributions=distribution_figures(results),
        sizes=sample_size_figures(results),
        sweeps=sweep_figures(results),
        sweep_tables=sweep_tables(in_dataset_order(results.sweep, results)),
        enough=ENOUGH,
        claims=results.claims,
        verdicts=_VERDICTS,
        deviations=results.settings.get("deviations") or (),
        versions=results.settings.get("versions") or {},
        settings=setting_lines(results.settings),
        command=rerun_command(results.settings),
    )
    return page
