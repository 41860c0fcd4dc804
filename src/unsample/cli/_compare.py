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
    from unsample.cli._advice import Advised


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
        typer.Option(metavar="COLUMN", help="The column that names the model, in a single file."),
    ] = None,
    level: Annotated[
        float,
        typer.Option(
            metavar="LEVEL",
            callback=options.checked_level,
            help="Level of intervals and verdicts.",
        ),
    ] = 0.95,
    correction: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            **options.one_of("correction", CORRECTIONS),
            help=f"{', '.join(CORRECTIONS)}.",
        ),
    ] = "holm",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Compare every other model with this one; or `best`, with the highest estimate "
            "of each metric; or `all` pairs. By default all pairs of up to 100 models, else best.",
        ),
    ] = None,
    paired: Annotated[
        bool | None,
        typer.Option(
            "--paired/--unpaired",
            help="Insist on differences user by user, or leave them out. [default: where users "
            "match]",
        ),
    ] = None,
    column: options.Columns = None,
    rng: options.Rng = 0,
    needed: Annotated[
        bool,
        typer.Option(
            "--needed",
            help="Say how many sampled items or users would tell the two best apart, where nothing "
            "does.",
        ),
    ] = False,
) -> Comparison | Advised:
    """Compare models by their sampled ranks: which is truly better, and how sure that is.

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
    for source in given.values() if by is None else files:
        options.check_source(source)
    from unsample.answers import DEFAULT_METRICS, compare
    from unsample.tables import read_targets

    read = partial(
        read_targets,
        items=items,
        sampled=sampled,
        columns=columns,
        replacement=replacement,
        filtered=filtered,
        negatives=negatives,
    )
    if by is None:
        models = {name: read(path)[""] for name, path in given.items()}
    else:
        models = read(files[0], by=by)
    found = compare(
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
    if not needed:
        return found
    from unsample.cli._advice import Advised

    return Advised(found)
