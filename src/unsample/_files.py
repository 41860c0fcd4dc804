"""Files that survive a crash.

A file is written under a temporary name in the same folder, and renamed when it is complete. The
writer holds a lock on it, which ends with the process in any case. So a temporary file without a
lock was left by a killed process, and the next writer of the same file removes it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from unsample.errors import FileError

_TEMPORARY = re.compile(r"\.(?P<start>.+)\.[0-9a-f]{16}\.part", re.DOTALL)
#: Characters of a name that its temporary name repeats: a name has at most 255 bytes in all.
_LONGEST_START = 50
_DEVICES = Path("/dev")
_ADVICE = {
    errno.ENOENT: "make its folder first",
    errno.ENOTDIR: "what should be its folder is a file; choose another place",
    errno.EISDIR: "give the name of a file",
    errno.EACCES: "choose a place that you may write to",
    errno.EPERM: "choose a place that you may write to",
    errno.EROFS: "choose a place that can be written to",
    errno.ENOSPC: "make room, or choose another place",
    errno.EDQUOT: "make room, or choose another place",
    errno.EFBIG: "files may not grow that large here; choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Call ``write`` on a temporary file beside ``path``, then rename it into place.

    A new file gets the permissions that the umask allows; a replaced file keeps its own. A pipe or
    a device (``/dev/null``) is written to, not replaced. A link is replaced, not followed: who made
    it does not decide which file is overwritten.
    """
    try:
        if _is_stream(path):
            with path.open("wb") as stream:
                write(stream)
            return
        with _temporary(path) as (file, temporary):
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if sys.platform == "win32":  # open files cannot be renamed; elsewhere the lock stays
                file.close()
            temporary.replace(path)
    except OSError as problem:
        raise unwritable(path, problem) from problem


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before hours are spent on its content."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not _is_stream(path):
            with _temporary(path) as (_, temporary):
                temporary.unlink()
    except OSError as problem:
        raise unwritable(path, problem) from problem


def unwritable(path: Path, problem: OSError) -> FileError:
    """Return an error that says why ``path`` cannot be written, and what to do."""
    reason = f"cannot write {str(path)!r}: {problem.strerror or problem}"
    advice = _ADVICE.get(problem.errno or 0)
    return FileError(f"{reason}; {advice}" if advice else reason)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove temporary files of ``name`` (or of any file) that killed processes left."""
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            if is_temporary(entry.name, name):
                with suppress(OSError), entry.open("rb") as file:
                    lock(file.fileno())  # fails while its writer is running
                    entry.unlink()


def is_temporary(entry: str, name: str = "") -> bool:
    """Return whether ``entry`` is a temporary name of ``name`` (or of any file)."""
    found = _TEMPORARY.fullmatch(entry)
    return found is not None and (not name or found["start"] == name[:_LONGEST_START])


def lock(handle: int, *, wait: bool = False) -> None:
    """Lock an open file or folder until it is closed.

    BlockingIOError means that another process has the lock. Any other OSError means that locks are
    not possible, as on some network drives. On Windows nothing is locked: there open files cannot
    be removed.
    """
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def lock_of(folder: Path) -> Iterator[bool]:
    """Lock a folder within the context; yield False if another process has the lock."""
    with ExitStack() as stack:
        free = True
        try:
            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            lock(handle)
        except BlockingIOError:
            free = False
        except OSError:  # no locks here, or Windows, which opens no folders: not known
            pass
        yield free


def _is_stream(path: Path) -> bool:
    """Return whether ``path`` is written to, not replaced: a pipe, a device, ``/dev/stdout``."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    # A link in /dev may lead to a plain file, and must still not be replaced.
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or path.absolute().parent == _DEVICES


@contextmanager
def _temporary(target: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Yield a new locked file in the folder of ``target``; remove it unless it was renamed."""
    remove_leftovers(target.parent, target.name)
    while True:
        start = target.name[:_LONGEST_START]
        temporary = target.with_name(f".{start}.{os.urandom(8).hex()}.part")
        file = temporary.open("xb")
        with suppress(OSError):
            lock(file.fileno(), wait=True)
        # Before it was locked, another writer may have removed it as a leftover.
        if temporary.exists():
            break
        file.close()
    try:
        with file:
            with suppress(FileNotFoundError):
                mode = target.lstat().st_mode
                if stat.S_ISREG(mode):  # a private file stays private
                    temporary.chmod(stat.S_IMODE(mode))
            yield file, temporary
    finally:
        temporary.unlink(missing_ok=True)


def is_file(path: str | Path) -> bool:
    """Return whether there is a file; also False if this cannot be found out."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file fails on names that are too long


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder; none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are wanted
    except (OSError, ValueError):
        return []
