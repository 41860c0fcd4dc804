"""Options that verbs share, named like the arguments of the functions behind them.

The library checks values. Only what would make its work vain is checked here, before it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from unsample._rules import check_choice, import_extra
from unsample.errors import FileError, InputError

if TYPE_CHECKING:
    from pathlib import Path

    from unsample.tables import Read

#: Endings of the names of plots.
_PLOTS = ("svg", "pdf", "png")


def _words_of(place: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return how shells complete a value: from what the library lists at ``module:NAME``.

    The module is loaded when a shell asks, so that help needs none of them.
    """

    def complete(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
        module, _, name = place.partition(":")
        words = getattr(importlib.import_module(module), name)
        return [word for word in words if word.casefold().startswith(start.casefold())]

    return complete


def _as_output(ctx: click.Context, param: click.Parameter, name: str | None) -> Path | None:
    """Return a path; refuse one that cannot be written before hours are spent on its content."""
    if name is None or ctx.resilient_parsing:
        return None
    from pathlib import Path

    from unsample._files import check_writable

    out, is_plot = Path(name), param.name == "plot"
    if is_plot:
        ending = out.suffix.lstrip(".").lower()
        check_choice("the ending of the plot's name", ending, _PLOTS, error=FileError)
    check_writable(out)
    library = "matplotlib" if is_plot else "jinja2"
    import_extra(library, extra="report", purpose=f"--{param.name}")
    return out


def option(
    name: str, metavar: str, text: str, *more: str, words: str | None = None, **settings: Any
) -> click.Option:
    """Return an option, what its value is called, its help, and where its values are listed."""
    complete = None if words is None else _words_of(words)
    return click.Option(
        [name, *more], metavar=metavar, help=text, shell_complete=complete, **settings
    )


def flag(name: str, text: str, *more: str, **settings: Any) -> click.Option:
    """Return an option without a value."""
    return click.Option([name, *more], is_flag=True, help=text, **settings)


#: What every verb can be told.
EVERY_VERB = (
    flag("--json", "Print JSON.", "form", flag_value="json"),
    flag("--latex", "Print tables for LaTeX (booktabs).", "form", flag_value="latex"),
    flag("--markdown", "Print Markdown.", "form", flag_value="markdown"),
    option("--html", "OUT", "Also write the result as a web page.", callback=_as_output),
    flag("--verbose", "Print bounds, methods and time too, and where errors come from.", "-v"),
    flag("--quiet", "Print no warnings; errors remain.", "-q"),
)


#: Of verbs whose results have a chart.
PLOT = option("--plot", "OUT", "Also write a plot (svg, pdf or png).", callback=_as_output)


def items(*, required: bool = False) -> click.Option:
    """Return the option of the catalogue's size."""
    text = "Items in the full catalogue, the target included."
    return option("--items", "N", text, type=int, required=required)


def metrics(text: str, **settings: Any) -> click.Option:
    """Return the option of metrics."""
    return option("--metrics", "METRIC", text, "-m", words="unsample.metrics:REGISTRY", **settings)


SAMPLED = option(
    "--sampled", "S", "Items sampled for each target, without it (99, not 100).", type=int
)
METRICS = metrics(
    "Metric, or several with commas; repeatable.  [default: Recall@10, NDCG@10, AP@10]",
    multiple=True,
)
CANDIDATES = option(
    "--candidates",
    "WHICH",
    "unseen: items that a user has seen were left out of the ranking; all: they were ranked too. "
    " [default: not stated, and intervals allow for both]",
    words="unsample.estimators:CANDIDATES",
)
KIND = option(
    "--kind",
    "KIND",
    "recommendation; repeats: people choose again what they chose before; graph: other relevant "
    "items were left out of the ranking, metrics are means over targets.  [default: by the data]",
    words="unsample.answers:PRIOR_KINDS",
)
PRIOR = option(
    "--prior",
    "FILE",
    "What is known from other data sets: `shipped`, a file by Prior.save, or `none`.",
    default="shipped",
    callback=lambda ctx, param, word: None if word == "none" else word,
)
REPLACEMENT = click.Option(
    ["--replacement/--without-replacement"],
    default=True,
    help="Whether the same item may have been sampled twice for a target.",
)
LEVEL = option("--level", "LEVEL", "Level of intervals and verdicts.", type=float, default=0.95)
RNG = option("--rng", "SEED", "Seed of everything random.", type=int, default=0)
COLUMN = option(
    "--column", "ROLE=NAME", "Column of another name: rank=position; repeatable.", multiple=True
)
#: What ranks in tables are told with.
RANKS = (
    click.Argument(["files"], metavar="FILE...", nargs=-1, required=True),
    items(),
    SAMPLED,
    METRICS,
    CANDIDATES,
    KIND,
    PRIOR,
    option(
        "--negatives",
        "WHOSE",
        "own: items were sampled for each target; shared: all targets share one pool of items.",
        default="own",
        words="unsample.evidence:NEGATIVES",
    ),
    REPLACEMENT,
)
#: How tables are read.
TABLES = (
    COLUMN,
    option("--rows", "KIND", "ranks or scores.", words="unsample.tables:ROWS"),
    option(
        "--ties",
        "RULE",
        "Rank of a target with ties: random, realistic, optimistic or pessimistic.",
        default="random",
        words="unsample.evidence:TIE_RULES",
    ),
    RNG,
    option(
        "--print-sql",
        "DIALECT",
        "Print the query that counts the table FILE, in duckdb, spark, bigquery or snowflake, and "
        "nothing else; this verb takes the table that it returns.",
        words="unsample.tables._sql:DIALECTS",
    ),
)


def sources(words: tuple[str, ...], *, runs: bool = False) -> Any:
    """Return the table that files are parts of, or the table of each name.

    With ``runs``, a name that is given several times has a table for each of its runs.
    """
    from unsample._files import is_file

    # A path is no NAME=FILE, though its folders may be called so.
    if not any("=" in w and "/" not in w.partition("=")[0] and not is_file(w) for w in words):
        return words[0] if len(words) == 1 else list(words)
    found: dict[str, list[str]] = {}
    for each in [[word] for word in words] if runs else [words]:
        for name, source in named(each, "each model", "NAME=FILE").items():
            found.setdefault(name, []).append(source)
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}


def reading(asked: dict[str, Any]) -> Read:
    """Take how tables are read out of what is asked."""
    from unsample.tables import Read

    column, *how = (asked.pop(name) for name in ("column", "rows", "ties", "rng"))
    return Read(named(column, "--column", "ROLE=NAME, such as rank=position"), *how)


def query(
    dialect: str, files: tuple[str, ...], read: Read, asked: dict[str, Any], **how: Any
) -> str:
    """Return the query that counts a table where it is."""
    if len(files) > 1:
        raise InputError(f"--print-sql must be asked for one table, got {len(files)}")
    from unsample.tables import sql

    told: dict[str, Any] = {"rows": read.rows or "ranks", "ties": read.ties, "rng": read.rng}
    told |= {name: asked[name] for name in ("items", "sampled", "replacement")}
    return sql(dialect=dialect, table=files[0], columns=read.columns, **told, **how)


def named(words: Iterable[str], what: str, form: str) -> dict[str, str]:
    """Return names and values of words of a form such as ``ROLE=NAME``, each name once."""
    found: dict[str, str] = {}
    for word in words:
        name, _, value = (part.strip() for part in word.partition("="))
        if not name or not value:
            raise InputError(f"{what} must be given as {form}, got {word!r}")
        if name in found:
            raise InputError(f"{what} must be given once by each name, got {name!r} twice")
        found[name] = value
    return found
