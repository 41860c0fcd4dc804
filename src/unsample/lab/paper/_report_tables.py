"""The tables of a report as text, beside the paper's numbers and how far those are from ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unsample.lab.paper._tables import Reproduction, Row
from unsample.pages import Number, Sheet, Table

DASH = "–"  # noqa: RUF001 - an en dash is what a typesetter puts for "none"
#: The paper prints every metric times 1000.
_UNIT = 1000
#: A sample is called enough when the median relative RMSE over recommenders is at most this.
ENOUGH = 0.10
#: Exact values this near are taken to come from recommenders of the same quality.
_NEAR_EXACT = 0.15
_NEAR_STD = 0.20
_PAPER_REPEATS = 100
_CANDIDATES = {
    "all": "among all items, as in the paper (training items kept)",
    "unseen": "among unseen items (training items excluded)",
}


# -- rows -------------------------------------------------------------------------------------


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by their values in ``columns``, groups in the order of their first row."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def values_of(rows: Iterable[Row], column: str) -> tuple[Any, ...]:
    """Return the different values in a column, in the order of their first row."""
    return tuple(dict.fromkeys(row[column] for row in rows))


def in_dataset_order(rows: Iterable[Row], results: Reproduction) -> list[Row]:
    """Return rows with data sets in the order of the accuracy tables, others at the end."""
    order = {name: place for place, name in enumerate(values_of(results.accuracy, "dataset"))}
    return sorted(rows, key=lambda row: order.get(row["dataset"], len(order)))


def candidates_name(candidates: str) -> str:
    """Return in words among which items targets are ranked."""
    return _CANDIDATES[candidates]


def metric_name(row: Row) -> str:
    """Return ``Recall@10`` and the like."""
    return f"{row['metric']}@{row['k']}"


def median_relative(rows: Iterable[Row], column: str) -> float | None:
    """Return the median of |column| / exact, over the rows whose exact value is not zero.

    A mean would be that of the one recommender whose exact value is nearly zero.
    """
    shares = [abs(row[column]) / row["exact"] for row in rows if row["exact"] > 0]
    return statistics.median(shares) if shares else None


# -- numbers as text --------------------------------------------------------------------------


def scaled(value: float | None, sign: str = "") -> str:
    """Return a metric times 1000 with two digits, as the paper prints it; ``"+"`` signs it."""
    if value is None:
        return DASH
    text = f"{_UNIT * value:{sign}.2f}"
    if not text.strip("+-0."):
        return text.lstrip("+-")
    return text.replace("-", "−")  # noqa: RUF001 - lines up with the plus sign


def spread(mean: float | None, std: float | None) -> str:
    """Return mean ± standard deviation, or what there is of it."""
    return scaled(mean) if std is None else f"{scaled(mean)} ± {scaled(std)}"


def percent(share: float | None) -> str:
    """Return a share in percent with two significant digits."""
    if share is None:
        return DASH
    points = 100 * share
    return f"{points:.0f} %" if abs(points) >= 9.95 else f"{points:.1f} %"


def count(value: float | None) -> str:
    """Return a whole number with separators."""
    return DASH if value is None else f"{value:,.0f}"


# -- agreement with the paper -----------------------------------------------------------------


@dataclass(frozen=True)
class Deviation:
    """A distance from the paper's number in standard deviations; None where the paper has none."""

    size: float | None

    @property
    def level(self) -> str:
        """Return ``same``, ``near`` or ``far``, or nothing where there is nothing to compare."""
        if self.size is None:
            return ""
        shown = round(self.size, 1)  # so that a sign never contradicts the number beside it
        if shown <= 1:
            return "same"
        return "near" if shown <= 3 else "far"

    @property
    def marker(self) -> str:
        """Return the sign that says the level without colour."""
        return {"": "", "same": "=", "near": "~", "far": "≠"}[self.level]

    def __str__(self) -> str:
        if self.size is None:
            return ""
        text = f"{self.size:.1f}" if self.size < 99.95 else "> 99"
        return f"{text}σ"  # noqa: RUF001 - the usual sign of a standard deviation


def accuracy_deviation(row: Row) -> Deviation:
    """Return how far our mean is from the paper's, by the spread of a single evaluation."""
    return _distance(row, "mean", row["paper_mean"])


def bias_deviation(row: Row) -> Deviation:
    """Return how far our bias, mean minus exact, is from the paper's."""
    paper = row["paper_mean"]
    return _distance(row, "bias", None if paper is None else paper - row["paper_exact"])


def winner_deviation(row: Row) -> Deviation:
    """Return how far apart two shares of correct winners are, by their standard error."""
    ours, paper, repeats = row["correct"], row["paper_correct"], row["repeats"]
    if paper is None:
        return Deviation(None)
    # Half a success is added to each side, so that 0 and 100 of 100 have a spread too.
    share = (ours + paper + 0.5) / (repeats + _PAPER_REPEATS + 1)
    error = math.sqrt(share * (1 - share) * (1 / repeats + 1 / _PAPER_REPEATS))
    return Deviation(abs(ours / repeats - paper / _PAPER_REPEATS) / error)


def agreement_table(rows: Iterable[Row]) -> Table | None:
    """Return how much agrees by data set and candidates, where the paper has any number."""
    found = []
    groups = grouped(
        (row for row in rows if row["paper_mean"] is not None), "dataset", "candidates"
    )
    for (dataset, candidates), group in groups.items():
        means = [accuracy_deviation(row).level for row in group]
        same, cells = means.count("same"), len(means)
        biases = sum(bias_deviation(row).level == "same" for row in group)
        lines = grouped(group, "recommender", "metric", "k", "sampled").values()
        near = [x for x in lines if _is_within(x[0]["exact"], x[0]["paper_exact"], _NEAR_EXACT)]
        spreads = [_is_within(r["std"], r["paper_std"], _NEAR_STD) for line in near for r in line]
        texts = (
            f"{same} of {cells}",
            f"{same + means.count('near')} of {cells}",
            f"{biases} of {cells}",
            f"{len(near)} of {len(lines)}",
            f"{sum(spreads)} of {len(spreads)}" if spreads else DASH,
        )
        found.append((dataset, candidates, *map(Number, texts)))
    header = (
        "Data set",
        "Candidates",
        "Means within 1 σ",  # noqa: RUF001
        "Means within 3 σ",  # noqa: RUF001
        "Biases within 1 σ",  # noqa: RUF001
        "Exact values within 15 %",
        "Of their cells, σ within 20 %",  # noqa: RUF001
    )
    caption = (
        "Agreement with the paper. σ is the standard deviation of one evaluation: the root mean "  # noqa: RUF001
        "square of the paper's and ours."
    )
    return Table(header, tuple(found), caption) if found else None


def _is_within(ours: float | None, paper: float | None, share: float) -> bool:
    return ours is not None and paper is not None and abs(ours - paper) <= share * abs(paper)


def _distance(row: Row, column: str, paper: float | None) -> Deviation:
    if paper is None:
        return Deviation(None)
    pooled = math.sqrt((row["std"] ** 2 + row["paper_std"] ** 2) / 2)
    return Deviation(abs(row[column] - paper) / pooled)


# -- tables -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """Accuracy or winners on one data set: lines of rows, one row an estimator.

    ``groups`` has the lines by the metric, or the K, under which they stand on the page.
    """

    dataset: str
    candidates: str
    note: str
    has_paper: bool
    lines: list[list[Row]]
    groups: dict[str, list[list[Row]]]

    @property
    def title(self) -> str:
        """Return what the table is of."""
        return f"{self.dataset}, {candidates_name(self.candidates)}"

    @property
    def estimators(self) -> tuple[str, ...]:
        """Return the estimators of every line."""
        return tuple(row["estimator"] for row in self.lines[0])


def accuracy_sections(rows: Iterable[Row]) -> tuple[Section, ...]:
    """Return the accuracy on each data set and its candidates, metric by metric as in the paper."""
    sections = []
    for (dataset, candidates), group in grouped(rows, "dataset", "candidates").items():
        groups = {
            metric_name(found[0]): list(grouped(found, "recommender").values())
            for found in grouped(group, "metric", "k").values()
        }
        note = (
            f"{group[0]['sampled']} items sampled; values × 1000; "  # noqa: RUF001
            f"mean ± standard deviation over {count(group[0]['repeats'])} repeats"
        )
        has_paper = any(row["paper_mean"] is not None for row in group)
        lines = [line for found in groups.values() for line in found]
        sections.append(Section(dataset, candidates, note, has_paper, lines, groups))
    return tuple(sections)


def winner_sections(rows: Iterable[Row]) -> tuple[Section, ...]:
    """Return the winners on each data set and its candidates, by K."""
    sections = []
    for (dataset, candidates), group in grouped(rows, "dataset", "candidates").items():
        groups = {
            f"K = {k}": list(grouped(found, "metric").values())
            for (k,), found in grouped(group, "k").items()
        }
        lines = list(grouped(group, "metric", "k").values())
        has_paper = any(row["paper_correct"] is not None for row in group)
        note = f"correct winners of {count(group[0]['repeats'])} repeats"
        note += " (paper: of 100)" if has_paper else ""
        sections.append(Section(dataset, candidates, note, has_paper, lines, groups))
    return tuple(sections)


def least(line: Sequence[Row], column: str) -> Row:
    """Return the row of a line whose number is the smallest in size."""
    return min(line, key=lambda row: abs(row[column]))


def printed_exact(line: Sequence[Row]) -> str:
    """Return the exact value that the paper prints for a line."""
    return scaled(next((r["paper_exact"] for r in line if r["paper_exact"] is not None), None))


def accuracy_sheet(rows: Iterable[Row]) -> Sheet:
    """Return the accuracy tables for Markdown and LaTeX, the paper's numbers above ours."""
    tables = []
    for section in accuracy_sections(rows):
        lines: list[tuple[str, ...]] = []
        for line in section.lines:
            names = (metric_name(line[0]), str(line[0]["recommender"]))
            if section.has_paper:
                paper = [spread(row["paper_mean"], row["paper_std"]) for row in line]
                lines.append((*names, "paper", printed_exact(line), *paper))
            ours = [
                f"{spread(row['mean'], row['std'])} {accuracy_deviation(row).marker}".rstrip()
                for row in line
            ]
            errors = [f"{scaled(row['bias'], '+')}; {scaled(row['rmse'])}" for row in line]
            lines.append((*names, "ours", scaled(line[0]["exact"]), *ours))
            lines.append((*names, "bias; RMSE", "", *errors))
        header = ("metric", "recommender", "numbers", "exact", *section.estimators)
        tables.append(_text_table(section, header, lines, words=3))
    return Sheet((), tuple(tables))


def winners_sheet(rows: Iterable[Row]) -> Sheet:
    """Return the winner tables for Markdown and LaTeX; a cell: the paper's count, then ours."""
    tables = []
    for section in winner_sections(rows):
        lines = [
            (
                metric_name(line[0]),
                str(line[0]["true_winner"]),
                *(_counts(row, section.has_paper) for row in line),
            )
            for line in section.lines
        ]
        header = ("metric", "true winner", *section.estimators)
        tables.append(_text_table(section, header, lines, words=2))
    return Sheet((), tuple(tables))


def _counts(row: Row, has_paper: bool) -> str:
    ours = count(row["correct"])
    if not has_paper:
        return ours
    return f"{count(row['paper_correct'])}, {ours} {winner_deviation(row).marker}".rstrip()


def _text_table(
    section: Section, header: tuple[str, ...], lines: list[tuple[str, ...]], *, words: int
) -> Table:
    """Return a table whose first columns are ``words``, and the others numbers."""
    rows: tuple[tuple[str | Number, ...], ...] = tuple(
        (*line[:words], *map(Number, line[words:])) for line in lines
    )
    return Table(header, rows, f"{section.title}: {section.note}")


def sweep_tables(rows: Iterable[Row]) -> dict[str, Table]:
    """Return relative RMSE by sample size for each data set and its candidates, by their names."""
    tables = {}
    for (dataset, candidates), group in grouped(rows, "dataset", "candidates").items():
        sizes = tuple(sorted(values_of(group, "sampled")))
        lines: list[tuple[str | Number, ...]] = []
        for line in grouped(group, "metric", "k", "estimator").values():
            by_size = grouped(line, "sampled")
            errors = [median_relative(by_size.get((size,), ()), "rmse") for size in sizes]
            texts = (*map(percent, errors), _enough(sizes, errors))
            lines.append((str(line[0]["estimator"]), metric_name(line[0]), *map(Number, texts)))
        header = ("Estimator", "Metric", *map(str, sizes), "Enough")
        caption = (
            "RMSE / exact by the number of sampled items, median over recommenders; enough: the "
            f"smallest tried size from which on it is at most {100 * ENOUGH:.0f} %."
        )
        name = f"{dataset}, {candidates_name(candidates)}"
        tables[name] = Table(header, tuple(lines), caption)
    return tables


def statistics_table(rows: Iterable[Row]) -> Table:
    """Return the sizes of the data sets, the paper's and ours."""
    lines: tuple[tuple[str | Number, ...], ...] = tuple(
        (
            str(row["dataset"]),
            str(row["source"]),
            *(Number(count(row[name])) for name in ("users", "items", "interactions")),
            Number(f"{100 * row['sparsity']:.2f} %"),
            str(row["note"] or ""),
        )
        for row in rows
    )
    header = ("Data set", "Source", "Users", "Items", "Interactions", "Sparsity", "Note")
    caption = "Size of the data sets, in the paper and here."
    return Table(header, lines, caption)


def _enough(sizes: Sequence[int], errors: Sequence[float | None]) -> str:
    """Return the smallest size from which on every error is small."""
    enough = f"more than {count(sizes[-1])}"
    for size, error in zip(reversed(sizes), reversed(errors), strict=True):
        if error is None or error > ENOUGH:
            break
        enough = count(size)
    return enough
