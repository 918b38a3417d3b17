"""An episode's page in a real browser: it plays, moves by keys and links, and shows hostile text as text."""

import json
import re
import urllib.parse

import pytest
from playwright.sync_api import Page, expect

from tests.extensions.viewer.browser.browsing import JOINED, LARGE, MARKUP, UNSEEN_CODES, address, api, fits, run_id

pytestmark = pytest.mark.browser
VALUES = """async (texts) => {
  const { Picture } = await import("/static/picture.js");
  const nodes = texts.map((text, i) => ({ id: `agent ${i}`, kind: "agent", text, marks: [], color: null }));
  const picture = new Picture(() => {});
  picture.draw({ nodes, edges: [], messages: [] }, {});
  const found = [...picture.svg.querySelectorAll("text.value, text.below")];
  return found.map((one) => `${one.textContent} ${one.getAttribute("class")} ${one.getAttribute("font-size")}`);
}"""
expect.set_options(timeout=20_000)
FAMILIES = ["agentsnet_quick", "dpbench_quick", "silo_quick", "mas_quick", "darkforest_quick", "hostile"]


@pytest.mark.parametrize("run", FAMILIES)
def test_an_episode_of_every_family_plays_to_the_end(run: str, page: Page, url: str) -> None:
    page.clock.install(time=0)
    page.goto(address(url, run, "method=darkforest" if run.startswith("dark") else ""))
    where = page.locator("output")
    rounds = int(page.get_by_role("slider").get_attribute("max"))
    assert rounds >= 1
    expect(where).to_have_text(f"round {rounds} of {rounds}")  # where it was decided
    page.clock.pause_at(3600)  # until here time went by of itself, and would go on beside what `run_for` adds
    captions = {page.locator(".caption").inner_text()}
    page.get_by_role("button", name="Play").click()
    expect(where).to_have_text("start")
    captions.add(page.locator(".caption").inner_text())
    for _ in range(rounds + 2):
        page.clock.run_for(1400)
        captions.add(page.locator(".caption").inner_text())
    expect(where).to_have_text(f"round {rounds} of {rounds}")
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # it stopped by itself
    assert len(captions) == rounds + 1
    expect(page.locator(".caption")).to_contain_text("olved" if run != "dpbench_quick" else ".")
    expect(page.locator(".episode-head .badge")).to_contain_text("olved" if run != "dpbench_quick" else "deadlock")
    fits(page)
    page.get_by_role("tab", name="Rounds").click()
    expect(page.locator(".story > li")).to_have_count(rounds + 1)
    page.get_by_role("tab", name="Result").click()
    expect(page.locator("#pane-result")).to_contain_text("Metrics")


def test_keys_and_links_move_through_an_episode(page: Page, url: str) -> None:
    page.clock.install(time=0)
    page.goto(address(url, "agentsnet_quick", "coloring"))
    where, agent = page.locator("output"), page.get_by_label("Agent", exact=True)
    expect(where).to_have_text("round 5 of 5")
    assert "round=" not in page.url
    for key, expected in (
        ("Home", "start"),
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
    page.clock.pause_at(3600)  # else it may have come to its end before this test looks
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.clock.resume()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    crumb = page.locator("#crumbs li").last
    first = crumb.inner_text()
    page.keyboard.press("]")
    expect(crumb).not_to_have_text(first)
    expect(where).to_contain_text("round")
    page.keyboard.press("[")
    expect(crumb).to_have_text(first)
    expect(where).to_have_text("round 5 of 5")
    page.keyboard.press("u")
    expect(page.locator("#episodes-title")).to_be_visible()


def test_neighbors_are_those_of_the_list_a_reader_came_from(page: Page, url: str) -> None:
    page.goto("/#/runs/darkforest_quick?outcome=unsolved&sort=case&desc=1")
    row = page.locator("table.list tbody a").nth(1)
    expect(row).to_be_visible()
    asked = {"outcome": "unsolved", "sort": "case", "desc": "1"}
    rows = api(url, "runs/darkforest_quick/episodes", **asked)["episodes"]
    row.click()
    head, crumb = page.locator(".episode-head"), page.locator("#crumbs li").last
    expect(head).to_contain_text("unsolved · by case ↓")
    for key, at in (("[", 0), ("]", 1), ("ArrowRight", 1), ("]", 2)):
        page.keyboard.press(key)
        expect(crumb).to_have_text(rows[at]["id"])
        expect(page.locator("output")).to_be_visible()
    page.reload()
    expect(crumb).to_have_text(rows[2]["id"])
    page.get_by_role("link", name="next →").click()
    expect(crumb).to_have_text(rows[3]["id"])
    expect(page.locator("output")).to_be_visible()
    page.keyboard.press("u")  # also where the page was opened by its address
    expect(page.get_by_label("Any outcome")).to_have_value("unsolved")
    page.goto(address(url, "darkforest_quick", rows[2]["id"]))
    expect(page.get_by_role("link", name="next →")).to_be_visible()
    assert "unsolved · by case" not in head.inner_text()


def test_an_agent_is_chosen_in_the_picture_and_a_turn_has_an_address(page: Page, url: str) -> None:
    page.goto(address(url, "silo_quick", "agents=5", round=2))
    page.locator('.node[aria-label^="Agent-3"]').click()
    expect(page.get_by_label("Agent", exact=True)).to_have_value("Agent-3")
    expect(page.locator(".knows")).to_contain_text("Only Agent-3 knew")
    turn = page.locator(".turn").first
    turn.get_by_role("link", name="link").click()
    number = turn.get_attribute("id")
    expect(page).to_have_url(re.compile(f"turn={number.removeprefix('turn-')}\\b"))
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    expect(page.locator(".turn.now")).to_have_id(number)
    expect(page.get_by_label("Agent", exact=True)).to_have_value("Agent-3")


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
        page.goto("about:blank")  # else what is on the page could still be the last episode's
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
          const scene = { nodes: Array.from({ length: 32 }, node), edges: [], messages: [] };
          picture.draw(scene, { topology: {}, selected: null });
          const look = (n) => n.getAttribute("class") + (n.querySelector(".ring")?.getAttribute("class") ?? "");
          return [...picture.svg.querySelectorAll(".node")].map(look);
        }"""
    )
    assert len(looks) == len(set(looks)) == 32


def test_values_of_a_picture_have_one_style(page: Page) -> None:
    page.goto("/")
    assert page.evaluate(VALUES, ["BID 8", "BID 10"]) == ["BID 8 value long 18.48", "BID 10 value long 18.48"]
    assert page.evaluate(VALUES, ["A", "unread", ""]) == ["A value long 18.48", "unread value long 18.48"]
    assert page.evaluate(VALUES, ["A", "OFFER Agent"]) == ["A below null", "OFFER Agent below null"]


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
