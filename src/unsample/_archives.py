"""Read files of others, which are not trusted.

A file must not unpack to far more than its size. Arrays are read by numpy, which evaluates headers
and allocates what they claim. So numpy gets only headers of plain arrays, and only if the archive
holds as many bytes as they claim.
"""

from __future__ import annotations

import gzip
import io
import lzma
import math
import re
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from unsample.errors import FileError

#: What the standard library and numpy raise when a compressed file or an archive is damaged.
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
    """Return the type of an array, how many bytes it claims to have, and where these start."""
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
