"""Signals, pipes and full disks end the command in one line, never in a traceback."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys

import pytest
import typer

from unsample.cli import _start
from unsample.errors import FileError

PLAN = ["plan", "--items", "500", "--users", "10"]


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 129, "the terminal has gone"),
    ],
)
def test_signals_end_the_command_in_one_line(run, monkeypatch, number, code, word):
    # What a shell starts in the background ignores interrupts, these tests perhaps included.
    outside = signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr("unsample.answers.plan", lambda **_: os.kill(os.getpid(), number))
    try:
        assert run(*PLAN) == (code, "", f"unsample: {word}\n")
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, outside)


def test_signals_that_are_ignored_stay_ignored(run, monkeypatch):
    """As under nohup."""
    seen = []

    def look(**_):
        seen.append(signal.getsignal(signal.SIGHUP))
        raise FileError("seen enough")

    monkeypatch.setattr("unsample.answers.plan", look)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run(*PLAN)[0] == 2
    finally:
        signal.signal(signal.SIGHUP, before)
    assert seen == [signal.SIG_IGN]


def fail_to_print(monkeypatch, problem):
    printed = typer.secho

    def echo(text, *, err=False, **options):
        if not err:
            raise problem
        printed(text, err=err, **options)

    monkeypatch.setattr("unsample.cli.console.typer.secho", echo)


def test_a_full_disk_behind_standard_output_is_said(run, monkeypatch):
    fail_to_print(monkeypatch, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    monkeypatch.setattr("unsample.cli.console.silence_output", lambda: None)
    code, _, errors = run(*PLAN)
    assert code == 1
    assert "cannot write to standard output: No space left on device" in errors


def test_a_reader_that_has_gone_ends_the_command_in_silence(run, monkeypatch):
    fail_to_print(monkeypatch, BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)))
    monkeypatch.setattr(_start, "silence_output", lambda: None)
    assert run(*PLAN) == (141, "", "")


def test_a_stray_failure_of_a_file_is_no_traceback(run, monkeypatch):
    def fail(**_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "somewhere")

    monkeypatch.setattr("unsample.answers.plan", fail)
    assert run(*PLAN) == (2, "", "unsample: cannot use 'somewhere': Permission denied\n")


def test_a_result_is_printed_though_its_page_cannot_be_written(run, monkeypatch, tmp_path):
    def full(path, write):
        raise FileError(f"cannot write {str(path)!r}: No space left on device")

    monkeypatch.setattr("unsample.pages._html.write_atomically", full)
    code, out, errors = run(*PLAN, "--html", tmp_path / "page.html")
    assert code == 2
    assert "ranked in full" in out
    assert "No space left" in errors


def test_closed_streams_are_opened_on_nothing(run, monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    _start._open_closed_streams()
    assert sys.stdin.read() == ""
    for stream in (sys.stdout, sys.stderr):
        stream.write("nobody reads this")
        stream.close()
    sys.stdin.close()


def test_characters_that_a_terminal_lacks_are_no_traceback(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    _start._open_closed_streams()
    stream.write("☃")
    stream.flush()
    assert stream.buffer.getvalue() == b"\\u2603"
