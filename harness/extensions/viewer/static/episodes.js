// The episodes of a run: filters, search in ids and in what was said, pages.

import { get } from "./api.js";
import { badge, h, loading, name as named, number, plural, said, scroller, set, state, usd } from "./dom.js";
import { listed, move } from "./places.js";

const PAGE = 50;
const BUILT_IN = new Set(["rounds", "calls", "tokens_output", "parse_failures", "inner_calls", "inner_cost"]); // columns of their own
export const OUTCOMES = ["solved", "partly solved", "unsolved", "unscored", "failed", "unfinished", "limited"];

/** Draws the list into a section. Gives functions that load it again, take new counts, and read an address. */
export function episodeList(section, data, run, query, signal) {
  let asked = Object.fromEntries(query);
  let turn = 0;
  let heard = 0;
  const form = h("form", {
    class: "bar",
    role: "search",
    "aria-label": "Filter episodes",
    on: { submit: (event) => event.preventDefault() },
  });
  const list = h("div", {});
  const hits = h("div", {});
  let timer = null;
  signal.addEventListener("abort", () => clearTimeout(timer)); // else it takes the address of the next page

  const select = (name, title, values, labels = {}) => {
    const box = h(
      "select",
      { name, "aria-label": title, on: { change: () => change(name, box.value) } },
      h("option", { value: "" }, title),
      values.map((value) => h("option", { value }, labels[value] ?? value)),
    );
    box.value = asked[name] ?? "";
    return box;
  };
  const search = h("input", {
    id: "episode-search",
    type: "search",
    placeholder: "Search ids and what was said",
    "aria-label": "Search ids and what was said",
    on: {
      input: () => {
        clearTimeout(timer);
        timer = setTimeout(() => change("q", search.value.trim()), 250);
      },
    },
  });
  const outcome = h("span", {});
  function counts(now) {
    const focused = outcome.contains(document.activeElement);
    data = now;
    const count = (name) => `${now.words[name] ?? name} (${number(now.counts[name] ?? 0)})`;
    const words = Object.fromEntries(OUTCOMES.map((name) => [name, count(name)]));
    set(
      outcome,
      select(
        "outcome",
        "Any outcome",
        OUTCOMES.filter((name) => now.counts[name] || asked.outcome === name),
        words,
      ),
    );
    if (focused) outcome.firstChild.focus();
  }
  function drawForm() {
    search.value = asked.q ?? "";
    counts(data);
    const labels = Object.entries(data.labels).filter(([, values]) => values.length > 1);
    set(
      form,
      search,
      outcome,
      labels.map(([name, values]) => select(`label.${name}`, `Any ${name}`, values)),
      !labels.length && data.conditions.length > 1 && select("condition", "Any condition", data.conditions),
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          on: {
            click: () => {
              asked = {};
              drawForm();
              address();
              load();
            },
          },
        },
        "Clear",
      ),
    );
  }
  function address() {
    const kept = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
    move(`#/runs/${encodeURIComponent(run)}${kept.size ? `?${kept}` : ""}`);
  }
  function change(name, value) {
    asked = { ...asked, [name]: value, offset: "" };
    address();
    load();
  }

  async function load(quietly = false) {
    const mine = ++turn;
    if (!quietly) hear();
    if (!quietly && !list.firstChild) set(list, loading("Listing episodes …"));
    try {
      const found = await get(`runs/${encodeURIComponent(run)}/episodes`, { ...asked, limit: PAGE }, { signal });
      if (mine !== turn) return;
      const focused = document.activeElement?.dataset?.keep;
      set(list, found.total ? rows(found) : nothing(), pager(found.total));
      if (focused) list.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
    } catch (error) {
      if (error.name !== "AbortError" && mine === turn)
        set(list, state("The episodes cannot be listed.", error.message));
    }
  }
  /** Apart from the list, which may be drawn again before this answer comes. */
  async function hear() {
    const mine = ++heard;
    if (!asked.q) return set(hits);
    try {
      const found = await get(`runs/${encodeURIComponent(run)}/search`, { q: asked.q, limit: 20 }, { signal });
      if (mine === heard) set(hits, said_(found));
    } catch (error) {
      if (error.name !== "AbortError" && mine === heard)
        set(hits, state("What was said cannot be searched.", error.message));
    }
  }
  const among = () => listed(Object.entries(asked));
  const nothing = () =>
    Object.values(asked).some(Boolean)
      ? state("No episode matches.", "Change or clear the filters.")
      : state(
          "No episode has been played yet.",
          data.status === "running"
            ? "They appear here as they are played."
            : "Run the same eval command again to go on.",
        );

  function said_(found) {
    if (!found.hits.length)
      return h(
        "p",
        { class: "muted" },
        `No agent said “`,
        said(asked.q),
        `”`,
        found.complete ? "." : " in the part that was searched; name a longer text.",
      );
    return h(
      "details",
      { class: "card", open: true },
      h(
        "summary",
        {},
        h("h3", {}, `Said by agents: ${plural(found.hits.length, "place")}${found.complete ? "" : " and more"}`),
      ),
      h(
        "ul",
        { class: "hits" },
        found.hits.map((hit) =>
          h(
            "li",
            {},
            h(
              "a",
              { href: link(run, hit.episode, { ...among(), q: "", agent: hit.agent, turn: hit.turn }) },
              said(hit.agent),
              " · turn ",
              number(hit.turn),
            ),
            h("span", { class: "muted" }, " ", said(hit.episode)),
            h("p", { class: "snippet", dir: "auto" }, hit.snippet),
          ),
        ),
      ),
    );
  }

  function rows(found) {
    const labels = Object.entries(data.labels)
      .filter(([, values]) => values.length > 1)
      .map(([name]) => name)
      .slice(0, 6);
    const metrics = data.metrics
      .filter(
        (name) =>
          !BUILT_IN.has(name) &&
          found.episodes.some((row) => row.numbers?.[name] !== null && row.numbers?.[name] !== undefined),
      )
      .slice(0, 3);
    const known = (name) => found.episodes.some((row) => (row[name] ?? null) !== null);
    const columns = [
      [
        "",
        "Episode",
        (row) =>
          h(
            "a",
            { href: link(run, row.id, among()), data: { keep: row.id } },
            named(row.case),
            row.repeat ? ` #${row.repeat}` : "",
          ),
      ],
      ["", "Outcome", (row) => badge(row.outcome, row.error, data.words)],
      ...(labels.length || data.conditions.length < 2
        ? []
        : [["condition", "condition", (row) => named(row.condition)]]),
      ...labels.map((name) => [`labels.${name}`, name, (row) => named(String(row.labels[name] ?? "–"))]),
      ...metrics.map((name) => [`numbers.${name}`, name, (row) => number(row.numbers?.[name]), true]),
      ["rounds", "Rounds", (row) => number(row.rounds), true],
      ["calls", "Calls", (row) => number(row.calls), true],
      ...(known("inner_calls") ? [["inner_calls", "Inner calls", (row) => number(row.inner_calls), true]] : []),
      ["output_tokens", "Tokens out", (row) => number(row.output_tokens), true],
      ...(known("cost") ? [["cost", "Cost", (row) => usd(row.cost, row.cost_is_whole), true]] : []),
      ["parse_failures", "Unread", (row) => number(row.parse_failures), true],
    ];
    const head = columns.map(([key, title, , right]) => {
      if (!key) return h("th", { scope: "col" }, title);
      // Asked anew at each click: the table that is shown may be older than the last click.
      const sorted = () => asked.sort === key;
      const down = () => sorted() && asked.desc === "1";
      const turnAround = () => {
        asked = { ...asked, sort: key, desc: (sorted() ? !down() : right) ? "1" : "", offset: "" };
        address();
        load();
      };
      return h(
        "th",
        {
          scope: "col",
          class: right && "right",
          data: { key },
          "aria-sort": sorted() ? (down() ? "descending" : "ascending") : null,
        },
        h("button", { type: "button", class: "sort", data: { keep: `sort ${key}` }, on: { click: turnAround } }, title),
      );
    });
    const lines = found.episodes.map((row) =>
      h(
        "tr",
        {},
        columns.map(([key, title, cell, right], i) =>
          h(
            i ? "td" : "th",
            { scope: i ? null : "row", class: right && "right", data: { title, key } },
            cell(row),
            !i && row.error && h("p", { class: "problem" }, row.error.slice(0, 200)),
          ),
        ),
      ),
    );
    const all = h(
      "table",
      { class: "list cards" },
      h("caption", { class: "hidden" }, "Episodes"),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, lines),
    );
    return scroller(all, (box) => fit(box, asked.sort));
  }
  function pager(total) {
    const at = Number(asked.offset || 0);
    if (total <= PAGE) return h("p", { class: "muted", role: "status" }, plural(total, "episode"));
    const go = (offset) => () => {
      asked = { ...asked, offset: offset ? String(offset) : "" };
      address();
      load();
    };
    return h(
      "nav",
      { class: "pager", "aria-label": "Pages of episodes" },
      h(
        "button",
        { type: "button", disabled: at === 0, data: { keep: "back" }, on: { click: go(Math.max(0, at - PAGE)) } },
        "← Back",
      ),
      h(
        "span",
        { role: "status" },
        `${number(at + 1)}–${number(Math.min(total, at + PAGE))} of ${plural(total, "episode")}`,
      ),
      h(
        "button",
        { type: "button", disabled: at + PAGE >= total, data: { keep: "on" }, on: { click: go(at + PAGE) } },
        "On →",
      ),
    );
  }
  set(section, h("h2", { id: "episodes-title" }, "Episodes"), form, hits, list);
  drawForm();
  return {
    load,
    renew: (now) => {
      const other = JSON.stringify(now.labels) !== JSON.stringify(data.labels);
      counts(now);
      if (other) drawForm();
    },
    restore: (now) => {
      asked = Object.fromEntries(now);
      drawForm();
      load();
    },
  };
}

const LEAST = ["parse_failures", "calls", "rounds"]; // an episode's own page has them, too

/** Hide columns that matter least, but not the one that sorts, until the others fit. */
function fit(box, sort) {
  const cells = (key) => box.querySelectorAll(`[data-key="${key}"]`);
  for (const key of LEAST) for (const cell of cells(key)) cell.hidden = false;
  for (const key of LEAST)
    if (key !== sort && box.scrollWidth > box.clientWidth) for (const cell of cells(key)) cell.hidden = true;
}

/** The address of an episode. */
export function link(run, episode, more = {}) {
  const query = new URLSearchParams({ id: episode });
  for (const [name, value] of Object.entries(more))
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  return `#/runs/${encodeURIComponent(run)}/episode?${query}`;
}
