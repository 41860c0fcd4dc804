"""How the command speaks: results to standard output, everything else to standard error."""

from __future__ import annotations

import functools
import io
import os
import re
import signal
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from unsample import __version__
from unsample._rules import printable, wrapped
from unsample.cli.options import EVERY_VERB, FORMS, SOURCE, check_outputs
from unsample.cli.verbs import LINE
from unsample.errors import FileError, InputError, UnsampleError, UnsampleWarning

if TYPE_CHECKING:
    from pathlib import Path

    from unsample.report._origin import Origin


#: The columns of an example in a terminal of 80, without its margin and the sign at its end.
_EXAMPLE = 70


def verb(
    *own: click.Parameter, examples: Sequence[str]
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a verb with its ``own`` options and those of all.

    What it returns is printed, or text as it is.
    """

    def made(function: Callable[..., Any]) -> click.Command:
        text = function.__doc__ or ""
        return click.Command(
            function.__name__,
            callback=functools.partial(_call, function),
            params=[*own, *EVERY_VERB],
            help=text,
            short_help=text.partition("\n")[0],
            epilog=_epilog(examples),
            context_settings={"show_default": True},
        )

    return made


def _epilog(examples: Sequence[str]) -> str:
    """Return examples below their heading, marked as lines that stay as they are."""
    lines = [textwrap.indent(_example(line), "  ") for line in examples]
    return "\n".join(["\b\nExamples:", *lines])


def _example(line: str) -> str:
    r"""Return an example whose lines fit a terminal of 80 columns, and can be pasted.

    >>> line = "unsample estimate all.csv --items 3706 --sampled 99 --by model -m NDCG@10,HR@50"
    >>> print(_example(line))
    unsample estimate all.csv --items 3706 --sampled 99 --by model \
        -m NDCG@10,HR@50
    """
    # An option stays with its value.
    joined = re.sub(r"(?<= )(--?[\w-]+) (?=[^-\s])", "\\1\N{NO-BREAK SPACE}", line)
    broken = textwrap.wrap(joined, _EXAMPLE, break_long_words=False, break_on_hyphens=False)
    return " \\\n    ".join(broken).replace("\N{NO-BREAK SPACE}", " ")


def _call(
    function: Callable[..., Any],
    *,
    html: Path | None,
    verbose: bool,
    quiet: bool,
    plot: Path | None = None,
    chart: str | None = None,
    **own: Any,
) -> None:
    """Call a verb, print its result in the form that is asked for, and say its warnings."""
    started = time.perf_counter()
    form = _only_form({name: own.pop(name, False) for name in FORMS})
    if chart is not None and plot is None:
        raise InputError("--chart must be given with --plot, got no --plot; such as --plot a.svg")
    if own.get("print_sql") is not None:
        _refuse_files({"html": html, "plot": plot})
    heard: list[str] = []
    try:
        with _warnings_in(heard):
            check_outputs(click.get_current_context())
            result = function(**own)
    except UnsampleError as problem:
        # A warning may tell what led to the error.
        _say_warnings(() if quiet else heard)
        if verbose:
            import traceback

            write_err(traceback.format_exc())
        problem.args = (as_options(str(problem)),)
        raise
    if isinstance(result, str):
        write_out(result)
        return
    results = result if isinstance(result, dict) else {"": result}
    origin = _origin(click.get_current_context())
    write_out(_shown(result, results, form=form, origin=origin, verbose=verbose))
    told = [text for each in results.values() for text in each.warnings]
    # Other forms hold the warnings of the result.
    unsaid = told + heard if form is None else [text for text in heard if text not in told]
    _say_warnings(() if quiet else unsaid)
    if verbose:
        took = f"{time.perf_counter() - started:.2f} s"
        write_err(f"unsample {__version__}, Python {sys.version.split()[0]}, {took}")
    # The result may have taken hours: it is printed, even if these cannot be written.
    of_plot: list[str] = []
    with _warnings_in(of_plot):
        if html is not None:
            from unsample.report._html import write_html

            write_html(result, html, origin=origin)
        if plot is not None:
            from unsample.report._plots import write_plot

            write_plot(result, plot, chart=chart)
    _say_warnings(() if quiet else of_plot)
    gate = getattr(result, "gated", None)
    if gate is not None and gate.failed:
        sys.exit(1)


def _only_form(asked: dict[str, bool]) -> str | None:
    """Return the form that a result is printed in; refuse two of them."""
    forms = [name for name, is_asked in asked.items() if is_asked]
    if len(forms) > 1:
        listed = " and ".join(f"--{name}" for name in forms)
        raise InputError(
            f"a result must be printed in one form, got {listed}; leave out all but one"
        )
    return forms[0] if forms else None


def _refuse_files(outputs: dict[str, Path | None]) -> None:
    """Refuse files of a result where a query is printed, and no result."""
    for name, path in outputs.items():
        if path is not None:
            raise InputError(
                f"--{name} must be left out with --print-sql, which prints a query alone"
            )


@contextmanager
def _warnings_in(heard: list[str]) -> Iterator[None]:
    """Put the warnings of this package into a list, instead of on the terminal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnsampleWarning)
        try:
            yield
        finally:
            heard += [str(warning.message) for warning in caught]


def _say_warnings(texts: Iterable[str]) -> None:
    """Write warnings to standard error, each once."""
    for text in dict.fromkeys(texts):
        write_err("\n" + wrapped(f"warning: {as_options(text)}"))


def _origin(context: click.Context) -> Origin:
    """Return what the command was given: its line, its files and its seed."""
    from unsample.report._origin import Origin

    words = [
        word
        for parameter in context.command.params
        if parameter.type is SOURCE and isinstance(parameter, click.Argument)
        for word in _as_words(context.params[str(parameter.name)])
    ]
    line = [context.command_path.split()[0], *context.meta.get(LINE, ())]
    return Origin.of(line, words, seed=context.params.get("rng"))


def _as_words(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the words of an argument, which may take one or several."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


def _shown(
    result: object,
    results: dict[str, Any],
    *,
    form: str | None,
    origin: Origin,
    verbose: bool,
) -> str:
    """Return a result as text of a form; ``results`` are its parts by name."""
    if form == "json":
        import json

        records = {}
        for name, each in results.items():
            targets = getattr(each, "targets_read", None)
            records[name] = each.to_dict() | {"inputs": origin.to_dict(targets)}
        return json.dumps(records.get("", records), indent=2, allow_nan=False)
    if form == "csv":
        return "\n".join(each.to_csv().rstrip("\n") for each in results.values())
    from unsample.report._writers import as_latex, as_markdown, as_text

    if form is None:
        return as_text(result, warnings=False, verbose=verbose)
    return (as_latex if form == "latex" else as_markdown)(result).rstrip("\n")


class _Signals:
    """Whether a signal has ended the command; some libraries turn its exception into another."""

    def __init__(self) -> None:
        self.ended_by = 0

    def end(self, number: int, _: object) -> None:
        """Leave the command in order: the default would leave temporary files and workers."""
        self.ended_by = number
        # An exception in a callback of a library is reported where it cannot be raised.
        sys.unraisablehook = lambda _: None
        sys.exit(128 + number)


def run(call: Callable[[], object]) -> NoReturn:
    """Run a command; whatever ends it, it ends with an exit code and without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that has no character for a sign gets its number.
            stream.reconfigure(errors="backslashreplace")
    signals = _Signals()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signals.end)
    try:
        code = call()
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except click.exceptions.NoArgsIsHelpError as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except Exception as problem:
        if signals.ended_by:
            sys.exit(128 + signals.ended_by)
        _fail_with(problem)
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _fail_with(problem: Exception) -> None:
    """End the command by what went wrong, in one line; return if it is a fault of ours."""
    if isinstance(problem, click.ClickException):
        where = getattr(getattr(problem, "ctx", None), "command_path", "unsample")
        _fail(f"{problem.format_message().rstrip('.')}; see {where} --help", 2)
    if isinstance(problem, UnsampleError):
        _fail(str(problem), problem.exit_code)
    if isinstance(problem, MemoryError):
        said = f" ({problem})" if str(problem) else ""
        _fail(
            f"the memory of this machine is not enough{said}; give fewer rows at a time, a smaller "
            "catalogue, or use a larger machine",
            UnsampleError.exit_code,
        )
    if isinstance(problem, OSError):
        what = "continue" if problem.filename is None else f"use {problem.filename!r}"
        _fail(f"cannot {what}: {problem.strerror or problem}", FileError.exit_code)


def write_out(text: str) -> None:
    """Write to standard output, and complain where that takes no more.

    Names that come from files have no power over the terminal: their control characters show.
    """
    try:
        click.echo(printable(text))
    except OSError as problem:
        # Python would try again at its end.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(problem, BrokenPipeError):
            sys.exit(141)
        raise UnsampleError(
            f"cannot write to standard output: {problem.strerror}; the result is not complete"
        ) from problem


def write_err(text: str) -> None:
    """Write to standard error; where that is full or gone, nobody can be told."""
    with suppress(OSError):
        click.echo(printable(text), err=True)


def as_options(text: str) -> str:
    """Return a message with arguments as options of the verb: ``by='model'`` as ``--by model``."""
    context = click.get_current_context(silent=True)
    for parameter in context.command.params if context else ():
        if not isinstance(parameter, click.Option):
            continue
        option = parameter.opts[0]
        for opposite in parameter.secondary_opts:
            was_given = rf"^{parameter.name} must be True( as in .*?)?, got False"
            text = re.sub(was_given, rf"{opposite} must be left out, for it is {option}\1", text)
            text = re.sub(rf"(?<![\w.(]){parameter.name}=False", opposite, text)
        text = re.sub(rf"(?<![\w.(]){parameter.name}=(['\"]?)([\w.%@-]+)\1", rf"{option} \2", text)
        text = re.sub(rf"(?:^|(?<=\bpass )){parameter.name}(?= must | and |,)", option, text)
    return text


def _fail(text: str, code: int) -> NoReturn:
    write_err(f"unsample: {text}")
    sys.exit(code)
