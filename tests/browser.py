"""Pages in a real headless browser: Playwright drives the Chromium of the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.machine import need_program

WIDE = (1200, 900)
#: How well each text of a page is told from what is behind it.
CONTRASTS = """(() => {
  const linear = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const rgba = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgba(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const owner = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !owner.getClientRects().length) continue;
    if (owner.closest("script, .hidden, .skip")) continue;
    const style = getComputedStyle(owner);
    const ink = rgba(owner.ownerSVGElement ? style.fill : style.color);
    const [low, high] = [light(ink), light(ground(owner))].sort((a, b) => a - b);
    found.push([(high + 0.05) / (low + 0.05), walk.currentNode.data]);
  }
  return found;
})()"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser, and end it."""
    executable = need_program("Chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield started
        started.close()


class Tab:
    """A page, with all that it complained about and asked for."""

    def __init__(
        self, browser: Browser | BrowserContext, size: tuple[int, int] = WIDE, **options: Any
    ) -> None:
        self.page: Page = browser.new_page(**options)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._hear)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.resize(size[0], size[1])

    def _hear(self, message: Any) -> None:
        if message.type in {"error", "warning", "assert"}:
            self.complaints.append(message.text)

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        return self.page.evaluate(script)

    def wait(self, script: str, seconds: float) -> None:
        """Wait until an expression is true; Playwright's own way needs a laxer content policy."""
        deadline = time.monotonic() + seconds
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not true within {seconds:g} s: {script}")
            self.page.wait_for_timeout(100)

    def resize(self, width: int, height: int) -> None:
        self.page.set_viewport_size({"width": width, "height": height})

    def point_at(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """Move the mouse to a part of an element."""
        found = self.page.locator(selector).first
        found.evaluate("one => one.scrollIntoView({block: 'center', behavior: 'instant'})")
        box = found.bounding_box()
        self.page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])

    def click(self, selector: str) -> None:
        self.page.locator(selector).first.click()

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def names(self, *roles: str) -> dict[str, list[str]]:
        """Return, by role, what assistive technology calls the elements of the page."""
        session = self.page.context.new_cdp_session(self.page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        return {
            role: [
                node.get("name", {}).get("value", "")
                for node in nodes
                if not node["ignored"] and node["role"]["value"] == role
            ]
            for role in roles
        }
