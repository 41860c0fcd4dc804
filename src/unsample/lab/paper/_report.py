"""The report of a run: one self-contained page, and its tables as Markdown and as LaTeX."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unsample.lab.paper._exhibits import ESTIMATORS
from unsample.lab.paper._report_tables import (
    CANDIDATES,
    accuracy_tables,
    agreement_table,
    bias_sign,
    grouped,
    mean_sign,
    median_relative,
    metric_name,
    statistics_table,
    sweep_tables,
    values_of,
    winner_sign,
    winner_tables,
)
from unsample.lab.paper._tables import Reproduction, Row, write_text
from unsample.pages import (
    LineChart,
    LineView,
    Page,
    Part,
    Series,
    Sheet,
    Table,
    as_html,
    as_latex,
    as_markdown,
    page,
)

#: The metric of the sweep's figures: the three behave alike, and this is the most used.
_SWEPT = "NDCG"
VERDICTS = {True: "holds", False: "does not hold", None: "-"}


def write_report(results: Reproduction, folder: str | os.PathLike[str]) -> Path:
    """Write the report of a run into its folder, and return the path of the HTML page.

    Beside ``report.html`` stand ``accuracy.md``, ``accuracy.tex``, ``winners.md`` and
    ``winners.tex``.
    """
    place = Path(folder)
    write_text(place / "report.html", as_html(results))
    for name, tables in (
        ("accuracy", accuracy_tables(results.accuracy)),
        ("winners", winner_tables(results.winners)),
    ):
        write_text(place / f"{name}.md", as_markdown(Sheet((), tables)))
        write_text(place / f"{name}.tex", wide_latex(Sheet((), tables)))
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


@page.register
def _(result: Reproduction) -> Page:
    tables = (agreement_table(result.accuracy), *accuracy_tables(result.accuracy))
    charts = (*rank_charts(result.distributions), *sweep_charts(result.sweep))
    deviations = tuple((each["id"], each["text"]) for each in result.settings["deviations"])
    parts = (
        Part("datasets", "Data sets", tables=(statistics_table(result.statistics),)),
        Part("accuracy", "Accuracy of the estimators", tables=tables),
        Part("winners", "Picking the winner", tables=winner_tables(result.winners)),
        Part("figures", "Figures", charts, sweep_tables(result.sweep)),
        Part("claims", "Claims", tables=(_claims_table(result.claims),)),
        Part(
            "deviations",
            "Deviations from the paper",
            tables=(Table(("id", "what differs"), deviations, "Deviations", "deviations-listed"),),
        ),
    )
    return Page(
        verb="reproduce",
        title="“On Estimating Recommendation Evaluation Metrics under Sampling”, reproduced",
        subtitle="Every table and figure of Jin, Li, Mudrak, Gao and Liu (AAAI 2021, "
        "doi 10.1609/aaai.v35i5.16537) beside ours",
        headline=summarise(result),
        parts=parts,
        settings=_settings(result.settings),
        about=None,
    )


# -- words ------------------------------------------------------------------------------------


def summarise(results: Reproduction) -> tuple[str, ...]:
    """Return in a few sentences what was run, and how much of the paper was found again."""
    rows = results.accuracy
    means, biases = ([sign(row) for row in rows] for sign in (mean_sign, bias_sign))
    winners = [winner_sign(row) for row in results.winners]
    held = [
        f"{verdicts.count(True)} of {len(verdicts) - verdicts.count(None)}"
        for verdicts in ([c[f"holds_by_{by}"] for c in results.claims] for by in ("bias", "rmse"))
    ]
    what = (
        f"{', '.join(values_of(rows, 'recommender'))} on {', '.join(values_of(rows, 'dataset'))}: "
        f"each target is ranked among {rows[0]['sampled']} sampled items, "
        f"{results.settings['repeats']} times over, and {', '.join(values_of(rows, 'estimator'))} "
        "tell what the metrics on the full catalogue would be."
    )
    agreement = (
        f"{_near(means)} of the printed means agree within one standard deviation, "
        f"{_near(biases)} of the biases, and {_near(winners)} of the counts of winners."
    )
    claims = (
        f"{held[0]} claims hold by bias, as the paper judges, and {held[1]} by root mean square "
        "error, which counts the spread of a single evaluation as well."
    )
    return what, agreement, claims


def _near(signs: Sequence[str]) -> str:
    return f"{signs.count('=')} of {len(signs) - signs.count('')}"


def _claims_table(claims: Iterable[Row]) -> Table:
    columns = {
        "claim": lambda row: str(row["claim"]),
        "by bias": lambda row: VERDICTS[row["holds_by_bias"]],
        "by RMSE": lambda row: VERDICTS[row["holds_by_rmse"]],
        "what was found": lambda row: str(row["detail"]),
        "where": lambda row: str(row["where"]),
        "id": lambda row: str(row["id"]),
    }
    caption = "What the paper's text says about its tables, checked on ours"
    return Table.of(claims, columns, caption, "claims-checked")


def _settings(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    plain = {k: v for k, v in settings.items() if k not in ("versions", "deviations")}
    # A pair inside a list is an estimator's label and its method.
    shown = (
        ", ".join(" = ".join(x) if isinstance(x, tuple) else str(x) for x in value)
        if isinstance(value, tuple)
        else str(value)
        for value in plain.values()
    )
    command = ("run it again", rerun_command(settings))
    return (*zip(plain, shown, strict=True), *settings["versions"].items(), command)


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


# -- figures ----------------------------------------------------------------------------------


def rank_charts(rows: Iterable[Row]) -> list[LineChart]:
    """Return learned P(R) against the exact one, and its sums, by recommender and sample size."""
    charts: list[LineChart] = []
    names = ("dataset", "candidates", "recommender", "sampled")
    for (dataset, candidates, recommender, sampled), group in grouped(rows, *names).items():
        curves = grouped(group, "estimator")
        ranks = [row["rank"] for row in curves["exact",]]
        views = [
            _view(
                name,
                label,
                ranks,
                {e: [row[column] for row in part] for (e,), part in curves.items()},
            )
            for name, label, column in (
                ("P(R)", "probability P(R)", "pmf"),
                ("Recall@R", "P(rank ≤ R) = Recall@R", "cdf"),
            )
        ]
        charts.append(
            LineChart(
                identity=f"ranks-{len(charts) + 1}",
                title=f"{recommender} on {dataset}, {sampled} items sampled",
                caption=f"Learned P(R) and its sums for the first {len(ranks)} ranks, mean over "
                f"repeats, and the exact ones; {CANDIDATES[candidates]}.",
                x_label="rank R",
                views=tuple(views),
                log_x=False,
            )
        )
    return charts


def sweep_charts(rows: Iterable[Row]) -> list[LineChart]:
    """Return relative errors against the sample size, on logarithmic axes."""
    charts: list[LineChart] = []
    swept = [row for row in rows if row["metric"] == _SWEPT]
    for (dataset, candidates), group in grouped(swept, "dataset", "candidates").items():
        sizes = sorted(values_of(group, "sampled"))
        views = []
        for name, column in (("bias", "bias"), ("RMSE", "rmse")):
            errors = {
                estimator: [
                    median_relative((row for row in part if row["sampled"] == size), column)
                    for size in sizes
                ]
                for (estimator,), part in grouped(group, "estimator").items()
            }
            views.append(_view(name, f"|{name}| / exact", sizes, errors, marked=True))
        charts.append(
            LineChart(
                identity=f"sweep-{len(charts) + 1}",
                title=f"How many samples are needed? {dataset}",
                caption=f"Relative error of {metric_name(group[0])} against the number of sampled "
                f"items, median over recommenders; {CANDIDATES[candidates]}.",
                x_label="sampled items",
                views=tuple(views),
                log_y=True,
                percent=True,
            )
        )
    return charts


def _view(
    name: str,
    label: str,
    places: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    *,
    marked: bool = False,
) -> LineView:
    """Return curves over ranks or sample sizes; an estimator has one style in all figures."""
    order = ("exact", *ESTIMATORS)
    series = [
        Series(
            estimator,
            order.index(estimator) if estimator in order else len(order) - 1,
            np.asarray(values),
            marked,
        )
        for estimator, values in curves.items()
    ]
    return LineView(name, label, tuple(places), tuple(map(str, places)), tuple(series))
