"""The report on paper."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

import harness
from harness.engines.mock import Mock
from tests.helpers.commands import invoke

pytestmark = pytest.mark.browser


def test_data_and_records_stand_on_paper_though_they_are_folded(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        harness.evaluate("arithmetic", Mock(model=name, text="4"), limit=1, output_path=tmp_path / name)
    file = tmp_path / "report.html"
    code, _, err = invoke(
        capsys, "report", str(tmp_path / "a"), str(tmp_path / "b"), "--format", "html", "-o", str(file)
    )
    assert code == 0, err
    page = browser.new_page()
    page.goto(file.as_uri())
    shown = """() => [".charts details table", "#run-record > details > .wide", ".episode .turn"].map((selector) =>
        [...new Set([...document.querySelectorAll(selector)].map((x) => x.checkVisibility()))])"""
    assert page.evaluate(shown) == [[False], [False], [False]]
    page.emulate_media(media="print")
    assert page.evaluate(shown) == [[True], [True], [False]]
    page.close()
