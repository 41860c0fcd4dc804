"""``unsample reproduce``: the tables and figures of the paper."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unsample._rules import import_extra
from unsample.cli.console import console_verb, log, progress_bar, say
from unsample.cli.options import AsJson, Rng
from unsample.errors import MissingExtraError

if TYPE_CHECKING:
    from unsample.lab import paper

#: The labels in `paper.ESTIMATORS`, which is not loaded to show help.
ESTIMATORS = ("CLS", "BV 0.1", "BV 0.01", "MLE", "WMLE", "MES")


@console_verb
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
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="unseen|all",
            help="all: training items kept, as in the paper; unseen: left out; repeatable. "
            "[default: both]",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="B", help="Samples of each table cell.")] = 100,
    sampled: Annotated[int, typer.Option(metavar="S", help="Items sampled for each target.")] = 99,
    rng: Rng = 0,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train on the data; ignore the shipped ranks.")
    ] = False,
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

    Results are tidy CSV files in a folder, and a report. Ranks of recommenders that are trained
    (--retrain) stay in it, so that a run that was ended does not train them again.

    **Examples**

    `unsample reproduce --dataset ml-1m --out reproduction`

    `unsample reproduce --repeats 20 --candidates all --estimator MLE --estimator "BV 0.1"`
    """
    from unsample.lab import paper
    from unsample.lab.recommenders import check_extras

    spec = paper.Spec.choose(
        datasets=dataset or (),
        candidates=candidates or (),
        recommenders=recommender or (),
        estimators=estimator or (),
        sampled=sampled,
        repeats=repeats,
        rng=rng,
        retrain=retrain,
    )
    if retrain:
        for name in spec.recommenders:
            check_extras(name)
    reported = _can_report()
    with progress_bar("reproducing") as progress:
        result = paper.run(
            spec,
            out,
            workers=workers or _cores(),
            progress=progress,
        )
    report = paper.write_report(result, out) if reported else None
    if as_json:
        say(json.dumps(_summary(result, out, report), indent=2, allow_nan=False))
        return
    verdicts = {True: "holds", False: "does not hold", None: "-"}
    say(f"{'by bias':<13}  {'by RMSE':<13}  claim")
    for claim in result.claims:
        by_bias, by_rmse = verdicts[claim["holds_by_bias"]], verdicts[claim["holds_by_rmse"]]
        say(f"{by_bias:<13}  {by_rmse:<13}  {claim['id']}: {claim['claim']}")
    ending = f"Report: {report}" if report is not None else f"Tables: {out}/*.csv"
    say(f"\n{ending} ({result.settings['seconds']:.0f} s)")


def _can_report() -> bool:
    """Return whether this installation can make a report; say so before hours go by."""
    try:
        import_extra("jinja2", extra="report", purpose="an HTML report")
    except MissingExtraError as problem:
        log.warning("no report: %s", problem)
        return False
    return True


def _summary(result: paper.Reproduction, out: Path, report: Path | None) -> dict[str, Any]:
    from unsample.lab.paper import SCHEMA

    return {
        "folder": str(out),
        "report": None if report is None else str(report),
        "settings": dict(result.settings),
        "rows": {name: len(getattr(result, name)) for name in SCHEMA},
        "claims": list(result.claims),
    }


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
