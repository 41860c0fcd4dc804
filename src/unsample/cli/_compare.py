"""``unsample compare``: rank files of several models in, verdicts out."""

from __future__ import annotations

from typing import Annotated

import typer

from unsample.answers import comparison
from unsample.answers.estimation import DEFAULT_METHOD, DEFAULT_METRICS
from unsample.cli._manner import say
from unsample.cli._options import (
    AsJson,
    CandidateItems,
    CatalogueSize,
    Html,
    Metrics,
    SampleSize,
    WithoutReplacement,
    page_written,
    print_warnings,
)
from unsample.errors import InputError
from unsample.evidence import RankCounts, Targets
from unsample.pages._text import comparison_table
from unsample.tables import read_targets

__all__ = ["compare_command"]

_EPILOG = """
**Examples**

`unsample compare ease=ease.csv als=als.csv --items 3706 --sampled 99 -m NDCG@50`

`unsample compare runs.parquet --by model --items 3706 --sampled 99 --candidates unseen --json`

`unsample compare ease=ease.csv als=als.csv --items 3706 --sampled 99 --html models.html`

`unsample compare sweep.parquet --by run --items 3706 --sampled 99 --against baseline`
"""


def compare_command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=FILE...",
            help="A name and a rank file for each model, or one file with --by. Models are "
            "compared user by user where the files have a column `user`, or equally many rows.",
        ),
    ],
    items: CatalogueSize = None,
    sampled: SampleSize = None,
    metric: Metrics = None,
    method: Annotated[str, typer.Option(metavar="METHOD", help="Estimator.")] = DEFAULT_METHOD,
    without_replacement: WithoutReplacement = False,
    candidates: CandidateItems = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that names the model, in a single file."),
    ] = None,
    level: Annotated[
        float, typer.Option(metavar="LEVEL", help="Level of intervals and verdicts.")
    ] = 0.95,
    correction: Annotated[
        str,
        typer.Option(metavar="NAME", help=f"{', '.join(comparison.CORRECTIONS)}."),
    ] = "holm",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Compare every other model with this one; or `best`, with the highest estimate "
            "of each metric; or `all` pairs. By default all pairs of up to 100 models, else best.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Seed of the chances.")] = 0,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Compare models by their sampled ranks: which is truly better, and how sure that is."""
    result = comparison.compare(
        _models(files, by, items, sampled, not without_replacement),
        metrics=metric or DEFAULT_METRICS,
        method=method,
        candidates=candidates,
        level=level,
        correction=correction,
        against=against,
        rng=seed,
    )
    with page_written(result, html):
        if as_json:
            say(result.to_json())
            return
        say(comparison_table(result, notes=False))
        print_warnings(result.warnings)


compare_command.__doc__ = (compare_command.__doc__ or "") + "\n" + _EPILOG


def _models(
    files: list[str], by: str | None, items: int | None, sampled: int | None, replacement: bool
) -> dict[str, Targets | RankCounts]:
    options = {"items": items, "sampled": sampled, "replacement": replacement}
    if by is not None:
        if len(files) != 1:
            raise InputError(f"by needs one file with a column {by!r}, got {len(files)} files")
        return read_targets(files[0], by=by, **options)  # type: ignore[arg-type]
    models: dict[str, Targets | RankCounts] = {}
    for text in files:
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise InputError(
                f"each model must be given as NAME=FILE, got {text!r}; or give --by COLUMN"
            )
        if name in models:
            raise InputError(f"names of models must differ, got {name!r} twice")
        models[name] = read_targets(path, **options)[""]  # type: ignore[arg-type]
    return models
