"""Options that several verbs share, named like the arguments of the functions behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unsample._files import check_writable, find_files, is_file
from unsample._rules import (
    LARGEST_CATALOGUE,
    check_choice,
    check_integer,
    check_level,
    import_extra,
)
from unsample._spelling import check_cutoff, read_method, read_metric, split_metrics
from unsample.cli._words import (
    CANDIDATES,
    DEFAULT_METRICS,
    DIALECTS,
    METHODS,
    METRICS,
    NEGATIVES,
    PLOTS,
    PRIOR_KINDS,
    ROWS,
    TIE_RULES,
    WHOLE_METRICS,
)
from unsample.errors import DesignError, FileError, InputError

if TYPE_CHECKING:
    from unsample.tables import Read

Callback = Callable[..., Any]


def checked(check: Callable[[Any], object]) -> Callback:
    """Return a callback that lets ``check`` refuse a value, before anything is loaded or done."""

    def callback(context: typer.Context, value: Any) -> Any:
        # A line that is being completed is nobody's call yet.
        if value is not None and not context.resilient_parsing:
            check(value)
        return value

    return callback


def option(
    metavar: str | None, text: str, check: Callback | None = None, *names: str, **settings: Any
) -> Any:
    """Return an option: what its value is called, its help, what refuses a value, its names."""
    return typer.Option(*names, metavar=metavar, help=text, callback=check, **settings)


def choice(name: str, words: tuple[str, ...], text: str, metavar: str = "NAME") -> Any:
    """Return an option that takes one of a few words, and completes them."""
    check = checked(partial(check_choice, name, choices=words))
    return option(metavar, text, check, autocompletion=lambda: list(words))


def table(text: str) -> Any:
    """Return an option that takes a table."""
    return option("FILE", text, checked_source)


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
    given = [names] if isinstance(names, str) else names
    for name in (each for listed in given for each in split_metrics(listed)):
        family, label, k = read_metric(name, METRICS)
        check_cutoff(label, k, whole=family in WHOLE_METRICS)


def _check_methods(names: str | Iterable[str]) -> None:
    for name in [names] if isinstance(names, str) else names:
        read_method(name, METHODS)


def _check_prior(word: str) -> None:
    if word not in {"shipped", "none"} and not Path(word).is_file():
        raise FileError(
            f"prior must be shipped, none or a file that Prior.save wrote, got {word!r}; there "
            "is no such file"
        )


#: Callbacks of options, each of which refuses what would make the work vain.
checked_page = checked(_check_page)
checked_source = checked(check_source)
checked_level = checked(check_level)
checked_metrics = checked(_check_metrics)
checked_methods = checked(_check_methods)

AsJson = Annotated[bool, option(None, "Print JSON.", None, "--json")]
Plot = Annotated[
    Path | None,
    option("OUT", "Also write a plot (png, svg or pdf).", checked(_check_plot), readable=False),
]
_ITEMS = option(
    "N",
    "Items in the full catalogue, the target included.",
    at_least("items", 2, maximum=LARGEST_CATALOGUE, error=DesignError),
)
#: Options of what a file may tell as well.
Items = Annotated[int | None, _ITEMS]
Sampled = Annotated[
    int | None,
    option(
        "S",
        "Items sampled for each target, without the target itself (99, not 100).",
        at_least("sampled", 1, maximum=LARGEST_CATALOGUE, error=DesignError),
    ),
]
RequiredItems = Annotated[int, _ITEMS]
Metrics = Annotated[
    list[str] | None,
    option(
        "METRIC",
        f"Metric, or several with commas; repeatable. [default: {', '.join(DEFAULT_METRICS)}]",
        checked_metrics,
        "--metrics",
        "-m",
    ),
]
Methods = Annotated[
    list[str] | None,
    option(
        "METHOD",
        "Estimator, repeatable, such as mle or bv(gamma=0.01). [default: auto]",
        checked_methods,
        "--method",
    ),
]
Level = Annotated[float, option("LEVEL", "Level of intervals and verdicts.", checked_level)]
Candidates = Annotated[
    str | None,
    choice(
        "candidates",
        CANDIDATES,
        "unseen: items that a user has seen were left out of the ranking; all: they were ranked "
        "too. [default: not stated, and intervals allow for both]",
        "unseen|all",
    ),
]
Prior = Annotated[
    str,
    option(
        "FILE",
        "What is known from other data sets: `shipped`, a file by `Prior.save`, or `none`.",
        checked(_check_prior),
    ),
]
Kind = Annotated[
    str | None,
    choice(
        "kind",
        PRIOR_KINDS,
        "recommendation, repeats (people choose again what they chose before) or graph (other "
        "relevant items were left out when a target was ranked, and metrics are means over "
        "targets). [default: by the data]",
        "KIND",
    ),
]
Replacement = Annotated[
    bool,
    option(
        None,
        "Whether the same item may have been sampled twice for a target.",
        None,
        "--replacement/--without-replacement",
    ),
]
Negatives = Annotated[
    str,
    choice(
        "negatives",
        NEGATIVES,
        "own: items were sampled for each target; shared: all targets share one pool of items.",
        "own|shared",
    ),
]
Rng = Annotated[int, option("SEED", "Seed of everything random.", at_least("rng", 0))]
Columns = Annotated[
    list[str] | None,
    option(
        "ROLE=NAME",
        "Column that has another name, repeatable, such as rank=position.",
        None,
        "--column",
    ),
]
Rows = Annotated[
    str | None,
    choice("rows", ROWS, f"What a row holds: {', '.join(ROWS)}. [default: by the columns]", "KIND"),
]
Ties = Annotated[
    str,
    choice("ties", TIE_RULES, f"Rank of a target with ties: {', '.join(TIE_RULES)}.", "RULE"),
]
PrintSql = Annotated[
    str | None,
    choice(
        "print_sql",
        DIALECTS,
        "Print the query that counts the table FILE, in this dialect, and nothing else: "
        f"{', '.join(DIALECTS)}. What it returns is a table that this verb takes.",
        "DIALECT",
    ),
]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, TSV, Parquet, JSON lines or NPZ with a column `rank` (1 is the best), or with "
        "scored items (`user`, `score`, `target`); a quoted pattern of files, or a folder; `-` for "
        "standard input; or NAME=FILE for each of several models.",
    ),
]


def sources(words: list[str], *, runs: bool = False) -> Any:
    """Return the table that files are parts of, or the table of each name; all must be there.

    With ``runs``, a name that is given several times has a table for each of its runs.
    """
    if any(map(_is_named, words)):
        form = ("each model", "NAME=FILE")
        pairs = [named([word], *form) for word in words] if runs else [named(words, *form)]
        found: dict[str, list[str]] = {}
        for name, source in (pair for each in pairs for pair in each.items()):
            check_source(source)
            found.setdefault(name, []).append(source)
        return {
            name: each[0] if len(each) == 1 else [[run] for run in each]
            for name, each in found.items()
        }
    for word in words:
        check_source(word)
    return words[0] if len(words) == 1 else words


def _is_named(word: str) -> bool:
    """Tell NAME=FILE from the path of a file, whose folders may be called so."""
    return "=" in word and "/" not in word.partition("=")[0] and not is_file(word)


def reading(column: list[str] | None, rows: str | None, ties: str, rng: int) -> Read:
    """Return how tables are read."""
    columns = named(column, "column", "ROLE=NAME, such as rank=position")
    from unsample.tables import Read

    return Read(columns, rows, ties, rng)


def query(dialect: str, files: list[str], read: Read, **asked: Any) -> str:
    """Return the query that counts a table where it is."""
    if len(files) > 1:
        raise InputError(f"print_sql must be asked for one table, got {len(files)}")
    from unsample.tables import sql

    return sql(
        dialect=dialect,
        table=files[0],
        columns=read.columns,
        rows=read.rows or "ranks",
        ties=read.ties,
        **asked,
    )


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
