// One run: its tables, its episodes with filters, what was said in it, and its record.

import { get, watch } from "./api.js";
import { badge, duration, h, loading, number, plural, prose, said, set, usd, when } from "./dom.js";
import { OUTCOMES, episodeList } from "./episodes.js";
import { back } from "./places.js";
import { table } from "./tables.js";

export async function runPage(main, { run, query, signal }) {
  const base = `runs/${encodeURIComponent(run)}`;
  const progress = h("p", { class: "muted" });
  set(main, loading("Opening the run …"), progress);
  const onIndexing = (share) => set(progress, `Reading its journal for the first time: ${Math.round(share * 100)} %.`);
  const head = h("header", { class: "page-head" });
  const tables = h("section", { "aria-label": "Tables" });
  const body = h("section", { "aria-labelledby": "episodes-title" });
  const record = h("section", { "aria-label": "Run record" });
  const page = h("div", { class: "page" }, head, tables, body, record);
  let data = null;
  get(`${base}/results`, {}, { signal }) // at once: what needs no journal
    .then((early) => {
      if (data || signal.aborted) return;
      drawHead(head, early);
      drawTables(tables, early);
      drawRecord(record, early);
      set(body, h("h2", { id: "episodes-title" }, "Episodes"), loading("Opening the run …"), progress);
      set(main, page);
    })
    .catch(() => {}); // the other answer says why
  data = await get(base, {}, { signal, onIndexing });
  set(main, page);

  const episodes = episodeList(body, data, run, query, signal);
  const drawAll = () => {
    drawHead(head, data);
    drawTables(tables, data);
    drawRecord(record, data);
  };
  drawAll();
  await episodes.load();
  const { start, status, counts } = data;
  const seen = data.tables_pending ? null : { start, status, ...counts };
  const stop = watch(run, seen, async (news, again) => {
    const known = data.counts;
    const further = news.finished !== known.finished || news.total !== known.total;
    if (!again && !further && news.status === data.status && !data.tables_pending) return true;
    const now = await get(base, {}, { signal }).catch(() => null);
    if (!now || signal.aborted) return false;
    data = now;
    drawAll();
    episodes.renew(data);
    await episodes.load(true);
    return !data.tables_pending;
  });
  return {
    leave: stop,
    update: (now) => episodes.restore(now),
    keys: {
      "/": () => document.getElementById("episode-search").focus(),
      u: () => {
        location.hash = back("#/");
      },
    },
  };
}

function drawHead(head, data) {
  const counts = data.counts ?? {};
  const share = (name) =>
    counts[name]
      ? h(
          "a",
          { href: `#/runs/${encodeURIComponent(data.id)}?outcome=${name}`, class: "count" },
          badge(name, null, data.words),
          " ",
          number(counts[name]),
        )
      : null;
  const tokens = data.tokens === null ? null : h("div", {}, h("dt", {}, "Tokens"), h("dd", {}, number(data.tokens)));
  const fact = (name, text) => text !== null && h("div", {}, h("dt", {}, name), h("dd", {}, text));
  set(
    head,
    h("h1", {}, said(data.name), " ", badge(data.status)),
    data.problem && h("p", { class: "problem", role: "note" }, prose(data.problem)),
    data.damage?.length > 0 &&
      data.status !== "damaged" &&
      h(
        "p",
        { class: "problem", role: "note" },
        `${plural(data.damage.length, "line")} of its journal cannot be read: ${data.damage[0]}`,
      ),
    h(
      "dl",
      { class: "facts" },
      h("div", {}, h("dt", {}, "Spec"), h("dd", {}, said(data.spec_name ?? "–"))),
      h("div", {}, h("dt", {}, "Model"), h("dd", {}, said(data.model ?? "–"))),
      data.headline &&
        h(
          "div",
          {},
          h("dt", {}, said(data.headline.name)),
          h("dd", { title: data.headline.why ?? "" }, data.headline.text, data.headline.why ? " (too few turns parsed)" : ""),
        ),
      h(
        "div",
        {},
        h("dt", {}, "Episodes"),
        h(
          "dd",
          {},
          number(counts.finished ?? data.episodes),
          data.of && data.of !== counts.finished ? ` of ${number(data.of)}` : "",
        ),
      ),
      tokens,
      fact("Inner calls", (data.inner_calls ?? null) === null ? null : number(data.inner_calls)),
      fact("Cost", (data.cost ?? null) === null ? null : usd(data.cost, data.cost_is_whole)),
      h("div", {}, h("dt", {}, "Started"), h("dd", {}, when(data.start))),
      h("div", {}, h("dt", {}, "Took"), h("dd", {}, duration(data.duration))),
    ),
    h(
      "p",
      { class: "counts" },
      OUTCOMES.map(share),
      data.status === "finished" && h("a", { href: `#/compare?${new URLSearchParams({ a: data.id })}` }, "Compare with another run"),
    ),
  );
}

function drawTables(section, data) {
  if (data.tables_pending) return set(section, loading("Computing the tables …"));
  if (data.tables_problem) return set(section, h("p", { class: "problem", role: "note" }, data.tables_problem));
  if (!data.tables?.length)
    return set(
      section,
      data.status === "running" ? h("p", { class: "muted" }, "Tables appear when the run is finished.") : null,
    );
  const opened = [...section.querySelectorAll("details")].map((details) => details.open);
  const card = (one, i) =>
    h(
      "details",
      { class: "card", open: opened[i] ?? i === 0 },
      h("summary", {}, h("h2", {}, said(one.title))),
      table(one),
    );
  const [first, ...others] = data.tables;
  const more = h(
    "details",
    { class: "card", open: opened[1] },
    h("summary", {}, h("h2", {}, plural(others.length, "more table"))),
    others.map((one, i) => card(one, i + 2)),
  );
  set(section, card(first, 0), others.length > 1 ? more : others.map((one) => card(one, 1)));
}

function drawRecord(section, data) {
  const meta = data.meta || {};
  const shown = Object.entries(meta).filter(([, value]) => value === null || typeof value !== "object");
  const nested = Object.entries(meta).filter(([, value]) => value !== null && typeof value === "object");
  const open = [...section.querySelectorAll("details")].map((details) => details.open);
  set(
    section,
    h(
      "details",
      { class: "card", open: open[0] },
      h("summary", {}, h("h2", {}, "Run record")),
      h(
        "dl",
        { class: "record" },
        shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, said(String(value))))),
      ),
      nested.map(([name, value]) =>
        h(
          "details",
          {},
          h("summary", {}, name),
          h("pre", { class: "code", dir: "auto" }, JSON.stringify(value, null, 2)),
        ),
      ),
    ),
    h(
      "details",
      { class: "card", open: open[open.length - 1] && open.length > 1 },
      h("summary", {}, h("h2", {}, "Spec")),
      data.spec
        ? h("pre", { class: "code", dir: "auto" }, data.spec)
        : h("p", {}, "The run's folder has no spec.yaml."),
    ),
  );
}
