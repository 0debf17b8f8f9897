"""Finds a Chromium for the browser tests, and says loudly where there is none."""

import functools
import os
import shutil
from pathlib import Path

import pytest

# The one without windows first: what tests ask of it costs a quarter less.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
MISSING = (
    "BROWSER TESTS DID NOT RUN: no Chromium. Install one (Debian: apt install chromium), "
    "name one in CHROMIUM, or run: .venv/bin/playwright install chromium"
)


@functools.cache
def find_chromium() -> str | None:
    """The program of a Chromium: CHROMIUM, PATH, then where Playwright keeps its own."""
    given = os.environ.get("CHROMIUM")
    if given:
        return shutil.which(given)
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or _of_playwright()


def _of_playwright() -> str | None:
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or "~/.cache/ms-playwright")
    programs = [
        *sorted(folder.expanduser().glob("chromium_headless_shell-*/chrome-*/*headless*shell"))[
            ::-1
        ],
        *sorted(folder.expanduser().glob("chromium-*/chrome-*/chrome"))[::-1],
    ]
    return next((str(path) for path in programs if path.is_file()), None)


def chromium_or_skip() -> str:
    """The program of a Chromium; without one the test is skipped, and on CI it fails."""
    found = find_chromium()
    if found:
        return found
    if os.environ.get("CI", "").lower() in {"1", "true", "yes"}:
        pytest.fail(MISSING)
    pytest.skip(MISSING)


def say_if_missing(terminalreporter) -> None:
    """One line at the end of a run that should have used a browser and could not."""
    skipped = terminalreporter.stats.get("skipped", [])
    if any("BROWSER TESTS DID NOT RUN" in str(report.longrepr) for report in skipped):
        terminalreporter.section("browser", sep="!", red=True, bold=True)
        terminalreporter.line(MISSING, red=True, bold=True)
