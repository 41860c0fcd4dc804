"""Options that verbs share, named like the arguments of the functions behind them.

The library checks values. Only what would make its work vain is checked here, before it.
"""

from __future__ import annotations

import glob
import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unsample._files import (
    PAGE_ENDINGS,
    PLOT_ENDINGS,
    check_apart,
    check_ending,
    check_writable,
    is_file,
    is_stream,
    make_folder_of,
)
from unsample._rules import import_extra
from unsample.errors import InputError

if TYPE_CHECKING:
    from unsample.counts import Negatives
    from unsample.tables import Read


def _words_of(listed_at: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return how shells complete a value: from what the library lists at ``module:NAME``.

    The module is loaded when a shell asks, so that help needs none of them.
    """

    def complete(ctx: click.Context, param: click.Parameter, start: str) -> list[str]:
        module, _, name = listed_at.partition(":")
        words = getattr(importlib.import_module(module), name)
        return [word for word in words if word.casefold().startswith(start.casefold())]

    return complete


class _SourceWord(click.types.StringParamType):
    """What is read: a path, a pattern, a folder, - or NAME=FILE."""


class _Output(click.ParamType):  # type: ignore[type-arg]  # of newer versions alone
    """A file that is written; ``any_stream`` if a pipe or a device may have any name."""

    name = "file"

    def __init__(self, endings: tuple[str, ...], library: str, *, any_stream: bool) -> None:
        self.endings = endings
        self.library = library
        self.any_stream = any_stream

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return a path; refuse a bad one before hours are spent on its content."""
        out = Path(value)
        option = param.opts[0] if param else self.name
        if not (self.any_stream and is_stream(out)):
            check_ending(option, out, self.endings)
        make_folder_of(out)
        check_writable(out)
        if self.library == "matplotlib":
            # It logs on its own, such as that it looks for fonts.
            import logging

            logging.getLogger("matplotlib").setLevel(logging.ERROR)
        import_extra(self.library, extra="report", purpose=option)
        return out


SOURCE = _SourceWord()
_PAGE = _Output(PAGE_ENDINGS, "jinja2", any_stream=True)
_PLOT = _Output(PLOT_ENDINGS, "matplotlib", any_stream=False)


def check_outputs(context: click.Context) -> None:
    """Refuse an output that is an input, or another output."""
    values = [
        (parameter, context.params[str(parameter.name)]) for parameter in context.command.params
    ]
    taken = [
        path for parameter, word in values if parameter.type is SOURCE for path in _paths_of(word)
    ]
    for parameter, path in values:
        if isinstance(parameter.type, _Output) and path is not None:
            check_apart(parameter.opts[0], path, taken)
            taken.append(str(path))


def _paths_of(word: str | tuple[str, ...] | None) -> Iterator[str]:
    """Yield the paths and patterns in what is given for a source."""
    if isinstance(word, str):
        yield word
    elif word:
        tables = sources(word, runs=True)
        for paths in tables.values() if isinstance(tables, dict) else [tables]:
            yield from [paths] if isinstance(paths, str) else paths


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


#: The forms that a result may be printed in, one at a time; only some verbs have CSV.
FORMS = ("json", "latex", "markdown", "csv")
#: What every verb can be told.
EVERY_VERB = (
    flag("--json", "Print JSON."),
    flag("--latex", "Print tables for LaTeX (booktabs)."),
    flag("--markdown", "Print Markdown."),
    option("--html", "OUT", "Also write the result as a web page.", type=_PAGE),
    flag("--verbose", "Print bounds, methods and time too, and where errors come from.", "-v"),
    flag("--quiet", "Print no warnings; errors remain.", "-q"),
)


#: What ``--items`` counts.
_CANDIDATES = (
    "Candidates of a full ranking, the target included: the catalogue, less what was left out of "
    "the ranking. Where this differs by user:"
)
#: Of verbs whose results have a chart.
PLOT = option("--plot", "OUT", "Also write a plot (svg, pdf or png).", type=_PLOT)
CHART = option(
    "--chart",
    "NAME",
    "What --plot shows. Of estimates: metrics (intervals), curves (a metric at every K) or ranks "
    "(P(R)). Of comparisons: models or differences.  [default: the intervals]",
)


def items(text: str = f"{_CANDIDATES} the mean.", *, required: bool = False) -> click.Option:
    """Return the option of the number of candidates."""
    return option("--items", "N", text, type=int, required=required)


def metrics(text: str, **settings: Any) -> click.Option:
    """Return the option of metrics."""
    return option("--metrics", "METRIC", text, "-m", words="unsample.metrics:REGISTRY", **settings)


def negatives(text: str, **settings: Any) -> click.Option:
    """Return the option of whose the sampled items are."""
    return option("--negatives", "WHOSE", text, default="own", **settings)


SAMPLED = option(
    "--sampled",
    "S",
    "Items drawn uniformly at random for each target (each candidate as likely as any other); the "
    "target is not counted: 99, not 100.",
    type=int,
)
METRICS = metrics(
    "Metric, or several with commas; repeatable.  [default: Recall@10, NDCG@10, Recall@50; AP@10 "
    "for Recall@50 if users have several targets]",
    multiple=True,
)
PROTOCOL = option(
    "--protocol",
    "WHICH",
    "unseen: items that a user has seen were left out of the ranking; all: they were ranked too; "
    "repeats: they were, and people choose again what they chose before; graph: other relevant "
    "items were left out, metrics are means over targets.  [default: not stated, and intervals "
    "allow for the first three]",
    words="unsample.posterior:PROTOCOLS",
)
PRIOR = option(
    "--prior",
    "FILE",
    "What is known from other data sets: `shipped`, a file by Prior.save, or `none`.",
    default="shipped",
    type=SOURCE,
)


class _NumberOrName(click.ParamType[float | str]):
    """A number, or the name of a column."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        """Return the number, or the name as it is."""
        del param, ctx
        try:
            return float(value)
        except ValueError:
            return str(value)


_NUMBER_OR_NAME = _NumberOrName()
SEEN = option(
    "--seen",
    "NUMBER",
    "With --protocol all: how many of a user's own items were among the candidates, in the mean; "
    "or the column that tells it.",
    type=_NUMBER_OR_NAME,
)
WITHOUT = option(
    "--without",
    "DATA_SET",
    "Use the shipped prior that was learned without this data set and others of its family: ml-1m.",
)
REPLACEMENT = click.Option(
    ["--replacement/--without-replacement"],
    default=True,
    help="Whether the same item may have been sampled twice for a target.",
)
LEVEL = option("--level", "LEVEL", "Level of the intervals.", type=float, default=0.95)
VERDICTS = option("--level", "LEVEL", "Level of intervals and verdicts.", type=float, default=0.95)
RNG = option("--seed", "SEED", "Seed of everything random.", "rng", type=int, default=0)
COLUMN = option(
    "--column", "ROLE=NAME", "Column of another name: rank=position; repeatable.", multiple=True
)
#: What ranks in tables are told with.
RANKS = (
    click.Argument(["files"], metavar="FILE...", nargs=-1, required=True, type=SOURCE),
    items(f"{_CANDIDATES} a column items."),
    SAMPLED,
    METRICS,
    PROTOCOL,
    SEEN,
    PRIOR,
    WITHOUT,
    negatives(
        "own: items were drawn for each target; shared: all targets share one pool. Both must be "
        "drawn uniformly at random; others, as by popularity, are refused.",
        words="unsample.counts._negatives:WORDS",
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
        words="unsample.counts:TIE_RULES",
    ),
    RNG,
    option(
        "--print-sql",
        "DIALECT",
        "Print the query that counts the table FILE, in duckdb, spark, bigquery or snowflake, and "
        "nothing else; this verb takes the table that it returns. Of files the columns are known; "
        "of another table name those that it has: --column user=user.",
        words="unsample.tables._sql:DIALECTS",
    ),
)


def sources(words: tuple[str, ...], *, runs: bool = False) -> Any:
    """Return the table that files are parts of, or the table of each name.

    With ``runs``, a name that is given several times has a table for each of its runs.
    """
    # A path is no NAME=FILE, though its folders may be called so.
    if not any("=" in w and "/" not in w.partition("=")[0] and not is_file(w) for w in words):
        return words[0] if len(words) == 1 else list(words)
    tables: dict[str, list[str]] = {}
    for each in [[word] for word in words] if runs else [words]:
        for name, source in _named_files(each).items():
            tables.setdefault(name, []).append(source)
    return {name: files[0] if len(files) == 1 else files for name, files in tables.items()}


def _named_files(words: Iterable[str]) -> dict[str, str]:
    """Return names and files of words NAME=FILE; names may hold a sign of equality too."""
    return named(words, "each model", form="NAME=FILE", split=_split_name)


def _split_name(word: str) -> tuple[str, str]:
    """Return the name and the file of a word: the first split after which there is a file.

    Where there is none, a sign of equality inside brackets is a part of the name.

    >>> _split_name("model (dropout=0.5)=nowhere.csv")
    ('model (dropout=0.5)', 'nowhere.csv')
    """
    places = [place for place, letter in enumerate(word) if letter == "="]
    splits = [(word[:place], word[place + 1 :]) for place in places]
    for name, file in splits:
        if file.strip() and (file.strip() == "-" or _is_there(file.strip())):
            return name, file
    outside = [(name, file) for name, file in splits if name.count("(") == name.count(")")]
    return next(iter(outside or splits), (word, ""))


def _is_there(path: str) -> bool:
    """Return whether a path or a pattern leads to a file or a folder."""
    return os.path.exists(path) or _match_files(path)  # noqa: PTH110 - false for odd names


def prior(asked: dict[str, Any]) -> Any:
    """Take the prior out of what is asked: a word, a file, or the shipped one without a family."""
    chosen = asked.pop("prior")
    without = asked.pop("without")
    if without is None:
        return chosen
    if chosen != PRIOR.default:
        raise InputError(
            f"--without must be given without --prior, got --prior {chosen}; it is about the "
            "shipped prior"
        )
    from unsample.posterior import Prior

    return Prior.shipped(without=without)


def drawn(asked: dict[str, Any]) -> Negatives:
    """Take how items were drawn out of what is asked."""
    from unsample.counts import Negatives, are_shared

    shared = are_shared(asked.pop("negatives"))
    return Negatives(replacement=asked.pop("replacement"), shared=shared)


def reading(asked: dict[str, Any]) -> Read:
    """Take how tables are read out of what is asked."""
    from unsample.tables import Read

    column, *how = (asked.pop(name) for name in ("column", "rows", "ties", "rng"))
    columns = named(column, "--column", form="ROLE=NAME, such as rank=position")
    return Read(columns, *how)


def query(
    dialect: str,
    files: tuple[str, ...],
    read: Read,
    asked: dict[str, Any],
    *,
    by: str | None,
    compares: bool = False,
) -> str:
    """Return the query that counts a table where it is, as the verb itself would count it."""
    table = sources(files)
    if not isinstance(table, str) or table in ("", "-"):
        called = {"": "an empty one", "-": "standard input"}
        got = called.get(files[0], ", ".join(files))
        raise InputError(
            f"--print-sql must be asked for one table, got {got}; give a file, a pattern of files "
            "or the name of a table, alone"
        )
    from unsample.tables import Asked, sql, sql_of_files

    design = {name: asked[name] for name in ("items", "sampled")} | {"negatives": drawn(asked)}
    # As DuckDB writes them.
    source = table[1:-1] if len(table) > 1 and table[0] == table[-1] == "'" else table
    if Path(source).is_dir():
        raise InputError(
            f"--print-sql must be asked for files that an engine reads, got the folder {source!r}; "
            f"give a pattern, such as {str(Path(source, '*.parquet'))!r}"
        )
    if is_file(source) or _match_files(source):
        whole = Asked(read=read, by=by, runs=compares, **design)
        return sql_of_files(source, whole, pair=compares, dialect=dialect)
    return sql(dialect=dialect, table=table, read=read, by=by, pair=compares, **design)


def _match_files(pattern: str) -> bool:
    """Return whether a pattern has a match; a warehouse may call a table like a pattern."""
    with suppress(OSError, re.error):
        return glob.has_magic(pattern) and any(glob.iglob(pattern, recursive=True))  # noqa: PTH207
    return False


def _split_first(word: str) -> tuple[str, str]:
    """Return what is left and right of the first sign of equality."""
    name, _, value = word.partition("=")
    return name, value


def named(
    words: Iterable[str],
    what: str,
    *,
    form: str,
    split: Callable[[str], tuple[str, str]] = _split_first,
) -> dict[str, str]:
    """Return names and values of words of a ``form`` such as ``ROLE=NAME``, each name once.

    >>> named(["rank=position", "user=uid"], "--column", form="ROLE=NAME")
    {'rank': 'position', 'user': 'uid'}
    """
    values: dict[str, str] = {}
    for word in words:
        name, value = (part.strip() for part in split(word))
        if not name or not value:
            raise InputError(f"{what} must be given as {form}, got {word!r}")
        if name in values:
            raise InputError(f"{what} must be given once by each name, got {name!r} twice")
        values[name] = value
    return values
