"""The files of a data set: where they are, what they must hold, and how to fetch missing ones.

A file is looked for in ``$UNSAMPLE_DATA/NAME/original``, in ``$UNSAMPLE_DATA/NAME``, and in the
folder of downloads, plain or compressed (``.xz``, ``.gz``). Files of the user are only ever read. A
download is verified in memory before it gets its name, so the folder holds nothing half-fetched.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from unsample._archives import DAMAGED, open_plain
from unsample._checks import import_extra
from unsample._files import unwritable, write_atomically
from unsample.errors import ChecksumError, DownloadError, FileError
from unsample.lab.datasets._registry import DataFile, record

_COMPRESSIONS = ("", ".xz", ".gz")
_TIMEOUT_SECONDS = 30


def fetch(name: str) -> dict[str, Path]:
    """Download what is missing or damaged of a public data set and return where its files lie."""
    dataset = record(name)
    found = {}
    for file in dataset.wanted:
        read_verified(name, dataset.files[file])
        path = locate(name, dataset.files[file])
        assert path is not None
        found[file] = path
    return found


def locate(dataset: str, file: DataFile) -> Path | None:
    """Return where ``file`` lies on this machine, or None."""
    folders = [cache_folder() / dataset]
    if provided := _provided_folder():
        folders = [provided / dataset / "original", provided / dataset, *folders]
    places = (folder / (file.name + suffix) for folder in folders for suffix in _COMPRESSIONS)
    return next((path for path in places if path.is_file()), None)


def read_verified(dataset: str, file: DataFile) -> bytes:
    """Return the plain content of a file; without a whole one on this machine, download it."""
    path, provided = locate(dataset, file), _provided_folder()
    if path is not None:
        try:
            return _read(path, file)
        except ChecksumError:
            if provided is not None and path.is_relative_to(provided):
                raise
    content = _verified(_downloaded(dataset, file), file, file.address)
    folder = cache_folder() / dataset
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(folder, problem) from problem
    write_atomically(folder / file.name, lambda stream: stream.write(content))
    return content


def cache_folder() -> Path:
    """Return the folder of downloads: ``$UNSAMPLE_CACHE``, or the platform's own."""
    named = os.environ.get("UNSAMPLE_CACHE")
    if named:
        return Path(named).expanduser()
    pooch = import_extra("pooch", extra="data", purpose="the folder of downloads")
    return Path(pooch.os_cache("unsample"))


def _provided_folder() -> Path | None:
    provided = os.environ.get("UNSAMPLE_DATA")
    if not provided:
        return None
    folder = Path(provided).expanduser()
    if not folder.is_dir():
        raise FileError(
            f"UNSAMPLE_DATA must name a folder that holds NAME/original, got {provided!r}"
        )
    return folder


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
            f"({len(content):,} bytes); provide the original file"
        )
    return content


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
