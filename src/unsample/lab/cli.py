"""``unsample reproduce``: the tables and figures of the paper."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from unsample.cli.console import console_verb, progress_bar, say
from unsample.cli.options import AsJson, Rng


@console_verb
def reproduce_command(
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Data set, repeatable. [default: all four]"),
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="B", help="Samples of each table cell.")] = 100,
    rng: Rng = 0,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", readable=False, help="Folder of the results."),
    ] = Path("reproduction"),
    workers: Annotated[
        int, typer.Option(metavar="W", help="Processes; 0 for one on each core.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Reproduce every table and figure of the paper, and check its claims.

    Results are tidy CSV files in a folder, and tables in Markdown and LaTeX beside them.

    **Examples**

    `unsample reproduce --dataset ml-1m --out reproduction`

    `unsample reproduce --repeats 20`
    """
    from unsample.lab import paper

    with progress_bar("reproducing") as progress:
        result = paper.run(
            out,
            datasets=dataset or (),
            repeats=repeats,
            rng=rng,
            workers=workers or _cores(),
            progress=progress,
        )
    claims = result.tables["claims"]
    if as_json:
        summary = {
            "folder": str(out),
            "settings": dict(result.settings),
            "rows": {name: len(rows) for name, rows in result.tables.items()},
            "claims": list(claims),
        }
        say(json.dumps(summary, indent=2, allow_nan=False))
        return
    say(f"{'by bias':<13}  {'by RMSE':<13}  claim")
    for claim in claims:
        by_bias, by_rmse = (paper.VERDICTS[claim[f"holds_by_{by}"]] for by in ("bias", "rmse"))
        say(f"{by_bias:<13}  {by_rmse:<13}  {claim['id']}: {claim['claim']}")
    say(f"\nTables: {out}/*.csv, *.md and *.tex ({result.settings['seconds']:.0f} s)")


def _cores() -> int:
    """Return how many cores this process may use."""
    known = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
