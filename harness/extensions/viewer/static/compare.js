// Two runs side by side, or two parts of one, as `harness compare` computes it, and the cases in which they differ.

import { computed, get } from "./api.js";
import { h, loading, name as named, number, plural, prose, said, scroller, set, state } from "./dom.js";
import { back, move } from "./places.js";
import { table } from "./tables.js";

const PAGE = 20;
const SIDES = ["a", "b", "label", "first", "second"];

/** What an address compares: two runs, or one run twice with a label and two of its values. */
export const sidesOf = (query) => Object.fromEntries(SIDES.map((name) => [name, query.get(name) ?? ""]).filter(([, value]) => value));

/** The address of two runs side by side. */
export const compareLink = (asked) => `#/compare?${new URLSearchParams(Object.entries(asked).filter(([, value]) => value))}`;

export async function comparePage(main, { query, signal }) {
  const sides = sidesOf(query);
  const { a = "", b = "" } = sides;
  set(main, loading("Looking for runs …"));
  const all = (await get("runs", {}, { signal })).runs;
  const results = h("div", {});
  set(
    main,
    h("div", { class: "page" }, h("header", { class: "page-head" }, h("h1", {}, "Compare two runs")), chooser(all, a, b), results),
  );
  const keys = {
    u: () => {
      location.hash = back("#/");
    },
    "/": () => document.getElementById("side-a").focus(),
  };
  if (!a || !b) {
    set(results, suggestions(all, a));
    return { keys };
  }
  const parts = h("div", {});
  if (a === b) {
    const run = await get(`runs/${encodeURIComponent(a)}`, {}, { signal });
    set(parts, partsOf(run, sides));
    if (!sides.label) {
      set(results, parts);
      return { keys };
    }
  }
  set(results, parts, loading("Comparing …"));
  try {
    const data = await computed("compare", sides, { signal });
    set(results, parts, data.unchecked && h("p", { class: "problem", role: "note" }, prose(data.unchecked)), tablesOf(data));
    const cases = h("section", { "aria-labelledby": "cases-title" });
    results.append(cases);
    await listCases(cases, data, sides, query, signal);
  } catch (error) {
    if (error.name === "AbortError" || error.status !== 400) throw error;
    set(results, parts, state(a === b ? "These parts cannot be compared." : "These runs cannot be compared.", error.message));
  }
  return { keys };
}

/** Two lists of finished runs, those of the other side's spec first, and a button that swaps the sides. */
function chooser(all, a, b) {
  const finished = all.filter((run) => run.status === "finished" || run.status === "damaged");
  const go = (one, other) => {
    location.hash = compareLink({ a: one, b: other });
  };
  const select = (id, side, chosen, other) => {
    const spec = finished.find((run) => run.id === other)?.spec;
    const order = [...grouped(finished)].sort(([x], [y]) => (y === spec) - (x === spec));
    const label = (run) => [run.name, run.model, run.headline?.text].filter(Boolean).join(" · ");
    const box = h(
      "select",
      { id, on: { change: () => (side === "A" ? go(box.value, b) : go(a, box.value)) } },
      h("option", { value: "" }, "Choose a run"),
      order.map(([title, runs]) =>
        h("optgroup", { label: title }, runs.map((run) => h("option", { value: run.id }, label(run)))),
      ),
    );
    box.value = chosen;
    return h("label", { class: "side-choice" }, h("span", { class: `letter is-${side}` }, side), box);
  };
  return h(
    "div",
    { class: "bar sides" },
    select("side-a", "A", a, b),
    h("button", { type: "button", title: "Swap A and B", "aria-label": "Swap A and B", disabled: !a && !b, on: { click: () => go(b, a) } }, "⇄"),
    select("side-b", "B", b, a),
  );
}

/** A list of labels of a run, and two of the values of the one that was chosen. */
function partsOf(run, { a, b, label, first, second }) {
  const labels = Object.entries(run.labels).filter(([name, values]) => values.length > 1 && name !== "model");
  if (!labels.length) return state("Both sides are the same run.", "It has no label with two values: choose another run.");
  const values = labels.find(([name]) => name === label)?.[1] ?? [];
  const go = (more) => () => {
    location.hash = compareLink({ a, b, ...more() });
  };
  const select = (id, title, options, chosen, more) => {
    const box = h("select", { id, on: { change: go(() => more(box.value)) } }, !chosen && h("option", { value: "" }, "Choose"), options.map((one) => h("option", { value: one }, one)));
    box.value = chosen ?? "";
    return h("label", {}, `${title} `, box);
  };
  const names = labels.map(([name]) => name);
  const pick = (name) => {
    const [one, other] = labels.find(([known]) => known === name)[1];
    return { label: name, first: one, second: other };
  };
  return h(
    "div",
    { class: "bar" },
    select("part-label", "Two parts of this run, by", names, label, pick),
    label && select("part-a", "A", values, first, (one) => ({ label, first: one, second })),
    label && select("part-b", "B", values, second, (other) => ({ label, first, second: other })),
  );
}

function grouped(runs) {
  const groups = new Map();
  for (const run of runs) groups.set(run.spec ?? "–", [...(groups.get(run.spec ?? "–") ?? []), run]);
  return groups;
}

const SUGGESTED = 3; // pairs of a spec

/** The newest run of a spec beside those before it, as (the earlier one, the newest); runs without a number come last. */
function newestPairs(runs) {
  const hasNumber = (run) => typeof run.headline?.value === "number";
  const [newest, ...others] = [...runs].sort(
    (one, other) => hasNumber(other) - hasNumber(one) || (other.start ?? "").localeCompare(one.start ?? ""),
  );
  return others.slice(0, SUGGESTED).map((run) => [run, newest]);
}

/** Pairs of runs of one spec, where none were chosen. */
function suggestions(all, a) {
  const groups = [...grouped(all.filter((run) => run.status === "finished"))].filter(([, runs]) => runs.length > 1);
  const own = a && h("p", {}, h("a", { href: compareLink({ a, b: a }) }, "Two parts of this run"));
  const chosen = all.find((run) => run.id === a);
  const pairs = chosen
    ? all.filter((run) => run.spec === chosen.spec && run.id !== a && run.status === "finished").map((run) => [chosen, run])
    : groups.flatMap(([, runs]) => newestPairs(runs));
  if (!pairs.length)
    return state("Choose two runs.", "They should have played the same cases: the same spec with another model, prompt or setting.", own);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Runs of the same spec"),
    own,
    h(
      "ul",
      { class: "suggestions" },
      pairs.slice(0, 20).map(([one, other]) =>
        h("li", {}, h("a", { href: compareLink({ a: one.id, b: other.id }) }, said(one.name), " and ", said(other.name)), " ", h("span", { class: "muted" }, said(one.spec ?? ""))),
      ),
    ),
  );
}

function tablesOf({ tables: [differing, tested] }) {
  return [
    h("section", { class: "card" }, h("h2", {}, said(tested.title)), table(tested, { sortable: true })),
    h("details", { class: "card", open: differing.rows.length <= 6 }, h("summary", {}, h("h2", {}, said(differing.title))), table(differing)),
  ];
}

async function listCases(section, data, sides, query, signal) {
  const metrics = Object.keys(data.cases);
  const usual = data.cases[data.headline.metric].pairs ? data.headline.metric : (metrics.find((one) => data.cases[one].cases) ?? data.headline.metric);
  let metric = metrics.includes(query.get("metric")) ? query.get("metric") : usual;
  let offset = Math.max(0, Number(query.get("offset")) || 0);
  let turn = 0;
  const list = h("div", {});
  const say = h("p", { class: "muted", role: "status" });
  const label = (one) => `${one === data.headline.metric ? data.headline.title : one} (${number(data.cases[one].differing)})`;
  const choice = h(
    "select",
    {
      "aria-label": "Metric",
      on: {
        change: () => {
          metric = choice.value;
          offset = 0;
          load();
        },
      },
    },
    metrics.map((one) => h("option", { value: one }, label(one))),
  );
  choice.value = metric;
  set(section, h("div", { class: "board-head" }, h("h2", { id: "cases-title" }, "Cases that differ"), h("label", { class: "by" }, "by ", choice)), say, list);

  async function load() {
    const mine = ++turn;
    const { differing, pairs, cases } = data.cases[metric];
    const first = metric === usual ? null : metric;
    move(compareLink({ ...sides, metric: first, offset: offset ? String(offset) : null }));
    set(say, `${number(differing)} of ${plural(pairs, "pair")} differ`, cases < differing ? `; the ${number(cases)} that differ most are listed.` : ".", " The largest difference comes first.");
    if (!cases) return set(list);
    const found = await computed("compare/cases", { ...sides, metric, offset, limit: PAGE }, { signal }).catch((error) => {
      if (error.name === "AbortError") return null;
      return set(list, state("The cases cannot be listed.", error.message)) && null;
    });
    if (!found || mine !== turn) return;
    const focused = document.activeElement?.dataset?.keep;
    set(list, rows(found.cases), pager(found.total));
    if (focused) list.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
  }

  function rows(cases) {
    const conditions = cases.some((one) => one.condition !== null);
    const most = Math.max(...cases.map((one) => Math.abs(one.difference)));
    const lines = cases.map((one, i) => {
      const more = metric === data.headline.metric ? null : metric;
      const bar = h("span", { class: `delta ${one.difference > 0 ? "is-more" : "is-less"}`, "aria-hidden": "true" });
      bar.style.setProperty("--share", (Math.abs(one.difference) / most).toFixed(3));
      const cell = (title, content, kind = "right") => h("td", { class: kind, data: { title } }, content);
      return h(
        "tr",
        {},
        h(
          "th",
          { scope: "row" },
          h("a", { href: pairLink(sides, one, offset + i, more) }, named(one.case), one.repeat ? ` #${one.repeat}` : "", one.repeat === null ? " (all repeats)" : ""),
        ),
        conditions && cell("Condition", named(one.condition ?? "–"), null),
        cell("A", number(one.first)),
        cell("B", number(one.second)),
        cell("B − A", h("span", { class: "difference" }, bar, h("span", {}, `${one.difference > 0 ? "+" : "−"}${number(Math.abs(one.difference))}`))),
      );
    });
    const heads = [["Case"], conditions && ["Condition"], ["A", "right"], ["B", "right"], ["B − A", "right"]].filter(Boolean);
    return scroller(
      h(
        "table",
        { class: "list cards cases" },
        h("caption", { class: "hidden" }, `Cases that differ by ${metric}`),
        h("thead", {}, h("tr", {}, heads.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))),
        h("tbody", {}, lines),
      ),
    );
  }

  function pager(total) {
    if (total <= PAGE) return null;
    const go = (to) => () => {
      offset = to;
      load();
    };
    return h(
      "nav",
      { class: "pager", "aria-label": "Pages of cases" },
      h("button", { type: "button", disabled: offset === 0, data: { keep: "back" }, on: { click: go(Math.max(0, offset - PAGE)) } }, "← Back"),
      h("span", { role: "status" }, `${number(offset + 1)}–${number(Math.min(total, offset + PAGE))} of ${plural(total, "case")}`),
      h("button", { type: "button", disabled: offset + PAGE >= total, data: { keep: "on" }, on: { click: go(offset + PAGE) } }, "On →"),
    );
  }

  await load();
}

/** The address of both episodes of a case next to each other; `at`: its place in the list of a metric. */
export function pairLink(sides, one, at, metric) {
  const query = { ...sides, one: one.a[0], other: one.b[0], at: String(at), metric: metric ?? "", repeats: one.repeat === null ? "all" : "" };
  return `#/compare/episode?${new URLSearchParams(Object.entries(query).filter(([, value]) => value))}`;
}
