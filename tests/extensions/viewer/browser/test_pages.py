"""The pages of runs in a real browser: they load, filter, sort and search, and can be read."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

import harness
from tests.extensions.viewer.browser.browsing import MARKUP, Console, address, api, fits, started_viewer

pytestmark = pytest.mark.browser
expect.set_options(timeout=20_000)


def test_every_page_loads_and_fits_a_phone(page: Page, url: str) -> None:
    page.goto("/")
    expect(page.locator("tbody tr")).to_have_count(len(api(url, "runs")["runs"]))
    fits(page)
    for run in ("silo_quick", "unread"):
        page.goto(f"/#/runs/{run}")
        expect(page.get_by_role("heading", name=run)).to_be_visible()
        expect(page.locator("table.list tbody tr").first).to_be_visible()
        fits(page)
        page.goto(address(url, run, round=2))
        expect(page.locator(".node.agent").first).to_be_visible()
        expect(page.locator(".turn").first).to_be_visible()
        fits(page)


def test_a_runs_page_has_its_tables_record_and_spec(page: Page, folder: Path) -> None:
    page.goto("/#/runs/agentsnet_quick")
    table = page.locator("table.numbers").first
    expect(table).to_contain_text("Leader Election")
    report = harness.load_run(folder / "agentsnet_quick").tables[0]
    assert page.locator("details h2").first.inner_text() == report.title
    expect(table.locator("tbody tr")).to_have_count(len(report.rows))
    page.get_by_text("Run record").click()
    expect(page.locator(".record").first).to_contain_text("spec_digest")
    page.get_by_role("heading", name="Spec").click()
    expect(page.locator("pre.code").last).to_contain_text("name: agentsnet_quick")


def test_a_missing_headline_and_its_tables_say_why(page: Page, folder: Path) -> None:
    why = harness.load_run(folder / "unread").headline_missing
    assert why is not None
    page.goto("/")
    expect(page.locator("tbody tr", has_text="unread").first).to_contain_text("too few turns parsed")
    page.goto("/#/runs/unread")
    shown = page.locator("dl.facts dd", has_text="– (too few turns parsed)")
    expect(shown).to_have_attribute("title", why)
    expect(page.locator("table.numbers").first).to_contain_text("mock––")


def test_addresses_that_lead_nowhere_say_what_to_do(page: Page) -> None:
    for hash, words in (
        ("#/nowhere", "There is no such page"),
        ("#/runs/none", "no such run"),
        ("#/runs/%", "no such run"),
        ("#/runs/silo_quick/episode?id=none", "no episode"),
    ):
        page.goto("about:blank")  # two of them say the same
        page.goto(f"/{hash}")
        expect(page.locator(".state")).to_contain_text(words)
        expect(page.get_by_role("link", name="All runs")).to_be_visible()
    page.console.forget(lambda text: "404" in text)  # type: ignore[attr-defined]


def test_runs_are_sorted_and_filtered(page: Page) -> None:
    page.goto("/")
    names = page.locator("tbody th")
    page.get_by_role("button", name="Run", exact=True).click()
    assert names.all_inner_texts() == sorted(names.all_inner_texts())
    page.get_by_role("button", name="Run", exact=True).click()
    assert names.all_inner_texts() == sorted(names.all_inner_texts(), reverse=True)
    page.get_by_role("searchbox").fill("dpbench")
    expect(names).to_have_text(["dpbench_quick"])
    page.get_by_role("searchbox").fill("no such thing")
    expect(page.locator(".state")).to_contain_text("No run matches")


def test_a_reader_comes_back_to_the_list_as_it_was(page: Page, url: str) -> None:
    page.goto("/")
    page.get_by_role("searchbox").fill("darkforest")
    expect(page.locator("tbody th")).to_have_text(["darkforest_quick"])
    page.locator("tbody th a").press("Enter")
    page.get_by_label("Any method").select_option("vote")
    cells = page.locator("td[data-title=method]")
    count = api(url, "runs/darkforest_quick/episodes", limit=1, **{"label.method": "vote"})["total"]
    expect(cells).to_have_text(["vote"] * count)
    page.locator("table.list tbody a").first.press("Enter")
    expect(page.locator("output")).to_have_text("round 1 of 1")
    expect(page.locator("#main")).to_be_focused()  # the link is gone: Tab goes on in the page
    page.keyboard.press("u")
    expect(page.get_by_label("Any method")).to_have_value("vote")
    expect(cells).to_have_text(["vote"] * count)
    page.keyboard.press("u")
    expect(page.locator("tbody th")).to_have_text(["darkforest_quick"])


def test_episodes_are_filtered_searched_and_paged(page: Page, url: str) -> None:
    page.goto("/#/runs/darkforest_quick")
    rows = page.locator("table.list tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="On →").click()
    expect(page.get_by_text("51–100 of 128 episodes")).to_be_visible()
    page.get_by_label("Any outcome").select_option("unsolved")
    unsolved = api(url, "runs/darkforest_quick/episodes", outcome="unsolved", limit=1)["total"]
    expect(page.get_by_text(f"{unsolved} episodes")).to_be_visible()
    page.get_by_label("Any method").select_option("vote")
    both = {"outcome": "unsolved", "label.method": "vote"}
    count = api(url, "runs/darkforest_quick/episodes", limit=1, **both)["total"]
    expect(rows.locator("td[data-title=method]")).to_have_text(["vote"] * count)
    assert "outcome=unsolved" in page.url and "label.method=vote" in page.url
    page.reload()  # the filters are part of the address
    expect(page.get_by_label("Any method")).to_have_value("vote")
    expect(rows.locator("td[data-title=method]").first).to_have_text("vote")
    page.get_by_role("button", name="Clear").click()
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="score").click()
    expect(rows.locator("td[data-title=score]").first).to_have_text("1")
    page.get_by_role("button", name="score").click()
    expect(rows.locator("td[data-title=score]").first).to_have_text("0")


def test_each_click_turns_the_order_before_the_list_is_drawn_again(page: Page) -> None:
    page.goto("/#/runs/darkforest_quick")
    column = page.locator("table.list th[data-key='numbers.score']")
    column.get_by_role("button").evaluate("button => { button.click(); button.click(); }")
    expect(column).to_have_attribute("aria-sort", "ascending")
    expect(page.locator("td[data-title=score]").first).to_have_text("0")


def test_what_was_said_is_shown_though_the_list_is_drawn_again_meanwhile(page: Page) -> None:
    searches: list[Route] = []

    def pending(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "tables_pending": True})

    page.route("**/api/runs/unread", pending)  # so the page reads the run again and again
    page.route("**/api/runs/unread/search?*", lambda route: searches.append(route))
    page.goto("/#/runs/unread")
    with page.expect_request("**/api/runs/unread/search?*"):
        page.get_by_role("searchbox").fill("no JSON here")
    for _ in range(2):
        with page.expect_response("**/api/runs/unread/episodes?*"):
            pass
    for search in searches:
        search.continue_()
    expect(page.locator(".hits li").first).to_contain_text("no JSON here")
    page.unroute_all(behavior="ignoreErrors")


def test_what_was_typed_before_leaving_does_not_change_the_next_pages_address(page: Page) -> None:
    page.clock.install(time=0)
    page.goto("/#/runs/unread")
    expect(page.locator("table.list tbody tr").first).to_be_visible()
    page.clock.pause_at(3600)
    page.get_by_role("searchbox").fill("no JSON here")
    page.evaluate("location.hash = '#/'")
    expect(page.locator("h1")).to_have_text("Runs")
    page.clock.run_for(1000)
    assert page.evaluate("location.hash") == "#/"


def test_what_was_said_is_found_and_opened_at_its_turn(page: Page) -> None:
    page.goto("/#/runs/unread")
    page.get_by_role("searchbox").fill("no JSON here")
    first = page.locator(".hits li").first
    expect(first).to_contain_text("no JSON here")
    first.get_by_role("link").click()
    now = page.locator(".turn.now")
    expect(now).to_contain_text("no JSON here")
    expect(now).to_contain_text("The reply could not be read")
    expect(now).to_contain_text("asked again")
    assert "turn=" in page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(scheme: Any, browser: Browser, url: str) -> None:
    context = browser.new_context(color_scheme=scheme, base_url=url, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    for place, there in (
        ("/", "tbody tr"),
        ("/#/runs/unread", "table.numbers"),
        (address(url, "unread", round=3), ".turn"),
        (address(url, "darkforest_quick", "method=darkforest", round=2), ".bar-row"),
    ):
        page.goto(place)
        expect(page.locator(there).first).to_be_visible()
        assert page.evaluate(CONTRAST) == []
    context.close()


CONTRAST = """() => {
  const rgb = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const linear = (v) => v <= .04045 * 255 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
  const light = (c) => .2126 * linear(c[0]) + .7152 * linear(c[1]) + .0722 * linear(c[2]);
  const back = (e) => rgb(getComputedStyle(e).backgroundColor);
  const ground = (e) => e ? over(back(e), ground(e.parentElement)) : back(document.documentElement);
  const out = 'svg, noscript, script, option, :disabled, [aria-disabled], [hidden]';
  const low = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || e.closest(out) || !e.checkVisibility()) continue;
    const behind = ground(e), front = over(rgb(getComputedStyle(e).color), behind);
    const [x, y] = [light(front), light(behind)].sort((a, b) => b - a), contrast = (x + .05) / (y + .05);
    if (contrast < 4.5) low.push(`${e.tagName}.${e.className} ${walk.currentNode.data.slice(0, 30)} ${contrast}`);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_heat_maps_are_shaded_by_their_numbers(scheme: Any, browser: Browser, tmp_path: Path) -> None:
    pool = [{"label": MARKUP, "policy": {"use": "expression", "act": "'DEFECT'"}}, {"policy": "random"}]
    pool.append({"label": "kind", "policy": {"use": "expression", "act": "'COOPERATE'"}})
    table = {"title": "Each against each", "kind": "cross_play", "of": "games/results", "figure": "heat"}
    games = {"pool": pool, "games_per_pairing": 3}
    harness.evaluate(
        {"extends": "tournament", "name": "t", "tournament": games, "tables": [table]}, output_path=tmp_path / "t"
    )
    with started_viewer(tmp_path) as url:
        page = browser.new_context(color_scheme=scheme, base_url=url).new_page()
        console = Console(page)
        page.goto("/#/runs/t")
        cells = page.locator("table.numbers tbody tr")
        expect(cells.first.locator("th")).to_have_text(MARKUP)
        assert page.evaluate(CONTRAST) == [] and console.complaints == []
        shown = page.evaluate(SHADES)
        page.context.close()
    [run] = harness.load_run(tmp_path / "t").tables
    expected = [[None if cell.value is None else round(100 * cell.value) for cell in row.cells] for row in run.rows]
    assert [[number for number, _ in line] for line in shown] == expected and None in expected[0]
    assert all((light is None) == (number is None) for line in shown for number, light in line)
    by_number = sorted((number, light) for line in shown for number, light in line if number is not None)
    lights = [light for _, light in by_number]
    assert lights == sorted(lights, reverse=scheme == "light") and abs(lights[0] - lights[-1]) > 0.05


SHADES = """() => [...document.querySelectorAll('.numbers tbody tr')]
  .map((row) => [...row.cells].slice(1).map((cell) => {
  const [r, g, b, a = 1] = getComputedStyle(cell).backgroundColor.match(/[\\d.]+/g).map(Number);
  const ground = matchMedia('(prefers-color-scheme: dark)').matches ? 25 : 255;
  const light = [r, g, b].map((x) => x * a + ground * (1 - a));
  return [cell.textContent ? parseFloat(cell.textContent) : null,
    a === 0 ? null : (.2126 * light[0] + .7152 * light[1] + .0722 * light[2]) / 255];
}))"""
