"""Inner calls and costs in a real browser: folded, loaded when they are opened, and hostile text stays text."""

import pytest
from playwright.sync_api import Page, expect

from tests.extensions.viewer.browser.browsing import MARKUP, SCRIPT, address, fits

pytestmark = pytest.mark.browser
expect.set_options(timeout=20_000)


def test_a_turn_opens_to_its_inner_calls(page: Page, url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address(url, "inner"))
    box = page.locator(".inner-calls")
    expect(box.locator("> summary")).to_contain_text("62 inner calls")
    expect(box.locator("> summary")).to_contain_text("0.744 USD")
    expect(page.locator(".episode-head")).to_contain_text("cost0.744 USD")
    expect(page.locator(".intro")).to_contain_text("inner calls62")
    assert not any("/inner?" in one for one in asked), "they are loaded when they are opened"
    box.locator("> summary").click()
    calls = box.locator(".inner-call")
    expect(calls).to_have_count(50)
    calls.nth(0).locator("> summary").click()
    expect(calls.nth(0)).to_contain_text(SCRIPT)
    expect(calls.nth(0).locator("h4").nth(1)).to_have_text(MARKUP)
    calls.nth(1).locator("> summary").click()
    expect(calls.nth(1)).to_contain_text("After the first 2 messages of call 1")
    expect(calls.nth(1)).to_contain_text("go on")
    box.get_by_role("button", name="Show more").click()
    expect(calls).to_have_count(62)
    assert page.evaluate("window.hacked") is None
    fits(page)


def test_lists_have_columns_of_costs_and_inner_calls(page: Page, url: str) -> None:
    page.goto(url)
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="inner", exact=True))
    expect(row.locator(".of-cost")).to_have_text("0.744 USD")
    expect(row.locator(".of-inner_calls")).to_have_text("62")
    row.get_by_role("link").click()
    expect(page.locator(".page-head")).to_contain_text("Cost0.744 USD")
    expect(page.locator("[data-key=cost]").last).to_have_text("0.744 USD")
    page.goto(f"{url}#/runs/agentsnet_quick")
    expect(page.locator("table.list").last).to_contain_text("Rounds")
    expect(page.locator("[data-key=cost]")).to_have_count(0)
