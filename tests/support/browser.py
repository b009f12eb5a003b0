"""Pages in a headless Chromium that is installed on this machine, without any network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DESKTOP, PHONE = (1280, 900), (360, 740)
MILLISECONDS = 120_000
"""To wait for a page at most: half a minute, as is usual, is not enough beside long trainings."""


def find_browser() -> str:
    """The path of a Chromium; skips the test, with the reason, where there is none."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(NAMES)} is on the PATH")
    return found


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = find_browser()
    with sync_playwright() as playwright:
        # Containers run as root and have a small /dev/shm.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, file: Path, size: tuple[int, int] = DESKTOP, **settings: Any) -> Iterator:
    """A page that shows a file; afterwards, that it asked for nothing else and said no error."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, offline=True, **settings
    )
    context.set_default_timeout(MILLISECONDS)
    page = context.new_page()
    asked: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfailed", lambda request: faults.append(f"failed: {request.url}"))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "console",
        lambda message: faults.append(message.text) if message.type in ("error", "warning") else 0,
    )
    page.goto(file.as_uri())
    yield page
    assert faults == []
    assert asked == [file.as_uri()]
    context.close()


def keep(page: Any, name: str) -> None:
    """A picture of the whole page, where SCREENSHOTS names a folder for them."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
