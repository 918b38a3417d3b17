// Who leads on what, over all runs of the folder, as `harness leaderboard` computes it.

import { computed, get } from "./api.js";
import { h, loading, plural, prose, s, said, set, state } from "./dom.js";
import { back } from "./places.js";
import { table } from "./tables.js";

const LOOK = 5000; // milliseconds
const WIDTH = 132; // of a drawn interval
const toRun = (run) => (run ? `#/runs/${encodeURIComponent(run)}` : null);

export async function leaderboardPage(main, { signal }) {
  const keys = {
    u: () => {
      location.hash = back("#/");
    },
  };
  set(main, loading("Computing the leaderboard …"));
  let data = await computed("leaderboard", {}, { signal }).catch((error) => {
    if (error.name === "AbortError" || error.status !== 400) throw error;
    return { problem: error.message };
  });
  const page = h("div", { class: "page" });
  set(main, page);
  draw(page, data, signal);
  const again = setInterval(async () => {
    if (document.hidden) return;
    const now = await get("leaderboard", { stamp: data.stamp }, { signal }).catch(() => null);
    if (!now || now.same || now.pending || signal.aborted) return;
    if (now.problem && now.problem === data.problem) return;
    data = now;
    draw(page, data, signal);
  }, LOOK);
  return { leave: () => clearInterval(again), keys };
}

function draw(page, data, signal) {
  if (data.problem) {
    const make = h("pre", { class: "command" }, "harness eval --spec tiny --model tiny");
    return set(page, head([]), state("There is no leaderboard yet.", data.problem, make));
  }
  const { sections } = data;
  const places = sections.map((section, i) => sectionOf(section, i, data.stamp, signal));
  const jump = (place) => () => {
    place.scrollIntoView({ block: "start" });
    place.querySelector("h2").focus({ preventScroll: true });
  };
  set(
    page,
    head(sections),
    data.doubts.map((doubt) => h("p", { class: "problem", role: "note" }, prose(doubt))),
    sections.length > 2 &&
      h(
        "nav",
        { class: "jumps", "aria-label": "Benchmarks" },
        sections.map((section, i) =>
          h("button", { type: "button", on: { click: jump(places[i]) } }, said(section.name)),
        ),
      ),
    data.overall && h("section", { class: "card overall" }, h("h2", {}, said(data.overall.title)), overall(data)),
    places,
    data.apart.length > 0 &&
      h(
        "details",
        { class: "card" },
        h("summary", {}, h("h2", {}, `${plural(data.apart.length, "run")} not shown`)),
        h("ul", { class: "notes" }, data.apart.map((line) => h("li", {}, prose(line)))),
      ),
    h(
      "details",
      { class: "card origin" },
      h("summary", {}, h("h2", {}, said(data.origin.title))),
      table(data.origin),
    ),
  );
}

function head(sections) {
  const runs = new Set(sections.flatMap((section) => Object.values(section.runs)));
  const specs = new Set(sections.map((section) => section.spec));
  return h(
    "header",
    { class: "page-head" },
    h("h1", {}, "Leaderboard"),
    sections.length > 0 && h("p", { class: "muted", role: "status" }, `${plural(runs.size, "run")} of ${plural(specs.size, "benchmark")}`),
  );
}

/** All benchmarks: a number leads to the run that it is of. */
function overall({ overall: all, sections }) {
  const main = new Map(sections.filter((section) => section.is_main).map((section) => [section.name, section]));
  const href = (r, i) => {
    const benchmark = i < all.grid.names ? null : all.columns[i - all.grid.names].key.benchmark;
    return toRun(main.get(benchmark)?.runs[all.rows[r].key.model]);
  };
  return table(all, { sortable: true, href });
}

function sectionOf(section, number, stamp, signal) {
  const { standings, runs } = section;
  const { names } = standings.grid;
  const model = standings.grid.header.findIndex((texts) => texts.at(-1) === "Model");
  const href = (r, i) => (i === model ? toRun(runs[standings.rows[r].key.model]) : null);
  const ids = [...new Set(Object.values(runs))];
  const bars = intervals(standings);
  return h(
    "section",
    { class: "card board", "aria-label": section.name },
    h(
      "div",
      { class: "board-head" },
      h("h2", { tabindex: "-1" }, said(section.name)),
      ids.length > 1 &&
        h("a", { href: `#/compare?${new URLSearchParams({ a: ids[1], b: ids[0] })}` }, "Compare two runs"),
    ),
    table(standings, { sortable: true, href, after: bars && { column: names, title: "95 % interval", draw: bars } }),
    section.tables > 0 && further(section, number, stamp, signal),
  );
}

/** The spec's own tables over all its runs, loaded when a reader opens them. */
function further(section, number, stamp, signal) {
  const box = h("div", {});
  let asked = false;
  const open = async () => {
    if (asked || !details.open) return;
    asked = true;
    set(box, loading("Opening the tables …"));
    try {
      const { tables } = await computed("leaderboard/tables", { section: number, stamp }, { signal });
      set(box, tables.map((one) => h("section", { class: "further" }, h("h3", {}, said(one.title)), table(one, { sortable: true }))));
    } catch (error) {
      asked = false;
      if (error.name !== "AbortError") set(box, h("p", { class: "problem" }, prose(error.message)));
    }
  };
  const details = h(
    "details",
    { class: "more-tables", on: { toggle: open } },
    h("summary", {}, `${plural(section.tables, "table")} over all its runs`),
    box,
  );
  return details;
}

/** Draws the headline of a row and its interval, all rows on one scale; null where no row has one. The texts say it, too. */
function intervals(standings) {
  const cells = standings.rows.map((row) => row.cells[0]);
  const ends = cells.flatMap(({ value, low, high }) => [value, low, high]).filter((x) => typeof x === "number");
  if (!cells.some((cell) => typeof cell.low === "number" && typeof cell.high === "number")) return null;
  const shares = ends.every((x) => x >= 0 && x <= 1);
  const [least, most] = shares ? [0, 1] : [Math.min(...ends), Math.max(...ends)];
  const at = (x) => 6 + ((WIDTH - 12) * (x - least)) / (most - least || 1);
  return (r) => {
    const { value, low, high } = cells[r];
    if (typeof value !== "number") return null;
    const whole = typeof low === "number" && typeof high === "number";
    return s(
      "svg",
      { viewBox: `0 0 ${WIDTH} 18`, width: WIDTH, height: 18, "aria-hidden": "true", class: "interval" },
      s("line", { x1: at(least), x2: at(most), y1: 9, y2: 9, class: "scale" }),
      whole && s("line", { x1: at(low), x2: at(high), y1: 9, y2: 9, class: "range" }),
      s("circle", { cx: at(value), cy: 9, r: 4 }),
    );
  };
}
