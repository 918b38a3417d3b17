// All runs below the folder: what was run, how it stands, what it came to.

import { get } from "./api.js";
import { badge, duration, h, loading, name, number, plural, prose, said, scroller, set, state, usd, when } from "./dom.js";
import { move } from "./places.js";

const COLUMNS = [
  ["name", "Run", (run) => h("a", { href: `#/runs/${encodeURIComponent(run.id)}`, data: { keep: run.id } }, name(run.name))],
  ["spec", "Spec", (run) => name(run.spec ?? "–")],
  ["model", "Model", (run) => name(run.model ?? "–")],
  ["status", "Status", (run) => badge(run.status, run.problem)],
  ["headline", "Headline", (run) => headline(run.headline), true],
  ["episodes", "Episodes", (run) => progress(run), true],
  ["tokens", "Tokens", (run) => number(run.tokens), true],
  ["inner_calls", "Inner calls", (run) => number(run.inner_calls), true],
  ["cost", "Cost", (run) => usd(run.cost, run.cost_is_whole), true],
  ["duration", "Time", (run) => duration(run.duration), true],
  ["start", "Started", (run) => h("time", { datetime: run.start }, when(run.start)), true],
];
const IF_KNOWN = ["inner_calls", "cost"]; // columns that are there where some run has them

export async function runsPage(main, { query, signal }) {
  set(main, loading("Looking for runs …"));
  let data = await get("runs", {}, { signal });
  let sort = query.get("sort") || "start";
  let down = query.get("desc") !== "0";
  let wanted = query.get("q") ?? "";
  const list = h("div", {});
  const drawn = new Map(); // the rows of each run
  const find = h("input", {
    type: "search",
    placeholder: "Filter by name, spec, model or status",
    "aria-label": "Filter runs",
    on: {
      input: () => {
        wanted = find.value;
        turned();
      },
    },
  });
  find.value = wanted;
  const count = h("p", { class: "muted", role: "status" });
  const heads = COLUMNS.map(([key, title, , right]) => {
    const turn = () => {
      down = sort === key ? !down : right === true;
      sort = key;
      turned();
    };
    return h(
      "th",
      { scope: "col", class: right && "right" },
      h("button", { type: "button", class: "sort", on: { click: turn } }, title),
    );
  });
  const body = h("tbody", {});
  const table = scroller(h("table", { class: "list cards" }, h("thead", {}, h("tr", {}, heads)), body));

  function turned() {
    const asked = { q: wanted, sort: sort === "start" ? "" : sort, desc: down ? "" : "0" };
    const kept = new URLSearchParams(Object.entries(asked).filter(([, text]) => text));
    move(kept.size ? `#/?${kept}` : "#/");
    draw();
  }

  function draw() {
    const kept = data.runs.filter((run) =>
      [run.name, run.spec, run.model, run.status].join(" ").toLowerCase().includes(wanted.toLowerCase()),
    );
    kept.sort((one, other) => compare(value(one, sort), value(other, sort)) * (down ? -1 : 1));
    set(count, plural(kept.length, "run"), kept.length < data.runs.length && ` of ${number(data.runs.length)}`);
    if (!data.runs.length)
      return set(
        list,
        state(
          "There are no runs here yet.",
          "Make one, and it appears by itself:",
          h("pre", { class: "command" }, "harness eval --spec agentsnet_quick"),
        ),
      );
    if (!kept.length) return set(list, state("No run matches.", "Clear the filter to see all runs."));
    COLUMNS.forEach(([key], i) => {
      heads[i].hidden = isHidden(key);
      if (key === sort) heads[i].setAttribute("aria-sort", down ? "descending" : "ascending");
      else heads[i].removeAttribute("aria-sort");
    });
    arrange(kept.flatMap(rows));
    if (list.firstChild !== table) set(list, table);
  }

  const isHidden = (key) => IF_KNOWN.includes(key) && data.runs.every((run) => (run[key] ?? null) === null);

  /** The rows of a run: the same ones as long as it stays as it is. */
  function rows(run) {
    const text = JSON.stringify([run, IF_KNOWN.map(isHidden)]);
    if (drawn.get(run.id)?.text === text) return drawn.get(run.id).nodes;
    const cell = ([key, title, draw_, right], i) =>
      h(
        i ? "td" : "th",
        { class: `${right ? "right " : ""}of-${key}`, scope: i ? null : "row", hidden: isHidden(key), data: { title } },
        draw_(run),
      );
    const nodes = [h("tr", { class: run.problem ? "noted" : null }, COLUMNS.map(cell))];
    if (run.problem)
      nodes.push(
        h("tr", { class: "note" }, h("td", { colspan: COLUMNS.length }, h("p", { class: "problem" }, prose(run.problem)))),
      );
    drawn.set(run.id, { text, nodes });
    return nodes;
  }

  /** Put rows in order. Those that stay are not touched: they keep the focus and what is selected. */
  function arrange(nodes) {
    const focused = body.contains(document.activeElement) && document.activeElement.dataset.keep;
    const wanted_ = new Set(nodes);
    for (const row of [...body.children]) if (!wanted_.has(row)) row.remove();
    nodes.forEach((node, i) => {
      if (body.children[i] !== node) body.insertBefore(node, body.children[i] ?? null);
    });
    if (focused && document.activeElement === document.body)
      body.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  set(
    main,
    h(
      "div",
      { class: "page" },
      h(
        "header",
        { class: "page-head" },
        h("h1", {}, "Runs"),
        h("p", { class: "muted" }, "in ", said(data.root), "/"),
        count,
      ),
      h("div", { class: "bar" }, find),
      list,
    ),
  );
  draw();
  const again = setInterval(async () => {
    if (document.hidden) return;
    const now = await get("runs", {}, { signal }).catch(() => null);
    if (now && JSON.stringify(now) !== JSON.stringify(data)) {
      data = now;
      draw();
    }
  }, 3000);
  return { leave: () => clearInterval(again), keys: { "/": () => find.focus() } };
}

function value(run, key) {
  const found = run[key];
  return found && typeof found === "object" ? found.value : found;
}

function compare(one, other) {
  if (one === other) return 0;
  if (one === null || one === undefined) return -1;
  if (other === null || other === undefined) return 1;
  return typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
}

export function headline(found) {
  if (found === null || found === undefined) return "–";
  const range =
    found.low === null || found.low === undefined
      ? ""
      : `, 95 % interval ${number(found.low)} to ${number(found.high)}`;
  return h(
    "span",
    { title: found.why ?? `${found.name}: ${found.n} episodes${range}` },
    h("strong", {}, found.text ?? number(found.value)),
    h("span", { class: "under" }, said(found.name ?? found.metric), found.why ? ": too few turns parsed" : ""),
  );
}

function progress(run) {
  const done = number(run.episodes);
  if (run.status === "finished" || !run.of || (run.status === "damaged" && run.episodes === run.of)) return done;
  return h(
    "span",
    {},
    `${done} of ${number(run.of)} `,
    h("progress", { max: run.of, value: run.episodes ?? 0, "aria-label": "episodes played" }),
  );
}
