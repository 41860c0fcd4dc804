"""What is skipped for want of a program is said, and fails in CI."""

import shutil

import pytest

from tests.machine import PROGRAMS, need_program, wants


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_are_missing_are_skipped_with_the_line_that_installs_them(monkeypatch, name):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=PROGRAMS[name][1]) as told:
        need_program(name)
    reason = f"Skipped: {told.value.msg}"
    line = f"2 tests were not run for want of {name}: {PROGRAMS[name][1]}"
    assert wants([reason, "Skipped: torch finds no CUDA device", reason]) == [line]
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match=PROGRAMS[name][1]):
        need_program(name)


def test_programs_that_are_there_are_used(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name == "chrome" else None)
    assert need_program("Chromium") == "/bin/chrome"
