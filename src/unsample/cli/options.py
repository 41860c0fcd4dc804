"""Options that several verbs share, named like the arguments of the functions behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from unsample._files import check_writable
from unsample._places import find_files
from unsample._rules import (
    LARGEST_CATALOGUE,
    check_choice,
    check_integer,
    check_level,
    import_extra,
)
from unsample._spelling import check_cutoff, read_method, read_metric
from unsample.cli._words import (
    CANDIDATES,
    DEFAULT_METRICS,
    METHODS,
    METRICS,
    NEGATIVES,
    PLOTS,
    PRIOR_KINDS,
    WHOLE_METRICS,
)
from unsample.errors import DesignError, FileError, InputError

Callback = Callable[[typer.Context, Any], Any]


def checked(check: Callable[[Any], object]) -> Callback:
    """Return a callback that lets ``check`` refuse a value, before anything is loaded or done."""

    def callback(context: typer.Context, value: Any) -> Any:
        # A line that is being completed is nobody's call yet.
        if value is not None and not context.resilient_parsing:
            check(value)
        return value

    return callback


def one_of(name: str, words: tuple[str, ...]) -> dict[str, Any]:
    """Return what an option of a few words needs: its check and its completion."""
    return {
        "callback": checked(partial(check_choice, name, choices=words)),
        "autocompletion": lambda: list(words),
    }


def at_least(name: str, minimum: int, **settings: Any) -> Callback:
    """Return a callback that refuses what is less."""
    return checked(lambda value: check_integer(name, value, minimum=minimum, **settings))


def check_source(source: str) -> None:
    """Refuse a table that is not there, or of a format that nothing here can read."""
    if source == "-":
        return
    first = find_files(source)[0]
    start = b""
    # Whoever reads it says why that is impossible; what can be read only once is left alone.
    with suppress(OSError):
        if first.is_file():
            with first.open("rb") as file:
                start = file.read(4)
    if start == b"PAR1":
        import_extra("duckdb", extra="frames", purpose="reading Parquet")


def _check_page(out: Path) -> None:
    check_writable(out)
    import_extra("jinja2", extra="report", purpose="an HTML report")


def _check_plot(out: Path) -> None:
    ending = out.suffix.lstrip(".").lower()
    check_choice("the ending of the plot's name", ending, PLOTS, error=FileError)
    check_writable(out)
    import_extra("matplotlib", extra="report", purpose="plotting")


def _check_metrics(names: str | Iterable[str]) -> None:
    for name in [names] if isinstance(names, str) else names:
        family, label, k = read_metric(name, METRICS)
        check_cutoff(label, k, whole=family in WHOLE_METRICS)


def _check_methods(names: str | Iterable[str]) -> None:
    for name in [names] if isinstance(names, str) else names:
        read_method(name, METHODS)


#: Callbacks of options, each of which refuses what would make the work vain.
checked_place = checked(check_writable)
checked_page = checked(_check_page)
checked_source = checked(check_source)
checked_level = checked(check_level)
checked_metrics = checked(_check_metrics)
checked_methods = checked(_check_methods)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="OUT",
        callback=checked(_check_plot),
        readable=False,
        help="Also write a plot (png, svg or pdf).",
    ),
]
_ITEMS = typer.Option(
    metavar="N",
    callback=at_least("items", 2, maximum=LARGEST_CATALOGUE, error=DesignError),
    help="Items in the full catalogue, the target included.",
)
_SAMPLED = typer.Option(
    metavar="S",
    callback=at_least("sampled", 1, maximum=LARGEST_CATALOGUE, error=DesignError),
    help="Items sampled for each target, not counting it (99, not 100).",
)
#: Options of what a file may tell as well.
Items = Annotated[int | None, _ITEMS]
Sampled = Annotated[int | None, _SAMPLED]
RequiredItems = Annotated[int, _ITEMS]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        "-m",
        metavar="METRIC",
        callback=checked_metrics,
        help=f"Metric, repeatable. [default: {', '.join(DEFAULT_METRICS)}]",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="METHOD",
        callback=checked_methods,
        help="Estimator, repeatable, such as mle or bv(gamma=0.01). [default: auto]",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="METHOD",
        callback=checked_methods,
        help="Estimator, such as mle or bv(gamma=0.01).",
    ),
]
Exponent = Annotated[
    float, typer.Option(metavar="POWER", help="The power of the counts in --probabilities.")
]
Candidates = Annotated[
    str | None,
    typer.Option(
        metavar="unseen|all",
        **one_of("candidates", CANDIDATES),
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
        **one_of("kind", PRIOR_KINDS),
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
        **one_of("negatives", NEGATIVES),
        help="Whether items were sampled for each target, or all targets share one pool of them. A "
        "column `pool` names the pool, where there are several.",
    ),
]
Resamples = Annotated[
    int,
    typer.Option(
        metavar="B",
        callback=at_least("resamples", 0),
        help="Bootstrap samples behind standard errors.",
    ),
]
Rng = Annotated[
    int,
    typer.Option(metavar="SEED", callback=at_least("rng", 0), help="Seed of everything random."),
]
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
