"""Archives of arrays, and compressed files.

Files of others are not trusted: no pickles, and nothing that unpacks without end.
"""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import sys
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from unsample.errors import FileError

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
    hint = "write it uncompressed (numpy.savez), or as counts"
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
        packed = sum(entry.compress_size for entry in entries)
        check_unpacked(where, packed, sum(entry.file_size for entry in entries), hint)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as arrays:
            return {name: _plain(name, arrays[name]) for name in arrays.files}
    except FileError:
        raise
    except Exception as problem:  # numpy evaluates headers, in which anything may be wrong
        raise FileError(f"cannot read {where} as NPZ: {problem}") from problem


def write_arrays(stream: IO[bytes], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write an NPZ archive: the same arrays give the same bytes, and fewer than NumPy's own."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_LZMA
            with archive.open(entry, "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _plain(name: str, array: Any) -> npt.NDArray[Any]:
    """Refuse what is no array, has values without a size, or holds text that is none."""
    if not isinstance(array, np.ndarray) or (array.size and not array.itemsize):
        raise ValueError(f"{name!r} must be an array of plain numbers or text")
    if array.dtype.kind == "U" and array.size:
        letters = array.ravel(order="K").view(f"{array.dtype.str[0]}u4")
        if letters.max() > sys.maxunicode:
            raise ValueError(f"{name!r} holds text that is none")
    return array
