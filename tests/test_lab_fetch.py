"""Downloads: verified, and refused where they should be. The server is our own."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from unsample._checks import import_extra
from unsample.errors import ChecksumError, DownloadError, FileError, MissingExtraError
from unsample.lab import datasets
from unsample.lab.datasets import _files, _registry

pytest.importorskip("pooch")

CONTENT = b"".join(b"%d %d\n" % (1, item) for item in range(30_000))


@dataclass
class Site:
    """What the server answers: bodies by path, and how it misbehaves."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    requests: list[str] = field(default_factory=list)
    address: str = ""


def handler_of(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            site.requests.append(self.path)
            if self.path in site.redirects:
                self.answer(302, b"", location=site.redirects[self.path])
            elif self.path not in site.bodies:
                self.answer(404, b"not here")
            else:
                self.answer(200, site.bodies[self.path])

        def answer(self, status, body, location=None):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body if site.cut_after is None else body[: site.cut_after])

        def log_message(self, *arguments):
            pass

    return Handler


@pytest.fixture
def site(monkeypatch, tmp_path):
    monkeypatch.delenv("UNSAMPLE_DATA", raising=False)
    monkeypatch.setenv("UNSAMPLE_CACHE", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(_files, "_SCHEMES", ("https://", "http://"))
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(site))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def register(site, monkeypatch):
    """Register one data set of one file at the site."""

    def register(path="/users.dat", content=CONTENT, **changes):
        known = {
            "format": "lists",
            "address": site.address + path,
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        about = dict.fromkeys(("title", "home", "licence"), "")
        table = about | {
            "citations": [],
            "users": 30_000,
            "items": 30_000,
            "interactions": 30_000,
            "sources": [{"files": ["users.dat"]}],
            "files": {"users.dat": known | changes},
        }
        monkeypatch.setattr(_registry, "_tables", lambda: {"toy": table})

    return register


def test_a_download_is_verified_cached_and_loaded(site, register, tmp_path):
    register(sha256="", git_blob=_registry.git_blob_id(CONTENT))
    site.bodies["/users.dat"] = CONTENT
    seen = []
    paths = datasets.fetch("toy", progress=lambda *step: seen.append(step))
    assert paths == {"users.dat": tmp_path / "toy" / "users.dat"}
    assert paths["users.dat"].read_bytes() == CONTENT
    assert seen[-1] == ("users.dat", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert len(datasets.load("toy")) == 30_000
    assert datasets.fetch("toy") == paths
    assert len(site.requests) == 1
    assert datasets.info("toy").complete
    assert not datasets.info("toy", cache=tmp_path / "elsewhere").at_hand
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["users.dat"]


def test_load_downloads_only_what_it_needs(site, register, monkeypatch):
    register()
    site.bodies["/users.dat"] = CONTENT
    site.bodies["/test"] = b"0\t1\t1\t0\n2\t2\t1\t0\n"
    table = _registry._tables()["toy"]
    table["files"]["test"] = {
        "format": "implicit",
        "address": site.address + "/test",
        "sha256": hashlib.sha256(site.bodies["/test"]).hexdigest(),
    }
    table["test"] = "test"
    datasets.load("toy")
    assert site.requests == ["/users.dat"]
    split = datasets.leave_published_out("toy")
    assert site.requests == ["/users.dat", "/test"]
    assert split.target_item.tolist() == [1, 2]


def test_files_at_hand_are_not_downloaded(site, register, monkeypatch, tmp_path):
    register()
    own = tmp_path / "own" / "toy" / "original"
    own.mkdir(parents=True)
    (own / "users.dat").write_bytes(CONTENT)
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path / "own"))
    assert datasets.fetch("toy") == {"users.dat": own / "users.dat"}
    assert not site.requests
    (own / "users.dat").write_bytes(b"something else")
    with pytest.raises(ChecksumError):
        datasets.fetch("toy")
    assert (own / "users.dat").exists()


# -- wrong ------------------------------------------------------------------------------------


def test_a_broken_download_leaves_nothing_and_the_next_call_starts_over(site, register, tmp_path):
    register()
    site.bodies["/users.dat"] = CONTENT
    site.cut_after = 100_000
    with pytest.raises(DownloadError, match=r"broke off.*try again"):
        datasets.fetch("toy")
    assert not list((tmp_path / "toy").iterdir())
    site.cut_after = None
    assert datasets.fetch("toy")["users.dat"].read_bytes() == CONTENT


WRONG = CONTENT[:-1] + b"!"


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (WRONG, ChecksumError, [hashlib.sha256(text).hexdigest() for text in (CONTENT, WRONG)]),
        (CONTENT * 2, DownloadError, ["the server sends more"]),
        (
            None,
            DownloadError,
            ["the server answers 404", "toy/original/users.dat", "UNSAMPLE_DATA"],
        ),
    ],
    ids=["wrong", "too long", "missing"],
)
def test_bad_downloads_are_refused_and_not_kept(site, register, tmp_path, body, error, words):
    register()
    if body is not None:
        site.bodies["/users.dat"] = body
    with pytest.raises(error) as caught:
        datasets.load("toy")
    assert all(word in str(caught.value) for word in words)
    assert not list((tmp_path / "toy").iterdir())


def test_a_download_that_went_bad_is_refused_and_replaced_when_fetched(site, register):
    register()
    site.bodies["/users.dat"] = CONTENT
    path = datasets.fetch("toy")["users.dat"]
    path.write_bytes(b"bad sectors")
    with pytest.raises(ChecksumError, match=r"python -m unsample\.lab fetch toy"):
        datasets.load("toy")
    assert datasets.fetch("toy")["users.dat"].read_bytes() == CONTENT


def test_without_a_network_the_error_says_how_to_provide_the_file(site, register, tmp_path):
    register(address="http://127.0.0.1:9/users.dat")
    with pytest.raises(DownloadError, match=r"no connection.*UNSAMPLE_DATA"):
        datasets.load("toy")
    assert not list((tmp_path / "toy").iterdir())


def test_only_https_is_asked(site, register, monkeypatch):
    register()
    monkeypatch.setattr(_files, "_SCHEMES", ("https://",))
    with pytest.raises(DownloadError, match="must begin with https://, got 'http://127"):
        datasets.fetch("toy")
    assert not site.requests


def test_redirects_stay_on_safe_schemes(site, register):
    register(path="/moved")
    site.bodies["/users.dat"] = CONTENT
    site.redirects["/moved"] = "/users.dat"
    datasets.fetch("toy")
    register(path="/unsafe", sha256="0" * 64)
    site.redirects["/unsafe"] = "ftp://127.0.0.1/users.dat"
    with pytest.raises(DownloadError, match="must begin with https://, got 'ftp://"):
        datasets.fetch("toy")


def test_a_folder_that_cannot_be_written_is_named(site, register, tmp_path):
    register()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write"):
        datasets.fetch("toy", cache=tmp_path / "file")


def test_without_pooch_the_install_line_is_named(site, register, monkeypatch):
    register()

    def absent(module, *, extra, purpose):
        return import_extra("no_such_library", extra=extra, purpose=purpose)

    monkeypatch.setattr(_files, "import_extra", absent)
    with pytest.raises(MissingExtraError, match=r"pip install 'unsample\[data\]'"):
        datasets.fetch("toy")


# -- archives ---------------------------------------------------------------------------------


def archive(name="toy/users.dat", content=CONTENT, mode=0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as contents:
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = mode << 16
        contents.writestr(entry, content)
        contents.writestr("../../outside.txt", "never written")
    return buffer.getvalue()


def test_one_member_is_taken_from_an_archive(site, register, tmp_path):
    register(path="/toy.zip", member="toy/users.dat")
    site.bodies["/toy.zip"] = archive()
    assert datasets.fetch("toy")["users.dat"].read_bytes() == CONTENT
    assert [path.name for path in tmp_path.rglob("*")] == ["toy", "users.dat"]
    assert not list(tmp_path.parent.glob("outside.txt"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (archive(name="other.dat"), "must hold toy/users.dat, which is not in it"),
        (archive(mode=stat.S_IFLNK | 0o777), "must be a plain file, got a link"),
        (archive(content=b"0" * (len(CONTENT) + 1)), "must have at most .* bytes, got"),
        (archive(content=CONTENT[:-1]), "expected sha256"),
        (archive()[:2000], "must be a zip archive"),
        (archive()[:-6] + b"\xff\xff\x0f\x00\x00\x00", "must be a zip archive"),
        (b"<html>moved</html>", "must be a zip archive"),
    ],
    ids=["no member", "link", "too large", "other content", "truncated", "misplaced", "no archive"],
)
def test_bad_archives_are_refused(site, register, tmp_path, body, message):
    register(path="/toy.zip", member="toy/users.dat")
    site.bodies["/toy.zip"] = body
    with pytest.raises(FileError, match=message):
        datasets.fetch("toy")
    assert not list((tmp_path / "toy").iterdir())


def test_a_size_that_lies_does_not_let_more_through(site, register, tmp_path):
    """A member whose header understates its size is cut off at the limit or refused."""
    body = bytearray(archive(content=b"0" * 4_000_000))
    true, told = (4_000_000).to_bytes(4, "little"), len(CONTENT).to_bytes(4, "little")
    body = body.replace(true, told)
    register(path="/toy.zip", member="toy/users.dat")
    site.bodies["/toy.zip"] = bytes(body)
    with pytest.raises(FileError):
        datasets.fetch("toy")
    assert not (tmp_path / "toy" / "users.dat").exists()


def test_without_a_home_the_cache_must_be_said(site, register, tmp_path, monkeypatch):
    register()
    site.bodies["/users.dat"] = CONTENT
    monkeypatch.delenv("UNSAMPLE_CACHE")
    monkeypatch.setattr(_files, "_platform_folder", lambda: None)
    assert not datasets.info("toy").at_hand
    with pytest.raises(FileError, match="no home folder; set UNSAMPLE_CACHE"):
        datasets.fetch("toy")
    monkeypatch.setenv("UNSAMPLE_CACHE", "~nobody-of-that-name/cache")
    with pytest.raises(FileError, match="no home folder; set UNSAMPLE_CACHE"):
        datasets.fetch("toy")


@pytest.mark.parametrize("found", ["~/.cache/unsample", RuntimeError("no home")])
def test_no_folder_called_tilde_is_ever_made(monkeypatch, found):
    class Pooch:
        @staticmethod
        def os_cache(_):
            if isinstance(found, Exception):
                raise found
            return Path(found)

    monkeypatch.setattr(_files, "import_extra", lambda *_, **__: Pooch)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}["nobody"])
    assert _files._platform_folder() is None


def test_a_cache_that_may_not_be_looked_into_is_named(site, register, monkeypatch):
    register()

    def refuse(_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(FileError, match=r"cannot look for .*Permission denied; set UNSAMPLE_CACHE"):
        datasets.info("toy")
