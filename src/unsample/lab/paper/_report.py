"""The report of a run: one self-contained page, and its tables as Markdown and as LaTeX.

Style, figures and tables are inside the page, and its content policy lets nothing else in.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unsample._checks import import_extra
from unsample.lab.paper._figures import (
    distribution_figures,
    sample_size_figures,
    sweep_figures,
)
from unsample.lab.paper._report_tables import (
    accuracy_deviation,
    accuracy_sections,
    accuracy_sheet,
    agreement_table,
    bias_deviation,
    candidates_name,
    count,
    in_dataset_order,
    least,
    metric_name,
    printed_exact,
    scaled,
    spread,
    statistics_table,
    sweep_tables,
    values_of,
    winner_deviation,
    winner_sections,
    winners_sheet,
)
from unsample.lab.paper._tables import Reproduction, Row, write_text
from unsample.pages import Sheet, Table, as_latex, as_markdown, templates

#: Settings that have a section of their own.
_ELSEWHERE = ("versions", "deviations")
_VERDICTS = {
    True: ("holds", "✓ holds"),
    False: ("fails", "✗ does not hold"),
    None: ("unknown", "– not checked"),  # noqa: RUF001
}


def write_report(results: Reproduction, folder: str | os.PathLike[str]) -> Path:
    """Write the report of a run into its folder, and return the path of the HTML page.

    Beside ``report.html`` stand ``accuracy.md``, ``accuracy.tex``, ``winners.md`` and
    ``winners.tex``.
    """
    place = Path(folder)
    accuracy, winners = accuracy_sheet(results.accuracy), winners_sheet(results.winners)
    texts = {
        "accuracy.md": as_markdown(accuracy),
        "accuracy.tex": wide_latex(accuracy),
        "winners.md": as_markdown(winners),
        "winners.tex": wide_latex(winners),
        "report.html": report_html(results),
    }
    for name, text in texts.items():
        write_text(place / name, text)
    return place / "report.html"


def wide_latex(tables: Sheet) -> str:
    """Return tables for LaTeX, each as wide as the page."""
    text = as_latex(tables)
    for old, new in (
        (r"\begin{table}", r"\begin{table*}[t]"),
        (r"\end{table}", r"\end{table*}"),
        (r"\begin{tabular}", "\\resizebox{\\textwidth}{!}{%\n\\begin{tabular}"),
        (r"\end{tabular}", r"\end{tabular}}"),
    ):
        text = text.replace(old, new)
    return f"% Needs \\usepackage{{booktabs}} and \\usepackage{{graphicx}}.\n\n{text}"


def report_html(results: Reproduction) -> str:
    """Return the whole report as one HTML page; same results, same bytes."""
    jinja2 = import_extra("jinja2", extra="report", purpose="an HTML report")
    found = templates()
    found.loader = jinja2.ChoiceLoader([jinja2.PackageLoader("unsample.lab.paper"), found.loader])
    for shown in (
        *(accuracy_deviation, candidates_name, count, least, metric_name, printed_exact),
        *(scaled, spread, winner_deviation),
    ):
        found.filters[shown.__name__] = shown
    style = "".join(found.get_template(name).render() for name in ("style.css", "report.css"))
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    page: str = found.get_template("report.html").render(
        style=style,
        style_hash=f"sha256-{digest}",
        summary=summarise(results),
        agreement=agreement_table(results.accuracy),
        statistics=statistics_table(results.statistics),
        accuracy=accuracy_sections(results.accuracy),
        winners=winner_sections(results.winners),
        distributions=distribution_figures(results),
        sizes=sample_size_figures(results),
        sweeps=sweep_figures(results),
        sweep_tables=sweep_tables(in_dataset_order(results.sweep, results)),
        claims=results.claims,
        verdicts=_VERDICTS,
        deviations=results.settings["deviations"],
        settings=setting_tables(results.settings),
        command=rerun_command(results.settings),
    )
    return page


# -- in a few sentences -----------------------------------------------------------------------


def summarise(results: Reproduction) -> dict[str, Any]:
    """Return sentences for the top of the page, and the claims that do not hold."""
    return {
        "what": _what(results),
        "agreement": _agreement(results.accuracy),
        "winners": _winners(results.winners),
        "claims": _claims(results.claims),
        "failing": _failing(results.claims),
    }


def rerun_command(settings: Mapping[str, Any]) -> str:
    """Return the command that makes these results again, quoted for a shell."""
    words = ["unsample", "reproduce"]
    for option in ("dataset", "candidates", "recommender", "estimator"):
        for value in settings[option if option == "candidates" else f"{option}s"]:
            words += [f"--{option}", value[0] if option == "estimator" else value]
    for option in ("sampled", "repeats", "rng"):
        words += [f"--{option}", str(settings[option])]
    words += ["--retrain"] if settings["retrain"] else []
    return shlex.join([*words, "--out", "results"])


def setting_tables(settings: Mapping[str, Any]) -> tuple[Table, ...]:
    """Return the plain settings, lists joined by commas, and the versions."""
    plain = tuple((k, _setting_text(v)) for k, v in settings.items() if k not in _ELSEWHERE)
    versions = tuple(settings["versions"].items())
    return (
        Table(("Setting", "Value"), plain, "Settings"),
        Table(("Software", "Version"), versions, "Versions"),
    )


def _what(results: Reproduction) -> str:
    rows = results.accuracy
    kinds = [candidates_name(name) for name in values_of(rows, "candidates")]
    sizes = [str(size) for size in values_of(rows, "sampled")]
    return (
        f"{_number_of(values_of(rows, 'recommender'), 'recommender')} on "
        f"{_joined(values_of(rows, 'dataset'))}: each target is ranked among "
        f"{_joined(sizes)} sampled items, {count(results.settings['repeats'])} times over, and "
        f"{_number_of(values_of(rows, 'estimator'), 'estimator')} "
        f"({_joined(values_of(rows, 'estimator'))}) tell what the metrics on the full catalogue "
        f"would be; {_joined(kinds)}."
    )


def _agreement(rows: Sequence[Row]) -> str:
    levels = [level for row in rows if (level := accuracy_deviation(row).level)]
    if not levels:
        return "The paper has no number to compare these tables with."
    same, near = levels.count("same"), levels.count("near")
    biases = sum(bias_deviation(row).level == "same" for row in rows)
    return (
        f"{same} of {len(levels)} means agree with the paper's within one standard deviation, "
        f"{same + near} within three; {biases} biases agree within one. The recommenders "
        f"behind the two are not the same, so exact values differ as well: the table below "
        f"says by how much."
    )


def _winners(rows: Sequence[Row]) -> str:
    levels = [level for level in (winner_deviation(row).level for row in rows) if level]
    if not levels:
        return "The paper has no winner count to compare with."
    same, near = levels.count("same"), levels.count("near")
    return (
        f"{same} of {len(levels)} winner counts agree within one standard error, "
        f"{same + near} within three."
    )


def _claims(claims: Sequence[Row]) -> str:
    by_bias = _held(claim["holds_by_bias"] for claim in claims)
    by_rmse = _held(claim["holds_by_rmse"] for claim in claims)
    return (
        f"Of {_number_of(claims, 'check')} of what the paper says about its tables, "
        f"{by_bias} hold by bias and {by_rmse} by root mean square error."
    )


def _failing(claims: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the claims that do not hold, with their place among all and by what measure."""
    failing = []
    for number, claim in enumerate(claims, start=1):
        verdicts = {"bias": claim["holds_by_bias"], "RMSE": claim["holds_by_rmse"]}
        measures = " or ".join(name for name, holds in verdicts.items() if holds is False)
        if measures:
            failing.append({**claim, "number": number, "measures": measures})
    return failing


def _held(verdicts: Iterable[bool | None]) -> str:
    known = [verdict for verdict in verdicts if verdict is not None]
    return f"{known.count(True)} of {len(known)}"


def _number_of(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def _joined(names: Sequence[object]) -> str:
    words = [str(name) for name in names]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _setting_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, tuple):
        return f"{value:g}"
    # A pair inside a list is an estimator's label and its method.
    return ", ".join(" = ".join(x) if isinstance(x, tuple) else str(x) for x in value)
