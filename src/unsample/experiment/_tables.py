"""The accuracy and winner tables as Markdown, the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from unsample._files import write_atomically
from unsample.experiment._results import Reproduction, Row

__all__ = ["accuracy_markdown", "winners_markdown", "write_markdown"]


def write_markdown(result: Reproduction, folder: Path) -> None:
    """Write ``accuracy.md`` and ``winners.md``."""
    for name, text in (
        ("accuracy.md", accuracy_markdown(result)),
        ("winners.md", winners_markdown(result)),
    ):
        content = text.encode()
        write_atomically(folder / name, lambda file, content=content: file.write(content))  # type: ignore[misc]


def accuracy_markdown(result: Reproduction) -> str:
    """Return mean ± std of each estimate times 1000, with the printed one in brackets below."""
    lines = ["# Estimates of metrics", "", "Every value times 1000; the paper's in brackets."]
    for (dataset, protocol), rows in _by(result.accuracy, "dataset", "protocol"):
        labels = list(dict.fromkeys(row["estimator"] for row in rows))
        table = [
            [recommender, f"{metric}@{k}", _exact(cells[0]), *map(_estimate, cells)]
            for (recommender, metric, k), cells in _by(rows, "recommender", "metric", "k")
        ]
        lines += ["", f"## {dataset}, {protocol} protocol", ""]
        lines += _table(["recommender", "metric", "exact", *labels], table)
    return "\n".join(lines) + "\n"


def winners_markdown(result: Reproduction) -> str:
    """Return how often each estimator names the true winner, with the printed count in brackets."""
    lines = ["# Samples in which the estimated winner is the true one", ""]
    lines += ["The paper's counts, of 100, in brackets."]
    for (dataset, protocol), rows in _by(result.winners, "dataset", "protocol"):
        labels = list(dict.fromkeys(row["estimator"] for row in rows))
        table = [
            [str(k), metric, cells[0]["true_winner"], *map(_count, cells)]
            for (k, metric), cells in _by(
                sorted(rows, key=lambda row: int(row["k"])), "k", "metric"
            )
        ]
        lines += ["", f"## {dataset}, {protocol} protocol, {rows[0]['repeats']} samples", ""]
        lines += _table(["K", "metric", "winner", *labels], table)
    return "\n".join(lines) + "\n"


def _by(rows: Sequence[Row], *keys: str) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
    for key, group in groupby(rows, key=lambda row: tuple(row[name] for name in keys)):
        yield key, list(group)


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---"] * len(header)
    return ["| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)]


def _exact(row: Row) -> str:
    return f"{1000 * row['exact']:.2f}" + _printed(row["paper_exact"], None)


def _estimate(row: Row) -> str:
    ours = f"{1000 * row['mean']:.2f} ± {1000 * row['std']:.2f}"
    return ours + _printed(row["paper_mean"], row["paper_std"])


def _printed(mean: float | None, std: float | None) -> str:
    if mean is None:
        return ""
    return f" ({1000 * mean:.2f}" + (f" ± {1000 * std:.2f})" if std is not None else ")")


def _count(row: Row) -> str:
    paper = row["paper_correct"]
    return str(row["correct"]) + ("" if paper is None else f" ({paper})")
