"""Pages that follow a run, in a real browser."""

import contextlib
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import harness
from harness.engines.mock import Mock
from tests.extensions.viewer.browser.browsing import Gate, address

pytestmark = pytest.mark.browser
expect.set_options(timeout=20_000)


@contextlib.contextmanager
def going(folder: Path, name: str, answer: str = "7", **more: Any) -> Iterator[Gate]:
    """A run that goes on as far as its gate lets it, to its end when it is left."""
    gate, failures = Gate(answer), list[BaseException]()

    def play() -> None:
        try:
            change = ["matrix.terms=[2]", "protocol={use: debate, agents: 3, rounds: 3}", "prompts=panels/standard"]
            harness.evaluate(
                "arithmetic",
                Mock(function=gate.reply),
                output_path=folder / name,
                limit=2,
                overrides=change,
                **more,
            )
        except BaseException as error:
            failures.append(error)

    runner = threading.Thread(target=play)
    runner.start()
    try:
        gate.asked.wait(30)
        yield gate
    finally:
        gate.let(1000)
        runner.join(30)
    assert not runner.is_alive() and failures == []


def test_a_live_run_updates_and_keeps_the_readers_place(page: Page, folder: Path, url: str) -> None:
    page.goto("/")
    with going(folder, "live") as gate:
        row = page.locator("tbody tr", has_text="live")
        expect(row).to_contain_text("running")
        row.get_by_role("link").focus()
        other = page.locator("tbody tr", has_text="silo_quick").element_handle()
        gate.let(2)  # some moves: the list is drawn again
        expect(row.get_by_role("link")).to_be_focused()
        assert other.is_visible()  # rows without news are not drawn again
        row.get_by_role("link").press("Enter")
        expect(page.locator("h1")).to_contain_text("running")
        gate.let(4)  # the first round of both
        opened = page.locator("table.list tbody a").first
        opened.press("Enter")  # the list may be drawn again at any moment; what has the focus keeps it
        expect(page.locator(".going")).to_be_visible()
        slider = page.get_by_role("slider")
        expect(slider).to_have_attribute("max", "2")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        expect(page.locator("output")).to_have_text("round 1 of 2")
        gate.let(6)
        expect(slider).to_have_attribute("max", "3")
        expect(page.locator("output")).to_have_text("round 1 of 3")  # the reader's place is kept
        page.keyboard.press("End")
        gate.let(100)
        expect(page.locator(".going")).to_be_hidden()
        expect(page.locator("output")).to_have_text("round 3 of 3")
        page.keyboard.press("u")
        expect(page.locator("h1")).to_contain_text("finished")
        expect(page.locator("table.numbers").first).to_be_visible()


def test_news_that_could_not_be_fetched_is_asked_for_again(page: Page, folder: Path) -> None:
    run = re.compile(r"/api/runs/missed(\?.*)?$")
    with going(folder, "missed") as gate:
        gate.let(6)
        page.goto("/#/runs/missed")
        expect(page.locator("h1")).to_contain_text("running")
        page.route(run, lambda route: route.fulfill(status=400, json={"error": "not just now"}))
        gate.let(1000)
    with page.expect_response(run):
        pass
    page.unroute(run)
    expect(page.locator("h1")).to_contain_text("finished")
    page.console.forget(lambda text: "status of 400" in text)  # type: ignore[attr-defined]


def test_many_pages_follow_one_run(browser: Browser, url: str, folder: Path) -> None:
    """A browser has six connections to a host: a page that watches must not hold one."""
    context = browser.new_context(base_url=url)
    with going(folder, "watched") as gate:
        gate.let(6)
        pages = [context.new_page() for _ in range(7)]
        for page in pages:
            page.goto("/#/runs/watched")
            expect(page.locator("h1")).to_contain_text("running")
        gate.let(1000)
        for page in pages:
            expect(page.locator("h1")).to_contain_text("finished")
    context.close()


def test_pages_notice_that_a_run_starts_again(page: Page, browser: Browser, url: str, folder: Path) -> None:
    with going(folder, "again") as gate:
        gate.let(1000)
    page.goto("/#/runs/again")
    expect(page.locator("h1")).to_contain_text("finished")
    other = page.context.new_page()
    other.goto(address(url, "again", round=2))
    expect(other.locator(".message.assistant").first).to_contain_text("The answer is 7")
    with going(folder, "again", "8", resume=False, overwrite=True) as gate:
        expect(page.locator("h1")).to_contain_text("running")
        gate.let(1000)
        expect(page.locator("h1")).to_contain_text("finished")
    expect(other.locator(".message.assistant").first).to_contain_text("The answer is 8")
    expect(other.locator("output")).to_have_text("round 2 of 3")
    # Between its old files and its new ones a run cannot be read: the page asks again.
    page.console.forget(lambda text: "status of 400" in text)  # type: ignore[attr-defined]
