"""Where the files of a data set lie on this machine, and reading them with their checksums.

A file is looked for in ``$UNSAMPLE_DATA/NAME/original``, in ``$UNSAMPLE_DATA/NAME``, and in the
folder of downloads, plain or compressed (``.xz``, ``.gz``). Files of the user are only ever read; a
download that turns out wrong is kept aside as ``.corrupt``.
"""

from __future__ import annotations

import lzma
import os
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from unsample._checks import import_extra
from unsample._files import open_plain
from unsample.errors import ChecksumError, FileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unsample.lab.datasets._registry import DataFile

__all__ = [
    "COMPRESSIONS",
    "cache_folder",
    "check",
    "locate",
    "read",
    "read_local",
    "set_aside",
]

COMPRESSIONS = (".xz", ".gz")


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of downloads: ``cache``, ``$UNSAMPLE_CACHE``, or the platform's own."""
    chosen = cache or os.environ.get("UNSAMPLE_CACHE")
    found = _platform_folder() if not chosen else _expanded(chosen)
    if found is None:
        raise FileError(
            f"the folder of downloads must be known, got {str(chosen or '')!r}, and there is no "
            "home folder; set UNSAMPLE_CACHE to a folder that can be written to"
        )
    return found


def _platform_folder() -> Path | None:
    """Return the folder that the platform has for such files, or None for users without a home."""
    pooch = import_extra("pooch", extra="data", purpose="the folder of downloads")
    try:
        return _expanded(pooch.os_cache("unsample"))
    except RuntimeError:
        return None


def _expanded(path: str | os.PathLike[str]) -> Path | None:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # a home that cannot be found
        return None


def locate(
    dataset: str, file: DataFile, cache: str | os.PathLike[str] | None = None
) -> Path | None:
    """Return where ``file`` lies on this machine, or None."""
    for folder in _folders(dataset, cache):
        for suffix in ("", *COMPRESSIONS):
            path = folder / (file.name + suffix)
            if _is_file(path):
                return path
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as problem:  # not to be told from where we stand
        raise FileError(
            f"cannot look for {str(path)!r}: {problem.strerror}; set UNSAMPLE_CACHE (or "
            "UNSAMPLE_DATA) to a folder that you may read"
        ) from problem


def read_local(
    dataset: str,
    file: DataFile,
    cache: str | os.PathLike[str] | None = None,
    *,
    verify: bool = True,
) -> tuple[Path, bytes] | None:
    """Return where ``file`` lies and its verified content, or None where it is not at hand."""
    path = locate(dataset, file, cache)
    if path is None:
        return None
    content = read(path, file.limit)
    try:
        if verify:
            check(content, file, str(path))
    except ChecksumError as problem:
        if not _is_download(path, cache):
            raise ChecksumError(f"{problem}; provide the original file") from problem
        raise ChecksumError(
            f"{problem}; {set_aside(path)}; get it again with: unsample datasets fetch {dataset}"
        ) from problem
    return path, content


def read(path: Path, limit: int) -> bytes:
    """Return the plain content of ``path``, or one byte more than ``limit`` where it goes on."""
    try:
        with open_plain(path) as stream:
            return stream.read(limit + 1)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as problem:
        raise FileError(
            f"cannot read {str(path)!r}: {problem}; provide the file again"
        ) from problem


def check(content: bytes, file: DataFile, where: str) -> None:
    """Refuse content whose checksum is not the published one."""
    if len(content) > file.limit:
        raise ChecksumError(
            f"{where} must hold the published {file.name} of at most {file.limit:,} bytes, got more"
        )
    got = file.checksum_of(content)
    if got != file.checksum:
        raise ChecksumError(
            f"{where} must hold the published {file.name}: expected {file.checksum}, got {got} "
            f"({len(content):,} bytes)"
        )


def _is_download(path: Path, cache: str | os.PathLike[str] | None) -> bool:
    provided = os.environ.get("UNSAMPLE_DATA")
    if provided and path.is_relative_to(Path(os.path.expanduser(provided))):  # noqa: PTH111
        return False
    return path.is_relative_to(cache_folder(cache))


def set_aside(path: Path) -> str:
    """Rename a wrong file so that it can be looked at but is not read again; say where it is."""
    aside = path.with_name(path.name.removesuffix(".part") + ".corrupt")
    try:
        return f"it is kept in {str(path.replace(aside))!r}"
    except OSError as problem:
        return f"it cannot be set aside ({problem.strerror}), delete {str(path)!r}"


def _folders(dataset: str, cache: str | os.PathLike[str] | None) -> Iterator[Path]:
    provided = os.environ.get("UNSAMPLE_DATA")
    if provided:
        root = Path(os.path.expanduser(provided))  # noqa: PTH111 - as it is where nobody is at home
        if not os.path.isdir(root):  # noqa: PTH112 - false, not an error, where one may not look
            raise FileError(
                f"UNSAMPLE_DATA must name a folder that holds {dataset}/original, got {provided!r}"
            )
        yield root / dataset / "original"
        yield root / dataset
    if cache or os.environ.get("UNSAMPLE_CACHE"):
        yield cache_folder(cache) / dataset
    # Without pooch, or without a home, nothing was ever downloaded into the platform's folder.
    elif find_spec("pooch") and (found := _platform_folder()):
        yield found / dataset
