"""Archives of arrays, and compressed files.

Files may come from anybody: no pickles are read, and nothing that unpacks without end.
"""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from unsample._files import ARCHIVE_ENDINGS, check_ending, is_file, write_atomically
from unsample.errors import FileError, UnsampleError

#: What the standard library raises when a compressed file or an archive is damaged.
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    OverflowError,
    RuntimeError,  # encrypted members, and unsupported compression
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
#: A file that unpacks to more bytes is a bomb, unless it is also large when packed.
_HARMLESS = 1 << 28
#: Large files of an evaluation are text and numbers, which compress by less than this.
_LARGEST_RATIO = 100
_CHUNK = 1 << 20
#: Members of an archive that may reach 2 GB get a longer header.
_LARGE = 1 << 30


def check_unpacked(where: str, packed: int, unpacked: int, hint: str) -> None:
    """Refuse what would unpack to a very large size, far larger than when packed."""
    if unpacked > max(_HARMLESS, packed * _LARGEST_RATIO):
        raise FileError(
            f"{where} must not unpack to more than {_LARGEST_RATIO} times its size where that is "
            f"over {_HARMLESS:,} bytes, got {packed:,} bytes that become at least {unpacked:,}; "
            f"{hint}"
        )


def open_plain(path: Path) -> IO[bytes]:
    """Return an open plain, ``.xz`` or ``.gz`` file that reads as plain content; refuse a bomb."""
    unpacker = {".xz": lzma.LZMAFile, ".gz": gzip.GzipFile}.get(path.suffix.lower())
    if unpacker is None:
        return path.open("rb")
    return io.BufferedReader(_Unpacked(unpacker(path), path), _CHUNK)


class _Unpacked(io.RawIOBase):
    """The content of a compressed file, counted while it is read."""

    def __init__(self, inner: lzma.LZMAFile | gzip.GzipFile, path: Path) -> None:
        self._inner = inner
        self._path = path
        self._unpacked = 0
        self._packed = path.stat().st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        part = self._inner.read(len(buffer))
        self._unpacked += len(part)
        check_unpacked(repr(str(self._path)), self._packed, self._unpacked, hint="unpack it first")
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._inner.close()
        super().close()


def read_arrays(stream: IO[bytes], where: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an NPZ archive by name; ``where`` names it in messages."""
    hint = "write it uncompressed (numpy.savez), or as counts"
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
        packed = sum(entry.compress_size for entry in entries)
        check_unpacked(where, packed, sum(entry.file_size for entry in entries), hint=hint)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as arrays:
            return {name: _plain(name, arrays[name]) for name in arrays.files}
    except FileError:
        raise
    except Exception as problem:  # numpy evaluates headers, in which anything may be wrong
        said = str(problem)
        if "allow_pickle" in said:
            said = "it holds Python objects; save numbers, or text as array.astype(str)"
        raise FileError(f"cannot read {where} as NPZ: {said}") from problem


def save_archive(
    path: Path, write: Callable[[IO[bytes]], object], *, read: Callable[[Path], object]
) -> None:
    """Write an NPZ archive, whole or not at all; replace only a file that ``read`` takes.

    Ranks are read from files of the same ending, and must not become what was made of them.
    """
    check_ending("path", path, ARCHIVE_ENDINGS)
    if is_file(path) and path.stat().st_size:
        try:
            read(path)
        except (OSError, UnsampleError) as problem:
            raise FileError(
                f"path must be new, or a file that was saved here before, got {str(path)!r}, which "
                f"holds something else ({problem}); choose another name"
            ) from problem
    write_atomically(path, write)


def write_arrays(
    stream: IO[bytes],
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    compression: int = zipfile.ZIP_DEFLATED,
) -> None:
    """Write an NPZ archive: the same arrays give the same bytes."""
    with _new_archive(stream) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = compression
            with archive.open(entry, "w", force_zip64=array.nbytes > _LARGE) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


@contextmanager
def _new_archive(stream: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Yield a new archive; an error inside, such as Ctrl-C, is raised as it is.

    An archive cannot be closed while a member is written. The error of closing it would hide the
    first one.
    """
    archive = zipfile.ZipFile(stream, "w")
    try:
        yield archive
    except BaseException:
        archive.fp = None  # so it counts as closed
        raise
    archive.close()


def _plain(name: str, array: Any) -> npt.NDArray[Any]:
    """Return an array of numbers or text; refuse anything else, and text that is not Unicode."""
    if not isinstance(array, np.ndarray) or (array.size and not array.itemsize):
        raise ValueError(f"{name!r} must be an array of plain numbers or text")
    if array.dtype.kind == "U" and array.size:
        letters = array.ravel(order="K").view(f"{array.dtype.str[0]}u4")
        if letters.max() > sys.maxunicode:
            raise ValueError(f"{name!r} holds text that is not Unicode")
    return array
