"""Take the pictures of calculators in Chromium, wide and on a phone.

Needs what ``pytest -m web`` needs. ``python tools/web_pictures.py [FOLDER]``
"""

from __future__ import annotations

import base64
import functools
import http.server
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import get_pyodide  # noqa: E402
import make_web  # noqa: E402
from tests.browser import Tab, chromium  # noqa: E402

PATIENCE = 900
#: Width, height and colours of each kind of picture.
KINDS = {"": (1280, 1100, "light"), "-phone": (390, 1500, "dark")}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def take(tab: Tab, path: Path, width: int, height: int, scheme: str) -> None:
    """Write what is seen of the page as WebP."""
    tab.resize(width, height)
    tab.page.emulate_media(color_scheme=scheme)
    tab.run("scrollTo(0, 0); document.activeElement.blur()")
    time.sleep(3)  # charts and frames are drawn anew
    session = tab.page.context.new_cdp_session(tab.page)  # Playwright itself knows no WebP
    found = session.send("Page.captureScreenshot", {"format": "webp", "quality": 80})
    path.write_bytes(base64.b64decode(found["data"]))
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB", flush=True)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    with tempfile.TemporaryDirectory() as temporary:
        site = Path(temporary) / "web"
        make_web.build(site, get_pyodide.folder())
        handler = functools.partial(Quiet, directory=str(site))
        server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with chromium() as browser:
            take_all(Tab(browser, (1280, 900)), server.server_port, folder)
        server.shutdown()


def take_all(tab: Tab, port: int, folder: Path) -> None:
    tab.page.goto(f"http://localhost:{port}/")
    for calculator in ("published", "ranks", "plan"):
        tab.run(f"location.hash = '#calculator={calculator}'")
        tab.wait(f"!document.getElementById('{calculator}').hidden", PATIENCE)
        if calculator == "ranks":
            tab.run("document.getElementById('example').click()")
            tab.wait("document.querySelector('iframe')?.style.height", PATIENCE)
        tab.wait("document.querySelector('.verdict-line')", PATIENCE)
        tab.wait("!document.body.classList.contains('busy')", PATIENCE)
        for kind, (width, height, scheme) in KINDS.items():
            take(tab, folder / f"web-{calculator}{kind}.webp", width, height, scheme)
        tab.resize(1280, 900)


if __name__ == "__main__":
    main()
