"""The verbs of the laboratory: ``evaluate``, ``reproduce``, ``datasets`` and ``bank``."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from unsample.answers import DEFAULT_METRICS, Result
from unsample.cli.console import console_verb, log, progress_bar, result_verb, say
from unsample.cli.options import AsJson, Metrics, Replacement, Resamples, Rng, checked_place
from unsample.designs import Fixed
from unsample.errors import DesignError, InputError
from unsample.lab import datasets, paper
from unsample.lab._evaluate import evaluate, evaluate_together
from unsample.lab.bank import load_bank, read_folder
from unsample.lab.datasets import DatasetInfo


def add_verbs(app: typer.Typer) -> None:
    """Add the verbs of the laboratory to the command."""
    app.command("evaluate")(result_verb(evaluate_command))
    app.command("reproduce")(console_verb(reproduce_command))
    data = typer.Typer(help="Public data sets: list, info, fetch.", no_args_is_help=True)
    data.command("list")(console_verb(list_command))
    data.command("info")(console_verb(info_command))
    data.command("fetch")(console_verb(fetch_command))
    app.add_typer(data, name="datasets")
    ranks = typer.Typer(help="The bank of ranks: list it, add to it.", no_args_is_help=True)
    ranks.command("list")(console_verb(list_bank_command))
    ranks.command("add")(console_verb(add_to_bank_command))
    app.add_typer(ranks, name="bank")


def evaluate_command(
    dataset: Annotated[str, typer.Option(metavar="NAME", help="See `unsample datasets list`.")],
    recommender: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="popularity, itemknn, als, ease, neumf, multivae; several are compared.",
        ),
    ],
    bundled: Annotated[
        bool, typer.Option("--bundled", help="Take the ranks that ship with the package.")
    ] = False,
    candidates: Annotated[
        str,
        typer.Option(
            metavar="unseen|all",
            help="Whether training items are left out, or kept as in the paper.",
        ),
    ] = "unseen",
    design: Annotated[
        str,
        typer.Option(
            metavar="DESIGN",
            help=(
                "fixed: as many items for each target; adaptive: more for those near the top; "
                "certified: exact metrics@K from a part of the items; guided: popular items first, "
                "and a random part of the users near the top ranked in full; exact: rank all."
            ),
        ),
    ] = "fixed",
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="B", help="Scores that may be asked for in total, of all recommenders."
        ),
    ] = None,
    sampled: Annotated[
        int | None,
        typer.Option(metavar="S", help="Items sampled for each target by fixed. [default: 99]"),
    ] = None,
    replacement: Replacement = True,
    metrics: Metrics = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD", help="Estimator, repeatable. [default: of fixed, naive and auto]"
        ),
    ] = None,
    resamples: Resamples = 400,
    rng: Rng = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=checked_place,
            readable=False,
            help="Keep what is scored in this file, and continue from it.",
        ),
    ] = None,
) -> Result:
    """Evaluate a recommender on a data set, exactly or at a fraction of the cost.

    The exact metrics stand beside the estimates where they are known: for bundled ranks, and
    for the fixed design. Several recommenders are evaluated with the same draws, and compared.

    **Examples**

    `unsample evaluate --dataset ml-1m --recommender ease --bundled`

    `unsample evaluate --dataset citeulike-a --recommender ease --bundled --design adaptive
    --budget 2800000`

    `unsample evaluate --dataset ml-1m --recommender als --design exact --json`

    `unsample evaluate --dataset ml-1m --recommender ease --recommender als --bundled --design
    guided --budget 2400000`
    """
    if design != "fixed" and (sampled is not None or not replacement):
        raise DesignError(
            f"sampled and replacement must be left out with {design}; they belong to fixed"
        )
    chosen = Fixed(sampled, replacement) if design == Fixed.name else design
    with progress_bar(f"evaluating {', '.join(recommender)} on {dataset}") as progress:
        asked: dict[str, Any] = {
            "bundled": bundled,
            "candidates": candidates,
            "design": chosen,
            "budget": budget,
            "metrics": metrics or DEFAULT_METRICS,
            "resamples": resamples,
            "rng": rng,
            "checkpoint": checkpoint,
            "progress": progress,
        }
        if len(recommender) == 1:
            return evaluate(dataset, recommender[0], method=method, **asked)
        if method is not None and len(method) > 1:
            raise InputError(
                f"method must be one where recommenders are compared, got {', '.join(method)}"
            )
        return evaluate_together(
            dataset, recommender, method=method[0] if method else None, **asked
        )


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
            help=f"{', '.join(paper.ESTIMATORS)}, or a method such as map; repeatable. "
            "[default: those]",
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
    as_json: AsJson = False,
) -> None:
    """Reproduce every table and figure of the paper, and check its claims.

    Results are tidy CSV files in a folder. A run that was ended early continues where it stopped
    when the same command is given again.

    **Examples**

    `unsample reproduce --dataset ml-1m --out reproduction`

    `unsample reproduce --repeats 20 --candidates all --estimator MLE --estimator "BV 0.1"`
    """
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
    with progress_bar("reproducing") as progress:
        result = paper.run(
            spec,
            out,
            resume=resume,
            force=force,
            workers=workers or _cores(),
            progress=progress,
        )
    report = _write_report(out)
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


def _write_report(folder: Path) -> Path | None:
    """Write the report beside the tables, where this installation can make one."""
    try:
        return paper.write_report(folder)
    except ImportError as problem:
        log.warning("no report: %s", problem)
        return None


def _summary(result: paper.Reproduction, out: Path, report: Path | None) -> dict[str, Any]:
    return {
        "folder": str(out),
        "report": None if report is None else str(report),
        "settings": dict(result.settings),
        "rows": {name: len(getattr(result, name)) for name in paper.SCHEMA},
        "claims": list(result.claims),
    }


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


Name = Annotated[str, typer.Argument(metavar="NAME")]


def list_command(as_json: AsJson = False) -> None:
    """List the data sets, what is at hand on this machine, and the ranks that ship."""
    records = [datasets.info(name) for name in datasets.names()]
    bundled = datasets.bundled_ranks()
    if as_json:
        rows = [
            _as_json(record) | {"bundled_ranks": list(bundled.get(record.name, ()))}
            for record in records
        ]
        say(json.dumps(rows, indent=2))
        return
    header = (
        f"{'name':13} {'users':>7} {'items':>7} {'interactions':>12}  {'at hand':8}  bundled ranks"
    )
    say(header)
    say("-" * len(header))
    for record in records:
        ranks = ", ".join(bundled.get(record.name, ())) or "none"
        say(
            f"{record.name:13} {record.users:>7,} {record.items:>7,} {record.interactions:>12,}  "
            f"{_at_hand(record):8}  {ranks}"
        )


def info_command(name: Name, as_json: AsJson = False) -> None:
    """Show a data set's size, licence, citation, files, and what is at hand."""
    record = datasets.info(name)
    if as_json:
        say(json.dumps(_as_json(record), indent=2))
        return
    say(f"{record.name}: {record.title}", bold=True)
    say(f"{record.users:,} users, {record.items:,} items, {record.interactions:,} interactions")
    say(f"home      {record.home}")
    say(f"licence   {record.licence}")
    for citation in record.citations:
        say(f"cite      {citation}")
    say(f"at hand   {_at_hand(record)}{': ' + record.note if record.note else ''}")
    for file in record.files:
        say(f"file      {file.name}  {file.path or 'not at hand'}")
        say(f"          {file.address}")


def fetch_command(name: Name, as_json: AsJson = False) -> None:
    """Download a data set's files, verify them, and say where they are."""
    with progress_bar(f"fetching {name}") as bar:

        def update(file: str, done: int, total: int | None) -> None:
            if bar is not None and total:
                bar(done, total, file)

        paths = datasets.fetch(name, progress=update)
    if as_json:
        say(json.dumps({file: str(path) for file, path in paths.items()}, indent=2))
        return
    for file, path in paths.items():
        say(f"{file}  {path}")


def list_bank_command(as_json: AsJson = False) -> None:
    """List the data sets of the bank and how many rank sets each has."""
    found = Counter((each.dataset, each.group, each.family) for each in load_bank())
    if as_json:
        names = ("dataset", "group", "family", "sets")
        rows = [dict(zip(names, (*key, number), strict=True)) for key, number in found.items()]
        say(json.dumps(rows, indent=2))
        return
    for (dataset, group, family), number in found.items():
        say(f"{dataset:18} {group:10} {family:18} {number:3} rank sets")


def add_to_bank_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="NAME.npz with full ranks.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", callback=checked_place, help="The new bank, .npz.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write the bank with the full ranks of a folder added to it, as histograms."""
    added = read_folder(folder)
    bank = load_bank().add(added)
    bank.save(out)
    if as_json:
        say(json.dumps({"added": len(added), "sets": len(bank), "file": str(out)}))
        return
    say(f"{len(added)} rank sets added, {len(bank)} in {out}")


def _at_hand(record: DatasetInfo) -> str:
    if not record.at_hand:
        return "no"
    return "yes" if record.complete else "partly"


def _as_json(record: DatasetInfo) -> dict[str, Any]:
    fields = asdict(record)
    for file in fields["files"]:
        file["path"] = None if file["path"] is None else str(file["path"])
    return fields
