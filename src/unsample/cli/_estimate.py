"""``unsample estimate``: a rank file in, full-catalogue metrics out."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import typer

from unsample._checks import FloatArray, IntArray
from unsample.answers import DEFAULT_METHOD, DEFAULT_METRICS, Estimates, estimate
from unsample.cli import options
from unsample.errors import InputError
from unsample.evidence import TIE_RULES, RankCounts, Targets
from unsample.pages import Page, Sheet, page, sheet
from unsample.tables import (
    ROWS,
    read_counts,
    read_full_ranks,
    read_item_counts,
    read_targets,
)


@dataclass(frozen=True)
class Groups:
    """Estimates for each value of a column, or a single one where there is none."""

    by: str | None
    results: dict[str, Estimates]

    @property
    def shown(self) -> Estimates | dict[str, Estimates]:
        """Return what tables and pages show."""
        return self.results[""] if self.by is None else self.results

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings of all groups, each once."""
        return tuple(sorted({text for held in self.results.values() for text in held.warnings}))

    def to_json(self) -> str:
        """Return what ``--json`` prints."""
        if self.by is None:
            return self.results[""].to_json()
        groups = [{self.by: name, **held.to_dict()} for name, held in self.results.items()]
        return json.dumps({"by": self.by, "groups": groups}, indent=2, allow_nan=False)


@sheet.register
def _(result: Groups) -> Sheet:
    whole = sheet(result.shown)
    resolutions = [
        f"resolution{name and f' of {name}'}: {held.resolution()}"
        for name, held in result.results.items()
    ]
    return replace(whole, notes=(*whole.notes, "\n".join(resolutions)))


@page.register
def _(result: Groups) -> Page:
    return page(result.shown)


def estimate_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, Parquet, JSON lines or NPZ with a column `rank` (1 is the best), or "
            "with scored items (`user`, `score`, `target`); a quoted pattern of files, or a "
            "folder; or `-` for standard input.",
        ),
    ],
    items: options.Items = None,
    sampled: options.Sampled = None,
    metrics: options.Metrics = None,
    method: options.Methods = None,
    filtered: options.Filtered = False,
    negatives: options.Negatives = "own",
    replacement: options.Replacement = True,
    sampler: options.Sampler = "uniform",
    candidates: options.Candidates = None,
    prior: options.Prior = "shipped",
    kind: options.Kind = None,
    probabilities: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="For items not drawn by uniform chance: how often each occurs, columns `item` and "
            "`count`; or `probability` for a column of the table with the chance of each row's "
            "item.",
        ),
    ] = None,
    exponent: Annotated[
        float, typer.Option(metavar="POWER", help="The power of the counts in --probabilities.")
    ] = 1.0,
    strata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SIZE",
            help="For items drawn by stratum (column `stratum`): its number of items, `all` if it "
            "was taken whole, or `rest`. Repeat for each.",
        ),
    ] = None,
    exclude: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Items that could not be drawn: columns `user`, `item`."),
    ] = None,
    shape: options.Shape = None,
    pilot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Full ranks of some users, drawn at random: a table with `user` and `rank`. They "
            "correct what is guessed of the others, and FILE must name users too.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Estimate for each value of this column."),
    ] = None,
    column: options.Columns = None,
    rows: Annotated[
        str | None,
        typer.Option(metavar="KIND", help=f"{', '.join(ROWS)}. [default: by the columns]"),
    ] = None,
    ties: Annotated[
        str,
        typer.Option(metavar="RULE", help=f"Rank of a target with ties: {', '.join(TIE_RULES)}."),
    ] = "random",
    resamples: options.Resamples = 400,
    rng: options.Rng = 0,
) -> Groups:
    """Estimate full-catalogue metrics from the ranks in FILE.

    **Examples**

    `unsample estimate ranks.csv --items 3706 --sampled 99`

    `unsample estimate runs.parquet --items 3706 --sampled 99 -m NDCG@10 -m HR@50 --by model`

    `unsample estimate ranks.csv --items 3706 --sampled 99 --html ranks.html`

    `unsample estimate 'runs/*.parquet' --items 3706 --sampled 99 --by model`

    `unsample estimate scores.parquet --items 3706 --column user=query`

    `unsample estimate ranks.csv --items 3706 --sampled 99 --pilot full.csv`

    `unsample estimate scores.csv --items 3706 --probabilities counts.csv --exponent 0.75`

    `zcat ranks.csv.gz | unsample estimate - --items 3706 --sampled 99 --method mle --json`
    """
    if pilot is not None and (by is not None or probabilities is not None or strata):
        raise InputError(
            "by, probabilities and strata must be left out with a pilot: it is of one model, and "
            "of uniform samples"
        )
    if probabilities is not None or strata:
        return Groups(
            None,
            {
                "": estimate(
                    file,
                    items=items,
                    metrics=metrics or DEFAULT_METRICS,
                    probabilities=_chances(probabilities, exponent, items),
                    strata=_strata(strata),
                    exclude=exclude,
                    replacement=replacement,
                    candidates=candidates,
                    shape=shape,
                    rng=rng,
                )
            },
        )
    columns = options.named(column, "column", "ROLE=NAME, such as rank=position")
    read = read_counts if pilot is None else read_targets
    groups: dict[str, Any] = dict(
        read(
            file,
            items=items,
            sampled=sampled,
            columns=columns,
            rows=rows,
            by=by,
            ties=ties,
            rng=rng,
            replacement=replacement,
            filtered=filtered,
            negatives=negatives,
        )
    )
    full = None
    if pilot is not None:
        groups[""], full = _matched(groups[""], read_full_ranks(pilot, items=items, rng=rng))
    results = {
        name: estimate(
            counts,
            pilot=full,
            metrics=metrics or DEFAULT_METRICS,
            method=method or DEFAULT_METHOD,
            sampler=sampler,
            candidates=candidates,
            prior=options.prior_of(prior),
            kind=kind,
            shape=shape,
            resamples=resamples,
            rng=rng,
        )
        for name, counts in groups.items()
    }
    results = {name: replace(held, filtered=filtered) for name, held in results.items()}
    return Groups(by, results)


def _matched(found: Targets | RankCounts, pilot: Targets) -> tuple[Targets, IntArray]:
    """Return the targets of users, and the full rank of each, 0 where the pilot has none."""
    if not isinstance(found, Targets) or found.users is None or pilot.users is None:
        raise InputError(
            "FILE and the pilot must have a column user with a pilot, got none in one of them: it "
            "tells whose full ranks are known"
        )
    names, known = (np.asarray(each.users).astype(np.str_) for each in (found, pilot))
    for what, some in (("FILE", names), ("the pilot", known)):
        if len(np.unique(some)) < len(some):
            raise InputError(f"{what} must name each user once with a pilot, got some again")
    strangers = ~np.isin(known, names)
    if strangers.any():
        raise InputError(
            f"the pilot must hold users of FILE, got {int(strangers.sum())} others, such as "
            f"{str(known[np.argmax(strangers)])!r}"
        )
    order = np.argsort(names)
    full = np.zeros(len(names), dtype=np.int64)
    full[order[np.searchsorted(names[order], known)]] = np.asarray(pilot.ranks)
    return replace(found, users=None), full


def _chances(file: str | None, exponent: float, items: int | None) -> FloatArray | str | None:
    """Return the chance of each item in one draw; a column of the table goes by its name."""
    if file is None or file == "probability" or items is None:
        return file
    counts = read_item_counts(file, items=items)
    with np.errstate(over="ignore"):
        weights = np.where(counts > 0.0, counts**exponent, 0.0)
    if not (np.isfinite(weights).all() and weights.any()):
        raise InputError(
            f"exponent must give finite chances, and some above 0, got {exponent:g} for {file}"
        )
    return np.asarray(weights / weights.sum())


def _strata(given: list[str] | None) -> dict[str, int | str] | None:
    named = options.named(given, "strata", "NAME=SIZE, such as random=3000 or list=all")
    return {name: int(kind) if kind.isdecimal() else kind for name, kind in named.items()} or None
