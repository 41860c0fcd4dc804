"""``unsample compare``: rank files of several models in, verdicts out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from unsample.cli import options
from unsample.cli._words import CORRECTIONS, DEFAULT_METHOD
from unsample.cli.console import result_verb
from unsample.errors import InputError

if TYPE_CHECKING:
    from unsample.answers import Comparison


@result_verb
def compare_command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=FILE...",
            help="A name and a rank file for each model, or one file with --by. Models are "
            "compared user by user where the files have a column `user`, or equally many rows.",
        ),
    ],
    items: options.Items = None,
    sampled: options.Sampled = None,
    metrics: options.Metrics = None,
    method: options.Method = DEFAULT_METHOD,
    filtered: options.Filtered = False,
    negatives: options.Negatives = "own",
    replacement: options.Replacement = True,
    candidates: options.Candidates = None,
    shape: options.Shape = None,
    prior: options.Prior = "shipped",
    kind: options.Kind = None,
    by: Annotated[
        str | None,
        options.option("COLUMN", "The column that names the model, for a single file."),
    ] = None,
    level: options.Level = 0.95,
    correction: Annotated[
        str,
        options.choice(
            "correction", CORRECTIONS, f"Correction for many pairs: {', '.join(CORRECTIONS)}."
        ),
    ] = "holm",
    against: Annotated[
        str | None,
        options.option(
            "MODEL",
            "Compare every other model with this one, or with the `best` (the highest estimate of "
            "each metric), or compare `all` pairs. [default: all for up to 100 models, else best]",
        ),
    ] = None,
    paired: Annotated[
        bool | None,
        options.option(
            None,
            "Compare user by user, or do not. [default: user by user where users match]",
            None,
            "--paired/--unpaired",
        ),
    ] = None,
    column: options.Columns = None,
    rng: options.Rng = 0,
) -> Comparison:
    """Compare models by their sampled ranks: which one is better, and how sure that is.

    **Examples**

    `unsample compare ease=ease.csv als=als.csv --items 3706 --sampled 99 -m NDCG@50`

    `unsample compare runs.parquet --by model --items 3706 --sampled 99 --candidates unseen --json`

    `unsample compare ease=ease.csv als=als.csv --items 3706 --sampled 99 --html models.html`

    `unsample compare sweep.parquet --by run --items 3706 --sampled 99 --against baseline`
    """
    if by is not None and len(files) > 1:
        raise InputError(f"by needs one file with a column {by!r}, got {len(files)} files")
    columns = options.named(column, "column", "ROLE=NAME, such as rank=position")
    given = {}
    if by is None:
        given = options.named(files, "each model", "NAME=FILE (or one file, with --by)")
        if len(given) < 2:
            raise InputError(f"models must be at least two, got {files[0]!r} alone; add NAME=FILE")
    for source in given.values() if by is None else files:
        options.check_source(source)
    from unsample.answers import DEFAULT_METRICS, compare
    from unsample.tables import Read, read_targets

    read = partial(
        read_targets,
        items=items,
        sampled=sampled,
        read=Read(columns),
        replacement=replacement,
        filtered=filtered,
        negatives=negatives,
    )
    if by is None:
        models = {name: read(path)[""] for name, path in given.items()}
    else:
        models = read(files[0], by=by)
    return compare(
        models,
        metrics=metrics or DEFAULT_METRICS,
        method=method,
        candidates=candidates,
        shape=shape,
        prior=options.prior_of(prior),
        kind=kind,
        level=level,
        correction=correction,
        against=against,
        paired=paired,
        rng=rng,
    )
