"""The leaderboard, and two runs side by side, in a real browser."""

import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import harness
from harness.api import Request
from harness.engines.mock import Mock
from tests.extensions.viewer.browser.browsing import HOSTILE, MARKUP, Console, fits, hostile_reply, started_viewer

pytestmark = pytest.mark.browser
expect.set_options(timeout=40_000)


def plain(request: Request) -> str:
    """Right in no case."""
    return "I do not know.\nThe answer is -1."


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A viewer over three runs of one spec: policies, a model of hostile name and words, another one."""
    folder = tmp_path_factory.mktemp("boards")
    two = ["matrix.terms=[2]"]
    harness.evaluate("arithmetic", output_path=folder / "calculator", limit=30, overrides=two)
    harness.evaluate(
        "arithmetic",
        Mock(model=MARKUP, function=hostile_reply),
        output_path=folder / HOSTILE,
        limit=30,
        overrides=two,
    )
    harness.evaluate(
        "arithmetic", Mock(model="plain", function=plain), output_path=Path(folder) / "plain", limit=30, overrides=two
    )
    with started_viewer(folder) as url:
        yield url


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Browser, shown: str) -> Iterator[Page]:
    scheme = request.param
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=shown, color_scheme=scheme)
    context.set_default_timeout(40_000)
    made = context.new_page()
    console = Console(made)
    yield made
    assert made.evaluate("window.hacked") is None
    context.close()
    assert console.complaints == []


def test_the_leaderboard_sorts_and_leads_to_runs(page: Page) -> None:
    page.goto("/#/")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Leaderboard").click()
    board = page.get_by_role("region", name="arithmetic")
    names = board.locator("tbody tr th:nth-child(2)")
    expect(names.first).to_have_text("calculator (ceiling)")
    model = board.get_by_role("button", name="Model")
    model.focus()
    page.keyboard.press("Enter")
    expect(names.first).to_have_text(MARKUP)
    expect(board.locator("[aria-sort]")).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Enter")
    expect(names.first).to_have_text("plain")
    expect(board.locator("svg.interval").first).to_be_visible()
    board.get_by_text("tables over all its runs").click()
    expect(board.get_by_role("heading", name="Right answers by number of terms")).to_be_visible()
    fits(page)
    board.get_by_role("link", name="plain").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("plain")


def test_what_stands_between_backticks_is_shown_as_code(page: Page) -> None:
    page.goto("/#/")
    shown = "async (text) => (await import('/static/dom.js')).prose(text).innerHTML"
    assert page.evaluate(shown, "`a <b>` and `c`.") == "<code>a &lt;b&gt;</code> and <code>c</code>."
    assert page.evaluate(shown, "5` of 6") == "5` of 6"


def test_two_runs_are_compared_case_by_case(page: Page) -> None:
    page.goto("/#/compare")
    page.locator("#side-a").select_option("calculator")
    page.locator("#side-b").select_option("plain")
    expect(page.get_by_role("heading", name="plain against calculator, paired by case")).to_be_visible()
    cases = page.locator(".cases tbody tr")
    expect(cases).to_have_count(20)
    expect(cases.first.locator("td").last).to_contain_text("−1")
    page.get_by_role("button", name="On →").click()
    expect(page.get_by_text("21–30 of 30 cases")).to_be_visible()
    fits(page)
    cases.first.get_by_role("link").click()
    expect(page.locator(".version.parts .first-difference")).to_have_count(2)
    expect(page.locator(".version.parts .text").last).to_contain_text("The answer is -1.")
    fits(page)
    before = page.get_by_role("heading", level=1).inner_text()
    page.keyboard.press("[")
    expect(page.get_by_role("heading", level=1)).not_to_have_text(before)
    page.keyboard.press("u")
    expect(page.get_by_text("21–30 of 30 cases")).to_be_visible()


def test_what_a_model_wrote_stays_text_beside_another_one(page: Page, shown: str) -> None:
    sides = urllib.parse.urlencode({"a": "plain", "b": "hostile~3cimg~20src~3dx~20onerror~3dwindow.hacked~3d6~3e"})
    page.goto(f"/#/compare?{sides}")
    expect(page.get_by_role("heading", name=f"{MARKUP} against plain")).to_be_visible()
    expect(page.get_by_text("No pair differs").or_(page.get_by_text("0 of 30 pairs differ"))).to_be_visible()
    for case in range(4):
        place = f"terms=2/{case}/0"
        both = urllib.parse.urlencode({"one": place, "other": place})
        page.goto(f"/#/compare/episode?{sides}&{both}")
        expect(page.locator(".version .text").last).to_contain_text(
            ["<script>", "javascript:", "⟨U+202E⟩", "long"][case]
        )
        fits(page)


def test_bars_share_a_zero_and_runs_with_numbers_are_offered_first(browser: Browser, tmp_path: Path) -> None:
    for name in ("random", "dpbench/polite"):
        own = tmp_path / name.rpartition("/")[2]
        harness.evaluate("dpbench_quick", overrides=[f"baseline={name}"], output_path=own)
    unread = Mock(model="unread", text="no")
    harness.evaluate("dpbench_quick", unread, output_path=tmp_path / "unread", max_error_rate=1.0)
    with started_viewer(tmp_path) as url:
        page = browser.new_page(base_url=url, viewport={"width": 1280, "height": 900})
        page.goto("/#/compare")
        links = page.locator(".suggestions a")
        expect(links).to_have_text(["random and polite", "unread and polite"])
        links.first.click()
        page.get_by_label("Metric").select_option("dpbench/fairness")
        bars = page.locator(".cases .delta")
        expect(page.locator(".cases .is-more").first).to_be_visible()
        expect(page.locator(".cases .is-less").first).to_be_visible()
        places = [one.bounding_box() for one in bars.all()]
        assert len({(box["x"], box["width"]) for box in places if box is not None}) == 1
        fits(page)
        page.close()


def test_runs_that_are_no_pair_say_so(page: Page) -> None:
    page.goto("/#/compare?a=plain")
    page.get_by_role("link", name="plain and calculator").click()
    expect(page.get_by_role("heading", name="calculator against plain")).to_be_visible()
    page.get_by_role("button", name="Swap A and B").click()
    expect(page.get_by_role("heading", name="plain against calculator")).to_be_visible()


def test_two_parts_of_one_run_stand_side_by_side(browser: Browser, tmp_path: Path) -> None:
    harness.evaluate("arithmetic_votes", limit=12, output_path=tmp_path / "one")
    with started_viewer(tmp_path) as url:
        page = browser.new_page(base_url=url)
        console = Console(page)
        page.goto("/#/compare?a=one")
        page.get_by_role("link", name="Two parts of this run").click()
        page.locator("#part-label").select_option("weights")
        expect(page.get_by_role("heading", name="by confidence against alike")).to_be_visible()
        page.locator(".cases tbody tr").first.get_by_role("link").click()
        expect(page.get_by_text("All turns are the same.", exact=True)).to_be_visible()  # they are counted otherwise
        expect(page.locator(".sides-head")).to_contain_text("by confidence")
        page.keyboard.press("u")
        page.locator("#part-a").select_option("by confidence")
        expect(page.get_by_text("0 of 12 pairs differ")).to_be_visible()
        fits(page)
        page.close()
        assert console.complaints == []
