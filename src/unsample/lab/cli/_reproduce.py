"""``unsample reproduce``: the tables and figures of the paper from shipped ranks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from unsample.cli.console import log, progress_bar, say
from unsample.lab.experiment import ESTIMATORS, Reproduction, Spec, run

__all__ = ["cores", "reproduce_command"]


def reproduce_command(
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Data set, repeatable. [default: all four]"),
    ] = None,
    recommender: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Recommender, repeatable. [default: the paper's five]"),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"{', '.join(ESTIMATORS)}, or a method such as map; repeatable. [default: those]",
        ),
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="paper: training items kept; everyday: excluded; repeatable. [default: both]",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="B", help="Samples of each table cell.")] = 100,
    sampled: Annotated[int, typer.Option(metavar="S", help="Items sampled for each target.")] = 99,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Seed of all sampling.")] = 0,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train on the data; ignore the shipped ranks.")
    ] = False,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", readable=False, help="Folder of the results, new or of the same run."
        ),
    ] = Path("reproduction"),
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the run in the folder, which must be there."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Throw away the run that the folder holds.")
    ] = False,
    workers: Annotated[
        int, typer.Option(metavar="W", help="Processes; 0 for one on each core.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Reproduce every table and figure of the paper, and check its claims.

    Results are tidy CSV files in a folder. A run that was ended early continues where it stopped
    when the same command is given again.

    **Examples**

    `unsample reproduce --dataset ml-1m --out reproduction`

    `unsample reproduce --repeats 20 --protocol paper --estimator MLE --estimator "BV 0.1"`
    """
    spec = Spec.choose(
        datasets=dataset or (),
        protocols=protocol or (),
        recommenders=recommender or (),
        estimators=estimator or (),
        sampled=sampled,
        repeats=repeats,
        seed=seed,
        retrain=retrain,
    )
    with progress_bar("reproducing") as progress:
        result = run(
            spec,
            out,
            resume=resume,
            force=force,
            workers=cores() if workers == 0 else workers,
            progress=progress,
        )
    report = _write_report(out)
    if as_json:
        say(json.dumps(_summary(result, out, report), indent=2, allow_nan=False))
        return
    say(_text(result, out, report))


def _write_report(folder: Path) -> Path | None:
    """Write the report beside the tables, where this installation can make one."""
    try:
        from unsample.lab.report import write_report

        return write_report(folder)
    except ImportError as problem:
        log.warning("no report: %s", problem)
        return None


def _summary(result: Reproduction, out: Path, report: Path | None) -> dict[str, Any]:
    return {
        "folder": str(out),
        "report": None if report is None else str(report),
        "settings": dict(result.settings),
        "rows": {
            name: len(getattr(result, name))
            for name in ("statistics", "accuracy", "winners", "distributions", "sweep", "claims")
        },
        "claims": list(result.claims),
    }


def _text(result: Reproduction, out: Path, report: Path | None) -> str:
    verdicts = {True: "holds", False: "does not hold", None: "-"}
    lines = [
        f"{verdicts[claim['holds_by_bias']]:<13}  {verdicts[claim['holds_by_rmse']]:<13}  "
        f"{claim['id']}: {claim['claim']}"
        for claim in result.claims
    ]
    seconds = result.settings["seconds"]
    ending = f"Report: {report}" if report is not None else f"Tables: {out}/*.csv"
    return "\n".join(
        [f"{'by bias':<13}  {'by RMSE':<13}  claim", *lines, "", f"{ending} ({seconds:.0f} s)"]
    )


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
