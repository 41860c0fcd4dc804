"""Files: written whole or not at all, never over an input, and found by a path or a pattern.

A file is written under a temporary name in the same folder, and renamed when it is complete. What a
killed process leaves is called ``.NAME.….part``, and may be deleted.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

from unsample._rules import ONCE, suggest
from unsample.errors import FileError

#: Characters of a name that its temporary name repeats: a name has at most 255 bytes in all.
_LONGEST_START = 50
#: Longer patterns take seconds to parse, and no path is so long.
_LONGEST_PATTERN = 1024
_DEVICES = Path("/dev")
#: How names of temporary folders begin, and the file in them that is locked while they are used.
_FOLDER_START = "unsample-"
_LOCK = ".lock"
#: Seconds after which a folder that nobody uses is removed.
_OLD = 3600
#: How the names of files end, by what is written.
PAGE_ENDINGS = (".html", ".htm")
PLOT_ENDINGS = (".svg", ".pdf", ".png")
ARCHIVE_ENDINGS = (".npz",)
_ADVICE = {
    errno.ENOENT: "make its folder first",
    errno.ENOTDIR: "what should be its folder is a file; choose another path",
    errno.EISDIR: "give the name of a file",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that can be written to",
    errno.ENOSPC: "make room, or choose another disk",
    errno.EDQUOT: "make room, or choose another disk",
    errno.EFBIG: "files may not grow that large here; choose another disk",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Call ``write`` on a temporary file beside ``path``, then rename it to ``path``.

    A new file gets the permissions that the umask allows; a replaced file keeps its own. A pipe or
    a device (``/dev/null``) is written to, not replaced. A link is replaced, not followed: who made
    it does not decide which file is overwritten.
    """
    try:
        if is_stream(path):
            with path.open("wb") as stream:
                write(stream)
            return
        with _temporary(path) as temporary:
            with temporary.open("xb") as file:
                with suppress(FileNotFoundError):
                    mode = path.lstat().st_mode
                    if stat.S_ISREG(mode):  # a private file stays private
                        temporary.chmod(stat.S_IMODE(mode))
                write(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
    except OSError as problem:
        raise unwritable(path, problem) from problem


def check_ending(name: str, path: Path, endings: Sequence[str]) -> None:
    """Refuse a path that does not end as the format does: it may be a file of somebody's data.

    >>> check_ending("plot", Path("ranks.svg"), PLOT_ENDINGS)
    >>> try:
    ...     check_ending("plot", Path("ranks.csv"), PLOT_ENDINGS)
    ... except FileError as problem:
    ...     print(problem)
    plot must end in .svg, .pdf or .png, got 'ranks.csv'; such as 'ranks.svg'
    """
    if path.suffix.lower() not in endings:
        *others, last = endings
        rule = f"{', '.join(others)} or {last}" if others else last
        raise FileError(
            f"{name} must end in {rule}, got {str(path)!r}; such as {path.stem + endings[0]!r}"
        )


def check_apart(name: str, path: Path, others: Iterable[str]) -> None:
    """Refuse to write over a file that is also read or written, whatever it is called there.

    ``others`` are paths, patterns, folders, or - for standard input. Links, and other spellings of
    a path, mean the same file. A new file in a folder that is read, or with a name that matches a
    pattern, would be read the next time.
    """
    others = list(others)
    reader = next((other for other in others if _would_read(path, other)), None)
    if reader is not None and not path.exists():
        raise FileError(
            f"{name} must not be where it would be read, got {str(path)!r} in {reader!r}; choose "
            "another folder"
        )
    try:
        there = path.stat()
    except OSError:  # there is nothing to write over
        return
    if stat.S_ISDIR(there.st_mode) or stat.S_ISCHR(there.st_mode):
        return  # a terminal may be read and written
    states = (state for other in others for state in _states(other))
    if any(os.path.samestat(there, state) for state in states):
        raise FileError(
            f"{name} must not be a file that is also read or written, got {str(path)!r}; choose "
            "another name"
        )


def _would_read(path: Path, source: str) -> bool:
    """Return whether a source is a folder or a pattern, and would read a file of this name."""
    if path.name[:1] in ("", ".", "_"):
        return False
    if os.path.isdir(source):  # noqa: PTH112 - as is_file
        return Path(source).resolve() in path.resolve().parents
    if not glob.has_magic(source) or is_file(source):
        return False
    folder, name = os.path.split(source)
    if name == "**":  # all files below
        folder = source
        name = "*"
    if not fnmatch(path.name, name):
        return False
    # The folders themselves are compared: links and other spellings mean the same.
    with suppress(OSError, re.error):
        there = path.parent.stat()
        folders = glob.iglob(folder or ".", recursive=True)  # noqa: PTH207 - as _matches
        return any(_is_same(there, folder) for folder in folders)
    return False


def _is_same(there: os.stat_result, path: str) -> bool:
    with suppress(OSError):
        return os.path.samestat(there, os.stat(path))  # noqa: PTH116 - as is_file
    return False


def _states(source: str) -> Iterator[os.stat_result]:
    """Yield the identity of each file of a source; reading reports the files that are missing."""
    with suppress(OSError, ValueError, FileError):
        if source == "-":
            if sys.stdin is not None:  # which is closed
                yield os.fstat(sys.stdin.fileno())
        else:
            for file in find_files(source):
                yield file.stat()


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before hours are spent on its content."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not is_stream(path):
            with _temporary(path) as temporary:
                temporary.touch(exist_ok=False)
    except OSError as problem:
        raise unwritable(path, problem) from problem


def make_folder_of(path: Path) -> None:
    """Make the folder of a file that is to be written, where there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(path, problem) from problem


def unwritable(path: Path, problem: OSError) -> FileError:
    """Return an error that says why ``path`` cannot be written, and what to do."""
    reason = f"cannot write {str(path)!r}: {problem.strerror or problem}"
    advice = _ADVICE.get(problem.errno or 0)
    return FileError(f"{reason}; {advice}" if advice else reason)


def is_stream(path: Path) -> bool:
    """Return whether ``path`` is written to, not replaced: a pipe, a device, ``/dev/stdout``."""
    try:
        mode = path.stat().st_mode
    except OSError:  # what is wrong, writing it will say
        return False
    # A link in /dev may lead to a plain file, and must still not be replaced.
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or path.absolute().parent == _DEVICES


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """Yield a new name in the folder of ``target``; remove its file unless it was renamed."""
    temporary = target.with_name(f".{target.name[:_LONGEST_START]}.{os.urandom(8).hex()}.part")
    try:
        yield temporary
    finally:
        with suppress(OSError):  # where it could not be made, that is the problem to tell
            temporary.unlink(missing_ok=True)


# -- what is there --------------------------------------------------------------------------------


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Give a folder that is removed on leaving; first remove those that killed processes left.

    A process that is killed cannot remove its folder, which may hold a copy of its input. So a
    folder is locked while it is used, and the next process removes old ones that nobody has locked.
    """
    with ONCE:
        _remove_left_folders(Path(tempfile.gettempdir()))
        folder = tempfile.TemporaryDirectory(prefix=_FOLDER_START)
    with folder as path, _locked(Path(path)):
        yield path


def _remove_left_folders(place: Path) -> None:
    """Remove old folders of this user that no process has locked any more."""
    if sys.platform == "win32":
        return
    import fcntl

    with suppress(OSError):
        for folder in place.glob(f"{_FOLDER_START}*"):
            with suppress(OSError):
                state = folder.lstat()
                is_mine = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
                # A new folder may not be locked yet.
                if is_mine and time.time() - state.st_mtime > _OLD:
                    lock = folder / _LOCK
                    with lock.open("rb") as file:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; the system lets go of it when a process ends, however it ends."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with (folder / _LOCK).open("xb") as file:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def find_files(path: str) -> list[Path]:
    """Return the sorted files of a path, a pattern or a folder; at least one.

    A folder means all files below it, except names that start with ``_`` or ``.``: these are marks
    and checksums of the program that wrote it. A path that is neither file nor folder is a pipe.
    """
    if is_file(path):
        return [Path(path)]  # its name may contain a bracket
    if "://" in path:
        raise FileError(
            f"source must be on this machine, got {path!r}; fetch it first, or open it as a frame "
            "(duckdb.read_parquet, polars.scan_parquet, spark.read)"
        )
    is_folder = os.path.isdir(path)  # noqa: PTH112 - as is_file
    is_pattern = glob.has_magic(path)
    if not is_folder and not is_pattern and os.path.exists(path):  # noqa: PTH110 - as is_file
        return [Path(path)]
    paths: list[Path] = []
    if is_folder:
        paths = sorted(Path(path).rglob("*"))
    elif is_pattern:
        paths = _matches(path)
    files = [file for file in paths if is_file(file) and file.name[0] not in "._"]
    if not files and is_folder:
        raise FileError(f"there is no file in the folder {path!r}")
    if not files:
        # A name is not suggested if only its ending is similar.
        near = suggest(Path(path).name, _names_in(Path(path).parent), near=0.75)
        what = "no file matches" if is_pattern else "there is no file"
        raise FileError(f"{what} {path!r}; {near or 'check its name and its folder'}")
    return files


def is_file(path: str | Path) -> bool:
    """Return whether there is a file; also False if this cannot be found out."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file fails on names that are too long


def _names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder; none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are wanted
    except (OSError, ValueError):
        return []


def _matches(pattern: str) -> list[Path]:
    """Return the sorted paths that match a pattern."""
    if len(pattern) > _LONGEST_PATTERN:
        raise FileError(
            f"a pattern of files must have at most {_LONGEST_PATTERN:,} letters, got "
            f"{len(pattern):,}; give their folder"
        )
    try:
        paths = glob.glob(pattern, recursive=True)  # noqa: PTH207 - Path.glob needs a root
    except (OSError, re.error) as problem:
        raise FileError(f"{pattern!r} must be a pattern of files: {problem}") from problem
    return [Path(path) for path in sorted(paths)]
