"""How the command speaks: results to standard output, everything else to standard error.

`console_verb` gives a verb ``--quiet`` and ``--verbose``; `result_verb` also prints what the verb
returns, as text, JSON, LaTeX or Markdown, and writes its page. ``--quiet`` leaves errors alone,
``--verbose`` adds bounds to the tables, and says what was done and where errors come from.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import os
import shutil
import sys
import textwrap
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, get_type_hints

import typer

from unsample import __version__
from unsample._progress import Progress, terminal_progress
from unsample._rules import printable
from unsample.cli._start import Stopped, silence_output
from unsample.cli.options import AsJson, checked_page, option
from unsample.errors import FileError, InputError, OutputError, UnsampleError, UnsampleWarning

log = logging.getLogger("unsample.cli")


def _speaks(level: int) -> Callable[[bool], bool]:
    def callback(wanted: bool) -> bool:
        if wanted:
            log.setLevel(level)
        return wanted

    return callback


# Both are heard before other options are looked at, whose errors have a place in the code, too.
_SPEECH: dict[str, Any] = {
    name: Annotated[
        bool,
        option(None, text, _speaks(level), f"--{name}", short, is_eager=True),
    ]
    for name, short, level, text in (
        ("quiet", "-q", logging.ERROR, "Print no warnings and no progress; errors remain."),
        (
            "verbose",
            "-v",
            logging.DEBUG,
            "Print bounds too, what was done, where errors come from.",
        ),
    )
}
_FORMS: dict[str, Any] = {
    "html": Annotated[
        Path | None,
        option("OUT", "Also write the result as a web page.", checked_page, readable=False),
    ],
    "as_json": AsJson,
    "latex": Annotated[bool, option(None, "Print tables for LaTeX (booktabs).", None, "--latex")],
    "markdown": Annotated[bool, option(None, "Print Markdown.", None, "--markdown")],
}


def console_verb(verb: Callable[..., object]) -> Callable[..., None]:
    """Return the verb with ``--quiet`` and ``--verbose`` behind its own options."""
    return _with_options(verb, verb, _SPEECH)


def result_verb(verb: Callable[..., Any]) -> Callable[..., None]:
    """Return a verb that prints the result of this one, in the form that is asked for."""
    return _with_options(verb, functools.partial(_show, verb), _FORMS | _SPEECH)


def _with_options(
    verb: Callable[..., object], call: Callable[..., object], added: Mapping[str, Any]
) -> Callable[..., None]:
    """Return the call as a verb with more options, ``quiet`` and ``verbose`` among them.

    Here alone are keyword arguments passed through: typer reads the signature, which is complete.
    """

    @functools.wraps(verb)
    def spoken(*, quiet: bool, verbose: bool, **options: object) -> None:
        if quiet and verbose:
            raise InputError("quiet and verbose must not be given together; leave out one of them")
        started = time.perf_counter()
        log.debug("unsample %s, Python %s", __version__, sys.version.split()[0])
        try:
            call(**options)
        except KeyboardInterrupt:
            raise Stopped(130, "interrupted") from None
        except UnsampleError:
            raise
        except OSError as problem:
            what = "continue" if problem.filename is None else f"use {problem.filename!r}"
            raise FileError(f"cannot {what}: {problem.strerror or problem}") from problem
        log.debug("took %.2f s, %s at most", time.perf_counter() - started, _peak_memory())

    # What a verb returns is known to type checkers only: its module is not loaded to show help.
    types = {name: text for name, text in verb.__annotations__.items() if name != "return"}
    typed = SimpleNamespace(__annotations__=types)
    hints = get_type_hints(typed, verb.__globals__, include_extras=True) | dict(added)
    own = inspect.signature(verb).parameters.values()
    more = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None if name == "html" else False
        )
        for name in added
    ]
    parameters = [part.replace(annotation=hints[part.name]) for part in (*own, *more)]
    spoken.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spoken.__annotations__ = hints
    return spoken


def _show(
    verb: Callable[..., Any],
    *,
    html: Path | None,
    as_json: bool,
    latex: bool,
    markdown: bool,
    **options: object,
) -> None:
    """Run a verb, print its result, write its page, and say its warnings."""
    if as_json + latex + markdown > 1:
        raise InputError("json, latex and markdown must not be given together; choose one")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnsampleWarning)
        result = verb(**options)
    if isinstance(result, str):
        say(result)
        return
    from unsample.show import as_latex, as_markdown, as_text, write_html

    # A page that cannot be written is an error only when the result has been printed: it may
    # have taken hours.
    problem = None
    if html is not None:
        try:
            write_html(result, html)
        except FileError as failure:
            problem = failure
    groups = result if isinstance(result, dict) else {"": result}
    if as_json and result is groups:
        say(json.dumps({name: each.to_dict() for name, each in groups.items()}, indent=2))
    elif as_json:
        say(result.to_json())
    elif latex or markdown:
        say((as_latex if latex else as_markdown)(result).rstrip("\n"))
    else:
        say(as_text(result, warnings=False, verbose=log.isEnabledFor(logging.DEBUG)))
    # Those of the result stand in every form but text.
    told = [text for each in groups.values() for text in each.warnings]
    shown_already = told if as_json or latex or markdown else ()
    for text in dict.fromkeys((*told, *(str(held.message) for held in caught))):
        if text not in shown_already:
            log.warning("%s", text)
    if problem is not None:
        raise problem
    gate = getattr(result, "gated", None)
    if gate is not None and gate.failed:
        raise typer.Exit(1)


def run(build: Callable[[], Callable[[], object]]) -> None:
    """Run the command; an error made on purpose prints its message and no traceback."""
    with _listening():
        try:
            build()()
        except UnsampleError as problem:
            if log.isEnabledFor(logging.DEBUG):
                _murmur("".join(traceback.format_exception(problem)))
            if isinstance(problem, OutputError):
                silence_output()
            _murmur(f"unsample: {problem}", colour=typer.colors.RED)
            sys.exit(problem.exit_code)


def say(text: str = "", *, bold: bool = False) -> None:
    """Write to standard output, and complain where that takes no more.

    Names that come from files have no power over the terminal: their control characters show.
    """
    try:
        typer.secho(printable(text), bold=bold)
    except BrokenPipeError:
        raise Stopped(141) from None
    except OSError as problem:
        raise OutputError(
            f"cannot write to standard output: {problem.strerror}; the result is not complete"
        ) from problem


def progress_bar(label: str) -> AbstractContextManager[Progress | None]:
    """Return a progress bar on a terminal; nothing elsewhere, and nothing when quiet."""
    return terminal_progress(label) if log.isEnabledFor(logging.WARNING) else nullcontext(None)


def colours() -> bool | None:
    """Return False where colours are not wanted (NO_COLOR), or None: on terminals only."""
    return False if os.environ.get("NO_COLOR") else None


class _Speaker(logging.Handler):
    """Writes to standard error: details dim, warnings folded on a terminal only."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        text = record.getMessage()
        if record.levelno < logging.WARNING:
            _murmur(text, dim=True)
            return
        line = f"warning: {text}"
        if sys.stderr.isatty():
            line = textwrap.fill(line, width=shutil.get_terminal_size().columns)
        _murmur(f"\n{line}", colour=typer.colors.YELLOW)


def _murmur(text: str, *, colour: str | None = None, dim: bool | None = None) -> None:
    # Where standard error is full or gone, nobody can be told; the results must not suffer.
    with suppress(OSError):
        typer.secho(printable(text), err=True, fg=colour, dim=dim, color=colours())


@contextmanager
def _listening() -> Iterator[None]:
    """Let messages reach standard error, at the usual loudness, until the command ends."""
    speaker, level, propagate = _Speaker(), log.level, log.propagate
    log.addHandler(speaker)
    log.setLevel(logging.WARNING)
    log.propagate = False
    try:
        with warnings.catch_warnings():
            # Users of the command need not know where in our code a warning comes from.
            warnings.showwarning = lambda message, *_: log.warning("%s", message)
            yield
    finally:
        log.removeHandler(speaker)
        log.setLevel(level)
        log.propagate = propagate


def _peak_memory() -> str:
    try:
        import resource
    except ImportError:  # not on Windows
        return "memory unknown"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in kilobytes, macOS in bytes.
    return f"{peak / (1e6 if sys.platform == 'darwin' else 1e3):,.0f} MB"
