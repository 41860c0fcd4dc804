"""The report of a run: our numbers beside the paper's, as Markdown and as LaTeX."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from unsample.lab.paper._exhibits import RECOMMENDERS, Exhibit, deviations, figures
from unsample.lab.paper._tables import Reproduction, Row, Rows, grouped, values_of, write_text
from unsample.report import (
    Cell,
    LineChart,
    LineView,
    Number,
    Part,
    Series,
    Table,
    View,
    table_latex,
    table_markdown,
    write_views,
)

_VERDICTS = {True: "holds", False: "does not hold", None: "-"}
#: The paper prints every metric times 1000.
_UNIT = 1000
_PAPER_REPEATS = 100
_DASH = "–"  # noqa: RUF001 - an en dash is what a typesetter puts for "none"
#: Among which items targets are ranked, in words.
_CANDIDATES = {
    "all": "among all items, as in the paper (training items kept)",
    "unseen": "among unseen items (training items excluded)",
}
#: Whether the library that draws figures is installed.
_CAN_DRAW = find_spec("matplotlib") is not None
#: Our names of the recommenders, by those in the tables.
_OURS = {label: name for name, label in RECOMMENDERS.items()}


def write_report(tables: Mapping[str, Rows], folder: Path) -> None:
    """Write accuracy and winners as Markdown and LaTeX into a folder, and the claims as Markdown.

    A mean of ours is followed by ``=`` where it is within one printed standard deviation of the
    printed mean, by ``~`` within three, and by ``≠`` beyond; a count of winners likewise, by the
    standard error of the difference.
    """
    for name, made in (
        ("accuracy", accuracy_tables(tables["accuracy"])),
        ("winners", winner_tables(tables["winners"])),
    ):
        write_text(folder / f"{name}.md", _markdown(made))
        write_text(folder / f"{name}.tex", wide_latex(made))
    write_text(folder / "claims.md", _markdown(claim_tables(tables["claims"])))
    if _CAN_DRAW:
        for chart in figure_charts(tables):
            write_views(chart, folder / f"{chart.identity}.svg")


def _markdown(tables: tuple[Table, ...]) -> str:
    return "\n\n".join(table_markdown(table, table.caption) for table in tables) + "\n"


def wide_latex(tables: tuple[Table, ...]) -> str:
    """Return tables for LaTeX, each as wide as the page."""
    text = "\n\n".join(table_latex(table, table.caption) for table in tables) + "\n"
    for old, new in (
        (r"\begin{table}", r"\begin{table*}[t]"),
        (r"\end{table}", r"\end{table*}"),
        (r"\begin{tabular}", "\\resizebox{\\textwidth}{!}{%\n\\begin{tabular}"),
        (r"\end{tabular}", r"\end{tabular}}"),
    ):
        text = text.replace(old, new)
    return f"% Needs \\usepackage{{booktabs}} and \\usepackage{{graphicx}}.\n\n{text}"


def view_of_reproduction(result: Reproduction) -> View:
    """Return what is shown of a reproduction: verdicts, figures, and the evidence, folded."""
    tables = result.tables
    settings = result.settings
    claims, found, listed = claim_tables(tables["claims"])
    evidence = {
        "What was found": (found,),
        "Deviations": (listed,),
        "Accuracy": accuracy_tables(tables["accuracy"]),
        "Winners": winner_tables(tables["winners"]),
    }
    folded = [
        Part(
            title,
            replace(table, identity=f"{title.lower().replace(' ', '-')}-{number}"),
            brief=False,
            folded=True,
        )
        for title, made in evidence.items()
        for number, table in enumerate(made)
    ]
    charts = figure_charts(tables)
    drawn = [Part(chart.title.partition(":")[0], drawn=partial(_same, chart)) for chart in charts]
    files = f"{result.folder}/*.csv, *.md, *.tex ({settings['seconds']:.0f} s)"
    notes = [("Tables", files)]
    if charts:
        missing = "not drawn; install matplotlib with: pip install 'unsample[report]'"
        notes.append(("Figures", f"{result.folder}/*.svg" if _CAN_DRAW else missing))
    return View(
        verb="reproduce",
        title="The paper reproduced",
        about=(f"The paper on {', '.join(settings['datasets'])}, {settings['repeats']} repeats",),
        parts=(Part("What the paper says", replace(claims, identity="claims")), *drawn, *folded),
        verdicts=tuple(_verdicts(tables)),
        notes=tuple(notes),
        settings=tuple((name, str(value)) for name, value in settings.items()),
    )


def _same(chart: LineChart) -> LineChart:
    return chart


def _verdicts(tables: Mapping[str, Rows]) -> Iterator[str]:
    """Yield how many claims of the paper hold, and how near our numbers are to its."""
    for candidates, words in (("all", "among all items"), ("unseen", "among unseen items")):
        counted = []
        for column, judged in (("holds_by_bias", "by bias"), ("holds_by_rmse", "by RMSE")):
            verdicts = [claim[column] for claim in papers_claims(tables["claims"], candidates)]
            known = [holds for holds in verdicts if holds is not None]
            counted.append(f"{sum(known)} of {len(known)} {judged}")
        yield f"Claims of the paper that hold {words}: {', '.join(counted)}."
    signs = Counter(mean_sign(row) for row in tables["accuracy"])
    cells = sum(signs[sign] for sign in "=~≠")
    if cells:
        yield (
            f"Of {cells} printed means, ours are within one printed standard deviation for "
            f"{signs['=']}, within three for {signs['='] + signs['~']}."
        )


def papers_claims(claims: Iterable[Row], candidates: str) -> list[Row]:
    """Return the claims of the paper, among all items or, as it did not check them, unseen ones."""
    unseen = candidates == "unseen"
    return [
        claim
        for claim in claims
        if claim["claimed_by"] == "the paper" and claim["id"].endswith(".unseen") == unseen
    ]


# -- figures ----------------------------------------------------------------------------------


def figure_charts(tables: Mapping[str, Rows]) -> tuple[LineChart, ...]:
    """Return the figures of the data sets that were run: P(R) and its sum, and the sample size."""
    datasets = values_of(tables["statistics"], "dataset")
    drawn = [
        make(figure, tables)
        for kind, make in (("distributions", _distributions_chart), ("sweep", _sweep_chart))
        for dataset in datasets
        for figure in figures(kind, [dataset])
    ]
    return tuple(drawn)


def _distributions_chart(figure: Exhibit, tables: Mapping[str, Rows]) -> LineChart:
    """Return a figure of the paper: P(R) of each cell, then the sum up to each rank."""
    cells = grouped(tables["distributions"], "dataset", "candidates", "recommender", "sampled")
    wanted = {(each.dataset, each.recommender, each.sampled) for each in figure.cells()}
    mine = {
        f"{recommender}, {sampled} sampled": grouped(rows, "estimator")
        for (dataset, _, recommender, sampled), rows in cells.items()
        if (dataset, _OURS[recommender], sampled) in wanted
    }
    views = [
        _line_view(f"{words}: {name}", label, curves=curves, column=column)
        for column, words, label in (
            ("pmf", "P(R)", "share of targets at R"),
            ("cdf", "sum", "share of targets at R or better"),
        )
        for name, curves in mine.items()
    ]
    about = figure.settings
    return LineChart(
        identity=f"distributions-{about['dataset']}",
        title=about["title"],
        caption=f"The first {about['ranks']} ranks, {_CANDIDATES[about['candidates']]}.",
        x_label="rank R",
        views=tuple(views),
    )


def _line_view(
    name: str, y_label: str, *, curves: Mapping[tuple[Any, ...], list[Row]], column: str
) -> LineView:
    x = tuple(row["rank"] for row in next(iter(curves.values())))
    series = [
        Series(estimator, np.array([row[column] for row in rows]))
        for (estimator,), rows in curves.items()
    ]
    return LineView(name, y_label, x=x, series=tuple(series))


def _sweep_chart(figure: Exhibit, tables: Mapping[str, Rows]) -> LineChart:
    """Return how the relative error of Recall falls as the sample grows, for each recommender."""
    about = figure.settings
    wanted = {"dataset": about["dataset"], "metric": "Recall"}
    rows = [row for row in tables["sweep"] if wanted.items() <= row.items()]
    views = []
    for (recommender,), mine in grouped(rows, "recommender").items():
        series = [
            Series(estimator, np.array([row["rmse"] / row["exact"] for row in curve]))
            for (estimator,), curve in grouped(mine, "estimator").items()
        ]
        x = values_of(mine, "sampled")
        view = LineView(recommender, "RMSE of Recall / exact", x=x, series=tuple(series))
        views.append(view)
    return LineChart(
        identity=f"sample-size-{about['dataset']}",
        title=about["title"],
        caption=f"Root mean square error of Recall@{about['k']}, as a share of the exact one, "
        f"{_CANDIDATES[about['candidates']]}.",
        x_label="sampled items",
        views=tuple(views),
    )


# -- tables -----------------------------------------------------------------------------------


def accuracy_tables(rows: Iterable[Row]) -> tuple[Table, ...]:
    """Return the accuracy on each data set and its candidates, the paper's numbers above ours."""
    tables = []
    for (dataset, candidates), group in grouped(rows, "dataset", "candidates").items():
        has_paper = any(row["paper_mean"] is not None for row in group)
        lines = [
            cells
            for metric in grouped(group, "metric").values()
            for line in grouped(metric, "recommender").values()
            for cells in _accuracy_lines(line, has_paper)
        ]
        columns = ("metric", "recommender", "numbers", "exact", *values_of(group, "estimator"))
        caption = (
            f"{dataset}, {_CANDIDATES[candidates]}: {group[0]['sampled']} items sampled; "
            "values × 1000; mean ± standard deviation over "  # noqa: RUF001
            f"{group[0]['repeats']:,} repeats"
        )
        tables.append(Table(columns, tuple(lines), caption=caption))
    return tuple(tables)


def _accuracy_lines(line: Sequence[Row], has_paper: bool) -> list[tuple[Cell, ...]]:
    """Return what the paper prints (where it does), ours, and our errors, below each other."""
    ours = [f"{_with_deviation(row['mean'], row['std'])} {mean_sign(row)}".rstrip() for row in line]
    errors = [f"{_scaled(row['bias'], '+')}; {_scaled(row['rmse'])}" for row in line]
    shown = {"ours": (_scaled(line[0]["exact"]), *ours), "bias; RMSE": ("", *errors)}
    if has_paper:
        printed = next((r["paper_exact"] for r in line if r["paper_exact"] is not None), None)
        paper = [_with_deviation(row["paper_mean"], row["paper_std"]) for row in line]
        shown = {"paper": (_scaled(printed), *paper), **shown}
    names = _metric_name(line[0]), str(line[0]["recommender"])
    return [(*names, what, *map(Number, cells)) for what, cells in shown.items()]


def winner_tables(rows: Iterable[Row]) -> tuple[Table, ...]:
    """Return the winners on each data set and its candidates; a cell: the paper's count, ours."""
    tables = []
    for (dataset, candidates), group in grouped(rows, "dataset", "candidates").items():
        has_paper = any(row["paper_correct"] is not None for row in group)
        lines: list[tuple[Cell, ...]] = [
            (
                _metric_name(line[0]),
                str(line[0]["true_winner"]),
                *(Number(_winners(row, has_paper)) for row in line),
            )
            for line in grouped(group, "metric", "k").values()
        ]
        caption = (
            f"{dataset}, {_CANDIDATES[candidates]}: correct winners of "
            f"{group[0]['repeats']:,} repeats{' (paper: of 100)' if has_paper else ''}"
        )
        columns = ("metric", "true winner", *values_of(group, "estimator"))
        tables.append(Table(columns, tuple(lines), caption=caption))
    return tuple(tables)


def claim_tables(claims: Iterable[Row]) -> tuple[Table, ...]:
    """Return the verdicts on what the paper's text says, what was found, and where we differ."""
    rows = tuple(claims)
    judged = {
        "claim": lambda row: str(row["claim"]),
        "by bias": lambda row: _VERDICTS[row["holds_by_bias"]],
        "by RMSE": lambda row: _VERDICTS[row["holds_by_rmse"]],
    }
    found = {
        "claim": lambda row: str(row["claim"]),
        "what was found": lambda row: str(row["detail"]),
        "where": lambda row: str(row["where"]),
    }
    return (
        replace(
            Table.of(rows, judged),
            caption="What the paper's text says about its tables, checked on ours",
        ),
        replace(Table.of(rows, found), caption="What was found for each claim"),
        Table(
            ("id", "what differs"),
            tuple(deviations().items()),
            caption="Deviations from the paper",
        ),
    )


# -- numbers as text --------------------------------------------------------------------------


def _metric_name(row: Row) -> str:
    return f"{row['metric']}@{row['k']}"


def _scaled(value: float | None, sign: str = "") -> str:
    """Return a metric times 1000 with two digits, as the paper prints it; ``"+"`` signs it.

    >>> _scaled(0.12345), _scaled(0.001, "+"), _scaled(None)
    ('123.45', '+1.00', '–')
    """
    if value is None:
        return _DASH
    text = f"{_UNIT * value:{sign}.2f}"
    if not text.strip("+-0."):
        return text.lstrip("+-")
    return text.replace("-", "−")  # noqa: RUF001 - lines up with the plus sign


def _with_deviation(mean: float | None, std: float | None) -> str:
    return _DASH if std is None else f"{_scaled(mean)} ± {_scaled(std)}"


def _winners(row: Row, has_paper: bool) -> str:
    if not has_paper:
        return str(row["correct"])
    printed = _DASH if row["paper_correct"] is None else row["paper_correct"]
    return f"{printed}, {row['correct']} {winner_sign(row)}"


# -- agreement with the paper -----------------------------------------------------------------


def mean_sign(row: Row) -> str:
    """Return how near our mean is to the paper's, by the standard deviation that it prints.

    >>> mean_sign({"mean": 0.034, "paper_mean": 0.036, "paper_std": 0.001})
    '~'
    """
    if row["paper_mean"] is None:
        return ""
    return _sign(abs(row["mean"] - row["paper_mean"]) / row["paper_std"])


def winner_sign(row: Row) -> str:
    """Return how near two shares of correct winners are, by their standard error.

    The paper counts 80 winners of 100 repeats. We count 85, which is 0.9 standard errors more, or
    95, which is 3.2 more:

    >>> winner_sign({"correct": 85, "paper_correct": 80, "repeats": 100})
    '='
    >>> winner_sign({"correct": 95, "paper_correct": 80, "repeats": 100})
    '≠'
    """
    ours = row["correct"]
    paper = row["paper_correct"]
    repeats = row["repeats"]
    if paper is None:
        return ""
    # Half a success is added to each side, so that 0 and 100 of 100 have a standard error too.
    share = (ours + paper + 0.5) / (repeats + _PAPER_REPEATS + 1)
    error = math.sqrt(share * (1 - share) * (1 / repeats + 1 / _PAPER_REPEATS))
    return _sign(abs(ours / repeats - paper / _PAPER_REPEATS) / error)


def _sign(distance: float) -> str:
    """Return how near two numbers are that differ by so many standard errors."""
    if distance <= 1:
        return "="
    return "~" if distance <= 3 else "≠"
