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
from unsample._rules import printable
from unsample.cli.options import EVERY_VERB, check_outputs
from unsample.errors import FileError, UnsampleError, UnsampleWarning

if TYPE_CHECKING:
    from pathlib import Path


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
            epilog="\n  ".join(["\b\nExamples:", *examples]),  # after \b, lines stay as they are
            context_settings={"show_default": True},
        )

    return made


def _call(
    function: Callable[..., Any],
    *,
    form: str | None,
    html: Path | None,
    verbose: bool,
    quiet: bool,
    plot: Path | None = None,
    **own: object,
) -> None:
    """Call a verb, print its result in the form that is asked for, and say its warnings."""
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnsampleWarning)
            check_outputs(click.get_current_context())
            result = function(**own)
    except UnsampleError as problem:
        if verbose:
            import traceback

            write_err(traceback.format_exc())
        problem.args = (as_options(str(problem)),)
        raise
    if isinstance(result, str):
        write_out(result)
        return
    groups = result if isinstance(result, dict) else {"": result}
    write_out(_shown(result, groups, form, verbose=verbose))
    told = [text for each in groups.values() for text in each.warnings]
    heard = [str(held.message) for held in caught]
    if form is not None:  # which holds the warnings of the result
        heard, told = [text for text in heard if text not in told], []
    for text in [] if quiet else dict.fromkeys(told + heard):
        write_err(f"\nwarning: {as_options(text)}")
    if verbose:
        took = f"{time.perf_counter() - started:.2f} s"
        write_err(f"unsample {__version__}, Python {sys.version.split()[0]}, {took}")
    # The result may have taken hours: it is printed, even if these cannot be written.
    from unsample.report._html import write_html
    from unsample.report._plots import write_plot

    for path, write in ((html, write_html), (plot, write_plot)):
        if path is not None:
            write(result, path)
    gate = getattr(result, "gated", None)
    if gate is not None and gate.failed:
        sys.exit(1)


def _shown(result: object, groups: dict[str, Any], form: str | None, *, verbose: bool) -> str:
    if form == "json":
        import json

        records = {name: each.to_dict() for name, each in groups.items()}
        return json.dumps(records.get("", records), indent=2, allow_nan=False)
    if form == "csv":
        return "\n".join(each.to_csv().rstrip("\n") for each in groups.values())
    from unsample.report._writers import as_latex, as_markdown, as_text

    if form is None:
        return as_text(result, warnings=False, verbose=verbose)
    return (as_latex if form == "latex" else as_markdown)(result).rstrip("\n")


def run(call: Callable[[], object]) -> NoReturn:
    """Run a command; whatever ends it, it ends with an exit code and without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
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
    for each in context.command.params if context else ():
        if isinstance(each, click.Option):
            option = each.opts[0]
            text = re.sub(rf"(?<![\w.(]){each.name}=(['\"]?)([\w.%@-]+)\1", rf"{option} \2", text)
            text = re.sub(rf"(?:^|(?<=\bpass )){each.name}(?= must | and |,)", option, text)
    return text


def _fail(text: str, code: int) -> NoReturn:
    write_err(f"unsample: {text}")
    sys.exit(code)
