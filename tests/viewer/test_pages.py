"""The viewer's pages in a real browser: they load, filter, play, follow a run, and show hostile text as text."""

import contextlib
import json
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

import harness
from harness.engines.mock import Mock
from tests.viewer.browsing import (
    CHROMIUM_FLAGS,
    JOINED,
    LARGE,
    MARKUP,
    UNSEEN_CODES,
    Console,
    Gate,
    chromium_path,
    make_runs,
    started_viewer,
)

pytestmark = pytest.mark.browser
expect.set_options(timeout=20_000)
FAMILIES = ["agentsnet_quick", "dpbench_quick", "silo_quick", "mas_quick", "darkforest_quick", "hostile"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    make_runs(made)
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with started_viewer(folder) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=url)
    context.set_default_timeout(20_000)
    made = context.new_page()
    made.console = Console(made)  # type: ignore[attr-defined]
    yield made
    context.close()
    assert made.console.complaints == []  # type: ignore[attr-defined]


def api(url: str, path: str, **query: Any) -> Any:
    with urllib.request.urlopen(f"{url}api/{path}?{urllib.parse.urlencode(query)}") as answer:
        return json.load(answer)


def run_id(url: str, start: str) -> str:
    """The id of the run whose name starts so."""
    return next(run["id"] for run in api(url, "runs")["runs"] if run["name"].startswith(start))


def address(url: str, run: str, match: str = "", **more: Any) -> str:
    """The hash of the run's first episode whose id has a text."""
    run = urllib.parse.quote(run_id(url, run))
    found = api(url, f"runs/{run}/episodes", limit=200)["episodes"]
    name = next(row["id"] for row in found if match in row["id"])
    return f"/#/runs/{run}/episode?{urllib.parse.urlencode({'id': name, **more})}"


# ---------------------------------------------------------------------------------------------- pages


def test_every_page_loads_and_fits_a_phone(page: Page, url: str) -> None:
    page.goto("/")
    expect(page.locator("tbody tr")).to_have_count(7)
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


def fits(page: Page) -> None:
    """No page is wider than a phone, or than a desk's screen."""
    for width in (400, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url


def test_a_runs_page_has_its_tables_record_and_spec(page: Page, folder: Path) -> None:
    page.goto("/#/runs/agentsnet_quick")
    table = page.locator("table.numbers").first
    expect(table).to_contain_text("Leader Election")
    report = harness.Run.load(folder / "agentsnet_quick").tables[0]
    assert page.locator("details h2").first.inner_text() == report.title
    expect(table.locator("tbody tr")).to_have_count(len(report.rows))
    page.get_by_text("Run record").click()
    expect(page.locator(".record").first).to_contain_text("spec_digest")
    page.get_by_role("heading", name="Spec").click()
    expect(page.locator("pre.code").last).to_contain_text("name: agentsnet_quick")


def test_addresses_that_lead_nowhere_say_what_to_do(page: Page) -> None:
    for hash, words in (
        ("#/nowhere", "There is no such page"),
        ("#/runs/none", "no such run"),
        ("#/runs/%", "no such run"),
        ("#/runs/silo_quick/episode?id=none", "no episode"),
    ):
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
    expect(page.locator("output")).to_have_text("start")
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


# -------------------------------------------------------------------------------------------- episodes


@pytest.mark.parametrize("run", FAMILIES)
def test_an_episode_of_every_family_plays_to_the_end(run: str, page: Page, url: str) -> None:
    page.clock.install()
    page.goto(address(url, run, "method=darkforest" if run.startswith("dark") else ""))
    where = page.locator("output")
    expect(where).to_have_text("start")
    rounds = int(page.get_by_role("slider").get_attribute("max"))
    assert rounds >= 1
    captions = {page.locator(".caption").inner_text()}
    page.get_by_role("button", name="Play").click()
    for _ in range(rounds + 2):
        page.clock.run_for(1400)
        captions.add(page.locator(".caption").inner_text())
    expect(where).to_have_text(f"round {rounds} of {rounds}")
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # it stopped by itself
    assert len(captions) == rounds + 1
    expect(page.locator(".caption")).to_contain_text("olved" if run != "dpbench_quick" else ".")
    fits(page)
    page.get_by_role("tab", name="Rounds").click()
    expect(page.locator(".story > li")).to_have_count(rounds + 1)
    page.get_by_role("tab", name="Result").click()
    expect(page.locator("#pane-result")).to_contain_text("Metrics")


def test_keys_and_links_move_through_an_episode(page: Page, url: str) -> None:
    page.goto(address(url, "agentsnet_quick", "coloring"))
    where, agent = page.locator("output"), page.get_by_label("Agent", exact=True)
    expect(where).to_have_text("start")
    for key, expected in (
        ("ArrowRight", "round 1"),
        ("ArrowRight", "round 2"),
        ("ArrowLeft", "round 1"),
        ("End", "round 5"),
        ("Home", "start"),
    ):
        page.keyboard.press(key)
        expect(where).to_contain_text(expected)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".turn.now h3")).to_contain_text("Round 2")
    page.keyboard.press("k")
    expect(page.locator(".turn.now h3")).to_contain_text("Round 1")
    before = agent.input_value()
    page.keyboard.press("n")
    assert agent.input_value() != before
    expect(page.locator(f'.node[aria-label^="{agent.input_value()}"]')).to_have_attribute("aria-pressed", "true")
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    crumb = page.locator("#crumbs li").last
    first = crumb.inner_text()
    page.keyboard.press("]")
    expect(crumb).not_to_have_text(first)
    expect(where).to_have_text("start")
    page.keyboard.press("[")
    expect(crumb).to_have_text(first)
    expect(where).to_have_text("start")
    page.keyboard.press("u")
    expect(page.locator("#episodes-title")).to_be_visible()


def test_an_agent_is_chosen_in_the_picture_and_a_turn_has_an_address(page: Page, url: str) -> None:
    page.goto(address(url, "silo_quick", "agents=5", round=2))
    page.locator('.node[aria-label^="Agent-3"]').click()
    expect(page.get_by_label("Agent", exact=True)).to_have_value("Agent-3")
    expect(page.locator(".knows")).to_contain_text("Only Agent-3 knew")
    turn = page.locator(".turn").first
    turn.get_by_role("link", name="link").click()
    shared, number = page.url, turn.get_attribute("id")
    assert f"turn={number.removeprefix('turn-')}" in shared
    page.goto("about:blank")
    page.goto(shared)
    expect(page.locator(".turn.now")).to_have_id(number)
    expect(page.get_by_label("Agent", exact=True)).to_have_value("Agent-3")


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


# -------------------------------------------------------------------------------------- hostile, live


def hostile_episodes(url: str) -> list[str]:
    """The hashes of the episodes whose models write what they should not."""
    run = run_id(url, "hostile")
    rows = api(url, f"runs/{run}/episodes", limit=10)["episodes"]
    return [f"/#/runs/{run}/episode?{urllib.parse.urlencode({'id': row['id'], 'round': 1})}" for row in rows]


def test_hostile_text_stays_text(page: Page, url: str) -> None:
    seen = ""
    places = ["/", f"/#/runs/{run_id(url, 'hostile')}", *hostile_episodes(url)]
    assert len(places) == 6
    for place in places:
        page.goto(place)
        if "id=" in place:
            expect(page.locator(".message.assistant")).to_be_visible()
            seen += page.locator(".message.assistant").inner_text()
        expect(page.locator("main")).to_contain_text(MARKUP)  # as the name of a run, a model and a label
        assert page.locator("main :is(script, img, iframe, object)").count() == 0
        assert page.locator("a[href^='javascript' i], main a[href^='http']").count() == 0
        assert page.evaluate("window.hacked") is None
    assert "<script>window.hacked=1</script>" in seen and "javascript:window.hacked=4" in seen
    for shown in ("nul ␀ escape ␛[31m bell ␇", "⟨U+202E⟩abc⟨U+202C⟩", "⟨U+2066⟩x⟨U+2069⟩"):
        assert shown in seen
    for code in UNSEEN_CODES:
        assert f"<⟨U+{code:04X}⟩>" in seen
    assert JOINED.strip() in seen  # what joins letters and emoji is text
    assert not set(seen) & set("\x00\x1b\x07\u202e\u2066")


def test_more_groups_than_colors_look_different(page: Page) -> None:
    page.goto("/")
    looks = page.evaluate(
        """async () => {
          const { Picture } = await import("/static/picture.js");
          const picture = new Picture(() => {});
          const same = { kind: "agent", label: "", text: "", marks: [], x: 0, y: 0 };
          const node = (_, i) => ({ ...same, id: `n${i}`, color: i });
          const scene = { nodes: Array.from({ length: 32 }, node), edges: [], flights: [] };
          picture.draw(scene, { topology: {}, selected: null });
          const look = (n) => n.getAttribute("class") + (n.querySelector(".ring")?.getAttribute("class") ?? "");
          return [...picture.svg.querySelectorAll(".node")].map(look);
        }"""
    )
    assert len(looks) == len(set(looks)) == 32


def test_data_is_shown_as_it_is(page: Page) -> None:
    page.goto("/")
    value = {"m": '1,2,3 a":b', "deep": [[1, 2], {"x,y": None}]}
    text = page.evaluate("async (value) => (await import('/static/dom.js')).json(value)", value)
    assert text == '{"m": "1,2,3 a\\":b", "deep": [[1, 2], {"x,y": null}]}'
    long = {"list": list(range(40)), "more": [{"a": i} for i in range(20)]}
    assert json.loads(page.evaluate("async (value) => (await import('/static/dom.js')).json(value)", long)) == long
    lone = "async () => (await import('/static/dom.js')).visible('a' + String.fromCharCode(0xd800) + 'b')"
    assert page.evaluate(lone) == "a⟨U+D800⟩b"


def test_ten_megabytes_are_loaded_when_asked_for(page: Page, url: str) -> None:
    page.goto(hostile_episodes(url)[3])
    whole = len(LARGE) + len("\nThe answer is 42.")
    reply = page.locator(".message.assistant")
    reply.get_by_role("button", name=f"Show all {whole:,} characters").click()
    expect(reply.get_by_role("button")).to_have_text(f"Show more (100,000 of {whole:,} characters)")
    reply.get_by_role("button").click()
    expect(reply.get_by_role("button")).to_have_text(f"Show more (200,000 of {whole:,} characters)")


@contextlib.contextmanager
def going(folder: Path, name: str, answer: str = "7", **more: Any) -> Iterator[Gate]:
    """A run that goes on as far as its gate lets it, to its end when it is left."""
    gate, failures = Gate(answer), list[BaseException]()

    def play() -> None:
        try:
            change = ["matrix.terms=[2]", "protocol={use: debate, agents: 3, rounds: 3}", "prompts=ensembles/standard"]
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
        opened.click()
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
