"""Fetching the public files: over https, resumed where they stopped, verified before use."""

from __future__ import annotations

import os
import stat
import warnings
import zipfile
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from unsample._checks import import_extra
from unsample._files import lock_of, remove_leftovers, unwritable, write_atomically
from unsample.errors import ChecksumError, DownloadError, FileError, UnsampleWarning
from unsample.lab.datasets import _store
from unsample.lab.datasets._registry import LARGEST_FILE, DataFile, Record, record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["Progress", "fetch", "fetch_files"]

#: Called with the name of the file, the bytes there so far, and all bytes where that is known.
Progress: TypeAlias = "Callable[[str, int, int | None], None]"

#: What an address and every redirect must begin with; the tests' own server speaks plain http.
_SCHEMES = ("https",)
_CHUNK = 1 << 16
_TIMEOUT_SECONDS = 30
_RANGE_NOT_SATISFIABLE = 416
#: A link in the place of a part would lead what is downloaded elsewhere.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


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

    Files that are at hand, here or under ``$UNSAMPLE_DATA``, are verified and not fetched again. A
    download that breaks off is resumed by the next call.
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
    folder = _store.cache_folder(cache) / dataset.name
    paths = {}
    for file in (dataset.files[name] for name in files):
        path = _at_hand(dataset.name, file, cache)
        if path is None:
            with _alone_in(folder):
                # Whoever was waited for may have brought it.
                path = _at_hand(dataset.name, file, cache) or _obtain(file, folder, progress)
        paths[file.name] = path
    _tidy(folder, (dataset.files[name] for name in paths))
    return paths


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Let one process at a time fetch into a folder; two would write into the same file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(folder, problem) from problem
    with lock_of(folder) as free:
        if free:
            yield
            return
    text = f"another process is fetching into {str(folder)!r}; this one waits for it to end"
    warnings.warn(text, UnsampleWarning, stacklevel=2)
    with lock_of(folder, wait=True):
        yield


def _tidy(folder: Path, files: Iterable[DataFile]) -> None:
    """Remove what a process left that was killed after its download was put to its place."""
    with lock_of(folder) as free:
        if free and folder.is_dir():
            remove_leftovers(folder)
            for file in files:
                with suppress(OSError):
                    _part_of(file, folder).unlink()


def _at_hand(name: str, file: DataFile, cache: str | os.PathLike[str] | None) -> Path | None:
    try:
        found = _store.read_local(name, file, cache)
    except ChecksumError:
        if _store.locate(name, file, cache):
            raise  # the user's own file; a wrong download has been set aside by now
        return None
    return None if found is None else found[0]


def _obtain(file: DataFile, folder: Path, progress: Progress | None) -> Path:
    """Download ``file`` into ``folder``, verify its content, and only then give it its name."""
    part = _part_of(file, folder)
    _download(file, part, progress)
    try:
        content = _member(part, file) if file.member else _store.read(part, file.limit)
        _store.check(content, file, file.address)
    except FileError as problem:
        kept = _store.set_aside(part)
        raise type(problem)(f"{problem}; {kept}; fetched again, it starts over") from problem
    target = folder / file.name
    write_atomically(target, lambda stream: stream.write(content))
    part.unlink(missing_ok=True)
    return target


def _part_of(file: DataFile, folder: Path) -> Path:
    """Return where the download of ``file`` grows."""
    return folder / (urlsplit(file.address).path.rpartition("/")[2] + ".part")


# -- over the wire ----------------------------------------------------------------------------


@dataclass
class _Part:
    """A growing file: refuses to grow too large, starts over when told, reports its size."""

    stream: IO[bytes]
    name: str
    limit: int
    progress: Progress | None
    total: int | None = None
    response: Any = None

    def write(self, chunk: bytes) -> None:
        self.stream.write(chunk)
        done = self.stream.tell()
        if done > self.limit:
            raise DownloadError(
                f"{self.name} must have at most {self.limit:,} bytes, the server sends more; "
                "its address may hold something else by now; get the file by other means, and set "
                "UNSAMPLE_DATA to its folder"
            )
        if self.progress:
            self.progress(self.name, done, self.total)

    def flush(self) -> None:
        """Leave flushing to the stream: after every chunk would be slow."""

    def receive(self, response: Any, *_: Any, **__: Any) -> None:
        """Prepare for the body of ``response``: called for each answer, redirects included."""
        self.response = response
        _refuse_unsafe(response.headers.get("location") or response.url, redirect=True)
        if response.status_code == 200:
            self.stream.seek(0)
            self.stream.truncate()
        length = response.headers.get("content-length", "")
        self.total = self.stream.tell() + int(length) if length.isdigit() else None


def _download(file: DataFile, part: Path, progress: Progress | None) -> None:
    """Download the address of ``file`` into ``part``, going on where an earlier call stopped."""
    _refuse_unsafe(file.address)
    pooch = import_extra("pooch", extra="data", purpose="downloading data sets")
    limit = LARGEST_FILE if file.member else file.limit
    try:
        with os.fdopen(os.open(part, _APPEND, 0o666), "ab") as stream:
            _request(pooch, file.address, _Part(stream, file.name, limit, progress))
    except DownloadError:
        part.unlink(missing_ok=True)
        raise
    except OSError as problem:
        if not hasattr(problem, "response"):  # not from requests, whose errors are OSErrors too
            raise unwritable(part, problem) from problem
        if getattr(problem.response, "status_code", None) == _RANGE_NOT_SATISFIABLE:
            # Everything came before, but was not put to its place: the checksum decides.
            return
        begun = part.stat().st_size > 0
        if not begun:
            part.unlink()
        raise DownloadError(_how_to_provide(file, part.parent.name, problem, begun)) from problem


def _request(pooch: Any, address: str, part: _Part) -> None:
    # Compressed on the way, the bytes could be neither counted nor resumed.
    headers = {"Accept-Encoding": "identity"}
    if part.stream.tell():
        headers["Range"] = f"bytes={part.stream.tell()}-"
    downloader = pooch.HTTPDownloader(
        chunk_size=_CHUNK,
        timeout=_TIMEOUT_SECONDS,
        headers=headers,
        hooks={"response": part.receive},
    )
    try:
        downloader(address, part, None)
    finally:
        if part.response is not None:
            part.response.close()


def _refuse_unsafe(address: str, *, redirect: bool = False) -> None:
    scheme = urlsplit(address).scheme
    # A redirect without a scheme stays on the server that was asked.
    if scheme not in _SCHEMES and not (redirect and not scheme):
        raise DownloadError(f"addresses must begin with {_SCHEMES[0]}://, got {address!r}")


def _how_to_provide(file: DataFile, dataset: str, problem: OSError, begun: bool) -> str:
    response = getattr(problem, "response", None)
    if response is None:
        what = "the connection broke off" if begun else "no connection"
        reason = f"{what} ({type(problem).__name__})"
    else:
        reason = f"the server answers {response.status_code} {response.reason}"
    return (
        f"cannot download {file.name} from {file.address}: {reason}; try again (it goes on where "
        "it stopped), or get the file by other means, put it into some folder as "
        f"{dataset}/original/{file.name} (plain, .xz or .gz), and set UNSAMPLE_DATA to that folder"
    )


# -- archives ---------------------------------------------------------------------------------


def _member(archive: Path, file: DataFile) -> bytes:
    """Return the one member of a zip archive that is wanted; nothing is written to its paths."""
    try:
        with zipfile.ZipFile(archive) as contents:
            entry = contents.getinfo(file.member)
            _refuse_entry(entry, file)
            with contents.open(entry) as stream:
                return stream.read(file.limit + 1)
    except KeyError as problem:
        raise FileError(f"{file.address} must hold {file.member}, which is not in it") from problem
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError) as problem:
        raise FileError(f"{file.address} must be a zip archive: {problem}") from problem


def _refuse_entry(entry: zipfile.ZipInfo, file: DataFile) -> None:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if entry.is_dir() or kind not in {0, stat.S_IFREG}:
        raise FileError(
            f"{file.member} in {file.address} must be a plain file, got a link or a folder"
        )
    if entry.file_size > file.limit:
        raise FileError(
            f"{file.member} in {file.address} must have at most {file.limit:,} bytes, "
            f"got {entry.file_size:,}"
        )
