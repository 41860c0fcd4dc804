"""The files of a data set: where they are, what they must hold, and how to fetch missing ones.

A file is looked for in ``$UNSAMPLE_DATA/NAME/original``, in ``$UNSAMPLE_DATA/NAME``, and in the
folder of downloads, plain or compressed (``.xz``, ``.gz``). Files of the user are only ever read. A
download is verified in memory before it gets its name, so the folder holds nothing half-fetched.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from unsample._archives import DAMAGED, open_plain
from unsample._checks import import_extra
from unsample._files import check_writable, unwritable, write_atomically
from unsample.errors import ChecksumError, DownloadError, FileError
from unsample.lab.datasets._registry import DataFile, record

_COMPRESSIONS = ("", ".xz", ".gz")
_TIMEOUT_SECONDS = 30


def fetch(name: str) -> dict[str, Path]:
    """Download what is missing of a public data set and return where its files lie.

    Files that are there already, also under ``$UNSAMPLE_DATA``, are verified and not fetched again.
    A damaged download is replaced.
    """
    dataset = record(name)
    return {file: _fetched(name, dataset.files[file]) for file in dataset.wanted}


def locate(dataset: str, file: DataFile) -> Path | None:
    """Return where ``file`` lies on this machine, or None."""
    places = (
        folder / (file.name + suffix) for folder in _folders(dataset) for suffix in _COMPRESSIONS
    )
    return next((path for path in places if path.is_file()), None)


def read_verified(dataset: str, file: DataFile) -> bytes:
    """Return the plain content of a file, which is fetched where it is not on this machine."""
    path = locate(dataset, file) or _fetched(dataset, file)
    try:
        return _read(path, file)
    except ChecksumError as problem:
        advice = "provide the original file"
        if not _is_provided(path):
            advice = f"get it again with: python -m unsample.lab fetch {dataset}"
        raise ChecksumError(f"{problem}; {advice}") from problem


def cache_folder() -> Path:
    """Return the folder of downloads: ``$UNSAMPLE_CACHE``, or the platform's own."""
    named = os.environ.get("UNSAMPLE_CACHE")
    if named:
        return Path(named).expanduser()
    pooch = import_extra("pooch", extra="data", purpose="the folder of downloads")
    return Path(pooch.os_cache("unsample"))


def _folders(dataset: str) -> Iterator[Path]:
    provided = os.environ.get("UNSAMPLE_DATA")
    if provided:
        folder = Path(provided).expanduser()
        if not folder.is_dir():
            raise FileError(
                f"UNSAMPLE_DATA must name a folder that holds {dataset}/original, got {provided!r}"
            )
        yield folder / dataset / "original"
        yield folder / dataset
    yield cache_folder() / dataset


def _is_provided(path: Path) -> bool:
    provided = os.environ.get("UNSAMPLE_DATA")
    return provided is not None and path.is_relative_to(Path(provided).expanduser())


def _read(path: Path, file: DataFile) -> bytes:
    try:
        with open_plain(path) as stream:
            content = stream.read(file.size + 1)  # one byte more shows that the file is too long
    except DAMAGED as problem:
        raise FileError(
            f"cannot read {str(path)!r}: {problem}; provide the file again"
        ) from problem
    return _verified(content, file, str(path))


def _verified(content: bytes, file: DataFile, where: str) -> bytes:
    """Return content whose checksum is the published one."""
    got = file.checksum_of(content)
    if got != file.checksum:
        raise ChecksumError(
            f"{where} must hold the published {file.name}: expected {file.checksum}, got {got} "
            f"({len(content):,} bytes)"
        )
    return content


def _fetched(dataset: str, file: DataFile) -> Path:
    """Return where a verified file lies, which is downloaded where there is none."""
    path = locate(dataset, file)
    if path is not None:
        try:
            _read(path, file)
        except ChecksumError:
            if _is_provided(path):
                raise
        else:
            return path
    folder = cache_folder() / dataset
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(folder, problem) from problem
    check_writable(folder / file.name)
    content = _verified(_downloaded(dataset, file), file, file.address)
    write_atomically(folder / file.name, lambda stream: stream.write(content))
    return folder / file.name


def _downloaded(dataset: str, file: DataFile) -> bytes:
    """Return what the address of ``file`` holds, unpacked."""
    pooch = import_extra("pooch", extra="data", purpose="downloading data sets")
    content = io.BytesIO()
    try:
        pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS)(file.address, content, None)
    except (OSError, ValueError) as problem:  # what requests raises
        raise DownloadError(
            f"cannot download {file.address}: {problem}; try again, or get the file by other means "
            f"and set UNSAMPLE_DATA to the folder that holds {dataset}/original/{file.name}"
        ) from problem
    if not file.member:
        return content.getvalue()
    try:
        with zipfile.ZipFile(content) as archive, archive.open(file.member) as stream:
            return stream.read(file.size + 1)
    except DAMAGED as problem:
        raise FileError(
            f"{file.address} must be a zip archive that holds {file.member}: {problem}"
        ) from problem
