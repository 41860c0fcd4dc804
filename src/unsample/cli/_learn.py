"""``unsample learn``: full rankings of the past in, a prior for the next models out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from unsample.cli import options
from unsample.cli._words import CANDIDATES, PRIOR_KINDS
from unsample.cli.console import console_verb, say
from unsample.errors import FileError

#: Endings of files that may hold ranks.
_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".npz", ".gz", ".xz", ".txt")


@console_verb
def learn_command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="A folder with a file of full-catalogue ranks for each model (a column `rank`).",
        ),
    ],
    items: options.RequiredItems,
    out: Annotated[
        Path, options.option("FILE", "Where to write the prior.", options.checked_place)
    ],
    candidates: Annotated[
        str,
        options.choice(
            "candidates",
            CANDIDATES,
            "Whether items that a user has seen were left out (unseen) or ranked too (all).",
            "unseen|all",
        ),
    ] = "unseen",
    kind: Annotated[
        str, options.choice("kind", PRIOR_KINDS, f"{', '.join(PRIOR_KINDS)}.", "KIND")
    ] = "recommendation",
    as_json: options.AsJson = False,
) -> None:
    """Learn a prior for your next models from full rankings of your own.

    **Examples**

    `unsample learn past_runs/ --items 3706 --out prior.npz`

    `unsample estimate ranks.csv --items 3706 --sampled 99 --prior prior.npz`
    """
    if not folder.is_dir():
        raise FileError(
            f"folder must hold files of ranks, got {str(folder)!r}, which is not a folder"
        )
    paths = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)
    if not paths:
        raise FileError(
            f"folder must hold files of full ranks ({', '.join(_SUFFIXES)}), got none in "
            f"{str(folder)!r}; put one for each model there"
        )
    for path in paths:
        options.check_source(str(path))
    import numpy as np

    from unsample.answers import prior_kind
    from unsample.estimators.prior import Prior
    from unsample.tables import read_full_ranks

    ranks = [np.asarray(read_full_ranks(str(path), items=items).ranks) for path in paths]
    chosen = prior_kind(kind, candidates) or candidates
    prior = Prior.learn(ranks, items=items, kind=chosen)
    prior.save(out)
    if as_json:
        say(json.dumps({"models": len(paths), "kind": chosen, "file": str(out)}))
        return
    say(f"learned from {len(paths)} models; use it with --prior {out}")
