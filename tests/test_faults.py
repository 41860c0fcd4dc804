"""What a crash, a full disk, a neighbour or a signal must not break; see ``tools/faults.py``."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import typer

from tests.test_lab_fetch import CONTENT, register, site  # noqa: F401 - fixtures
from unsample._archives import read_arrays
from unsample._files import check_writable, is_temporary, lock, remove_leftovers, write_atomically
from unsample.answers import evaluate
from unsample.cli import _start
from unsample.errors import (
    CheckpointError,
    FileError,
    WorkerError,
)
from unsample.lab import datasets
from unsample.lab.datasets import _files
from unsample.lab.paper import Cell, Spec
from unsample.lab.paper import run as reproduce
from unsample.lab.paper._folder import RunFolder
from unsample.lab.paper._run import compute_all

ROOT = Path(__file__).parent.parent
HALF_WRITTEN = ".page.html.0123456789abcdef.part"
TINY = Spec(
    datasets=("ml-1m",),
    candidates=("all",),
    recommenders=("ease",),
    estimators=(("MLE", "mle"),),
    sampled=99,
    repeats=2,
)


def write(path: Path, content: bytes = b"new") -> None:
    write_atomically(path, lambda file: file.write(content))


# -- writing ----------------------------------------------------------------------------------


def test_a_link_is_replaced_and_what_it_points_to_untouched(tmp_path):
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write(link)
    assert not link.is_symlink()
    assert (real.read_bytes(), link.read_bytes()) == (b"old", b"new")


def test_standard_output_is_no_link_to_be_replaced(tmp_path):
    """Where it leads to a file, too: as root this would break the machine."""
    with (tmp_path / "out").open("wb") as out:
        script = (
            "from pathlib import Path\n"
            "from unsample._files import check_writable, write_atomically\n"
            "check_writable(Path('/dev/stdout'))\n"
            "write_atomically(Path('/dev/stdout'), lambda file: file.write(b'new'))\n"
        )
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == b"new"
    assert Path("/dev/stdout").is_symlink()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    """``--html /dev/null`` as root once replaced the device by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    check_writable(pipe)
    write(pipe)
    reader.join()
    assert got == [b"new"]
    assert pipe.is_fifo()


def test_permissions_are_those_of_the_old_file_or_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "new")
        (tmp_path / "secret").write_bytes(b"old")
        (tmp_path / "secret").chmod(0o600)
        write(tmp_path / "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["x" * 255, "ä" * 127, "[*] ?.html", "-", " "])
def test_any_name_that_the_system_takes_is_taken(tmp_path, name):
    check_writable(tmp_path / name)
    write(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "No space left on device; make room"),
        (errno.EROFS, "Read-only file system; choose a place"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_a_disk_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, number, advice):
    write(tmp_path / "page.html", b"old")

    def fail(file):
        file.write(b"half")
        raise OSError(number, os.strerror(number))

    with pytest.raises(FileError, match=rf"cannot write .*page\.html': {advice}"):
        write_atomically(tmp_path / "page.html", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert (tmp_path / "page.html").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (".", "Is a directory; give the name of a file"),
        ("none/page.html", "make its folder first"),
        ("file/page.html", "Not a directory"),
        ("x" * 300, "choose a shorter name"),
    ],
)
def test_bad_places_are_named_before_any_work(tmp_path, name, says):
    (tmp_path / "file").write_bytes(b"")
    for attempt in (check_writable, write):
        with pytest.raises(FileError, match=says):
            attempt(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_killed_writers_left_is_removed_by_the_next(tmp_path):
    dead, other = tmp_path / HALF_WRITTEN, tmp_path / ".other.html.0123456789abcdef.part"
    mine = tmp_path / ".page.html.notes.part"
    for path in (dead, other, mine):
        path.write_bytes(b"half")
    write(tmp_path / "page.html")
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", other.name, mine.name}
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", mine.name}


def test_what_living_writers_hold_is_left_alone(tmp_path):
    with (tmp_path / HALF_WRITTEN).open("wb") as file:
        lock(file.fileno())
        write(tmp_path / "page.html")
        assert (tmp_path / HALF_WRITTEN).exists()
    write(tmp_path / "page.html")
    assert not (tmp_path / HALF_WRITTEN).exists()


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    contents = [bytes([65 + number]) * 50_000 for number in range(8)]
    problems = []

    def work(content):
        try:
            for _ in range(20):
                write(tmp_path / "page.html", content)
        except FileError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert (tmp_path / "page.html").read_bytes() in contents
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_names_of_temporary_files_are_told_from_those_of_users():
    assert is_temporary(HALF_WRITTEN)
    assert is_temporary(HALF_WRITTEN, "page.html")
    assert not is_temporary(HALF_WRITTEN, "page")
    assert not is_temporary(".page.html.part")
    assert not is_temporary("page.html.0123456789abcdef.part")


# -- reading what may be damaged --------------------------------------------------------------


def damaged(content: bytes, times: int) -> list[bytes]:
    """Return versions that are cut off or have a bit flipped, everywhere in turn."""
    places = np.linspace(0, len(content) - 1, times).astype(int)
    flipped = [bytearray(content) for _ in places]
    for version, place in zip(flipped, places, strict=True):
        version[place] ^= 1 << (place % 8)
    return [*(content[:place] for place in places), *map(bytes, flipped)]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_arrays_are_refused_or_read_right(save):
    arrays = {"first": np.arange(500), "second": np.linspace(0, 1, 50).reshape(5, 10)}
    buffer = io.BytesIO()
    save(buffer, **arrays)
    refused = 0
    for content in damaged(buffer.getvalue(), 150):
        try:
            found = read_arrays(io.BytesIO(content), "some.npz")
        except FileError as problem:
            assert "cannot read some.npz" in str(problem)  # noqa: PT017 - most are refused, not all
            refused += 1
            continue
        for name in found.keys() & arrays.keys():
            assert np.array_equal(found[name], arrays[name])
    assert refused > 150


def test_a_damaged_checkpoint_says_what_to_do_or_changes_nothing(tmp_path):
    users, items = np.random.default_rng(0).normal(size=(2, 60, 4))
    path = tmp_path / "state.npz"

    def go():
        return evaluate(
            (users, items),
            (np.arange(60), np.arange(60)),
            items=60,
            design="fixed",
            budget=60 * 21,
            metrics="Recall@5",
            resamples=0,
            checkpoint=path,
        )

    whole, content = go(), None
    content = path.read_bytes()
    for version in damaged(content, 8):
        path.write_bytes(version)
        try:
            again = go()
        except CheckpointError as problem:
            assert "delete it" in str(problem)  # noqa: PT017 - most are refused, not all
        else:
            assert again["Recall@5"].value == whole["Recall@5"].value


def test_a_checkpoint_that_cannot_be_written_is_found_out_at_once(tmp_path):
    asked = []

    def scores(users, items):
        asked.append(items.size)
        return -items.astype(float)

    with pytest.raises(FileError, match="make its folder first"):
        evaluate(
            scores,
            (np.arange(500), np.arange(500)),
            items=500,
            design="exact",
            checkpoint=tmp_path / "none" / "state.npz",
        )
    assert sum(asked) < 5_000  # the probe alone, not 500 x 500


# -- runs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    reproduce(TINY, folder)
    return folder


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


def test_one_run_at_a_time_works_in_a_folder(finished):
    with (
        RunFolder.claim(finished, TINY),
        pytest.raises(FileError, match="another unsample reproduce is at work; wait"),
    ):
        reproduce(TINY, finished)
    reproduce(TINY, finished)


def test_a_folder_that_is_in_use_is_not_cleared_by_force(finished):
    before = tables(finished)
    other = Spec(**{**TINY.__dict__, "rng": 5})
    with RunFolder.claim(finished, TINY), pytest.raises(FileError, match="must not be in use"):
        reproduce(other, finished, force=True)
    assert tables(finished) == before


def test_cells_of_another_run_are_not_believed(finished, tmp_path):
    """A worker that outlives its killed run may write into the folder of the next."""
    other = Spec(**{**TINY.__dict__, "rng": 5})
    whole = reproduce(other, tmp_path / "other")
    name = f"{TINY.cells()[0].name}.npz"
    with RunFolder.claim(tmp_path / "mixed", other) as place:
        (place.path / "cells" / name).write_bytes((finished / "cells" / name).read_bytes())
        assert place.load(other.cells()[0]) is None
    mixed = reproduce(other, tmp_path / "mixed")
    assert mixed.accuracy == whole.accuracy
    assert tables(tmp_path / "mixed") == tables(tmp_path / "other")


def test_damaged_cells_count_as_missing(finished, tmp_path):
    cell = TINY.cells()[0]
    with RunFolder.claim(tmp_path, TINY) as place:
        path = tmp_path / "cells" / f"{cell.name}.npz"
        content = (finished / "cells" / path.name).read_bytes()
        path.write_bytes(content)
        whole = place.load(cell)
        for version in damaged(content, 60):
            path.write_bytes(version)
            found = place.load(cell)
            assert found is None or np.array_equal(found.values["MLE"], whole.values["MLE"])


def test_force_throws_the_report_away_too(finished, tmp_path):
    with RunFolder.claim(tmp_path, TINY):
        (tmp_path / "report.html").write_bytes(b"of the old run")
    with RunFolder.claim(tmp_path, TINY, force=True):
        assert not (tmp_path / "report.html").exists()


def test_a_run_killed_while_it_threw_another_away_goes_on(finished, tmp_path, monkeypatch):
    """Its folder is still known for one of ours, and the same command is not refused."""
    other = Spec(**{**TINY.__dict__, "rng": 5})
    with RunFolder.claim(tmp_path, TINY):
        pass

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("unsample.lab.paper._folder.write_json", killed)
        with pytest.raises(KeyboardInterrupt), RunFolder.claim(tmp_path, other, force=True):
            pass
    with RunFolder.claim(tmp_path, TINY):
        pass
    with RunFolder.claim(tmp_path, other, force=True):
        pass


def test_a_run_leaves_no_temporary_files_when_it_is_interrupted(tmp_path):
    claimed = RunFolder.claim(tmp_path, TINY)
    claimed.__enter__()
    (tmp_path / "cells" / HALF_WRITTEN).write_bytes(b"of a worker that was ended")
    assert not claimed.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not list((tmp_path / "cells").iterdir())


def _end_yourself(_: Cell) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_ended_from_outside_is_no_traceback():
    cells = [Cell("ml-1m", "all", "ease", sampled) for sampled in (9, 19, 29)]
    with pytest.raises(WorkerError, match=r"ended from outside .* run the same command again"):
        list(compute_all(cells, _end_yourself, workers=2))


@pytest.mark.slow
def test_workers_take_no_notice_of_an_interrupt_and_end_with_their_run(tmp_path):
    """Ctrl-C reaches every process of a terminal; a run that is killed tells nobody."""
    script = tmp_path / "run.py"
    script.write_text(
        "import os, signal, time\n"
        "from unsample.lab.paper import Cell\n"
        "from unsample.lab.paper._run import compute_all\n"
        "def work(cell):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    cells = [Cell('ml-1m', 'all', 'ease', sampled) for sampled in (9, 19)]\n"
        "    list(compute_all(cells, work, workers=2))\n"
    )
    for ending in (signal.SIGKILL, signal.SIGINT):
        parent = subprocess.Popen(
            [sys.executable, str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        parent.send_signal(ending)
        parent.wait(timeout=60)
        parent.stdout.close()
        patience = time.monotonic() + 60
        while any(map(_is_running, workers)) and time.monotonic() < patience:
            time.sleep(0.1)
        assert not any(map(_is_running, workers))


def _is_running(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


# -- downloads --------------------------------------------------------------------------------


def test_without_a_home_the_cache_must_be_said(site, register, tmp_path, monkeypatch):  # noqa: F811
    register()
    site.bodies["/users.dat"] = CONTENT
    monkeypatch.delenv("UNSAMPLE_CACHE")
    monkeypatch.setattr(_files, "_platform_folder", lambda: None)
    assert not datasets.info("toy").at_hand
    with pytest.raises(FileError, match="no home folder; set UNSAMPLE_CACHE"):
        datasets.fetch("toy")
    monkeypatch.setenv("UNSAMPLE_CACHE", "~nobody-of-that-name/cache")
    with pytest.raises(FileError, match="no home folder; set UNSAMPLE_CACHE"):
        datasets.fetch("toy")


@pytest.mark.parametrize("found", ["~/.cache/unsample", RuntimeError("no home")])
def test_no_folder_called_tilde_is_ever_made(monkeypatch, found):
    class Pooch:
        @staticmethod
        def os_cache(_):
            if isinstance(found, Exception):
                raise found
            return Path(found)

    monkeypatch.setattr(_files, "import_extra", lambda *_, **__: Pooch)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}["nobody"])
    assert _files._platform_folder() is None


def test_a_cache_that_may_not_be_looked_into_is_named(site, register, monkeypatch):  # noqa: F811
    register()

    def refuse(_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(FileError, match=r"cannot look for .*Permission denied; set UNSAMPLE_CACHE"):
        datasets.info("toy")


# -- the command ------------------------------------------------------------------------------

PLAN = ["plan", "--items", "500", "--users", "10", "--repeats", "5"]


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


def test_a_page_that_cannot_be_written_is_refused_before_the_work(run, monkeypatch, tmp_path):
    monkeypatch.setattr("unsample.answers.plan", lambda **_: pytest.fail("worked in vain"))
    code, _, errors = run(*PLAN, "--html", tmp_path / "none" / "page.html")
    assert code == 2
    assert "make its folder first" in errors


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


def test_the_imports_can_be_interrupted_in_peace():
    script = (
        "import os, signal, sys\n"
        # What a shell starts in the background ignores interrupts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from unsample.__main__ import main\n"
        "assert 'numpy' not in sys.modules, 'importing the way in takes no time'\n"
        "def hear(event, arguments):\n"
        "    if event == 'import' and arguments[0] == 'typer':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.addaudithook(hear)\n"
        "sys.argv = ['unsample', 'plan']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "unsample: interrupted\n")


# -- the script -------------------------------------------------------------------------------


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    if not (ROOT / "tools").is_dir():
        pytest.skip("the script does not ship")
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "faults.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    ["kill -9: evaluate with", "kill -9: fetch", "awkward places", "dishonest servers", "streams"],
)
def test_the_script_finds_nothing(scenario):
    done = script(scenario, "--kills", "20")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_script_finds_files_that_are_written_in_place():
    done = script("kill -9: evaluate with", "--kills", "40", "--planted")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "state.npz cannot be read" in done.stdout
