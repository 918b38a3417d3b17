"""What blame found, and a turn with another reply, in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import harness
from harness.api import Request
from harness.engines.mock import Mock
from harness.extensions.blame.blame import blamed
from harness.extensions.blame.blame_command import as_json
from harness.extensions.blame.findings import keep
from tests.extensions.viewer.browser.browsing import SCRIPT, Console, address, fits, started_viewer

pytestmark = pytest.mark.browser
expect.set_options(timeout=30_000)
ONE = ("matrix.problem=[consensus]", "matrix.graphs=[small_world]")
LIAR = "agents={default: model, liar: {count: 1, policy: {use: faulty, of: agentsnet/classical, at: 3}}}"


def hostile(request: Request) -> str:
    return f"{SCRIPT}\n### Final Answer ###\n0" if "Final Answer" in request.thread.messages[-1]["content"] else "{}"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A viewer with a run that was blamed, and one of a model; its address with the key."""
    folder = tmp_path_factory.mktemp("what_if")
    led = harness.evaluate("agentsnet_quick", overrides=(*ONE, LIAR), output_path=folder / "led")
    keep(led.folder, as_json(blamed(led)))
    harness.evaluate("agentsnet_quick", Mock(function=hostile), overrides=ONE, output_path=folder / "said")
    with started_viewer(Path(folder), "--what_if") as url:
        yield url


@pytest.fixture
def page(browser: Browser, shown: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=shown.partition("?")[0])
    context.set_default_timeout(30_000)
    made = context.new_page()
    console = Console(made)
    yield made
    assert made.evaluate("window.hacked") is None
    context.close()
    console.forget(lambda text: "status of 400" in text or "status of 403" in text)
    assert console.complaints == []


def test_a_lane_leads_to_the_decisive_turn(page: Page, shown: str) -> None:
    page.goto(address(shown.partition("?")[0], "led"))
    lanes = page.get_by_role("region", name="Who made it fail")
    expect(lanes).to_contain_text("decides it")
    lanes.locator(".lane .mark.decisive").click()
    expect(page.locator(".turn.now .found-mark")).to_contain_text("decisive")
    fits(page)


def test_without_the_key_there_is_no_button(page: Page, shown: str) -> None:
    page.goto(address(shown.partition("?")[0], "led"))
    expect(page.locator(".turn").first).to_be_visible()
    expect(page.locator(".what-if")).to_have_count(0)
    page.evaluate("localStorage.setItem('harness-key', 'guessed')")
    page.reload()
    expect(page.locator(".turn").first).to_be_visible()
    expect(page.locator(".what-if")).to_have_count(0)


def test_a_reply_is_edited_and_both_versions_stand_side_by_side(page: Page, shown: str) -> None:
    url = shown.partition("?")[0]
    page.goto(shown)
    expect(page).to_have_url(url)  # no key is left in the address bar
    page.goto(address(url, "led"))
    page.locator(".lane .mark.decisive").click()
    page.locator(".turn.now .what-if").click()
    form = page.locator(".what-if-form")
    form.get_by_role("textbox").fill("no such answer <b>")
    form.get_by_role("button", name="Play on", exact=True).click()
    expect(form.get_by_role("alert")).to_contain_text("Legal are such as")
    form.get_by_role("button", name="1", exact=True).click()
    form.get_by_role("button", name="Play on", exact=True).click()
    expect(page.locator(".versions-head .badge")).to_have_text(["✗ unsolved", "✓ solved"])
    expect(page.locator(".parting")).to_contain_text("They part at turn 13")
    expect(page.locator(".version.parts .text")).to_have_text(["0", "1"])
    fits(page)
    page.get_by_role("link", name="The whole episode").last.click()
    expect(page.locator(".episode-head")).to_contain_text("with a change")
    expect(page.locator(".what-if")).to_have_count(0)  # a replay is not played again


def test_a_stand_in_answers_for_models_and_hostile_text_stays_text(page: Page, shown: str) -> None:
    page.goto(shown)
    page.goto(address(shown.partition("?")[0], "said"))
    page.locator(".turn .what-if").first.click()
    form = page.locator(".what-if-form")
    expect(form.get_by_role("combobox")).to_have_value("stand-in")
    form.get_by_role("textbox").fill(f'{{"x": {SCRIPT!r}}}')
    form.get_by_role("button", name="Play on", exact=True).click()
    expect(form.get_by_role("alert")).to_contain_text("cannot be")
    form.get_by_role("button", name="Cancel").click()
    page.locator(".turn .what-if").last.click()
    form = page.locator(".what-if-form")
    form.get_by_role("combobox").select_option("the policy agentsnet/classical, from there on")
    form.get_by_role("textbox").fill(f"{SCRIPT}\n### Final Answer ###\n1")
    form.get_by_role("button", name="Play on", exact=True).click()
    expect(page.locator(".version.parts .text").last).to_contain_text("<script>")
    fits(page)
