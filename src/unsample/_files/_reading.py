"""Reading foreign files without trusting them.

Archives of arrays are read without numpy's own reader: it evaluates headers, allocates what they
claim, and would open pickles if it were told to. Here a header is matched against its grammar, and
an array takes no more memory than the archive really holds for it.
"""

from __future__ import annotations

import gzip
import io
import lzma
import math
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample.errors import FileError

__all__ = [
    "DAMAGED",
    "check_unpacked",
    "is_file",
    "names_in",
    "open_plain",
    "read_arrays",
]

#: What the standard library raises when a compressed file or an archive is damaged.
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    IndexError,
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

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000
_TYPE = re.compile(rb"""['"]descr['"]\s*:\s*['"]([<>|=]?[?biufcmMSU]\d{0,9}(?:\[\w+\])?)['"]""")
_ORDER = re.compile(rb"""['"]fortran_order['"]\s*:\s*(True|False)""")
_SHAPE = re.compile(rb"""['"]shape['"]\s*:\s*\(([\d,\s]*)\)""")


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


# -- compressed text ----------------------------------------------------------------------------

_Packed: TypeAlias = lzma.LZMAFile | gzip.GzipFile
_UNPACKERS: dict[str, Callable[[Path], _Packed]] = {".xz": lzma.LZMAFile, ".gz": gzip.GzipFile}


def open_plain(path: Path) -> IO[bytes]:
    """Open a plain, ``.xz`` or ``.gz`` file for reading its plain content; a bomb is refused."""
    unpacker = _UNPACKERS.get(path.suffix.lower())
    if unpacker is None:
        return path.open("rb")
    return io.BufferedReader(_Unpacked(unpacker(path), path), _CHUNK)


class _Unpacked(io.RawIOBase):
    """What comes out of a compressed file, counted."""

    def __init__(self, inner: _Packed, path: Path) -> None:
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


# -- arrays -------------------------------------------------------------------------------------


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
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names) or len(names) > _MOST_ARRAYS:
        raise FileError(
            f"{where} must hold at most {_MOST_ARRAYS:,} arrays of different names, got "
            f"{len(names):,} with {len(set(names)):,} names"
        )
    check_unpacked(
        where,
        sum(entry.compress_size for entry in entries),
        sum(entry.file_size for entry in entries),
        "write it uncompressed (numpy.savez), or as counts",
    )


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError(f"{entry.filename!r} is compressed in an unusual way")
    with archive.open(entry) as member:
        dtype, shape, order = _read_header(member, entry.filename)
        size = math.prod(shape) * dtype.itemsize
        if size != entry.file_size - member.tell():
            raise ValueError(
                f"{entry.filename!r} claims an array of {size:,} bytes and holds "
                f"{entry.file_size - member.tell():,}"
            )
        content = np.empty(size, dtype=np.uint8)
        for start in range(0, size, _CHUNK):
            part = member.read(min(_CHUNK, size - start))
            content[start : start + len(part)] = np.frombuffer(part, dtype=np.uint8)
            if len(part) < min(_CHUNK, size - start):
                raise EOFError(f"{entry.filename!r} ends early")
    if dtype.kind == "U" and size and content.view(dtype.str[0] + "u4").max() > sys.maxunicode:
        raise ValueError(f"{entry.filename!r} holds text that is none")
    return content.view(dtype).reshape(shape, order=order)


def _read_header(member: IO[bytes], name: str) -> tuple[np.dtype[Any], tuple[int, ...], Any]:
    magic = member.read(len(_MAGIC) + 2)
    width, layout = (2, "<H") if magic[-2:] == b"\x01\x00" else (4, "<I")
    if magic[:-2] != _MAGIC:
        raise ValueError(f"{name!r} is no array")
    (length,) = struct.unpack(layout, member.read(width))
    header = member.read(min(length, _LONGEST_HEADER))
    described, ordered, shaped = (p.search(header) for p in (_TYPE, _ORDER, _SHAPE))
    if length > _LONGEST_HEADER or not (described and ordered and shaped):
        raise ValueError(
            f"{name!r} must be an array of plain numbers or text (objects would be pickles)"
        )
    try:
        dtype = np.dtype(described[1].decode("ascii"))
    except TypeError as problem:
        raise ValueError(f"{name!r} has values of an unknown type") from problem
    if not dtype.itemsize:
        raise ValueError(f"{name!r} has values without a size")
    shape = tuple(int(part) for part in shaped[1].split(b",") if part.strip())
    return dtype, shape, "F" if ordered[1] == b"True" else "C"
