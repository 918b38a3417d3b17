"""Runs to look at, the viewer that shows them, and a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.extensions.viewer.browser.browsing import Console, make_runs, started_viewer


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    make_runs(made)
    return made


@pytest.fixture(scope="session")
def url(folder: Path) -> Iterator[str]:
    with started_viewer(folder) as address:
        yield address


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=url)
    context.set_default_timeout(20_000)
    made = context.new_page()
    made.console = Console(made)  # type: ignore[attr-defined]
    yield made
    context.close()
    assert made.console.complaints == []  # type: ignore[attr-defined]
