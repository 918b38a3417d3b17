// Both episodes of a case next to each other: the same case in two runs, or in two parts of one.

import { computed, get } from "./api.js";
import { h, loading, plural, said, set } from "./dom.js";
import { compareLink, pairLink, sidesOf } from "./compare.js";
import { back } from "./places.js";
import { heads, parting, rounds, theyPart } from "./side_by_side.js";

export async function comparedPage(main, { query, signal }) {
  const asked = sidesOf(query);
  const at = Number(query.get("at") ?? NaN);
  const metric = query.get("metric") ?? "";
  set(main, loading("Opening both episodes …"));
  const open = (run, episode) => get(`runs/${encodeURIComponent(run)}/episode`, { episode }, { signal });
  const [one, other, near, runs] = await Promise.all([
    open(asked.a, query.get("one") ?? ""),
    open(asked.b, query.get("other") ?? ""),
    neighbors(asked, metric, at, signal),
    computed("compare", asked, { signal }).catch(() => null),
  ]);
  const letter = (side) => h("span", { class: `letter is-${side}` }, side);
  const names = runs?.names ?? [asked.a, asked.b];
  const sides = [
    { title: `A: ${names[0]}`, run: asked.a, data: one },
    { title: `B: ${names[1]}`, run: asked.b, data: other },
  ];
  const parted = parting(sides);
  const list = compareLink({ ...asked, metric });
  const way = (to, text, key) =>
    h("a", { class: `step${to ? "" : " off"}`, href: to && pairLink(asked, to.case, to.at, metric), "aria-disabled": to ? null : "true", title: key }, text);
  const facing = h(
    "div",
    { class: "versions sides-head" },
    names.map((name, i) => h("p", {}, letter("AB"[i]), " ", said(name))),
  );
  set(
    main,
    h(
      "div",
      { class: "page wide" },
      h(
        "header",
        { class: "page-head episode-head" },
        h(
          "div",
          { class: "title-row" },
          h("h1", {}, said(/^\d+$/.test(one.case) ? `Case ${one.case}` : one.case || one.id), one.repeat ? ` #${one.repeat}` : ""),
          h(
            "nav",
            { "aria-label": "Cases" },
            h("a", { href: list }, "all cases that differ"),
            way(near.before, "← previous", "Previous case ([)"),
            way(near.after, "next →", "Next case (])"),
          ),
        ),
      ),
      heads(sides),
      h("p", { class: "parting", role: "note" }, words(sides, parted)),
      query.get("repeats") === "all" && h("p", { class: "muted" }, "The numbers of this case are means over its repeats; these are the first ones."),
      facing,
      rounds(sides, 0, parted),
    ),
  );
  const go = (to) => () => {
    if (to) location.hash = pairLink(asked, to.case, to.at, metric).slice(1);
  };
  return {
    keys: {
      "[": go(near.before),
      "]": go(near.after),
      u: () => {
        location.hash = back("#/compare", { ...asked, metric });
      },
    },
  };
}

/** The cases before and after one in the list of a metric; none where the address does not say which place it has. */
async function neighbors(asked, metric, at, signal) {
  if (!Number.isInteger(at) || at < 0) return {};
  const from = Math.max(0, at - 1);
  const found = await computed("compare/cases", { ...asked, metric, offset: from, limit: 3 }, { signal }).catch(() => null);
  const place = (number) => found?.cases[number - from] && { case: found.cases[number - from], at: number };
  return { before: at > 0 ? place(at - 1) : null, after: place(at + 1) };
}

function words(sides, parted) {
  if (parted === null) return "All turns are the same.";
  const before = parted ? `${plural(parted, "turn")} ${parted === 1 ? "is" : "are"} the same. ` : "";
  return [before, theyPart(sides, parted)];
}
