"""A site as a browser opens it from its folder: scripts, colors, a phone, paper."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from harness import evaluate
from harness.engines.mock import Mock
from tests.extensions.viewer.browser.browsing import MARKUP, Console, hostile_reply
from tests.helpers.finished import calculator

pytestmark = pytest.mark.browser
CONTRAST = """() => {
  const channel = (x) => (x /= 255) <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const rgb = (color) => color.match(/[\\d.]+/g).map(Number);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return rgb(getComputedStyle(document.documentElement).backgroundColor);
  };
  const bad = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const exempt = element.closest(".hidden, .skip, script, noscript, .picture, [aria-disabled]");
    if (!own || exempt || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(rgb(element.closest("svg") ? style.fill : style.color)), light(ground(element))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const name = element.className.baseVal ?? element.className;
    if (ratio < 4.5) bad.add(`${element.tagName}.${name} ${ratio.toFixed(2)}`);
  }
  return [...bad];
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two benchmarks, with a hostile model and its replies."""
    runs, target = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("made") / "site"
    sums = ["task.size=4", "matrix.terms=[2,3]"]
    for name, wrong_from in (("one", 3), ("two", 9)):
        model = Mock(model=name, function=calculator(wrong_from, 10))
        evaluate("arithmetic", model, overrides=sums, output_path=runs / name)
    evaluate("arithmetic", Mock(model=MARKUP, function=hostile_reply), overrides=sums, output_path=runs / "hostile")
    for name in ("random", "dpbench/polite"):
        evaluate("dpbench_quick", overrides=[f"baseline={name}"], output_path=runs / name.replace("/", "-"))
    command = ["leaderboard", str(runs), "--format", "site", "-o", str(target)]
    subprocess.run([sys.executable, "-m", "harness", *command], check=True)
    return target


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    made = browser.new_page(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(20_000)
    console = Console(made)
    yield made
    assert made.evaluate("window.hacked ?? null") is None
    made.close()
    assert console.complaints == []


def one_of_each(site: Path) -> list[Path]:
    """A page of each kind."""
    kinds = ("benchmarks/arith*/", "benchmarks/dp*/", "models/*/", "runs/dp*/", "runs/arith*img*/", "runs/", "models/")
    found = [next(iter(sorted(site.glob(f"{kind}index.html")))) for kind in kinds]
    episodes = [next(iter(sorted(site.glob(f"runs/{name}*/episodes/*.html")))) for name in ("dp", "arithmetic-img")]
    return [site / "index.html", *found, *episodes, site / "method" / "index.html"]


def test_pages_fit_a_phone_and_have_contrast_in_both_modes(page: Page, site: Path) -> None:
    for file in one_of_each(site):
        page.goto(file.as_uri())
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(CONTRAST) == [], (file, scheme)
        for width in (400, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (file, width)


def test_a_click_on_a_head_sorts(page: Page, site: Path) -> None:
    page.goto((site / "benchmarks" / "arithmetic" / "index.html").as_uri())
    table = page.locator("table.standings")
    table.locator("thead button", has_text="Accuracy").click()
    assert table.locator("th[aria-sort=descending]").count() == 1
    assert table.locator("tbody th").first.locator("a").first.inner_text() == "two"
    table.locator("thead button", has_text="Accuracy").press("Enter")
    assert table.locator("tbody th").last.locator("a").first.inner_text() == "two"


def test_a_phone_shows_whole_intervals_and_a_wide_screen_all_standings(page: Page, site: Path) -> None:
    page.goto((site / "benchmarks" / "dpbench_quick" / "index.html").as_uri())
    page.set_viewport_size({"width": 390, "height": 800})
    for interval in page.locator(".standings .headline span").all():
        box = interval.bounding_box()
        assert "[" in interval.inner_text() and box is not None and box["x"] + box["width"] <= 390 - 14
    page.set_viewport_size({"width": 1280, "height": 800})
    frame = page.locator(".wide", has=page.locator(".standings"))
    assert frame.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_the_other_model_is_the_readers_choice_and_stays_in_the_address(page: Page, site: Path) -> None:
    address = (site / "models" / "one" / "index.html").as_uri()
    page.goto(address)
    assert page.locator("#other-head").inner_text() == "two"
    page.get_by_label("Beside it").select_option(label=MARKUP)
    assert page.locator("#other-head").inner_text() == MARKUP and "#with=" in page.url
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    assert page.get_by_label("Beside it").evaluate("one => one.selectedOptions[0].textContent") == MARKUP
    assert page.locator("svg .beside").count() >= 1


def test_an_episode_is_drawn_by_the_viewer_without_a_server(page: Page, site: Path) -> None:
    episodes = sorted(site.glob("runs/dp*polite*/episodes/*.html"))
    page.goto(episodes[0].as_uri())
    page.get_by_role("slider", name="Round").wait_for()
    assert page.locator("svg.picture .node").count() >= 3
    page.get_by_role("button", name="A round back (←)").click()
    assert "round=" in page.url and page.url.startswith(episodes[0].as_uri())
    page.get_by_role("tab", name="Rounds").click()
    assert page.locator(".story li").count() >= 1
    page.keyboard.press("u")
    page.wait_for_url("**/index.html")
    assert "Play it again" in page.locator("main").inner_text()


def test_on_paper_charts_and_tables_stand_open_and_the_menu_is_gone(page: Page, site: Path) -> None:
    page.goto((site / "benchmarks" / "arithmetic" / "index.html").as_uri())
    shown = """() => ["details.printed table", ".top nav", "table.standings"].map((selector) =>
        document.querySelector(selector).checkVisibility())"""
    assert page.evaluate(shown) == [False, True, True]
    page.emulate_media(media="print")
    assert page.evaluate(shown) == [True, False, True]


def test_without_scripts_everything_is_read(browser: Browser, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for file in one_of_each(site):
        page.goto(file.as_uri())
        assert page.locator("h1").first.is_visible() and not page.locator("#choose").is_visible()
        assert "button" not in page.locator("main").inner_html()
    context.close()
