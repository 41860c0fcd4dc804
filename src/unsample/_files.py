"""Files that survive a crash, and foreign files that are not trusted.

A file is written under another name beside its own, and renamed when it is whole. Meanwhile its
writer holds a lock on it, which ends with the process, however that ends. So what a killed process
left behind is known by having no lock, and the next writer of the same file removes it.

What is read must not unpack to far more than it is. Arrays are read by numpy, which evaluates
headers and allocates what they claim: so it only gets headers of plain arrays, and only where the
archive holds as many bytes as they claim.
"""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import math
import os
import re
import secrets
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from unsample.errors import FileError

_TEMPORARY = re.compile(r"\.(?P<start>.+)\.[0-9a-f]{16}\.part", re.DOTALL)
#: Characters of a name that its temporary name repeats: 255 bytes must hold the rest, too.
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

#: What the standard library and numpy raise when a compressed file or an archive is damaged.
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    OverflowError,
    RuntimeError,  # encrypted members, and compressions that are not supported
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
#: What unpacks to more than this is a bomb, unless it is large when packed as well.
_HARMLESS = 1 << 28
#: Text and numbers of evaluations shrink by less, when they are many.
_LARGEST_RATIO = 100
_MOST_ARRAYS = 10_000
_CHUNK = 1 << 20
#: How numpy writes the start of an array of plain numbers or text.
_HEADER = re.compile(
    rb"\x93NUMPY(?:\x01\0(?P<short>..)|\x02\0(?P<long>....))"
    rb"\{'descr': '(?P<type>[<>|=]?[?biufcmMSU]\d{0,9}(?:\[\w+\])?)', "
    rb"'fortran_order': (?:True|False), 'shape': \((?P<shape>[\d, ]*)\),? ?\} *\n",
    re.DOTALL,
)
_LONGEST_HEADER = 10_000


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Call ``write`` on a temporary file beside ``path``, then rename it into place.

    A new file gets the permissions that the umask allows; one that is replaced keeps its own. What
    is no file (a pipe, ``/dev/null``) is written to instead of being replaced. A link is replaced:
    whoever put it there does not say what is overwritten.
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
            if sys.platform == "win32":  # what is open cannot be renamed; elsewhere the lock lasts
                file.close()
            temporary.replace(path)
    except OSError as problem:
        raise unwritable(path, problem) from problem


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written, before hours are spent on what should go there."""
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
    """Remove what killed processes left of writing ``name`` (or any file) into ``folder``."""
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            if is_temporary(entry.name, name):
                with suppress(OSError), entry.open("rb") as file:
                    lock(file.fileno())  # fails while its writer lives
                    entry.unlink()


def is_temporary(entry: str, name: str = "") -> bool:
    """Return whether a file is called like the temporary one of ``name`` (or of any file)."""
    found = _TEMPORARY.fullmatch(entry)
    return found is not None and (not name or found["start"] == name[:_LONGEST_START])


def lock(handle: int, *, wait: bool = False) -> None:
    """Lock an open file or folder until it is closed.

    BlockingIOError says that another has the lock, any other OSError that there are no locks here,
    as on some network drives. On Windows nothing is locked: open files cannot be removed anyway.
    """
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def lock_of(folder: Path) -> Iterator[bool]:
    """Lock a folder for as long as the context lasts; yield False where another process has it."""
    with ExitStack() as stack:
        free = True
        try:
            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            lock(handle)
        except BlockingIOError:
            free = False
        except OSError:  # no locks here, and on Windows no open folders: nobody can tell
            pass
        yield free


def _is_stream(path: Path) -> bool:
    """Return whether to write to what is there: a pipe, a device, or ``/dev/stdout``."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    # A link in /dev may lead to a plain file, and is not to be replaced for that.
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or path.absolute().parent == _DEVICES


@contextmanager
def _temporary(target: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Yield a locked new file beside ``target``, and remove it unless it was renamed."""
    remove_leftovers(target.parent, target.name)
    while True:
        start = target.name[:_LONGEST_START]
        temporary = target.with_name(f".{start}.{secrets.token_hex(8)}.part")
        file = temporary.open("xb")
        with suppress(OSError):
            lock(file.fileno(), wait=True)
        # Until it was locked, another writer may have taken it for a leftover.
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
    """Return whether there is a file; False where that cannot be found out, too."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file fails on names that are too long


def names_in(folder: Path) -> list[str]:
    """Return the names of what is in a folder, sorted; none where it cannot be looked into."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are wanted
    except (OSError, ValueError):
        return []


def check_unpacked(where: str, packed: int, unpacked: int, hint: str) -> None:
    """Refuse what would become very large, and far larger than it is."""
    if unpacked > max(_HARMLESS, packed * _LARGEST_RATIO):
        raise FileError(
            f"{where} must not unpack to more than {_LARGEST_RATIO} times its size where that is "
            f"over {_HARMLESS:,} bytes, got {packed:,} bytes that become at least {unpacked:,}; "
            f"{hint}"
        )


def open_plain(path: Path) -> IO[bytes]:
    """Open a plain, ``.xz`` or ``.gz`` file for reading its plain content; a bomb is refused."""
    unpacker = {".xz": lzma.LZMAFile, ".gz": gzip.GzipFile}.get(path.suffix.lower())
    if unpacker is None:
        return path.open("rb")
    return io.BufferedReader(_Unpacked(unpacker(path), path), _CHUNK)


class _Unpacked(io.RawIOBase):
    """What comes out of a compressed file, counted."""

    def __init__(self, inner: lzma.LZMAFile | gzip.GzipFile, path: Path) -> None:
        self._inner, self._path, self._done = inner, path, 0
        self._packed = path.stat().st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        part = self._inner.read(len(buffer))
        self._done += len(part)
        check_unpacked(repr(str(self._path)), self._packed, self._done, "unpack it first")
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._inner.close()
        super().close()


def read_arrays(stream: IO[bytes], where: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an NPZ archive by name; ``where`` names it in messages."""
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
            _check_entries(entries, where)
            return {
                entry.filename.removesuffix(".npy"): _read_array(archive, entry)
                for entry in entries
            }
    except FileError:
        raise
    except DAMAGED as problem:
        raise FileError(f"cannot read {where} as NPZ: {problem}") from problem


def _check_entries(entries: list[zipfile.ZipInfo], where: str) -> None:
    names = {entry.filename for entry in entries}
    if len(names) != len(entries) or len(entries) > _MOST_ARRAYS:
        raise FileError(
            f"{where} must hold at most {_MOST_ARRAYS:,} arrays of different names, got "
            f"{len(entries):,} with {len(names):,} names"
        )
    packed = sum(entry.compress_size for entry in entries)
    unpacked = sum(entry.file_size for entry in entries)
    check_unpacked(where, packed, unpacked, "write it uncompressed (numpy.savez), or as counts")


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError(f"{entry.filename!r} is compressed in an unusual way")
    with archive.open(entry) as member:
        dtype, claimed, start = _read_header(member.read(_LONGEST_HEADER), entry.filename)
    if claimed != entry.file_size - start:
        raise ValueError(
            f"{entry.filename!r} claims an array of {claimed:,} bytes and holds "
            f"{entry.file_size - start:,}"
        )
    with archive.open(entry) as member:
        array: npt.NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    if dtype.kind == "U" and array.size:
        letters = array.ravel(order="K").view(f"{dtype.str[0]}u4")
        if letters.max() > sys.maxunicode:
            raise ValueError(f"{entry.filename!r} holds text that is none")
    return array


def _read_header(start: bytes, name: str) -> tuple[np.dtype[Any], int, int]:
    """Return the type of an array, how many bytes it claims to have, and where they start."""
    found = _HEADER.match(start)
    length = "short" if found and found["short"] else "long"
    if not found or int.from_bytes(found[length], "little") != found.end() - found.end(length):
        raise ValueError(
            f"{name!r} must be an array of plain numbers or text (objects would be pickles)"
        )
    try:
        dtype = np.dtype(found["type"].decode("ascii"))
    except TypeError as problem:
        raise ValueError(f"{name!r} has values of an unknown type") from problem
    if not dtype.itemsize:
        raise ValueError(f"{name!r} has values without a size")
    shape = [int(part) for part in found["shape"].split(b",") if part.strip()]
    return dtype, math.prod(shape) * dtype.itemsize, found.end()
