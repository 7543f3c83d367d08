"""A page in headless Chromium, and what happened in it: errors, requests, policy violations.

    with chromium() as browser:
        browser.open(page)
        browser.press("/", "needle")
        assert browser.complaints() == []

Chromium and its driver are those of the system (Debian: chromium, chromium-driver); nothing is
downloaded. Where they are missing tests are skipped, but not in CI.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.command import Command
from selenium.webdriver.remote.webelement import WebElement

PATIENCE = 30.0
"""Seconds that a condition may take on a machine with other work; it takes milliseconds."""


BEYOND = """
const beyond = [];
for (const table of document.querySelectorAll(arguments[0])) {
  if (!table.checkVisibility()) continue;
  const box = table.parentElement.getBoundingClientRect();
  for (const part of [table, ...table.querySelectorAll("*")]) {
    const unseen = part.closest("caption, thead");
    if (unseen && unseen.offsetWidth <= 1) continue;
    const {left, right, width} = part.getBoundingClientRect();
    if (width && (left < box.left - 1 || right > Math.min(box.right, innerWidth) + 1)) {
      beyond.push(part.tagName + " " + part.textContent.trim().slice(0, 40) + " " + right);
    }
  }
}
return beyond;
"""


class Browser:
    """One window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, state: str = "") -> None:
        """Load a page from disk, and wait until its script is done."""
        self.driver.get("about:blank")
        self._log("browser")
        self._log("performance")
        self.driver.get(page.resolve().as_uri() + state)
        self.until(lambda: self.js("return performance.getEntriesByName('report-ready').length"))

    def js(self, code: str, *values: Any) -> Any:
        return self.driver.execute_script(code, *values)

    def until(self, condition: Callable[[], object]) -> None:
        """Return once `condition()` is true."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "never came true"
            time.sleep(0.01)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """All text of an element, also what is folded."""
        return str(self.js("return document.querySelector(arguments[0]).textContent", selector))

    def press(self, *keys: str) -> None:
        """Keys, into whatever has the focus."""
        for key in keys:
            ActionChains(self.driver, duration=0).send_keys(key).perform()

    def beyond(self, tables: str) -> list[str]:
        """What of these tables reaches beyond the window or the box that holds its table."""
        return [str(one) for one in self.js(BEYOND, tables)]

    def focused(self) -> str:
        """Text of what has the focus."""
        return self.driver.switch_to.active_element.text

    def choose(self, select: str, value: str) -> None:
        """Choose an option as a person does: the page hears of it."""
        self.js(
            "const s = document.querySelector(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event('change', {bubbles: true}))",
            select,
            value,
        )

    def media(self, *, scheme: str = "light", kind: str = "screen") -> None:
        """How the page is shown."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        features += [{"name": "prefers-reduced-motion", "value": "reduce"}]  # clicks hit at once
        self._cdp("Emulation.setEmulatedMedia", media=kind, features=features)

    def width(self, pixels: int, height: int = 900) -> None:
        """Size of the window, also below what a desktop window may have."""
        self._cdp(
            "Emulation.setDeviceMetricsOverride",
            width=pixels,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A screenshot of what is in view, or of the whole page."""
        import base64

        clip = {}
        if whole:
            size = self._cdp("Page.getLayoutMetrics")["cssContentSize"]
            clip = {
                "clip": {"x": 0, "y": 0, "scale": 1, **{k: size[k] for k in ("width", "height")}}
            }
        shot = self._cdp("Page.captureScreenshot", captureBeyondViewport=whole, **clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def overflow(self) -> int:
        """Pixels that the page is wider than its window."""
        return int(self.js("return document.scrollingElement.scrollWidth - innerWidth"))

    def _log(self, kind: str) -> list[dict[str, Any]]:
        """What a log of the driver holds since it was last asked for."""
        entries = self.driver.execute(Command.GET_LOG, {"type": kind})["value"]
        return list(entries)

    def complaints(self) -> list[str]:
        """Console messages and violations of the policy since the page was opened."""
        return [entry["message"] for entry in self._log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for, other than the page's own and data inside it."""
        own = self.driver.current_url.split("#")[0]
        found = []
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"].split("#")[0]
                if url != own and not url.startswith(("data:", "about:")):
                    found.append(url)
        return found

    def _cdp(self, command: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, values)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser; skips the test where there is none, unless CI is set."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        if os.environ.get("CI"):
            pytest.fail("no chromium and chromedriver: apt-get install chromium chromium-driver")
        pytest.skip("no chromium and chromedriver on this machine")
    options = Options()
    options.binary_location = program
    for word in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    for word in ("--disable-background-networking", "--disable-component-update", "--no-first-run"):
        options.add_argument(word)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    window = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(window)
    finally:
        window.quit()
