"""Options that several verbs share, named like the arguments of the functions behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unsample._files import check_writable
from unsample.answers import DEFAULT_METRICS
from unsample.errors import InputError


def checked_place(out: Path | None) -> Path | None:
    """Return the name of a file to write, if it can be written."""
    if out is not None:
        check_writable(out)
    return out


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="OUT",
        callback=checked_place,
        readable=False,
        help="Write a plot (png, svg or pdf), too.",
    ),
]
_ITEMS = typer.Option(metavar="N", help="Items in the full catalogue, the target included.")
_SAMPLED = typer.Option(
    metavar="S", help="Items sampled for each target, without it (99, not 100)."
)
#: Options of what a file may tell as well.
Items = Annotated[int | None, _ITEMS]
Sampled = Annotated[int | None, _SAMPLED]
RequiredItems = Annotated[int, _ITEMS]
RequiredSampled = Annotated[int, _SAMPLED]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        "-m",
        metavar="METRIC",
        help=f"Metric, repeatable. [default: {', '.join(DEFAULT_METRICS)}]",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="METHOD",
        help="Estimator, repeatable, such as mle or bv(gamma=0.01). [default: auto]",
    ),
]
Candidates = Annotated[
    str | None,
    typer.Option(
        metavar="unseen|all",
        help="Whether items a user has seen were left out of the candidates or kept among them. "
        "[default: not stated, intervals allow for both]",
    ),
]
Shape = Annotated[
    str | None,
    typer.Option(
        metavar="SHAPE", help="What the intervals assume about P(R). [default: by the candidates]"
    ),
]
Prior = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="What other data sets know: the file of a prior (see `learn`), `shipped`, or `none`.",
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="recommendation, repeats (people choose again what they chose before) or graph. "
        "[default: by the data]",
    ),
]
Replacement = Annotated[
    bool,
    typer.Option(
        "--replacement/--without-replacement",
        help="Whether an item may have been sampled twice for a target.",
    ),
]
Sampler = Annotated[
    str,
    typer.Option(metavar="NAME", help="How items were drawn; only uniform can be estimated from."),
]
Filtered = Annotated[
    bool,
    typer.Option(
        "--filtered",
        help="The other relevant items of a user were left out when a target was ranked (knowledge "
        "graphs): metrics are those of targets, not of users.",
    ),
]
Negatives = Annotated[
    str,
    typer.Option(
        metavar="own|shared",
        help="Whether items were sampled for each target, or all targets share one pool of them. A "
        "column `pool` names the pool, where there are several.",
    ),
]
Resamples = Annotated[
    int, typer.Option(metavar="B", help="Bootstrap samples behind standard errors.")
]
Rng = Annotated[int, typer.Option(metavar="SEED", help="Seed of everything random.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="Column that has another name, repeatable, such as rank=position.",
    ),
]


def prior_of(word: str) -> str | None:
    """Return the prior that a word means."""
    return None if word == "none" else word


def named(words: list[str] | None, what: str, form: str) -> dict[str, str]:
    """Return names and values of words of a form such as ``ROLE=NAME``, each name once."""
    found: dict[str, str] = {}
    for word in words or ():
        name, _, value = (part.strip() for part in word.partition("="))
        if not name or not value:
            raise InputError(f"{what} must be given as {form}, got {word!r}")
        if name in found:
            raise InputError(f"{what} must be given once by each name, got {name!r} twice")
        found[name] = value
    return found
