"""The files of a data set: where they are, what they must hold, and how to fetch missing ones.

A file is looked for in ``$UNSAMPLE_DATA/NAME/original``, in ``$UNSAMPLE_DATA/NAME``, and in the
folder of downloads, plain or compressed (``.xz``, ``.gz``). Files of the user are only ever read. A
download is verified in memory before it gets its name, so the folder holds nothing half-fetched.
"""

from __future__ import annotations

import io
import lzma
import os
import stat
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from unsample._archives import DAMAGED, open_plain
from unsample._checks import import_extra
from unsample._files import check_writable, unwritable, write_atomically
from unsample.errors import ChecksumError, DownloadError, FileError
from unsample.lab.datasets._registry import LARGEST_FILE, DataFile, Record, record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: Called with the name of the file, the bytes there so far, and all bytes where that is known.
Progress: TypeAlias = "Callable[[str, int, int | None], None]"

COMPRESSIONS = (".xz", ".gz")
_CHUNK = 1 << 16
_TIMEOUT_SECONDS = 30
#: What an address must begin with; the tests' own server speaks plain http.
_SCHEMES = ("https://",)


# -- on this machine --------------------------------------------------------------------------


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of downloads: ``cache``, ``$UNSAMPLE_CACHE``, or the platform's own."""
    chosen = cache or os.environ.get("UNSAMPLE_CACHE")
    found = _expanded(chosen) if chosen else _platform_folder()
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
    except OSError as problem:  # a folder that may not be read
        raise FileError(
            f"cannot look for {str(path)!r}: {problem.strerror}; set UNSAMPLE_CACHE (or "
            "UNSAMPLE_DATA) to a folder that you may read"
        ) from problem


def _folders(dataset: str, cache: str | os.PathLike[str] | None) -> Iterator[Path]:
    provided = _provided()
    if provided is not None:
        if not os.path.isdir(provided):  # noqa: PTH112 - false, not an error, where one may not look
            raise FileError(
                f"UNSAMPLE_DATA must name a folder that holds {dataset}/original, got "
                f"{os.environ['UNSAMPLE_DATA']!r}"
            )
        yield provided / dataset / "original"
        yield provided / dataset
    if cache or os.environ.get("UNSAMPLE_CACHE"):
        yield cache_folder(cache) / dataset
    # Without pooch, or without a home, nothing was ever downloaded into the platform's folder.
    elif find_spec("pooch") and (found := _platform_folder()):
        yield found / dataset


def _provided() -> Path | None:
    """Return the folder of files that the user provides."""
    named = os.environ.get("UNSAMPLE_DATA")
    # Unlike `_expanded`, this keeps the path as it is where there is no home folder.
    return Path(os.path.expanduser(named)) if named else None  # noqa: PTH111


def read_local(
    dataset: str,
    file: DataFile,
    cache: str | os.PathLike[str] | None = None,
    *,
    verify: bool = True,
) -> tuple[Path, bytes] | None:
    """Return the path of ``file`` and its verified content, or None if it is not found."""
    path = locate(dataset, file, cache)
    if path is None:
        return None
    try:
        with open_plain(path) as stream:
            content = stream.read(file.limit + 1)  # one byte more shows that the file is too long
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as problem:
        raise FileError(
            f"cannot read {str(path)!r}: {problem}; provide the file again"
        ) from problem
    try:
        if verify:
            check(content, file, str(path))
    except ChecksumError as problem:
        advice = "provide the original file"
        if _is_download(path):
            advice = f"get it again with: python -m unsample.lab fetch {dataset}"
        raise ChecksumError(f"{problem}; {advice}") from problem
    return path, content


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


def _is_download(path: Path) -> bool:
    provided = _provided()
    return provided is None or not path.is_relative_to(provided)


# -- fetching ---------------------------------------------------------------------------------


def fetch(
    name: str, *, cache: str | os.PathLike[str] | None = None, progress: Progress | None = None
) -> dict[str, Path]:
    """Download what is missing of a public data set and return where its files lie.

    Parameters
    ----------
    name
        One of `names`.
    cache
        The folder of downloads; by default ``$UNSAMPLE_CACHE`` or the platform's own.
    progress
        Called as ``progress(file, done, total)`` with bytes; ``total`` may be None.

    Files that are there already, also under ``$UNSAMPLE_DATA``, are verified and not fetched again.
    A damaged download is replaced.
    """
    dataset = record(name)
    return fetch_files(dataset, dataset.wanted, cache=cache, progress=progress)


def fetch_files(
    dataset: Record,
    files: Iterable[str],
    *,
    cache: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> dict[str, Path]:
    """Download what is missing of the named files of a data set; see `fetch`."""
    return {
        name: _at_hand(dataset.name, dataset.files[name], cache)
        or _obtain(dataset.files[name], cache_folder(cache) / dataset.name, progress)
        for name in files
    }


def _at_hand(name: str, file: DataFile, cache: str | os.PathLike[str] | None) -> Path | None:
    try:
        found = read_local(name, file, cache)
    except ChecksumError:
        path = locate(name, file, cache)
        if path is not None and not _is_download(path):
            raise
        return None
    return None if found is None else found[0]


def _obtain(file: DataFile, folder: Path, progress: Progress | None) -> Path:
    """Download ``file``, verify its content, and only then write it into ``folder``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(folder, problem) from problem
    check_writable(folder / file.name)
    content = _download(file, folder.name, progress)
    if file.member:
        content = unzipped(content, file)
    check(content, file, file.address)
    write_atomically(folder / file.name, lambda stream: stream.write(content))
    return folder / file.name


class _Watcher:
    """Watches a download of pooch, and ends one that is redirected elsewhere or grows too large."""

    total: int
    response: Any = None

    def __init__(self, file: DataFile, progress: Progress | None) -> None:
        self._file, self._progress, self._done = file, progress, 0
        self._limit = LARGEST_FILE if file.member else file.limit

    def receive(self, response: Any, *_: Any, **__: Any) -> None:
        """Look at an answer before it is followed or read."""
        self.response = response
        target = response.headers.get("location", "")
        if "://" in target:  # others stay on the server that was asked
            _check_scheme(target)

    def update(self, size: int) -> None:
        self._done += size
        if self._done - _CHUNK >= self._limit:  # the last chunk counts as a whole one
            raise DownloadError(
                f"{self._file.name} must have at most {self._limit:,} bytes, the server sends "
                "more; its address may hold something else by now; get the file by other means, "
                "and set UNSAMPLE_DATA to its folder"
            )
        if self._progress:
            done = min(self._done, self.total) if self.total else self._done
            self._progress(self._file.name, done, self.total or None)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


def _download(file: DataFile, dataset: str, progress: Progress | None) -> bytes:
    """Return what the address of ``file`` holds."""
    _check_scheme(file.address)
    pooch = import_extra("pooch", extra="data", purpose="downloading data sets")
    watcher, content = _Watcher(file, progress), io.BytesIO()
    downloader = pooch.HTTPDownloader(
        progressbar=watcher,
        chunk_size=_CHUNK,
        timeout=_TIMEOUT_SECONDS,
        hooks={"response": watcher.receive},
    )
    try:
        downloader(file.address, content, None)
    except DownloadError:
        raise
    except OSError as problem:  # what requests raises
        reason = f"no connection, or one that broke off ({type(problem).__name__})"
        answer: Any = getattr(problem, "response", None)
        if answer is not None:
            reason = f"the server answers {answer.status_code} {answer.reason}"
        raise DownloadError(
            f"cannot download {file.name} from {file.address}: {reason}; try again, or get the "
            f"file by other means, put it into some folder as {dataset}/original/{file.name} "
            "(plain, .xz or .gz), and set UNSAMPLE_DATA to that folder"
        ) from problem
    finally:
        if watcher.response is not None:
            watcher.response.close()
    return content.getvalue()


def _check_scheme(address: str) -> None:
    if not address.startswith(_SCHEMES):
        raise DownloadError(f"addresses must begin with {_SCHEMES[0]}, got {address!r}")


def unzipped(archive: bytes, file: DataFile) -> bytes:
    """Return the one member of a zip archive that is wanted; nothing is written to its paths."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as contents:
            entry = contents.getinfo(file.member)
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if entry.is_dir() or kind not in {0, stat.S_IFREG}:
                rule = "be a plain file, got a link or a folder"
            elif entry.file_size > file.limit:
                rule = f"have at most {file.limit:,} bytes, got {entry.file_size:,}"
            else:
                with contents.open(entry) as stream:
                    return stream.read(file.limit + 1)
    except KeyError as problem:
        raise FileError(f"{file.address} must hold {file.member}, which is not in it") from problem
    except DAMAGED as problem:
        raise FileError(f"{file.address} must be a zip archive: {problem}") from problem
    raise FileError(f"{file.member} in {file.address} must {rule}")
