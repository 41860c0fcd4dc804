"""How long the web page takes in a browser: until Python is there, and for each first answer.

Seconds on the clock, and of the processor in the page's process. Needs Chromium and a copy of
Pyodide (``python tools/get_pyodide.py``).
"""

from __future__ import annotations

import functools
import http.server
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
import get_pyodide  # noqa: E402
import make_web  # noqa: E402
from tests.chromium import Browser, Tab  # noqa: E402
from tests.machine import need_program  # noqa: E402

PATIENCE = 600
READY = "document.getElementById('loading').hidden"
ANSWER = "document.querySelector('.verdict-line')"
REPORT = "document.querySelector('iframe')"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Clock:
    """Seconds on the clock, and of the processor in processes that draw pages."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.start, self.used = time.monotonic(), self._used()

    def _used(self) -> dict[int, float]:
        found = self.browser.send("SystemInfo.getProcessInfo")["processInfo"]
        return {each["id"]: each["cpuTime"] for each in found if each["type"] == "renderer"}

    def show(self, what: str) -> None:
        wall, now = time.monotonic() - self.start, self._used()
        used = sum(seconds - self.used.get(each, 0.0) for each, seconds in now.items())
        print(f"{what:44} {wall:7.1f} s on the clock {used:7.1f} s of the processor", flush=True)
        self.start, self.used = time.monotonic(), self._used()


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        site = Path(temporary) / "web"
        make_web.build(site, get_pyodide.folder())
        size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        print(f"{size / 1e6:.1f} MB in all")
        handler = functools.partial(Quiet, directory=str(site))
        server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://localhost:{server.server_port}/"
        browser = Browser(need_program("Chromium"), Path(temporary) / "profile")
        for visit in ("first", "second"):
            clock = Clock(browser)
            tab = Tab(browser)
            tab.open(address)
            tab.wait(READY, PATIENCE)
            clock.show(f"{visit} visit: until Python is there")
            tab.wait(ANSWER, PATIENCE)
            clock.show("what does this number mean")
            if visit == "first":
                tab.close()
        tab.run("location.hash = '#calculator=published&items=10000'")
        tab.wait(f"{ANSWER}?.textContent.includes('10,000')", PATIENCE)
        clock.show("the same for another catalogue")
        tab.run("location.hash = '#calculator=ranks'; document.getElementById('example').click()")
        tab.wait(f"!document.getElementById('ranks').hidden && {ANSWER}", PATIENCE)
        clock.show("6,040 ranks: the answer")
        tab.wait(REPORT, PATIENCE)
        clock.show("6,040 ranks: the report")
        tab.run("location.hash = '#calculator=plan'")
        tab.wait(f"!document.getElementById('plan').hidden && {ANSWER}", PATIENCE)
        clock.show("how should I evaluate")
        tab.close()
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main()
