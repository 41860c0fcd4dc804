"""A real headless browser for the tests: the DevTools protocol over a pipe, nothing to install."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_PATIENCE = 60.0


class BrowserError(Exception):
    """The browser refused or did not answer."""


class Browser:
    """One browser process; messages are JSON texts that end in a zero byte."""

    def __init__(self, executable: str, profile: Path) -> None:
        # The browser reads from descriptor 3 and writes to 4. Both ends are first moved out of
        # the way, so that neither is overwritten before it is copied.
        their_in, self._out = (_high(end) for end in os.pipe())
        self._in, their_out = (_high(end) for end in os.pipe())
        null = os.open(os.devnull, os.O_RDWR)
        self._process = os.posix_spawn(
            executable,
            [executable, *_ARGUMENTS, f"--user-data-dir={profile}", "about:blank"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 1),
                (os.POSIX_SPAWN_DUP2, null, 2),
                (os.POSIX_SPAWN_DUP2, their_in, 3),
                (os.POSIX_SPAWN_DUP2, their_out, 4),
            ],
            setpgroup=0,
        )
        for end in (their_in, their_out, null):
            os.close(end)
        self._buffer = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, *, session: str | None = None, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result; events on the way are kept."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = self._receive(deadline)
            if answer.get("id") != self._last:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def wait_for(self, method: str) -> dict[str, Any]:
        """Return the next event of this name that has not been waited for."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            for place, event in enumerate(self.events):
                if event.get("method") == method:
                    return self.events.pop(place)
            self.events.append(self._receive(deadline))

    def close(self) -> None:
        """End the browser, politely first."""
        with contextlib.suppress(BrowserError, OSError):
            self.send("Browser.close")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if os.waitpid(self._process, os.WNOHANG)[0]:
                break
            time.sleep(0.05)
        else:
            os.killpg(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        os.close(self._in)
        os.close(self._out)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError("the browser did not answer in time")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise BrowserError("the browser went away")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found


class Tab:
    """One page in the browser, with everything it complained about."""

    def __init__(self, browser: Browser, width: int = 1200, height: int = 900) -> None:
        self._browser = browser
        self._target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.send("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol on this page."""
        return self._browser.send(method, session=self._session, **parameters)

    def open(self, path: Path | str) -> None:
        """Load a file or an address and wait until it is there."""
        self.call("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        self._browser.wait_for("Page.loadEventFired")

    def wait(self, script: str, seconds: float) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > deadline:
                raise BrowserError(f"not true within {seconds:g} s: {script}")
            time.sleep(0.1)

    def choose_files(self, selector: str, *paths: Path) -> None:
        """Choose files in a field for them."""
        node = self.call("Runtime.evaluate", expression=f"document.querySelector({selector!r})")
        self.call(
            "DOM.setFileInputFiles",
            files=[str(path) for path in paths],
            objectId=node["result"]["objectId"],
        )

    def resize(self, width: int, height: int) -> None:
        """Make the window this large."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def emulate(self, *, scheme: str = "light", media: str = "") -> None:
        """Say which colours the reader prefers, and whether this is paper."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=media, features=[feature])

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def point_at(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """Move the mouse to a part of an element."""
        x, y = self._inside(selector, across, down)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        x, y = self._inside(selector, 0.5, 0.5)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, code: int) -> None:
        """Press a key on whatever has the focus."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def screenshot(self, *, whole: bool = True) -> bytes:
        """Return the page as PNG."""
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(picture["data"])

    def pdf(self) -> bytes:
        """Return the printed page."""
        printed = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(printed["data"])

    def complaints(self) -> list[str]:
        """Return console errors and warnings, exceptions, and log entries since the start."""
        self.run("0")  # whatever was on the way has arrived
        found = []
        for event in self._mine():
            given = event["params"]
            match event["method"]:
                case "Runtime.exceptionThrown":
                    found.append(given["exceptionDetails"]["text"])
                case "Runtime.consoleAPICalled" if given["type"] in ("error", "warning", "assert"):
                    found.append(str([one.get("value") for one in given["args"]]))
                case "Log.entryAdded" if given["entry"]["level"] in ("error", "warning"):
                    found.append(given["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Return every address the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self._mine()
            if event["method"] == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        """Close the page."""
        self._browser.send("Target.closeTarget", targetId=self._target)

    def _mine(self) -> Iterator[dict[str, Any]]:
        return (one for one in self._browser.events if one.get("sessionId") == self._session)

    def _inside(self, selector: str, across: float, down: float) -> tuple[float, float]:
        box = self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            "one.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = one.getBoundingClientRect();"
            "return [b.left, b.top, b.width, b.height]; })()"
        )
        return box[0] + across * box[2], box[1] + down * box[3]


def _high(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved
