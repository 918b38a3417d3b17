// The routes: #/ · #/runs/ID · #/runs/ID/episode?id=…&round=…&agent=…&turn=… · #/runs/ID/versions?id=… · #/leaderboard ·
// #/compare?a=RUN&b=RUN&metric=… · #/compare/episode?a=RUN&b=RUN&one=ID&other=ID. Every one is a link to share.

import { Failure, keepKey } from "./api.js";
import { comparePage } from "./compare.js";
import { comparedPage } from "./compared.js";
import { leaderboardPage } from "./leaderboard.js";
import { versionsPage } from "./versions.js";
import { h, said, set, state } from "./dom.js";
import { listen, showHelp } from "./help.js";
import { episodePage } from "./episode.js";
import { back, keep, listed } from "./places.js";
import { runPage } from "./run.js";
import { runsPage } from "./runs.js";

const main = document.getElementById("main");
const crumbs = document.getElementById("crumbs");
const nav = document.getElementById("pages");
const PAGES = { episode: episodePage, versions: versionsPage };
let page = { leave() {}, keys: {} };
let leaving = new AbortController();
let place = null;

/** The address as {path, query}. */
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

/** A part of an address; one that a reader mistyped leads to an error page. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function show() {
  const { path, query } = route();
  if (location.hash === "#main") return main.focus();
  if (path[2] !== "episode") keep(location.hash || "#/");
  const list = path[2] === "episode" ? listed(query) : {};
  const whole = path[0] === "compare"; // its query says what is compared
  const here = whole ? location.hash : `${path.join("/")}?${new URLSearchParams({ id: query.get("id") || "", ...list })}`;
  if (here === place && page.update) return page.update(query);
  const first = place === null;
  page.leave?.();
  leaving.abort();
  leaving = new AbortController();
  place = here;
  const { signal } = leaving;
  const [what, run, part] = path;
  const make = pageOf(what, run, part);
  if (what === "leaderboard") trail([["Leaderboard", "#/leaderboard"]]);
  else if (what === "compare") trail([["Compare", back("#/compare")], run === "episode" && [caseOf(query.get("one") ?? ""), location.hash]]);
  else trail(run ? trailOf(run, part in PAGES ? query.get("id") : null, list) : []);
  document.body.classList.toggle("is-list", !run);
  for (const link of nav.children) {
    if (link.hash === `#/${what}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  page = { keys: {} };
  if (!make) return set(main, state("There is no such page.", null, h("p", {}, h("a", { href: "#/" }, "All runs"))));
  try {
    const made = await make(main, { run, query, signal });
    if (signal.aborted) return made?.leave?.();
    page = { keys: {}, ...made };
    if (!first && document.activeElement === document.body) main.focus({ preventScroll: true }); // the link is gone
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    if (!(error instanceof Failure)) console.error(error);
    const again = h(
      "button",
      {
        type: "button",
        on: {
          click: () => {
            place = null;
            show();
          },
        },
      },
      "Try again",
    );
    set(
      main,
      state("This cannot be shown.", error.message, h("p", {}, again, " ", h("a", { href: "#/" }, "All runs"))),
    );
  }
}

function pageOf(what, run, part) {
  if (!what) return runsPage;
  if (what === "runs" && run) return PAGES[part] ?? runPage;
  if (what === "compare") return { episode: comparedPage }[run] ?? (run ? null : comparePage);
  return what === "leaderboard" && !run ? leaderboardPage : null;
}

/** The case and repeat of an episode's id, without its condition. */
const caseOf = (id) => id.split("/").slice(1).join("/") || id;

function trailOf(run, episode, among) {
  const list = `#/runs/${encodeURIComponent(run)}`;
  return [[run.replaceAll(":", "/"), episode ? back(list, among) : list], episode && [episode, location.hash]];
}

/** The way to this page behind all runs: names with addresses. */
function trail(behind) {
  const parts = [["Runs", back("#/")], ...behind.filter(Boolean)];
  document.title = [
    ...parts
      .slice(1)
      .map(([name]) => name)
      .reverse(),
    "harness view",
  ]
    .join(" · ")
    .slice(0, 200);
  set(
    crumbs,
    h(
      "ol",
      {},
      parts.map(([name, to], i) =>
        h("li", {}, h("a", { href: to, "aria-current": i === parts.length - 1 ? "page" : null }, said(name))),
      ),
    ),
  );
}

window.addEventListener("hashchange", show);
document.getElementById("help").addEventListener("click", showHelp);
listen((key) => page.keys[key]);
keepKey();
show();
