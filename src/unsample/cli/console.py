"""How the command speaks: results to standard output, everything else to standard error."""

from __future__ import annotations

import functools
import io
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from unsample import __version__
from unsample._progress import terminal_clock
from unsample._rules import printable
from unsample.cli.options import EVERY_VERB
from unsample.errors import FileError, UnsampleError, UnsampleWarning

if TYPE_CHECKING:
    from pathlib import Path


def verb(
    *own: click.Parameter, examples: Sequence[str], clock: bool = True
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a verb with its ``own`` options and those of all; what it returns is printed.

    Without a ``clock`` it shows progress of its own.
    """

    def made(function: Callable[..., Any]) -> click.Command:
        text = function.__doc__ or ""
        return click.Command(
            function.__name__,
            callback=functools.partial(_call, function, clock),
            params=[*own, *EVERY_VERB],
            help=text,
            short_help=text.partition("\n")[0],
            epilog="\n  ".join(["\b\nExamples:", *examples]),  # after \b, lines stay as they are
            context_settings={"show_default": True},
        )

    return made


def _call(
    function: Callable[..., Any],
    clock: bool,
    *,
    form: str | None,
    html: Path | None,
    plot: Path | None,
    verbose: bool,
    quiet: bool,
    **own: object,
) -> None:
    """Call a verb, print its result in the form that is asked for, and say its warnings."""
    started = time.perf_counter()
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            terminal_clock(shown=clock and not quiet),
        ):
            warnings.simplefilter("always", UnsampleWarning)
            result = function(**own)
    except UnsampleError as problem:
        if verbose:
            import traceback

            murmur(traceback.format_exc())
        problem.args = (as_options(str(problem)),)
        raise
    if isinstance(result, str):
        say(result)
        return
    failure = _written(result, html, plot)
    groups = result if isinstance(result, dict) else {"": result}
    say(_shown(result, groups, form, verbose=verbose))
    told = [text for each in groups.values() for text in each.warnings]
    heard = [str(held.message) for held in caught]
    # Those of the result stand in every form but text.
    for text in dict.fromkeys(
        [each for each in heard if each not in told] if form else told + heard
    ):
        if not quiet:
            murmur(f"\nwarning: {as_options(text)}", colour="yellow")
    if verbose:
        took = f"{time.perf_counter() - started:.2f} s"
        murmur(f"unsample {__version__}, Python {sys.version.split()[0]}, {took}")
    if failure is not None:
        raise failure
    gate = getattr(result, "gated", None)
    if gate is not None and gate.failed:
        sys.exit(1)


def _shown(result: object, groups: dict[str, Any], form: str | None, *, verbose: bool) -> str:
    if form == "json":
        import json

        records = {name: each.to_dict() for name, each in groups.items()}
        return json.dumps(records.get("", records), indent=2, allow_nan=False)
    from unsample.show import as_latex, as_markdown, as_text

    if form is None:
        return as_text(result, warnings=False, verbose=verbose)
    return (as_latex if form == "latex" else as_markdown)(result).rstrip("\n")


def _written(result: object, html: Path | None, plot: Path | None) -> UnsampleError | None:
    """Write page and plot; return what failed: the result may have taken hours, and comes first."""
    from unsample.show import write_html, write_plot

    try:
        for path, write in ((html, write_html), (plot, write_plot)):
            if path is not None:
                write(result, path)
    except UnsampleError as failure:
        return failure
    return None


def run(call: Callable[[], object]) -> NoReturn:
    """Run a command; whatever ends it, it ends with an exit code and without a traceback."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            # A terminal that has no character for a sign gets its number.
            stream.reconfigure(errors="backslashreplace")
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            # The default would leave temporary files and workers behind.
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        code = call()
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except click.exceptions.NoArgsIsHelpError as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except click.ClickException as problem:
        where = getattr(getattr(problem, "ctx", None), "command_path", "unsample")
        _fail(f"{problem.format_message().rstrip('.')}; see {where} --help", 2)
    except UnsampleError as problem:
        _fail(str(problem), problem.exit_code)
    except OSError as problem:
        what = "continue" if problem.filename is None else f"use {problem.filename!r}"
        _fail(f"cannot {what}: {problem.strerror or problem}", FileError.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def say(text: str) -> None:
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


def murmur(text: str, *, colour: str | None = None) -> None:
    """Write to standard error; where that is full or gone, nobody can be told."""
    with suppress(OSError):
        plain = False if os.environ.get("NO_COLOR") else None
        click.secho(printable(text), err=True, fg=colour, color=plain)


def as_options(text: str) -> str:
    """Return a message with arguments as options of the verb: ``by='model'`` as ``--by model``."""
    context = click.get_current_context(silent=True)
    for each in context.command.params if context else ():
        if isinstance(each, click.Option):
            option = each.opts[0]
            text = re.sub(rf"(?<![\w.(]){each.name}=(['\"]?)([\w.%@-]+)\1", rf"{option} \2", text)
            text = re.sub(rf"(?:^|(?<=\bpass )){each.name}(?= must | and |,)", option, text)
    return text


def _fail(text: str, code: int) -> NoReturn:
    murmur(f"unsample: {text}", colour="red")
    sys.exit(code)
