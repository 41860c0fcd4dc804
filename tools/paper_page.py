"""Reproduce the paper, and write the tables of docs/paper.md and its picture: our numbers and its.

``python tools/paper_page.py``; ``--check`` says whether they are what is found now. It takes about
a minute.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator
from page_tables import as_table, write_page, write_picture

from unsample.lab import paper
from unsample.lab.paper._report import (
    accuracy_tables,
    mean_sign,
    papers_claims,
    winner_tables,
)
from unsample.lab.paper._tables import grouped
from unsample.report import table_markdown

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "paper.md"
PICTURE = ROOT / "docs" / "pictures" / "paper.svg"
#: What a sign behind a mean of ours says.
SIGNS = {"=": "within one", "~": "within three", "≠": "beyond"}
COLOURS = dict(
    zip(
        paper.ESTIMATORS,
        ("#7d8f8d", "#b08bc9", "#6a4c93", "#12938b", "#1f6fb4", "#d9822b"),
        strict=True,
    )
)
#: Recommenders that are other variants than the paper's: see the page.
MARKERS = {"itemKNN": "s", "MultiVAE": "^"}
INK = "#22403e"

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]


def reproduced(*, datasets: Sequence[str] = (), repeats: int = 100) -> Tables:
    """Return the tables of a reproduction."""
    with tempfile.TemporaryDirectory() as folder:
        workers = os.cpu_count() or 1
        run = paper.run(folder, datasets=datasets, repeats=repeats, workers=workers)
        return run.tables


def printed_cells(tables: Tables) -> list[Row]:
    """Return the accuracy rows of which the paper prints a number."""
    return [row for row in tables["accuracy"] if row["paper_mean"] is not None]


# -- how near ours are -----------------------------------------------------------------------------


def summary(tables: Tables) -> str:
    """Return the first sentences of the page."""
    cells = printed_cells(tables)
    signs = Counter(map(mean_sign, cells))
    within = signs["="] + signs["~"]
    bias = verdicts_of(tables, "all", by="bias")
    rmse = verdicts_of(tables, "all", by="rmse")
    bias_unseen = verdicts_of(tables, "unseen", by="bias")
    rmse_unseen = verdicts_of(tables, "unseen", by="rmse")
    return (
        f"**Of the {len(cells)} numbers in the paper's tables of accuracy, ours are within one "
        f"printed standard deviation for {signs['=']} and within three for {within}. Of its claims "
        f"{sum(bias)} of {len(bias)} hold by bias, as the paper judges, and {sum(rmse)} of "
        f"{len(rmse)} by root mean square error; with unseen candidates, which it does not treat, "
        f"{sum(bias_unseen)} and {sum(rmse_unseen)} of {len(bias_unseen)}.**\n"
    )


def verdicts_of(tables: Tables, candidates: str, *, by: str) -> list[bool]:
    """Return for each claim of the paper whether it holds, where that is known."""
    claims = papers_claims(tables["claims"], candidates)
    return [claim[f"holds_by_{by}"] for claim in claims if claim[f"holds_by_{by}"] is not None]


def table_of_cells(tables: Tables) -> str:
    """Return how many cells are how near, by data set, and by method."""
    rows = []
    groups = grouped(printed_cells(tables), "dataset")
    for (dataset,), cells in groups.items():
        signs = Counter(map(mean_sign, cells))
        row = [dataset, *(str(signs[sign]) for sign in SIGNS)]
        for label in paper.ESTIMATORS:
            near = Counter(mean_sign(cell) for cell in cells if cell["estimator"] == label)
            row.append(" / ".join(str(near[sign]) for sign in SIGNS) if near else "")
        rows.append(row)
    return as_table(("data set", *SIGNS.values(), *paper.ESTIMATORS), rows)


def table_of_exact(tables: Tables) -> str:
    """Return the exact Recall@10 of each recommender, the paper's and ours."""
    cells = {
        (row["recommender"], row["dataset"]): row
        for row in tables["accuracy"]
        if (row["candidates"], row["metric"], row["estimator"]) == ("all", "Recall", "MLE")
    }
    datasets = list(dict.fromkeys(dataset for _, dataset in cells))
    rows = []
    for recommender in paper.RECOMMENDERS.values():
        row = [recommender]
        for dataset in datasets:
            cell = cells[recommender, dataset]
            printed = 1000 * cell["paper_exact"]
            ours = 1000 * cell["exact"]
            row.append(f"{printed:.1f} / {ours:.1f}")
        rows.append(row)
    notes = {row["dataset"]: row["note"] for row in tables["statistics"] if row["source"] == "here"}
    parts = ["part of the data" if notes[dataset] else "whole" for dataset in datasets]
    return as_table(("recommender", *datasets), [*rows, ["our copy", *parts]])


def picture(tables: Tables) -> Figure:
    """Draw a dot for each cell: our mean against the printed one, by data set and method."""
    groups = grouped(printed_cells(tables), "dataset")
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    panels = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    for ax, ((dataset,), cells) in zip(panels, groups.items(), strict=True):
        _draw_cells(ax, cells)
        signs = Counter(map(mean_sign, cells))
        counts = ", ".join(f"{signs[sign]} {words}" for sign, words in SIGNS.items())
        ax.set_title(f"{dataset}\n{counts}", fontsize=9.5, loc="left")
        ax.set_xlabel("printed mean x 1000", fontsize=9)
    panels[0].set_ylabel("our mean x 1000")
    methods = [
        Line2D([], [], marker="o", ls="", ms=5, color=colour, label=label)
        for label, colour in COLOURS.items()
    ]
    shapes = [
        Line2D([], [], marker=marker, ls="", ms=5, color=INK, label=label)
        for label, marker in MARKERS.items()
    ]
    line = Line2D([], [], color=INK, lw=0.8, ls=":", label="equal")
    handles = [*methods, *shapes, line]
    figure.legend(handles=handles, loc="outside lower center", ncol=9, frameon=False, fontsize=9)
    return figure


def _draw_cells(ax: Axes, cells: Sequence[Row]) -> None:
    """Draw the cells of a data set, each with the standard deviation that the paper prints."""
    for cell in cells:
        ax.errorbar(
            1000 * cell["paper_mean"],
            1000 * cell["mean"],
            xerr=1000 * cell["paper_std"],
            fmt=MARKERS.get(cell["recommender"], "o"),
            color=COLOURS[cell["estimator"]],
            ms=4,
            lw=0.7,
            alpha=0.85,
        )
    ends = (1.2, 130)
    ax.plot(ends, ends, color=INK, lw=0.8, ls=":")
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    ticks = [2, 5, 10, 20, 50, 100]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    ax.spines[["top", "right"]].set_visible(False)


# -- claims ----------------------------------------------------------------------------------------


def table_of_claims(tables: Tables) -> str:
    """Return each claim of the paper, and whether it holds in both protocols."""
    unseen = {
        claim["id"].removesuffix(".unseen"): claim
        for claim in papers_claims(tables["claims"], "unseen")
    }
    rows = []
    for claim in papers_claims(tables["claims"], "all"):
        other = unseen.get(claim["id"], {})
        verdicts = [
            _word(of_candidates.get(by))
            for of_candidates in (claim, other)
            for by in ("holds_by_bias", "holds_by_rmse")
        ]
        rows.append([claim["claim"], *verdicts])
    names = ("all: by bias", "by RMSE", "unseen: by bias", "by RMSE")
    return as_table(("claim", *names), rows)


def _word(holds: bool | None) -> str:
    words = {True: "**yes**", False: "no", None: ""}
    return words[holds]


def own_checks(tables: Tables) -> str:
    """Return the two checks of our own numbers."""
    ours = [claim for claim in tables["claims"] if claim["claimed_by"] == "us"]
    lines = [
        f"* {claim['claim']} **{'Yes' if claim['holds_by_bias'] else 'No'}.** {claim['detail']}\n"
        for claim in ours
    ]
    return "".join(lines)


# -- who names the winner --------------------------------------------------------------------------


def table_of_winners(tables: Tables) -> str:
    """Return how often each method names the best model by Recall@10, and its errors on ml-1m."""
    wanted = {"candidates": "unseen", "metric": "Recall", "k": 10}
    named = {
        (row["estimator"], row["dataset"]): row
        for row in tables["winners"]
        if wanted.items() <= row.items()
    }
    datasets = list(dict.fromkeys(dataset for _, dataset in named))
    of_methods = grouped(
        [
            row
            for row in tables["accuracy"]
            if row["dataset"] == "ml-1m" and wanted.items() <= row.items()
        ],
        "estimator",
    )
    rows = []
    for (label,), cells in of_methods.items():
        correct = [str(named[label, dataset]["correct"]) for dataset in datasets]
        errors = [
            f"{1000 * mean(abs(cell[error]) for cell in cells):.1f}"
            for error in ("bias", "std", "rmse")
        ]
        rows.append([label, *correct, *errors])
    errors_on = ("bias on ml-1m", "standard deviation", "RMSE")
    return as_table(("method", *datasets, *errors_on), rows)


# -- the page --------------------------------------------------------------------------------------


def folded(tables: Tables) -> str:
    """Return the tables themselves, one below the other, each folded."""
    made = [*accuracy_tables(tables["accuracy"]), *winner_tables(tables["winners"])]
    parts = []
    for table in made:
        title, _, caption = table.caption.partition(": ")
        text = table_markdown(table, caption="")
        parts.append(f"<details>\n<summary>{title}: {caption}</summary>\n\n{text}\n\n</details>\n")
    return "\n".join(parts)


def page_tables(tables: Tables) -> dict[str, str]:
    """Return all tables of the page by their names."""
    return {
        "paper-summary": summary(tables),
        "paper-cells": table_of_cells(tables),
        "paper-exact": table_of_exact(tables),
        "paper-claims": table_of_claims(tables),
        "paper-checks": own_checks(tables),
        "paper-winners": table_of_winners(tables),
        "paper-tables": folded(tables),
    }


def main(*, check: bool) -> int:
    """Write the page and its picture, or say whether they are as found now."""
    tables = reproduced()
    same = [
        write_page(PAGE, page_tables(tables), check=check),
        write_picture(
            PICTURE,
            picture(tables),
            title="The paper, reproduced",
            text=(
                "Our means against the printed ones, a panel for each data set. On ml-1m and "
                "citeulike-a they are equal; on pinterest-20 and yelp those of itemKNN and "
                "MultiVAE lie far below."
            ),
            check=check,
        ),
    ]
    return 0 if all(same) or not check else 1


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
