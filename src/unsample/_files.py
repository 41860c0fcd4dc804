"""Files: written whole or not at all, and found by a path, a pattern or a folder.

A file is written under a temporary name in the same folder, and renamed when it is complete. What a
killed process leaves is called ``.NAME.….part``, and may be deleted.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from unsample._rules import suggest
from unsample.errors import FileError

#: Characters of a name that its temporary name repeats: a name has at most 255 bytes in all.
_LONGEST_START = 50
#: Longer patterns take seconds to parse, and no path is so long.
_LONGEST_PATTERN = 1024
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


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before hours are spent on its content."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not _is_stream(path):
            with _temporary(path) as temporary:
                temporary.touch(exist_ok=False)
    except OSError as problem:
        raise unwritable(path, problem) from problem


def unwritable(path: Path, problem: OSError) -> FileError:
    """Return an error that says why ``path`` cannot be written, and what to do."""
    reason = f"cannot write {str(path)!r}: {problem.strerror or problem}"
    advice = _ADVICE.get(problem.errno or 0)
    return FileError(f"{reason}; {advice}" if advice else reason)


def _is_stream(path: Path) -> bool:
    """Return whether ``path`` is written to, not replaced: a pipe, a device, ``/dev/stdout``."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
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
    is_folder, is_pattern = os.path.isdir(path), glob.has_magic(path)  # noqa: PTH112 - as is_file
    if not is_folder and not is_pattern and os.path.exists(path):  # noqa: PTH110 - as is_file
        return [Path(path)]
    found = sorted(Path(path).rglob("*")) if is_folder else _matches(path) if is_pattern else []
    files = [file for file in found if is_file(file) and file.name[0] not in "._"]
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
    if len(pattern) > _LONGEST_PATTERN:
        raise FileError(
            f"a pattern of files must have at most {_LONGEST_PATTERN:,} letters, got "
            f"{len(pattern):,}; give their folder"
        )
    try:
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - Path.glob needs a root
    except (OSError, re.error) as problem:
        raise FileError(f"{pattern!r} must be a pattern of files: {problem}") from problem
    return [Path(path) for path in sorted(found)]
