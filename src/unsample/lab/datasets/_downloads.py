"""The files of a data set: where they are, what they must hold, and how to fetch missing ones.

The folder of the data sets is ``$UNSAMPLE_DATA``, or the platform's own for downloads. A file is
looked for in its ``NAME/original`` and ``NAME``, plain or compressed (``.xz``, ``.gz``), and is
never replaced. A download is verified in memory before it gets its name, so the folder holds
nothing half-fetched.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from unsample._archives import DAMAGED, open_plain
from unsample._checks import import_extra
from unsample._files import unwritable, write_atomically
from unsample.errors import DownloadError, FileError
from unsample.lab.datasets._records import DataFile, record

_COMPRESSIONS = ("", ".xz", ".gz")
_TIMEOUT_SECONDS = 30
#: No file of the registry is larger.
_LARGEST_FILE = 1 << 28


def fetch(name: str) -> dict[str, Path]:
    """Download what is missing of a public data set, check it, and return where its files lie."""
    dataset = record(name)
    files = [dataset.files[wanted] for wanted in dataset.wanted]
    for file in files:
        read_verified(name, file)
    return {file.name: path for file in files if (path := locate(name, file)) is not None}


def locate(dataset: str, file: DataFile) -> Path | None:
    """Return where ``file`` lies on this machine, or None."""
    folder = _folder() / dataset
    names = [file.name + suffix for suffix in _COMPRESSIONS]
    paths = (parent / name for parent in (folder / "original", folder) for name in names)
    return next((path for path in paths if path.is_file()), None)


def read_verified(dataset: str, file: DataFile) -> bytes:
    """Return the plain content of a file; where it is not on this machine, download it."""
    path = locate(dataset, file)
    if path is None:
        return _downloaded(dataset, file)
    try:
        with open_plain(path) as stream:
            content = stream.read()
    except DAMAGED as problem:
        raise FileError(
            f"cannot read {str(path)!r}: {problem}; provide the file again"
        ) from problem
    return _verified(content, file, where=str(path))


def _folder() -> Path:
    """Return the folder of the data sets."""
    named = os.environ.get("UNSAMPLE_DATA")
    if not named:
        pooch = import_extra("pooch", extra="data", purpose="the folder of downloads")
        return Path(pooch.os_cache("unsample"))
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise FileError(f"UNSAMPLE_DATA must name a folder for data sets, got {named!r}; make it")
    return folder


def _verified(content: bytes, file: DataFile, *, where: str) -> bytes:
    """Return content whose checksum is the published one."""
    got = file.checksum_of(content)
    if got != file.checksum:
        raise FileError(
            f"{where} must hold the published {file.name}: expected {file.checksum}, got {got} "
            f"({len(content):,} bytes); provide the original file, or delete it and download it"
        )
    return content


def _downloaded(dataset: str, file: DataFile) -> bytes:
    """Return what the address of ``file`` holds, unpacked, and keep it."""
    pooch = import_extra("pooch", extra="data", purpose="downloading data sets")
    body = io.BytesIO()
    try:
        pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS)(file.address, body, None)
    except (OSError, ValueError) as problem:  # what requests raises
        raise DownloadError(
            f"cannot download {file.address}: {problem}; try again, or get the file by other means "
            f"and set UNSAMPLE_DATA to the folder that holds {dataset}/original/{file.name}"
        ) from problem
    content = _verified(_unpacked(body, file), file, where=file.address)
    folder = _folder() / dataset
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(folder, problem) from problem
    write_atomically(folder / file.name, lambda stream: stream.write(content))
    return content


def _unpacked(body: io.BytesIO, file: DataFile) -> bytes:
    """Return the content of a file, out of its archive if it is in one."""
    if not file.member:
        return body.getvalue()
    try:
        with zipfile.ZipFile(body) as archive, archive.open(file.member) as stream:
            return stream.read(_LARGEST_FILE)
    except DAMAGED as problem:
        raise FileError(
            f"{file.address} must be a zip archive that holds {file.member}: {problem}"
        ) from problem
