"""The files of a data set: where they lie on this machine, and what they must hold.

Nothing is downloaded: a message says where to get a missing file. The folder of the data sets is
``$UNSAMPLE_DATA``. A file is looked for in its ``NAME/original`` and ``NAME``, plain or compressed
(``.xz``, ``.gz``).
"""

from __future__ import annotations

import os
from pathlib import Path

from unsample._archives import DAMAGED, open_plain
from unsample.errors import FileError
from unsample.lab.datasets._registry import DataFile

_COMPRESSIONS = ("", ".xz", ".gz")


def locate(dataset: str, file: DataFile) -> Path | None:
    """Return where ``file`` lies on this machine, or None."""
    folder = _folder() / dataset
    names = [file.name + suffix for suffix in _COMPRESSIONS]
    places = (place / name for place in (folder / "original", folder) for name in names)
    return next((path for path in places if path.is_file()), None)


def read_verified(dataset: str, file: DataFile) -> bytes:
    """Return the plain content of a file, whose checksum must be the published one."""
    path = locate(dataset, file)
    if path is None:
        raise FileError(
            f"{dataset} needs {file.name}, which is not under UNSAMPLE_DATA; get it from "
            f"{file.address} and put it into {str(_folder() / dataset)!r}"
        )
    try:
        with open_plain(path) as stream:
            content = stream.read()
    except DAMAGED as problem:
        raise FileError(
            f"cannot read {str(path)!r}: {problem}; provide the file again"
        ) from problem
    got = file.checksum_of(content)
    if got != file.checksum:
        raise FileError(
            f"{path} must hold the published {file.name}: expected {file.checksum}, got {got} "
            f"({len(content):,} bytes); get it from {file.address}"
        )
    return content


def _folder() -> Path:
    """Return the folder of the data sets."""
    named = os.environ.get("UNSAMPLE_DATA", "")
    folder = Path(named).expanduser()
    if not named or not folder.is_dir():
        raise FileError(f"UNSAMPLE_DATA must name a folder of data sets, got {named!r}; set it")
    return folder
