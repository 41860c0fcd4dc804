"""A server of one small data set, honest or not."""

from __future__ import annotations

import hashlib
import io
import random
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["CONTENT", "Site", "serving"]

_USERS, _ITEMS, _EACH = 2_000, 400, 30
_CHUNK = 1 << 14


def _lists() -> bytes:
    chance = random.Random(0)  # noqa: S311 - chance, not secrecy
    rows = (chance.sample(range(_ITEMS), _EACH) for _ in range(_USERS))
    return "".join(f"{_EACH} {' '.join(map(str, row))}\n" for row in rows).encode()


CONTENT = _lists()


def _archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as contents:
        contents.writestr("toy/users.dat", CONTENT)
    return buffer.getvalue()


@dataclass
class Site:
    """What the server answers, and how it misbehaves until it is told otherwise."""

    address: str = ""
    status: int = 200
    cut_after: int | None = None
    pause: float = 0.0
    content: bytes = CONTENT
    archive: bytes = field(default_factory=_archive)
    told_length: int | None = None

    def registry(self, *, archived: bool = False) -> dict[str, Any]:
        file = {
            "format": "lists",
            "address": f"{self.address}/{'toy.zip' if archived else 'users.dat'}",
            "member": "toy/users.dat" if archived else "",
            "size": len(CONTENT),
            "sha256": hashlib.sha256(CONTENT).hexdigest(),
        }
        about = {"title": "Toy", "home": "", "licence": "", "citations": []}
        sizes = {"users": _USERS, "items": _ITEMS, "interactions": _USERS * _EACH}
        sources = [{"files": ["users.dat"]}]
        return {"toy": about | sizes | {"sources": sources, "files": {"users.dat": file}}}


def _handler_of(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = site.archive if self.path.endswith(".zip") else site.content
            if site.status != 200:
                self.answer(site.status, b"out of order")
                return
            wanted = self.headers.get("Range")
            if wanted:
                body = body[int(wanted.removeprefix("bytes=").removesuffix("-")) :]
                self.answer(206 if body else 416, body)
                return
            self.answer(200, body)

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(site.told_length or len(body)))
            self.end_headers()
            body = body[: site.cut_after]
            try:
                for start in range(0, len(body), _CHUNK):
                    self.wfile.write(body[start : start + _CHUNK])
                    time.sleep(site.pause)
            except OSError:  # whoever asked was killed
                pass

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    return Handler


@contextmanager
def serving() -> Iterator[Site]:
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(site))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
