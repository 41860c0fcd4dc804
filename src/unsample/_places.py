"""The files of a path, a pattern or a folder; the command line checks them before it loads more."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from unsample._files import is_file, names_in
from unsample._rules import suggest
from unsample.errors import FileError

#: Longer patterns take seconds to parse, and no path is so long.
_LONGEST_PATTERN = 1024


def find_files(path: str) -> list[Path]:
    """Return the sorted files of a path, a pattern or a folder; at least one.

    A folder means all files below it, except names that start with ``_`` or ``.``: these are marks
    and checksums of the program that wrote it. A path that is neither file nor folder is a pipe.
    """
    if is_file(path):
        return [Path(path)]  # its name may contain a bracket
    if "://" in path:
        raise FileError(
            f"source must be on this machine, got {path!r}; fetch it first, or open it as a frame "
            "(duckdb.read_parquet, polars.scan_parquet, spark.read)"
        )
    if os.path.isdir(path):  # noqa: PTH112 - as is_file
        found = sorted(Path(path).rglob("*"))
    elif glob.has_magic(path):
        found = _matches(path)
    elif os.path.exists(path):  # noqa: PTH110 - as is_file
        return [Path(path)]
    else:
        found = []
    files = [file for file in found if is_file(file) and file.name[0] not in "._"]
    if not files:
        if os.path.isdir(path):  # noqa: PTH112 - as is_file
            raise FileError(f"there is no file in the folder {path!r}")
        # A name is not suggested if only its ending is similar.
        near = suggest(Path(path).name, names_in(Path(path).parent), near=0.75)
        what = "no file matches" if glob.has_magic(path) else "there is no file"
        raise FileError(f"{what} {path!r}; {near or 'check its name and its folder'}")
    return files


def _matches(pattern: str) -> list[Path]:
    if len(pattern) > _LONGEST_PATTERN:
        raise FileError(
            f"a pattern of files must have at most {_LONGEST_PATTERN:,} letters, got "
            f"{len(pattern):,}; give their folder"
        )
    try:
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - Path.glob needs a root
    except (OSError, re.error) as problem:
        raise FileError(f"{pattern!r} must be a pattern of files: {problem}") from problem
    return [Path(path) for path in sorted(found)]
