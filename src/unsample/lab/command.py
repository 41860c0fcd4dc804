"""``unsample reproduce``: the tables and figures of the paper."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unsample._progress import terminal_progress
from unsample.cli import options
from unsample.cli.console import verb

if TYPE_CHECKING:
    from unsample.lab.paper import Reproduction


@verb(
    options.option(
        "--dataset", "NAME", "Data set; repeatable.  [default: all four]", multiple=True
    ),
    options.option("--repeats", "B", "Samples of each table cell.", type=int, default=100),
    options.RNG,
    options.option("--out", "DIR", "Folder of the results.", default="reproduction"),
    options.PLOT,
    options.option("--workers", "W", "Threads.  [default: one on each core]", type=int),
    examples=(
        "unsample reproduce --dataset ml-1m --out reproduction",
        "unsample reproduce --repeats 20 --workers 1",
    ),
)
def reproduce(
    dataset: tuple[str, ...], repeats: int, rng: int, out: str, workers: int | None
) -> Reproduction:
    """Reproduce every table and figure of the paper, and check its claims.

    Results are tidy CSV files in a folder, and tables in Markdown and LaTeX beside them.
    """
    from unsample.lab import paper

    with terminal_progress("reproducing") as progress:
        return paper.run(
            out,
            datasets=dataset,
            repeats=repeats,
            rng=rng,
            workers=_cores() if workers is None else workers,
            progress=progress,
        )


def _cores() -> int:
    """Return how many cores this process may use."""
    known = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
